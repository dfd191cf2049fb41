//! Every error leaves with a detail of the contract.
//!
//! The services' own errors carry one. What does not comes from the framework,
//! which speaks of the request's framing and size in codes that would blame the
//! server, or is a fault.

use tonic::{Code, Status};
use tracing::{debug, error};

use super::call::{self, Call};
use crate::grpc::status;

/// What tonic says of a request that is not framed as gRPC asks, and what the
/// caller is told.
const FRAMING: [(&str, &str); 4] = [
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

/// The error as the client gets it.
pub(super) fn normalise(status: Status, call: &Call, max_message_bytes: usize) -> Status {
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
        Code::Internal => match FRAMING.iter().find(|(start, _)| text.starts_with(start)) {
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

/// tonic's decoder and encoder on a message beyond the limit; the latter wraps
/// what a codec says of it.
fn is_about_size(text: &str) -> bool {
    text.contains("message length too large")
        || text.starts_with("Error decompressing: size limit")
        || text.starts_with("Cannot return body with more than")
        || (text.starts_with("Error encoding") && text.contains("too large"))
}

/// The text goes to the log at debug alone: nobody vouches for what is in it.
fn fault(status: &Status, call: &Call) -> Status {
    let id = call.id().to_string();
    error!(
        request_id = id,
        rpc = call.rpc(),
        code = call::name(status.code()),
        "a call ended in an error without detail"
    );
    debug!(request_id = id, text = status.message());
    status::internal(&id)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use tokio::time::Instant;
    use tonic_types::StatusExt;

    use super::*;
    use crate::server::watch::Watch;

    fn call() -> Call {
        Call::begin(
            &Watch::with(None),
            "/expertise.v1.TaskService/GetTask",
            &HeaderMap::new(),
            Instant::now(),
            None,
        )
    }

    fn outcome(status: Status) -> (Code, String) {
        let status = normalise(status, &call(), 1024);
        let reason = status.get_details_error_info().map(|info| info.reason);
        (status.code(), reason.unwrap_or_default())
    }

    #[test]
    fn what_tonic_says_of_size_is_message_too_large() {
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
    fn what_tonic_says_of_framing_is_the_callers_mistake() {
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
    fn a_request_that_breaks_off_is_the_callers_mistake() {
        let call = call();
        call.received().break_off();
        let status = normalise(Status::unknown("h2 protocol error"), &call, 1024);
        assert_eq!(status.code(), Code::InvalidArgument);
    }

    #[test]
    fn any_other_error_without_detail_is_internal_and_hides_its_text() {
        let status = normalise(Status::unknown("driver text"), &call(), 1024);
        assert_eq!(status.code(), Code::Internal);
        assert!(!status.message().contains("driver"));
    }

    #[test]
    fn errors_with_details_stay_as_they_are() {
        let ours = status::credentials_missing("x-account-id");
        let kept = normalise(ours.clone(), &call(), 1024);
        assert_eq!((kept.code(), kept.details()), (ours.code(), ours.details()));
    }
}
