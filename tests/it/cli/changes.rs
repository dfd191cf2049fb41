//! `changes --follow`.

use std::{
    io::{BufRead, BufReader, Read},
    process::{self, Stdio},
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    command::{Cli, CommandOutput, Says, text},
    kit::{
        child::{binary, remove_settings},
        postgres::free_port,
        relay::Relay,
    },
    prelude::*,
};
use rustix::process::Signal;

fn given_guide(cli: &Cli, name: &str) -> String {
    cli.import(&json!({
        "task": {"name": name, "product_id": 7},
        "steps": [{"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"}],
    }))
}

fn run(cli: &Cli, args: &[&str]) -> CommandOutput {
    cli.command(args).run().succeeded()
}

/// Imports the guide with another title of its step, and returns the step.
fn retitle(cli: &Cli, guid: &str, title: &str) -> String {
    let mut document: Value = serde_json::from_str(&cli.export(guid)).expect("JSON");
    document["steps"][0]["title"] = json!(title);
    let import = cli.command(&["import", "-"]);
    import.stdin(&document.to_string()).run().succeeded();
    text(&document["steps"][0]["guid"])
}

/// The lines without the time.
fn entries(output: &str) -> Vec<String> {
    let entry = |line: &str| {
        let (time, entry) = line.split_once("  ").expect(line);
        assert_eq!(time.len(), "2026-11-25T09:12:40Z".len(), "{line}");
        entry.to_owned()
    };
    output.lines().map(entry).collect()
}

/// The cursor that the last line of standard error says how to go on from.
fn cursor(output: &CommandOutput) -> String {
    cursor_in(&output.stderr)
}

fn cursor_in(stderr: &str) -> String {
    let line = stderr.lines().last().expect("a line");
    let (_, cursor) = line.split_once(" --since ").expect(line);
    cursor.split_whitespace().next().expect(line).to_owned()
}

#[apply(on_both_databases)]
fn following_prints_what_comes_and_ends_on_ctrl_c(cli: Cli) {
    given_guide(&cli, "First");
    let follow = cli.command(&["changes", "--follow"]).start();
    let next = || entries(&follow.next_line().expect("a line"));
    assert_eq!(next(), ["-  created task First, 1 step"]);
    let guid = given_guide(&cli, "Second");
    assert_eq!(next(), ["-  created task Second, 1 step"]);
    let mut document: Value = serde_json::from_str(&cli.export(&guid)).expect("JSON");
    document["task"]["name"] = json!("Renamed");
    let import = cli.command(&["import", "-"]);
    import.stdin(&document.to_string()).run().succeeded();
    assert_eq!(next(), ["-  updated task Renamed: name"]);
    follow.signal(Signal::INT);
    let output = follow.end().succeeded();
    assert_eq!(output.stdout, "");
    assert!(output.stderr.contains("--follow"), "{}", output.stderr);
    let rest = run(&cli, &["changes", "--since", &cursor(&output)]);
    assert_eq!(rest.stdout, "");
}

#[apply(on_one_database)]
fn one_guide_is_followed_from_a_cursor_on(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    let other = given_guide(&cli, "Other");
    let since = cursor(&run(&cli, &["changes"]));
    let args = [
        "changes",
        &guid,
        "--follow",
        "--format=json",
        "--since",
        &since,
    ];
    let follow = cli.command(&args).start();
    retitle(&cli, &other, "Changed");
    let step = retitle(&cli, &guid, "Changed");
    let line = follow.next_line().expect("a line");
    let change: Value = serde_json::from_str(&line).expect(&line);
    assert_eq!(
        (&change["task"], &change["step"]),
        (&json!(guid), &json!(step))
    );
    follow.signal(Signal::INT);
    let output = follow.end().succeeded();
    assert_eq!(output.stdout, "");
    output
        .stderr
        .says(&[&format!(" changes {guid} --follow --since ")]);
}

#[apply(on_one_database)]
fn following_goes_on_after_an_outage(cli: Cli) {
    given_guide(&cli, "First");
    let (_, port) = cli.server.rsplit_once(':').expect("a port");
    let port = port.parse().expect("a port");
    let relay = Relay::to(port);
    let server = format!("http://{}", relay.address());
    let args = ["changes", "--follow", "--retries=0", "--server", &server];
    let follow = cli.command(&args).start();
    assert!(follow.next_line().expect("a line").contains("First"));
    relay.lead_to(free_port());
    relay.cut();
    given_guide(&cli, "Second");
    let failure = follow.next_error_line();
    assert!(failure.contains(&server), "{failure}");
    relay.lead_to(port);
    assert!(follow.next_line().expect("a line").contains("Second"));
    follow.signal(Signal::INT);
    let output = follow.end().succeeded();
    assert_eq!(output.stdout, "");
}

#[apply(on_one_database)]
fn following_ends_when_nobody_reads(cli: Cli) {
    given_guide(&cli, "First");
    let mut command = process::Command::new(binary());
    remove_settings(&mut command);
    let mut child = command
        .args(["changes", "--follow", "--server", &cli.server])
        .args(["--account", &cli.account])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    output.read_line(&mut String::new()).expect("a line");
    drop(output);
    given_guide(&cli, "Second");
    for _ in 0..100 {
        if let Some(status) = child.try_wait().expect("its status") {
            assert!(status.success());
            let mut stderr = String::new();
            let mut pipe = child.stderr.take().expect("it is piped");
            pipe.read_to_string(&mut stderr).expect("a text");
            // Unread changes are still listed.
            let rest = run(&cli, &["changes", "--since", &cursor_in(&stderr)]);
            assert_eq!(entries(&rest.stdout), ["-  created task Second, 1 step"]);
            return;
        }
        sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    panic!("it does not end");
}
