//! A binary to run, a server to run it against, and what both say.

// Of what other tests stand on, not everything is needed here.
#![allow(dead_code)]

#[path = "../kit/mod.rs"]
pub mod kit;
pub use kit::{missing as absent, postgres as cluster, server_process as process};
#[path = "../auth/harness/authority.rs"]
pub mod authority;

use std::{
    collections::HashMap,
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use tempfile::TempDir;

use self::{absent::report_missing, process::ServerProcess};

/// Runs a test against a server on SQLite and one on PostgreSQL, in an account of
/// its own on each.
macro_rules! on_both_databases {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            use crate::harness::Database;

            #[test]
            fn on_sqlite() {
                Database::Sqlite.run(stringify!($test), super::$test);
            }

            #[test]
            fn on_postgres() {
                Database::Postgres.run(stringify!($test), super::$test);
            }
        }
    )+};
}

pub(crate) use on_both_databases;

/// What a server keeps its data in.
#[derive(Clone, Copy)]
pub enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    /// Runs a test in an account of its own.
    pub fn run(self, name: &str, test: impl Fn(World)) {
        if let Some(server) = self.server() {
            test(World {
                server: server.clone(),
                account: name.to_owned(),
            });
        }
    }

    /// The address of the one server of this run on this database; `None` where
    /// there is no such database.
    fn server(self) -> Option<&'static String> {
        static SQLITE: OnceLock<Option<String>> = OnceLock::new();
        static POSTGRES: OnceLock<Option<String>> = OnceLock::new();
        let (server, name) = match self {
            Self::Sqlite => (&SQLITE, "sqlite"),
            Self::Postgres => (&POSTGRES, "postgres-server"),
        };
        let start = || {
            let url = match self {
                Self::Sqlite => Some("sqlite::memory:".to_owned()),
                Self::Postgres => cluster::database_url(),
            };
            let Some(url) = url else {
                absent_postgres();
                return None;
            };
            let process = ServerProcess::start(name, &[("EXPERTISE_DATABASE_URL", &url)]);
            let address = format!("http://{}", process.address());
            // It serves until the run ends.
            std::mem::forget(process);
            Some(address)
        };
        server.get_or_init(start).as_ref()
    }
}

/// Says that there is no PostgreSQL here.
pub fn absent_postgres() {
    report_missing("PostgreSQL", "EXPERTISE_REQUIRE_POSTGRES");
}

/// A server and an account that nobody else uses.
pub struct World {
    pub server: String,
    pub account: String,
}

impl World {
    /// The binary with these arguments, for this server and account.
    pub fn expertise(&self, args: &[&str]) -> Expertise {
        expertise(args)
            .env("EXPERTISE_SERVER", &self.server)
            .env("EXPERTISE_ACCOUNT", &self.account)
    }

    /// Imports documents of `examples/guides`; their new guids.
    pub fn given(&self, guides: &[&str]) -> Vec<String> {
        let paths: Vec<String> = guides.iter().map(|guide| example(guide)).collect();
        let mut args = vec!["import", "--output=json"];
        args.extend(paths.iter().map(String::as_str));
        let reports = self.expertise(&args).run().succeeded().json();
        let reports = reports.as_array().expect("an array");
        reports.iter().map(|it| text(&it["guid"])).collect()
    }

    /// The document of a task.
    pub fn exported(&self, guid: &str) -> String {
        self.expertise(&["export", guid]).run().succeeded().stdout
    }
}

/// A text of an answer.
pub fn text(value: &serde_json::Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The path of an example guide.
pub fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/guides");
    path.join(name).display().to_string()
}

/// The binary in an empty directory, with no setting from this process.
pub struct Expertise {
    directory: TempDir,
    command: Command,
    stdin: Option<String>,
}

pub fn expertise(args: &[&str]) -> Expertise {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_expertise"));
    command.args(args).current_dir(directory.path());
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("EXPERTISE_") {
            command.env_remove(name);
        }
    }
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    Expertise {
        directory,
        command,
        stdin: None,
    }
}

impl Expertise {
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.path(name), text).expect("a file of our own");
        self
    }

    pub fn stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.to_owned());
        self
    }

    /// A path in the directory that it runs in.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn run(mut self) -> Said {
        let input = match self.stdin {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        self.command.stdin(input);
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the binary runs");
        if let Some(text) = self.stdin {
            let mut pipe = child.stdin.take().expect("it is piped");
            pipe.write_all(text.as_bytes()).expect("it reads");
        }
        let output = child.wait_with_output().expect("its end");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            code: output.status.code(),
            directory: self.directory,
        }
    }
}

/// What a run said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
    directory: TempDir,
}

impl Said {
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }

    /// The one line of a failure with this exit code.
    pub fn failure(self, code: i32) -> String {
        let line = self.stderr;
        assert_eq!(self.code, Some(code), "{line}");
        assert_eq!(self.stdout, "");
        assert_eq!(line.lines().count(), 1, "{line}");
        line
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect(&self.stdout)
    }

    /// A file that it wrote.
    pub fn file(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).expect(name)
    }
}

/// A text with a mark in place of each id, the same for the same id.
pub fn marked(text: &str) -> String {
    let mut marks: HashMap<&str, usize> = HashMap::new();
    let mut marked = String::new();
    let mut rest = text;
    while let Some(at) = rest
        .char_indices()
        .map(|(at, _)| at)
        .find(|&at| is_id(rest, at))
    {
        let (before, from) = rest.split_at(at);
        let (id, after) = from.split_at(ID);
        let count = marks.len() + 1;
        let mark = *marks.entry(id).or_insert(count);
        marked.push_str(&format!("{before}<id {mark}>"));
        rest = after;
    }
    marked + rest
}

const ID: usize = 36;

fn is_id(text: &str, at: usize) -> bool {
    let id = text.get(at..at + ID);
    id.is_some_and(|id| uuid::Uuid::try_parse(id).is_ok())
}
