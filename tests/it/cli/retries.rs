//! Retries of commands, and that a retry does nothing twice.

mod cutting_relay;

use tonic::Code;

use self::cutting_relay::{AfterCut, cutting_relay};
use super::unreliable_service::unreliable_service;
use crate::kit::command::{CommandOutput, Says, command};

const GUIDE: &str = "{\"task\": {\"name\": \"A\", \"product_id\": 7}}";

#[test]
fn an_unanswered_import_is_retried_with_the_same_request_id() {
    for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Aborted] {
        let (_runtime, service, server) = unreliable_service(code, 2);
        let output = command(&["import", "a.json", "--account=demo", "--backoff=1ms"])
            .file("a.json", GUIDE)
            .env("EXPERTISE_SERVER", &server)
            .run()
            .succeeded();
        assert!(output.stdout.contains("from a.json"), "{}", output.stdout);
        // A conflict with another write is nothing that a person waits for.
        let lines = usize::from(code != Code::Aborted);
        let repeated = " and is repeated, 5 times at most\n";
        assert_eq!(output.stderr.matches(repeated).count(), lines, "{output:?}");
        let request_ids = service.request_ids();
        assert_eq!(request_ids.len(), 3);
        assert!(
            uuid::Uuid::try_parse(&request_ids[0]).is_ok(),
            "{}",
            request_ids[0]
        );
        assert!(
            request_ids.iter().all(|id| *id == request_ids[0]),
            "{request_ids:?}"
        );
    }
}

#[test]
fn an_import_that_stays_unanswered_says_how_to_repeat_it() {
    let (_runtime, service, server) = unreliable_service(Code::DeadlineExceeded, 9);
    let import = |args: &[&str]| {
        let args = [&["import", "a.json", "--account=demo", "--retries=0"], args].concat();
        let import = command(&args).file("a.json", GUIDE);
        import.env("EXPERTISE_SERVER", &server).run()
    };
    let output = import(&[]);
    assert_eq!(output.code, Some(1));
    let (_, id) = output
        .stderr
        .split_once("repeat with --request-id ")
        .expect(&output.stderr);
    let id = id.lines().next().expect("an id");
    import(&["--request-id", id]);
    let request_ids = service.request_ids();
    assert_eq!(request_ids[0], request_ids[1]);
}

fn import_once(server: &str, args: &[&str]) -> CommandOutput {
    let args = [
        &["import", "a.json", "--account=demo", "--backoff=1ms"],
        args,
    ]
    .concat();
    let import = command(&args).file("a.json", GUIDE);
    import.env("EXPERTISE_SERVER", server).run()
}

#[test]
fn a_cut_connection_is_retried() {
    let (runtime, service, server) = unreliable_service(Code::Ok, 0);
    let relay = || cutting_relay(&runtime, &server, &[0], AfterCut::Listen);
    import_once(&relay(), &[]).succeeded();
    let request_ids = service.take_request_ids();
    assert_eq!(request_ids.len(), 2);
    assert_eq!(request_ids[0], request_ids[1]);

    let output = import_once(&relay(), &["--retries=0"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("--request-id"), "{}", output.stderr);
}

#[test]
fn a_server_that_has_answered_may_end_connections_again_and_again() {
    // Cut, answered, cut; and answered, cut, cut.
    for (failures, errors) in [(2, &[0, 1]), (1, &[1, 0])] {
        let (runtime, service, server) = unreliable_service(Code::Unavailable, failures);
        let relay = cutting_relay(&runtime, &server, errors, AfterCut::Listen);
        import_once(&relay, &[]).succeeded();
        let request_ids = service.request_ids();
        assert_eq!(request_ids.len(), 4, "{request_ids:?}");
        assert!(request_ids.iter().all(|id| *id == request_ids[0]));
    }
}

#[test]
fn a_server_that_only_ends_connections_is_called_twice() {
    let (runtime, service, server) = unreliable_service(Code::Ok, 0);
    let relay = cutting_relay(&runtime, &server, &[0, 0, 0], AfterCut::Listen);
    let line = import_once(&relay, &[]);
    assert_eq!(line.code, Some(1));
    let part = "ended the connection: if it uses TLS, begin its URL with https://";
    assert!(line.stderr.contains(part), "{}", line.stderr);
    assert_eq!(service.request_ids().len(), 2);
}

#[test]
fn files_after_a_lost_server_are_not_tried() {
    let (runtime, _service, server) = unreliable_service(Code::Ok, 0);
    let args = [
        "import",
        "a.json",
        "b.json",
        "c.json",
        "--account=demo",
        "--backoff=1ms",
    ];
    let output = command(&args)
        .file("a.json", GUIDE)
        .file("b.json", GUIDE)
        .file("c.json", GUIDE)
        .env(
            "EXPERTISE_SERVER",
            &cutting_relay(&runtime, &server, &[0], AfterCut::Close),
        )
        .run();
    assert_eq!(output.code, Some(1));
    let (first, last) = output
        .stderr
        .split_once("\n2 files were not tried, as the server cannot be reached\n")
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
    let (_runtime, service, server) = unreliable_service(Code::InvalidArgument, 9);
    let output = command(&["import", "a.json", "--account=demo"])
        .file("a.json", GUIDE)
        .env("EXPERTISE_SERVER", &server)
        .run();
    assert_eq!(output.code, Some(1));
    assert!(!output.stderr.contains("--request-id"), "{}", output.stderr);
    assert_eq!(service.request_ids().len(), 1);
}
