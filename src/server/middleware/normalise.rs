//! Gives every error that leaves the server details of the contract.
//!
//! Errors of the services have them. An error without them comes from the framework. If it
//! is about an unknown rpc or the size of a response, an error of the contract replaces it; any
//! other is a fault of the server.

use tonic::{Code, Status};
use tracing::{debug, error};

use super::call_record::CallRecord;
use crate::{grpc::status, proto::code_name};

/// The status as the client gets it.
pub fn normalise(status: Status, call: &CallRecord, max_message_bytes: usize) -> Status {
    if status.code() == Code::Ok || !status.details().is_empty() {
        return status;
    }
    if call.is_broken() {
        return status::undecodable("the request broke off before its end");
    }
    match status.code() {
        Code::Unimplemented => status::unimplemented(&format!("/{}", call.rpc())),
        _ if is_too_large_response(&status) => status::response_too_large(max_message_bytes),
        _ => fault(&status, call),
    }
}

/// Whether tonic's encoder refuses a response, which it encodes within a limit.
fn is_too_large_response(status: &Status) -> bool {
    let text = status.message();
    text.contains("encoded message length too large")
        || text.starts_with("Cannot return body with more than")
        || text.starts_with("Error encoding") && text.contains("too large")
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
            assert!(is_too_large_response(&status), "{status}");
        }
    }
}
