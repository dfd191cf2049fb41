//! Transcripts: pages of commands with what they print. `tests/README.md` has the notation.

use std::{
    env, fs, iter,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ScopedJoinHandle},
};

use regex::Regex;
use snapbox::{
    Data,
    filter::NormalizeToExpected,
    report::{Palette, write_diff},
};
use tempfile::TempDir;

use crate::{
    command::{CommandOutput, example_guide, shell},
    databases::Database,
    kit::{
        child::binary,
        scratch::Scratch,
        server::{Settings, TestServer},
    },
};

/// With the value `overwrite`, the printed output replaces the output on the pages.
const ACCEPT: &str = "SNAPSHOTS";

/// Begins a case.
const HEADING: &str = "\n## ";

/// How many cases of a page run at the same time.
const CONCURRENT: usize = 4;

/// Where the pages are.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli")
}

/// Runs the commands of a page on SQLite: tests of calls hold that both databases answer alike.
///
/// # Panics
/// When they print something else, with the difference and its lines in the page.
#[track_caller]
pub fn check(name: &str) {
    let path = directory().join(format!("{name}.md"));
    let page = fs::read_to_string(&path).expect("the page");
    let mut cases = page.split(HEADING);
    let head = cases.next().expect("what is before the first case");
    let own_server = own_server(name, head);
    let server = match &own_server {
        Some(server) => server.url(),
        None => Database::Sqlite.server().url(),
    };
    let run = |text: &str| {
        let mut case = Case::new(&server, &page);
        (case.run(head), HEADING.to_owned() + &case.run(text))
    };
    let mut printed = Vec::new();
    for cases in cases.collect::<Vec<_>>().chunks(CONCURRENT) {
        thread::scope(|scope| {
            let cases: Vec<_> = cases.iter().map(|text| scope.spawn(|| run(text))).collect();
            let ended = cases.into_iter().map(ScopedJoinHandle::join);
            printed.extend(ended.map(|it| it.expect("a case ends")));
        });
    }
    let mut heads = printed.iter().map(|(head, _)| head);
    let printed_head = heads.find(|it| *it != head).map_or(head, String::as_str);
    let printed: String = printed.iter().map(|(_, case)| case.as_str()).collect();
    let printed = printed_head.to_owned() + &printed;
    if printed == page {
        return;
    }
    if env::var(ACCEPT).is_ok_and(|it| it == "overwrite") {
        fs::write(&path, &printed).expect("the page");
        return;
    }
    let mut difference = String::new();
    let written = write_diff(
        &mut difference,
        &Data::text(page),
        &Data::text(printed),
        Some(&path.display()),
        Some(&"printed"),
        Palette::plain(),
    );
    written.expect("a text");
    panic!(
        "{difference}\nto accept it: {ACCEPT}=overwrite cargo test --test it -- transcripts::{name}"
    );
}

/// The private server of a page, on its own database, with the settings in `<!-- server: NAME=VALUE
/// … -->`.
fn own_server(name: &str, head: &str) -> Option<TestServer> {
    let (_, settings) = head.split_once("<!-- server: ")?;
    let (settings, _) = settings.split_once(" -->").expect("its end");
    let settings = settings.split(' ').map(|it| it.split_once('='));
    let settings: Vec<(&str, &str)> = settings.map(|it| it.expect("a value")).collect();
    let url = Scratch::of_this_run().sqlite_url(&format!("transcript_{name}"));
    let settings = Settings::new(&url).set_all(&settings);
    Some(TestServer::start_blocking(&settings))
}

/// A case of a page, with its own directory and account.
struct Case<'a> {
    directory: TempDir,
    values: Values<'a>,
}

impl<'a> Case<'a> {
    fn new(server: &str, page: &'a str) -> Self {
        static CASES: AtomicUsize = AtomicUsize::new(1);
        let account = format!("case-{}", CASES.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        for name in ["work", "tmp", "bin"] {
            fs::create_dir(path(name)).expect("a directory");
        }
        symlink(example_guide(""), path("work/examples")).expect("a link");
        symlink(binary(), path("bin/expertise")).expect("a link");
        let known = [
            ("[server]", server.to_owned()),
            ("[account]", account),
            ("[dir]", path("work").display().to_string()),
            ("[tmp]", path("tmp").display().to_string()),
            ("[bin]", path("bin").display().to_string()),
        ];
        Self {
            values: Values {
                page,
                known: known.map(|(name, value)| (name.to_owned(), value)).into(),
            },
            directory,
        }
    }

    /// Writes the files of a text and runs its commands. Returns the text with what they print.
    fn run(&mut self, text: &str) -> String {
        let mut printed = Vec::new();
        let mut lines = text.split('\n');
        while let Some(line) = lines.next() {
            printed.push(line.to_owned());
            let Some(kind) = line.strip_prefix("```") else {
                continue;
            };
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            match kind.split_once(' ') {
                Some((_, file)) => {
                    let path = self.directory.path().join("work").join(file);
                    let parent = path.parent().expect("a directory");
                    fs::create_dir_all(parent).expect("a directory");
                    let text = self.values.expand(&(block.join("\n") + "\n"));
                    fs::write(path, text).expect("a file");
                }
                None if kind == "console" => {
                    printed.extend(self.run_commands(&block));
                    printed.push("```".to_owned());
                    continue;
                }
                None => {}
            }
            printed.extend(block.into_iter().chain(["```"]).map(str::to_owned));
        }
        printed.join("\n")
    }

    fn run_commands(&mut self, block: &[&str]) -> Vec<String> {
        let mut printed = Vec::new();
        let mut lines = block.iter().copied().peekable();
        while let Some(line) = lines.next() {
            printed.push(line.to_owned());
            let mut script = line.strip_prefix("$ ").expect(line).to_owned();
            while let Some(line) = lines.next_if(|line| line.starts_with('>')) {
                printed.push(line.to_owned());
                script = script + "\n" + line[1..].strip_prefix(' ').unwrap_or_default();
            }
            let shown = iter::from_fn(|| lines.next_if(|line| !line.starts_with("$ ")));
            let shown = shown.collect::<Vec<_>>().join("\n");
            let output = rendered(&self.run_command(&script));
            let output = Data::text(self.values.redact(output));
            let output = NormalizeToExpected::new()
                .redact()
                .normalize(output, &Data::text(shown));
            printed.extend(output.to_string().lines().map(str::to_owned));
        }
        printed
    }

    fn run_command(&self, script: &str) -> CommandOutput {
        let value = |name: &str| self.values.expand(name);
        let path = env::var("PATH").expect("a search path");
        shell(&value(script))
            .in_directory(Path::new(&value("[dir]")))
            .env("PATH", &format!("{}:{path}", value("[bin]")))
            .env("TMPDIR", &value("[tmp]"))
            .env("EXPERTISE_SERVER", &value("[server]"))
            .env("EXPERTISE_ACCOUNT", &value("[account]"))
            .run()
    }
}

/// Standard output, standard error after `!`, and an exit code other than 0 after `?`.
fn rendered(output: &CommandOutput) -> String {
    let mut text = output.stdout.clone();
    for line in output.stderr.lines() {
        text = text + "! " + line + "\n";
    }
    if output.code != Some(0) {
        text = text
            + "? "
            + &output
                .code
                .map_or_else(String::new, |code| code.to_string());
    }
    let is_text = |c: char| c == '\n' || !c.is_control() && !('\u{202a}'..='\u{2069}').contains(&c);
    let visible = |c: char| match is_text(c) {
        true => c.to_string(),
        false => c.escape_unicode().to_string(),
    };
    text.trim_end_matches('\n').chars().map(visible).collect()
}

/// What differs from run to run, and what a page calls it: `[id 1]`.
struct Values<'a> {
    /// What it has word for word stays as it is.
    page: &'a str,
    /// Names and values.
    known: Vec<(String, String)>,
}

impl Values<'_> {
    fn expand(&self, text: &str) -> String {
        let replaced = |text: String, (name, value): &(String, String)| text.replace(name, value);
        self.known.iter().fold(text.to_owned(), replaced)
    }

    fn redact(&mut self, text: String) -> String {
        static PATTERNS: OnceLock<[(&str, Regex); 5]> = OnceLock::new();
        let patterns = PATTERNS.get_or_init(|| {
            [
                ("file", r#"expertise-(\w{6})(?:\.json|")"#),
                ("id", r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"),
                ("etag", r#"(?:etag": ?"|--if-unchanged=)([\w-]+)"#),
                ("cursor", r#"(?:--since |cursor": ?")([\w.-]+)"#),
                ("time", r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z)"),
            ]
            .map(|(kind, pattern)| (kind, Regex::new(pattern).expect("a pattern")))
        });
        for (kind, pattern) in patterns {
            for (_, [value]) in pattern.captures_iter(&text).map(|it| it.extract()) {
                let is_known = self.known.iter().any(|(_, known)| known == value);
                if is_known || self.page.contains(value) {
                    continue;
                }
                let of_kind = |(name, _): &&(String, String)| name.starts_with(&format!("[{kind}"));
                let name = match *kind {
                    "time" => "[time]".to_owned(),
                    kind => format!("[{kind} {}]", 1 + self.known.iter().filter(of_kind).count()),
                };
                self.known.push((name, value.to_owned()));
            }
        }
        let replaced = |text: String, (name, value): &(String, String)| {
            // Two spaces are between columns, which stay aligned.
            let column = |text: &str| format!("{text:<0$}  ", value.len());
            text.replace(&column(value), &column(name))
                .replace(value, name)
        };
        self.known.iter().fold(text, replaced)
    }
}
