//! Receives the message of a call, then waits for a permit. If the server has no capacity for the
//! call, it is refused with OVERLOADED.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body_util::{BodyExt, Full};
use tokio::time::timeout;
use tonic::{Code, Status, body::Body, codegen::Service};

use super::{Outcome, Shared, message};
use crate::{
    call_context::CallContext,
    domain::{Error, Outage},
    grpc::{self, status},
    server::health::HealthState,
};

/// How long a call waits for the database to be opened before it fails with UNAVAILABLE.
const OPENING_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum size of a request, except for [`LARGE_REQUESTS`].
const MAX_OTHER_REQUEST_BYTES: usize = 4 * 1024 * 1024;
/// The rpcs whose requests contain guides, bodies or conditions.
const LARGE_REQUESTS: [&str; 8] = [
    "/expertise.v1.AnalysisService/PreviewTask",
    "/expertise.v1.AnalysisService/ValidateTask",
    "/expertise.v1.StepService/CreateStep",
    "/expertise.v1.StepService/UpdateStep",
    "/expertise.v1.TaskService/CreateTask",
    "/expertise.v1.TaskService/ImportTask",
    "/expertise.v1.TaskService/UpdateTask",
    "/expertise.v1.TranslationService/WriteTranslations",
];
/// The decoded elements of a request may take this many times the maximum message size. A task or
/// step that can be stored takes at most twice its stored size when decoded.
const MAX_DECODED_RATIO: usize = 3;
/// Elements of smaller messages are not counted.
const MIN_COUNTED_BYTES: usize = 4 * 1024;

/// Calls a service once the call is admitted.
pub async fn admit(state: &'static Shared, call: &CallContext, head: Parts, body: Body) -> Outcome {
    if state.health.state() == HealthState::DatabaseDown {
        return Err(Error::Unavailable(Outage::Unreachable).into());
    }
    let caller = call.caller.get();
    let caller =
        caller.ok_or_else(|| status::credentials_missing("the call has no credentials"))?;
    call.hold(state.limits.take_call_permits(&caller.account)?);
    // A call that waits here is not in work.
    let opened = timeout(OPENING_TIMEOUT, state.services.wait()).await;
    let mut services = opened.map_err(|_| status::store_not_open())?.clone();
    let path = head.uri.path();
    let largest = state.config.limits.max_message_bytes;
    let max_bytes = match LARGE_REQUESTS.contains(&path) {
        true => largest,
        false => largest.min(MAX_OTHER_REQUEST_BYTES),
    };
    let message = message::receive(body, max_bytes, call).await?;
    CallContext::note_size(message.len());
    let counting = async { decoded_bytes(state, path, &message) };
    let decoded = call.in_turns(pin!(counting)).await?;
    let counted = message.len().max(message::MAX_SMALL_BYTES);
    if decoded > counted {
        let elements = &state.limits.elements;
        call.hold([elements.take_bytes_until(decoded, call.half_time()).await?]);
    }
    let permits = state
        .limits
        .take_work_permits(&caller.account, call.half_time());
    call.hold(permits.await?);

    CallContext::note_size(decoded);
    let request = Request::from_parts(head, Body::new(Full::new(message)));
    let work = pin!(async {
        let Ok(response) = services.call(request).await;
        if response.headers().contains_key(Status::GRPC_STATUS) {
            return Ok(response);
        }
        // This encodes the message in the context of the call.
        let (head, body) = response.into_parts();
        let body = body.collect().await?;
        match body.trailers().and_then(Status::from_header_map) {
            // tonic's code for a response above its limit.
            Some(status) if status.code() == Code::OutOfRange => {
                return Err(status::response_too_large(largest));
            }
            _ => {}
        }
        Ok(Response::from_parts(head, Body::new(body)))
    });
    call.in_turns(work).await
}

/// The memory that the elements of a message take when decoded.
fn decoded_bytes(state: &Shared, path: &str, message: &Bytes) -> Result<usize, Status> {
    if message.len() < MIN_COUNTED_BYTES {
        return Ok(0);
    }
    let limit = MAX_DECODED_RATIO * state.config.limits.max_message_bytes;
    let content = message.slice(message::PREFIX_BYTES..);
    let bytes = grpc::decoded_request_bytes(path, content, limit);
    match bytes > limit {
        true => Err(status::elements_too_large(limit)),
        false => Ok(bytes),
    }
}
