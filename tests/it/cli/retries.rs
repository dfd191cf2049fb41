//! Retries of commands, and that a retry does nothing twice.

use tonic::{Code, Status};

use super::scripted_service::{
    Reply::{self, Cut, CutForEver, Done, Error},
    ScriptedService,
};
use crate::command::{CommandOutput, Says, command};

const GUIDE: &str = "{\"task\": {\"name\": \"A\", \"product_id\": 7}}";

fn error(code: Code) -> Reply {
    Error(Status::new(code, "not now"))
}

/// Imports files into a service.
fn import(service: &ScriptedService, args: &[&str]) -> CommandOutput {
    let args = [&["import", "--account=demo", "--backoff=1ms"], args].concat();
    let mut import = command(&args).env("EXPERTISE_SERVER", &service.url);
    for file in ["a.json", "b.json", "c.json"] {
        import = import.file(file, GUIDE);
    }
    import.run()
}

/// Asserts that there were so many attempts with one request id.
#[track_caller]
fn tried(service: &ScriptedService, attempts: usize) {
    let ids = service.request_ids();
    assert_eq!(ids, vec![ids[0].clone(); attempts]);
    assert!(uuid::Uuid::try_parse(&ids[0]).is_ok(), "{ids:?}");
}

#[test]
fn an_unanswered_import_is_retried_with_the_same_request_id() {
    for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Aborted] {
        let service = ScriptedService::start(&[error(code), error(code), Done]);
        let output = import(&service, &["a.json"]).succeeded();
        assert!(output.stdout.contains("from a.json"), "{}", output.stdout);
        // A conflict with another write is nothing that a person waits for.
        let lines = usize::from(code != Code::Aborted);
        let repeated = " and is repeated, 5 times at most\n";
        assert_eq!(output.stderr.matches(repeated).count(), lines, "{output:?}");
        tried(&service, 3);
    }
}

#[test]
fn an_import_that_stays_unanswered_says_how_to_repeat_it() {
    let service = ScriptedService::start(&[error(Code::DeadlineExceeded)]);
    let output = import(&service, &["a.json", "--retries=0"]);
    assert_eq!(output.code, Some(1));
    let (_, id) = output
        .stderr
        .split_once("repeat with --request-id ")
        .expect(&output.stderr);
    let id = id.lines().next().expect("an id");
    import(&service, &["a.json", "--retries=0", "--request-id", id]);
    tried(&service, 2);
}

/// So may a server that has answered end connections again and again.
#[test]
fn a_cut_connection_is_retried() {
    for script in [
        &[Cut, Done][..],
        &[Cut, error(Code::Unavailable), Cut, Done],
        &[error(Code::Unavailable), Cut, Cut, Done],
    ] {
        let service = ScriptedService::start(script);
        import(&service, &["a.json"]).succeeded();
        tried(&service, script.len());
    }
    let output = import(&ScriptedService::start(&[Cut]), &["a.json", "--retries=0"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("--request-id"), "{}", output.stderr);
}

#[test]
fn a_server_that_only_ends_connections_is_called_twice() {
    let service = ScriptedService::start(&[Cut]);
    let output = import(&service, &["a.json"]);
    assert_eq!(output.code, Some(1));
    let part = "ended the connection: if it uses TLS, begin its URL with https://";
    assert!(output.stderr.contains(part), "{}", output.stderr);
    tried(&service, 2);
}

#[test]
fn files_after_a_lost_server_are_not_tried() {
    let service = ScriptedService::start(&[CutForEver]);
    let output = import(&service, &["a.json", "b.json", "c.json"]);
    assert_eq!(output.code, Some(1));
    let (first, last) = output
        .stderr
        .split_once("\n2 files were not tried, because the server cannot be reached\n")
        .expect(&output.stderr);
    // It may have been done before the server went.
    first.says(&["refuses the connection: start", "--request-id"]);
    assert!(
        last.starts_with("to resume, run the same command with --request-id "),
        "{last}"
    );
}

#[test]
fn a_permanent_failure_is_not_retried() {
    let service = ScriptedService::start(&[error(Code::InvalidArgument)]);
    let output = import(&service, &["a.json"]);
    assert_eq!(output.code, Some(1));
    assert!(!output.stderr.contains("--request-id"), "{}", output.stderr);
    tried(&service, 1);
}
