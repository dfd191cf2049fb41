//! `changes`: what it lists, how it goes on, and how it follows.

use std::{
    io::{BufRead, BufReader, Read},
    process::{self, Stdio},
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};

use crate::kit::{
    command::{Cli, CommandOutput, Says, binary, text},
    postgres::free_port,
    prelude::*,
    relay::Relay,
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

/// What the lines say behind the time.
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
fn changes_are_listed_with_the_names_of_guides(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    let step = retitle(&cli, &guid, "Other");
    let output = run(&cli, &["changes"]);
    assert_eq!(
        entries(&output.stdout),
        [
            "-  created task Guide, 1 step".to_owned(),
            format!("-  updated step {step} of Guide: title"),
        ]
    );
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
}

#[apply(on_one_database)]
fn the_printed_cursor_goes_on_where_the_list_ended(cli: Cli) {
    given_guide(&cli, "First");
    let first = run(&cli, &["changes"]);
    given_guide(&cli, "Second");
    let second = run(&cli, &["changes", "--since", &cursor(&first)]);
    assert_eq!(entries(&second.stdout), ["-  created task Second, 1 step"]);
    let third = run(&cli, &["changes", "--since", &cursor(&second)]);
    assert_eq!(third.stdout, "");
    assert_eq!(cursor(&third), cursor(&second));
    assert_eq!(
        run(&cli, &["changes", "--since=oldest"])
            .stdout
            .lines()
            .count(),
        2
    );
}

#[apply(on_one_database)]
fn the_changes_of_one_guide_are_listed(cli: Cli) {
    let first = given_guide(&cli, "First");
    given_guide(&cli, "Second");
    for guide in [&first, "First"] {
        let output = run(&cli, &["changes", guide]);
        assert_eq!(entries(&output.stdout), ["-  created task First, 1 step"]);
        let go_on = output.stderr.lines().last().expect("a line");
        go_on.says(&[&format!(" changes {first} --since ")]);
    }
    let unknown = cli.command(&["changes", "Third"]).run();
    unknown.fails_with(1, &["\"Third\""]);
    let output = run(&cli, &["changes", &first]);
    let step = retitle(&cli, &first, "Other");
    given_guide(&cli, "Third");
    let rest = run(&cli, &["changes", &first, "--since", &cursor(&output)]);
    let expected = format!("-  updated step {step} of First: title");
    assert_eq!(entries(&rest.stdout), [expected]);
}

/// A client of the account, and the account for commands.
fn cli_of(client: &Client) -> Cli {
    Cli {
        server: format!("http://{}", client.address()),
        account: client.account().to_owned(),
    }
}

#[apply(on_one_database)]
async fn a_line_says_who_has_changed_what(client: Client) {
    let ana = client.with_metadata("x-subject", "ana");
    let guide = client.given_task(task("Guide")).await;
    let step = ana.given_step(information_step(&guide, "Step")).await.guid;
    let update = step_of(&step).titled("Other").with_body("Text");
    ana.updated_step(update, &[]).await;
    let hidden = task_of(&guide.guid).with_published(0);
    client.updated_task(hidden, &[]).await;
    ana.delete_step(&step).await.accepted();
    let command = cli_of(&client).command(&["changes"]);
    let output = command.run_in_background().await.succeeded();
    let expected = [
        "-  created task Guide, 0 steps".to_owned(),
        format!("ana  created step {step} of Guide"),
        format!("ana  updated step {step} of Guide: body, title"),
        "-  updated task Guide: published".to_owned(),
        format!("ana  deleted step {step} of Guide"),
    ];
    assert_eq!(entries(&output.stdout), expected);
}

#[apply(on_one_database)]
async fn a_list_goes_on_over_pages(client: Client) {
    let steps = document_steps(&vec!["Step"; 501]);
    let guide = client.imported(document("Guide", steps)).await;
    let mut changed = client.exported(&guide.guid).await;
    for step in &mut changed.steps {
        step.title = "Other".to_owned();
    }
    client.imported(changed).await;
    let command = cli_of(&client).command(&["changes"]);
    let output = command.run_in_background().await.succeeded();
    assert_eq!(output.stdout.lines().count(), 502);
    let command = cli_of(&client).command(&["changes", "--since", &cursor(&output)]);
    let output = command.run_in_background().await.succeeded();
    assert_eq!(output.stdout, "");
}

#[apply(on_one_database)]
fn a_deleted_guide_is_shown_by_its_guid(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    run(&cli, &["delete", &guid, "--force"]);
    let expected = [
        format!("-  created task {guid}, 1 step"),
        format!("-  deleted task {guid}, 1 step"),
    ];
    assert_eq!(entries(&run(&cli, &["changes"]).stdout), expected);
    assert_eq!(entries(&run(&cli, &["changes", "Guide"]).stdout), expected);
}

#[apply(on_one_database)]
fn a_page_of_many_guides_has_their_names(cli: Cli) {
    let deleted = given_guide(&cli, "Deleted");
    let names = ["A", "B", "C", "D", "E"];
    for name in names {
        given_guide(&cli, name);
    }
    run(&cli, &["delete", &deleted, "--force"]);
    let created = |name: &str| format!("-  created task {name}, 1 step");
    let mut expected = vec![created(&deleted)];
    expected.extend(names.map(created));
    expected.push(format!("-  deleted task {deleted}, 1 step"));
    assert_eq!(entries(&run(&cli, &["changes"]).stdout), expected);
}

#[apply(on_one_database)]
fn output_for_scripts_is_an_object_a_line(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    retitle(&cli, &guid, "Other");
    let output = run(&cli, &["changes", "--format=json"]);
    let changes = output.stdout.lines();
    let changes = changes.map(|line| serde_json::from_str(line).expect(line));
    let changes: Vec<Value> = changes.collect();
    let kinds: Vec<&Value> = changes.iter().map(|change| &change["kind"]).collect();
    assert_eq!(
        kinds,
        ["CHANGE_KIND_TASK_CREATED", "CHANGE_KIND_STEP_UPDATED"]
    );
    assert_eq!(changes[1]["task"], json!(guid));
    assert_eq!(changes[1]["fields"], json!(["title"]));
    assert_eq!(changes[1]["cursor"], json!(cursor(&output)));
}

#[apply(on_one_database)]
fn an_empty_account_has_no_changes(cli: Cli) {
    let output = run(&cli, &["changes"]);
    assert_eq!(output.stdout, "");
    given_guide(&cli, "Guide");
    let output = run(&cli, &["changes", "--since", &cursor(&output)]);
    assert_eq!(output.stdout.lines().count(), 1);
}

#[apply(on_one_database)]
fn a_cursor_of_another_account_is_refused(cli: Cli) {
    let cursor = cursor(&run(&cli, &["changes"]));
    let other = format!("{}-other", cli.account);
    let args = ["changes", "--since", &cursor, "--account", &other];
    let output = cli.command(&args).run();
    output.fails_with(1, &["CURSOR_INVALID", "--since", "oldest"]);
    let empty = cli.command(&["changes", "--since", ""]).run();
    assert_eq!(empty.code, Some(2), "{}", empty.stderr);
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
    let mut child = process::Command::new(binary())
        .args([
            "changes",
            "--follow",
            "--server",
            &cli.server,
            "--account",
            &cli.account,
        ])
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
            // What nobody has read is still to come.
            let rest = run(&cli, &["changes", "--since", &cursor_in(&stderr)]);
            assert_eq!(entries(&rest.stdout), ["-  created task Second, 1 step"]);
            return;
        }
        sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    panic!("it does not end");
}
