//! A terminal of a given width, and one with a person who answers.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
};

use crate::{
    command::{Cli, binary_text},
    kit::child::remove_settings,
};

/// A command of the shell that runs in a terminal, with no setting from this process.
pub fn in_terminal(command: &str, environment: &[(&str, &str)]) -> Command {
    let mut script = Command::new("script");
    remove_settings(&mut script);
    script.args(["-qec", command, "/dev/null"]);
    script
        .envs(environment.iter().copied())
        .env("TERM", "xterm");
    script
}

/// What a shell command shows in a terminal of so many columns, without colours.
pub fn shown_in(columns: usize, command: &str, environment: &[(&str, &str)]) -> String {
    let line = format!("stty cols {columns} rows 40; {command}");
    let mut command = in_terminal(&line, environment);
    let output = command.env("NO_COLOR", "1").stdin(Stdio::null()).output();
    let output = output.expect("util-linux has script");
    let shown = String::from_utf8_lossy(&output.stdout);
    shown.replace('\r', "")
}

/// The output of a command in a terminal after typing these lines, and its exit code.
pub fn answered(typed: &str, command: &str, environment: &[(&str, &str)]) -> (String, Option<i32>) {
    answered_after("", || (), typed, command, environment)
}

/// The same, but waits for this output and runs a function before typing.
pub fn answered_after(
    question: &str,
    meanwhile: impl FnOnce(),
    typed: &str,
    command: &str,
    environment: &[(&str, &str)],
) -> (String, Option<i32>) {
    let line = format!("stty -echo cols 200 rows 40; {command}");
    let mut child = in_terminal(&line, environment)
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux has script");
    let mut keyboard = child.stdin.take().expect("it is piped");
    let mut screen = child.stdout.take().expect("it is piped");
    let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&shown).contains(question) {
        let count = screen.read(&mut piece).expect("what is shown");
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(&shown));
        shown.extend(&piece[..count]);
    }
    meanwhile();
    keyboard.write_all(typed.as_bytes()).expect("it reads");
    // The terminal stays open until the command has ended.
    screen.read_to_end(&mut shown).expect("what is shown");
    let status = child.wait().expect("its end");
    drop(keyboard);
    let shown = String::from_utf8_lossy(&shown);
    (shown.replace('\r', ""), status.code())
}

impl Cli {
    /// The output of a command in a terminal after typing these lines, and its exit code.
    pub fn answered(
        &self,
        typed: &str,
        arguments: &str,
        environment: &[(&str, &str)],
    ) -> (String, Option<i32>) {
        self.answered_after("", || (), typed, arguments, environment)
    }

    /// The same, but waits for this output and runs a function before typing.
    pub fn answered_after(
        &self,
        question: &str,
        meanwhile: impl FnOnce(),
        typed: &str,
        arguments: &str,
        environment: &[(&str, &str)],
    ) -> (String, Option<i32>) {
        let command = format!("{} {arguments}", binary_text());
        let server = ("EXPERTISE_SERVER", self.server.as_str());
        let account = ("EXPERTISE_ACCOUNT", self.account.as_str());
        let environment = [environment, &[server, account]].concat();
        answered_after(question, meanwhile, typed, &command, &environment)
    }
}
