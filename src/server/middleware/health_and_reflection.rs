//! Calls of health and reflection. They need no credentials and are not recorded, but
//! their errors have the codes and details of every other call.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use prost::Message;
use tonic::{Status, Streaming, body::Body, codec::Codec as _};
use tonic_health::pb::HealthCheckRequest;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tower::Service;

use super::{call_service, normalise::caller_error, protocol};
use crate::grpc::codec::Codec;

const HEALTH: &str = "/grpc.health.v1.";
/// Both versions have the same messages.
const REFLECTION: [&str; 2] = ["/grpc.reflection.v1.", "/grpc.reflection.v1alpha."];
/// The largest message. It is small, as these calls are outside the memory budget.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

pub fn is_health_or_reflection(path: &str) -> bool {
    path.starts_with(HEALTH) || REFLECTION.iter().any(|it| path.starts_with(it))
}

/// Calls the service. A message that it cannot read ends the call, also where the service
/// would ignore the error.
pub async fn call<S>(service: S, request: Request<Body>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    if let Err(status) = protocol::refuse_compression(request.headers()) {
        return status.into_http();
    }
    let rpc = request.uri().path().trim_start_matches('/').to_owned();
    let refusal = Arc::new(OnceLock::new());
    let is_health = request.uri().path().starts_with(HEALTH);
    let request = request.map(|body| match is_health {
        true => checked::<HealthCheckRequest>(body, Arc::clone(&refusal)),
        false => checked::<ServerReflectionRequest>(body, Arc::clone(&refusal)),
    });
    let response = call_service(service, request).await;
    let normalise = move |status: Status| match refusal.get() {
        Some(refusal) => refusal.clone(),
        None => with_details(status, &rpc),
    };
    match Status::from_header_map(response.headers()) {
        Some(status) => normalise(status).into_http(),
        None => response.map(|body| {
            Body::new(body.map_frame(move |frame| normalise_trailers(frame, &normalise)))
        }),
    }
}

/// The messages of a body, each of which decodes as `M`. The first that does not ends it,
/// and its error is kept as the refusal.
fn checked<M: Message + Default + 'static>(body: Body, refusal: Arc<OnceLock<Status>>) -> Body {
    let decoder = Codec::<M, M>::default().decoder();
    let messages = Streaming::new_request(decoder, body, None, Some(MAX_MESSAGE_BYTES));
    let frames = messages.map(move |message| {
        let message = message.map_err(|status| with_details(status, ""));
        let message = message.inspect_err(|status| drop(refusal.set(status.clone())));
        message.map(|message| Frame::data(framed(&message)))
    });
    Body::new(StreamBody::new(frames))
}

/// An uncompressed message with its prefix.
fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    // At most `MAX_MESSAGE_BYTES`.
    bytes.put_u32(message.encoded_len() as u32);
    bytes.put_slice(&message.encode_to_vec());
    bytes.freeze()
}

fn with_details(status: Status, rpc: &str) -> Status {
    match status.details().is_empty() {
        true => caller_error(&status, rpc, MAX_MESSAGE_BYTES).unwrap_or(status),
        false => status,
    }
}

fn normalise_trailers(frame: Frame<Bytes>, normalise: &impl Fn(Status) -> Status) -> Frame<Bytes> {
    let Some(status) = frame.trailers_ref().and_then(Status::from_header_map) else {
        return frame;
    };
    let mut trailers = HeaderMap::new();
    match normalise(status).add_header(&mut trailers) {
        Ok(()) => Frame::trailers(trailers),
        Err(_) => frame,
    }
}
