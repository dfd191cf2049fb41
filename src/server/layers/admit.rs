//! Receives the message of a call, and has the call wait for a permit. What the server has no capacity
//! for is refused with OVERLOADED.

use std::pin::pin;

use http::{Request, Response};
use http_body_util::BodyExt;
use tonic::{Code, Status, body::Body};

use super::{
    CallState, Next, Outcome,
    message::{Limits, Message},
    record::call_of,
    run,
};
use crate::{
    auth::Caller,
    domain::{Error, Outage, ids::AccountId},
    grpc::status,
    server::{health::HealthState, routes},
};

/// The largest request of all rpcs except [`LARGE_REQUESTS`].
const MAX_OTHER_REQUEST_BYTES: usize = 4 * 1024 * 1024;
/// The rpcs whose requests carry guides, bodies or conditions.
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
/// A message of more bytes waits until it may be handled with other large ones.
const MAX_SMALL_MESSAGE_BYTES: usize = 1024 * 1024;
/// The decoded elements of a request may take this many times the size of the largest message.
/// A task or step that can be stored takes at most twice its stored size when it is decoded.
const MAX_DECODED_RATIO: usize = 3;
/// Elements of shorter messages are not counted.
const MIN_COUNTED_BYTES: usize = 4 * 1024;

pub async fn admit(state: &'static CallState, request: Request<Body>, next: impl Next) -> Outcome {
    if state.health.state() == HealthState::DatabaseDown {
        return Err(Error::Unavailable(Outage::Unreachable).into());
    }
    let call = call_of(&request);
    let context = &call.context;
    let account = account_of(&request)?;
    let place = state.limits.place(&account).map_err(Status::from)?;
    routes::wait_until_open(state).await?;
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let limits = Limits {
        max_bytes: max_request_bytes(state, path),
        max_uncounted_bytes: MAX_SMALL_MESSAGE_BYTES,
    };
    let (message, permit) = Message::receive(body, limits, &call).await?;
    context.note_bytes(message.bytes());
    let counting = async { decoded_bytes(state, path, &message) };
    let decoded = context.in_turns(pin!(counting)).await?;
    let counted = message.bytes().max(MAX_SMALL_MESSAGE_BYTES);
    let elements = match decoded > counted {
        true => Some(state.limits.elements(decoded, context.half_time()).await?),
        false => None,
    };
    let in_work = place.permit(context.half_time()).await;
    context.hold(account, in_work.map_err(Status::from)?, [permit, elements]);

    context.note_bytes(message.bytes().max(decoded));
    let request = Request::from_parts(head, Body::new(message));
    let work = pin!(async {
        let response = run(next, request).await?;
        if response.headers().contains_key("grpc-status") {
            return Ok(response);
        }
        // This encodes the message in the context of the call.
        let (head, body) = response.into_parts();
        let body = body.collect().await?;
        match body.trailers().and_then(Status::from_header_map) {
            // tonic's code for a response above its limit.
            Some(status) if status.code() == Code::OutOfRange => {
                return Err(status::response_too_large(state.max_message_bytes));
            }
            _ => {}
        }
        let body = body.map_err(|never| match never {});
        Ok(Response::from_parts(head, Body::new(body)))
    });
    context.in_turns(work).await
}

fn account_of(request: &Request<Body>) -> Result<AccountId, Status> {
    let caller = request.extensions().get::<Caller>();
    let caller =
        caller.ok_or_else(|| status::credentials_missing("the call has no credentials"))?;
    Ok(caller.account.clone())
}

fn max_request_bytes(state: &CallState, path: &str) -> usize {
    match LARGE_REQUESTS.contains(&path) {
        true => state.max_message_bytes,
        false => state.max_message_bytes.min(MAX_OTHER_REQUEST_BYTES),
    }
}

/// The memory that the elements of a message take when they are decoded.
fn decoded_bytes(state: &CallState, path: &str, message: &Message) -> Result<usize, Status> {
    if message.bytes() < MIN_COUNTED_BYTES {
        return Ok(0);
    }
    let limit = MAX_DECODED_RATIO * state.max_message_bytes;
    let bytes = state.sizes.of_request(path, message.content(), limit);
    if bytes > limit {
        return Err(status::elements_too_large(limit));
    }
    Ok(bytes)
}
