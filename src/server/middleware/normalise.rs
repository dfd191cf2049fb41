//! Gives every error that leaves the server details of the contract.
//!
//! Errors of the services have them. An error without them comes from the framework. If it
//! is about framing, size or an unknown rpc, an error of the contract replaces it; any other
//! is a fault of the server.

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
        "the request's compression flag must be 0: send messages uncompressed",
    ),
    (
        "Error decompressing",
        "the request cannot be decompressed: send it uncompressed",
    ),
];

/// The status as the client gets it.
pub fn normalise(status: Status, call: &CallRecord, max_message_bytes: usize) -> Status {
    if status.code() == Code::Ok || !status.details().is_empty() {
        return status;
    }
    if call.is_broken() {
        return status::undecodable("the request broke off before its end");
    }
    caller_error(&status, call.rpc(), max_message_bytes).unwrap_or_else(|| fault(&status, call))
}

/// The error of the contract for one of the framework about framing, size or an unknown rpc.
pub fn caller_error(status: &Status, rpc: &str, max_message_bytes: usize) -> Option<Status> {
    let text = status.message();
    match status.code() {
        Code::OutOfRange | Code::ResourceExhausted | Code::Internal if is_about_size(text) => {
            Some(match is_about_response(text) {
                true => status::response_too_large(max_message_bytes),
                false => status::message_too_large(max_message_bytes),
            })
        }
        Code::Internal => {
            let mut known = FRAMING_ERRORS.iter();
            let (_, description) = known.find(|(start, _)| text.starts_with(start))?;
            Some(status::undecodable(description))
        }
        Code::Unimplemented => Some(status::unimplemented(&format!("/{rpc}"))),
        _ => None,
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

/// Whether the error comes from tonic's encoder, which encodes responses only.
fn is_about_response(text: &str) -> bool {
    text.contains("encoded message length too large")
        || text.starts_with("Cannot return body")
        || text.starts_with("Error encoding")
}

/// INTERNAL for a fault of the server. Its message is logged at debug only, as it may quote
/// the request.
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
    use super::*;

    #[test]
    fn responses_that_only_tonics_encoder_refuses_are_too_large() {
        for status in [
            Status::resource_exhausted(
                "Cannot return body with more than 4GB of data but got 9 bytes",
            ),
            Status::internal("Error encoding: message too large"),
            Status::out_of_range("Error, encoded message length too large: found 9 bytes"),
        ] {
            let normalised = caller_error(&status, "", 1024).expect("an error of the contract");
            assert_eq!(normalised.code(), Code::ResourceExhausted, "{status}");
            let message = "the response would be larger than 1024 bytes";
            assert_eq!(normalised.message(), message, "{status}");
        }
    }
}
