//! The binary as a command: its arguments, environment and files, and its output.

use std::{
    fs,
    io::{self, Write},
    net::SocketAddr,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{self, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::kit::child::{SupervisedChild, binary, lines_of, remove_settings};

/// Far beyond what a command takes: a wait that long has hung.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The binary that the tests run, for a shell.
pub fn binary_text() -> String {
    let binary = binary().into_os_string().into_string();
    binary.expect("a path in UTF-8")
}

/// A server, and an account that nothing else uses.
pub struct Cli {
    pub server: String,
    pub account: String,
}

impl Cli {
    /// The binary with these arguments, for this server and account.
    pub fn command(&self, args: &[&str]) -> Command {
        command(args)
            .env("EXPERTISE_SERVER", &self.server)
            .env("EXPERTISE_ACCOUNT", &self.account)
    }

    /// Imports documents of `examples/guides`; the ids of their new tasks.
    pub fn import_guides(&self, guides: &[&str]) -> Vec<String> {
        let paths: Vec<String> = guides.iter().map(|guide| example_guide(guide)).collect();
        let mut args = vec!["import", "--format=json"];
        args.extend(paths.iter().map(String::as_str));
        let reports = self.command(&args).run().succeeded().json();
        let reports = reports.as_array().expect("an array");
        reports.iter().map(|it| text(&it["guid"])).collect()
    }

    /// Imports a document; the id of its new task.
    pub fn import(&self, document: &serde_json::Value) -> String {
        let import = self.command(&["import", "-", "--format=json"]);
        let reports = import.stdin(&document.to_string()).run().succeeded().json();
        text(&reports[0]["guid"])
    }

    /// The document of a task with what the system sets.
    pub fn export(&self, guid: &str) -> String {
        let export = self.command(&["export", guid, "--full"]);
        export.run().succeeded().stdout
    }

    /// The same as JSON.
    pub fn exported(&self, guid: &str) -> serde_json::Value {
        serde_json::from_str(&self.export(guid)).expect("JSON")
    }
}

/// The text of a JSON value.
pub fn text(value: &serde_json::Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The path of an example guide.
pub fn example_guide(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/guides");
    path.join(name).display().to_string()
}

/// The binary in an empty directory, with no setting from this process.
pub struct Command {
    directory: TempDir,
    command: process::Command,
    stdin: Option<String>,
}

pub fn command(args: &[&str]) -> Command {
    program(binary(), args)
}

/// A script of the shell instead of the binary.
pub fn shell(script: &str) -> Command {
    // By its path, because the standard library would fork this whole process to look for a name in
    // another PATH.
    program("/bin/sh".into(), &["-c", script])
}

fn program(program: PathBuf, args: &[&str]) -> Command {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = process::Command::new(program);
    command.args(args).current_dir(directory.path());
    remove_settings(&mut command);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    Command {
        directory,
        command,
        stdin: None,
    }
}

impl Command {
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn envs(self, variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter();
        variables.fold(self, |command, (name, value)| command.env(name, value))
    }

    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.path(name), text).expect("a file of our own");
        self
    }

    /// Runs in this directory instead of a new one.
    pub fn in_directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Runs as this user.
    pub fn run_by(mut self, id: u32) -> Self {
        chown(self.directory.path(), Some(id), Some(id)).expect("the owner of our directory");
        self.command.uid(id).gid(id);
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

    /// Runs it to its end.
    pub fn run(self) -> CommandOutput {
        self.start().end()
    }

    /// Runs it to its end, while the servers of the test's runtime keep running.
    pub async fn run_in_background(self) -> CommandOutput {
        let running = tokio::task::spawn_blocking(|| self.run());
        running.await.expect("no panic")
    }

    pub fn start(mut self) -> RunningCommand {
        let stdin = match self.stdin {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        self.command.stdin(stdin);
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = SupervisedChild::spawn(&mut self.command, Signal::KILL);
        let stdout = lines_of(child.child.stdout.take().expect("it is piped"));
        let stderr = lines_of(child.child.stderr.take().expect("it is piped"));
        if let Some(text) = self.stdin {
            let mut pipe = child.child.stdin.take().expect("it is piped");
            match pipe.write_all(text.as_bytes()) {
                // It may end before it reads.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                written => written.expect("it reads"),
            }
        }
        RunningCommand {
            stdout,
            stderr,
            child,
            directory: self.directory,
        }
    }
}

/// A command that runs, until it is dropped at the latest.
pub struct RunningCommand {
    child: SupervisedChild,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    directory: TempDir,
}

impl RunningCommand {
    /// The next line of its output; `None` when that has ended.
    pub fn next_line(&self) -> Option<String> {
        match self.stdout.recv_timeout(TIMEOUT) {
            Ok(line) => Some(without_end(line)),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line in time"),
        }
    }

    /// The next line of its standard error.
    pub fn next_error_line(&self) -> String {
        let line = self.stderr.recv_timeout(TIMEOUT);
        without_end(line.expect("a line in time"))
    }

    /// The start line of a server.
    pub fn start_line(&self) -> String {
        self.next_line().expect("a start line")
    }

    /// Where a server listens, once it serves.
    pub fn address(&self) -> SocketAddr {
        let line = self.start_line();
        let address = line.split_whitespace().nth(4).expect("an address");
        address.parse().expect("an address")
    }

    /// A path in the directory that it runs in.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Kills it; the output that was not read yet.
    pub fn kill(self) -> CommandOutput {
        self.signal(Signal::KILL);
        self.end()
    }

    /// Waits for its end; the output that was not read yet.
    pub fn end(mut self) -> CommandOutput {
        let stdout = rest_of(&self.stdout);
        let stderr = rest_of(&self.stderr);
        CommandOutput {
            stdout,
            stderr,
            code: self.child.wait(TIMEOUT).expect("it ends in time").code(),
        }
    }
}

fn without_end(line: String) -> String {
    line.trim_end_matches(['\r', '\n']).to_owned()
}

fn rest_of(lines: &Receiver<String>) -> String {
    let mut rest = String::new();
    loop {
        match lines.recv_timeout(TIMEOUT) {
            Ok(line) => rest.push_str(&line),
            Err(RecvTimeoutError::Disconnected) => return rest,
            Err(RecvTimeoutError::Timeout) => panic!("it does not end"),
        }
    }
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct CommandOutput {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

impl CommandOutput {
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

    /// The same, with these parts in the line.
    #[track_caller]
    pub fn fails_with(self, code: i32, parts: &[&str]) -> String {
        let line = self.failure(code);
        line.says(parts);
        line
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect(&self.stdout)
    }
}

/// What a text says, asserted.
pub trait Says {
    /// Panics unless every part is in the text.
    fn says(&self, parts: &[&str]);

    /// Panics if one of the parts is in the text.
    fn says_none_of(&self, parts: &[&str]);
}

impl Says for str {
    #[track_caller]
    fn says(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.contains(part), "no {part:?} in: {self}");
        }
    }

    #[track_caller]
    fn says_none_of(&self, parts: &[&str]) {
        for part in parts {
            assert!(!self.contains(part), "{part:?} in: {self}");
        }
    }
}
