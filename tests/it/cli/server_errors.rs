//! How commands print the errors of servers.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::scripted_service::{Reply, ScriptedService};
use crate::command::{CommandOutput, command};

/// Each control character becomes a space.
const TEXT: &str = "red \u{1b}[31m\ntext\u{202e}";
const PLAIN: &str = "red  [31m text ";

/// An error all of whose texts are [`TEXT`].
fn error(code: Code) -> Status {
    let metadata = HashMap::from([("field".to_owned(), TEXT.to_owned())]);
    let mut details = ErrorDetails::with_error_info(TEXT, "expertise.v1", metadata);
    details.add_bad_request_violation(TEXT, TEXT);
    details.add_precondition_failure_violation(TEXT, TEXT, TEXT);
    Status::with_error_details(code, TEXT, details)
}

#[test]
fn an_error_of_a_server_cannot_control_the_terminal() {
    for code in [Code::InvalidArgument, Code::FailedPrecondition] {
        let service = ScriptedService::start(&[Reply::Error(error(code))]);
        let import = |format: &str| -> CommandOutput {
            let import = command(&["import", "a.json", "--account=demo", format]);
            let import = import.file("a.json", "{\"task\": {\"name\": \"A\", \"product_id\": 7}}");
            import.env("EXPERTISE_SERVER", &service.url).run()
        };
        let output = import("--format=text");
        assert_eq!(output.code, Some(1));
        assert!(output.stderr.contains(PLAIN), "{}", output.stderr);
        let is_plain = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
        assert!(output.stderr.chars().all(is_plain), "{}", output.stderr);
        let report = &import("--format=json").json()[0];
        assert_eq!(report["error"]["reason"], PLAIN, "{report}");
    }
}
