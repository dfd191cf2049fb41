//! Gives every error that leaves the server details of the contract.
//!
//! Errors of the services have them. Errors without them come from the framework,
//! whose codes for wrong framing and size would blame the server, or are faults.

use tonic::{Code, Status};
use tracing::{debug, error};

use super::call_record::CallRecord;
use crate::{grpc::status, proto::code_name};

/// How tonic's messages about wrong framing begin, and the messages that replace them.
const FRAMING_ERRORS: [(&str, &str); 4] = [
    (
        "Missing request message",
        "the request must hold one message, and holds none",
    ),
    (
        "Unexpected EOF",
        "the request ends in the middle of its message",
    ),
    (
        "protocol error: received message with",
        "the request's compression flag must be 0: messages are taken uncompressed",
    ),
    (
        "Error decompressing",
        "the request cannot be decompressed: send it uncompressed",
    ),
];

/// The status as the client gets it.
pub fn normalise(status: Status, call: &CallRecord, max_message_bytes: usize) -> Status {
    if !status.details().is_empty() {
        return status;
    }
    let text = status.message();
    if call.is_broken() {
        return status::undecodable("the request broke off before its end");
    }
    match status.code() {
        Code::Ok => status,
        Code::OutOfRange | Code::ResourceExhausted | Code::Internal if is_about_size(text) => {
            status::message_too_large(max_message_bytes)
        }
        Code::Internal => match FRAMING_ERRORS
            .iter()
            .find(|(start, _)| text.starts_with(start))
        {
            Some((_, description)) => status::undecodable(description),
            None => fault(&status, call),
        },
        Code::Unimplemented if text.starts_with("Content is compressed") => {
            status::undecodable("the request's compression is not supported: send it uncompressed")
        }
        Code::Unimplemented => status::unimplemented(&format!("/{}", call.rpc())),
        _ => fault(&status, call),
    }
}

/// Whether tonic's decoder or encoder refuses a message beyond the limit; the encoder
/// wraps what a codec says.
fn is_about_size(text: &str) -> bool {
    text.contains("message length too large")
        || text.starts_with("Error decompressing: size limit")
        || text.starts_with("Cannot return body with more than")
        || (text.starts_with("Error encoding") && text.contains("too large"))
}

/// The message is logged at debug only, as it may quote the request.
fn fault(status: &Status, call: &CallRecord) -> Status {
    let id = call.id().to_string();
    error!(
        request_id = id,
        rpc = call.rpc(),
        code = code_name(status.code()),
        "a call ended in an error without details"
    );
    debug!(request_id = id, text = status.message());
    status::internal(&id)
}

#[cfg(test)]
mod tests {
    use http::{Request, Uri};
    use tokio::time::Instant;
    use tonic::body::Body;
    use tonic_types::StatusExt;

    use super::*;
    use crate::server::middleware::call_metrics::CallMetrics;

    fn call() -> CallRecord {
        let path = "/expertise.v1.TaskService/GetTask";
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = Uri::from_static(path);
        let metrics = CallMetrics::new().begin(path);
        CallRecord::new(&request, Instant::now(), None, metrics, None)
    }

    fn outcome(status: Status) -> (Code, String) {
        let status = normalise(status, &call(), 1024);
        let reason = status.get_details_error_info().map(|info| info.reason);
        (status.code(), reason.unwrap_or_default())
    }

    #[test]
    fn tonics_size_errors_are_message_too_large() {
        for status in [
            Status::out_of_range(
                "Error, decoded message length too large: found 9 bytes, the limit is: 8 bytes",
            ),
            Status::out_of_range(
                "Error, encoded message length too large: found 9 bytes, the limit is: 8 bytes",
            ),
            Status::resource_exhausted(
                "Cannot return body with more than 4GB of data but got 9 bytes",
            ),
            Status::internal("Error encoding: message too large"),
        ] {
            let expected = (Code::ResourceExhausted, "MESSAGE_TOO_LARGE".to_owned());
            assert_eq!(outcome(status), expected);
        }
    }

    #[test]
    fn tonics_framing_errors_are_invalid_argument() {
        for status in [
            Status::internal("Missing request message."),
            Status::internal("Unexpected EOF decoding stream."),
            Status::internal(
                "protocol error: received message with compressed-flag but no grpc-encoding was specified",
            ),
            Status::internal(
                "protocol error: received message with invalid compression flag: 7 (valid flags are 0 and 1), while sending request",
            ),
            Status::unimplemented("Content is compressed with `gzip` which isn't supported"),
        ] {
            assert_eq!(outcome(status).0, Code::InvalidArgument);
        }
    }

    #[test]
    fn a_request_that_breaks_off_is_invalid_argument() {
        let call = call();
        call.received().set_broken();
        let status = normalise(Status::unknown("h2 protocol error"), &call, 1024);
        assert_eq!(status.code(), Code::InvalidArgument);
    }

    #[test]
    fn any_other_error_without_details_is_internal_and_hides_its_message() {
        let status = normalise(Status::unknown("driver text"), &call(), 1024);
        assert_eq!(status.code(), Code::Internal);
        assert!(!status.message().contains("driver"));
    }

    #[test]
    fn errors_with_details_stay_as_they_are() {
        let original = status::credentials_missing("x-account-id");
        let kept = normalise(original.clone(), &call(), 1024);
        assert_eq!(
            (kept.code(), kept.details()),
            (original.code(), original.details())
        );
    }
}
