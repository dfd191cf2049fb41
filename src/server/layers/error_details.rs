//! Gives every error details of the contract.
//!
//! Errors of the services have them. An error without them comes from tonic: it is about an unknown rpc,
//! or a fault of the server.

use http::Request;
use tonic::{Code, Status, body::Body};
use tracing::{debug, error};

use super::{CallState, Next, Outcome, record::call_of, run};
use crate::{grpc::status, proto::code_name};

pub async fn complete(_: &'static CallState, request: Request<Body>, next: impl Next) -> Outcome {
    let call = call_of(&request);
    let response = run(next, request).await?;
    let Some(status) = Status::from_header_map(response.headers()) else {
        return Ok(response);
    };
    if status.code() == Code::Ok || !status.details().is_empty() {
        return Ok(response);
    }
    if status.code() == Code::Unimplemented {
        return Err(status::unimplemented(&format!("/{}", call.rpc)));
    }
    let request_id = call.context.id().to_string();
    let code = code_name(status.code());
    error!(
        request_id,
        rpc = call.rpc,
        code,
        "a call ended in an error without details"
    );
    // Its text may quote the request.
    debug!(request_id, text = status.message());
    Err(status::internal(&request_id))
}
