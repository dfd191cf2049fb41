//! A terminal of a given width.

use std::process::{Command, Stdio};

/// What a shell command shows in a terminal of so many columns, without colours.
pub fn shown_in(columns: usize, command: &str, environment: &[(&str, &str)]) -> String {
    let line = format!("stty cols {columns} rows 40; {command}");
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .envs(environment.iter().copied())
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output();
    let output = output.expect("util-linux has script");
    let shown = String::from_utf8_lossy(&output.stdout);
    shown.replace('\r', "")
}
