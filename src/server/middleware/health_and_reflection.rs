//! Calls of health and reflection. They need no credentials and no permit, are answered
//! whatever else the server does, and are not recorded. Their headers, messages and time are
//! bounded (only a watch without a timeout goes on), what they hold counts apart from other
//! calls, and their errors have the same codes and details.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame};
use http_body_util::StreamBody;
use prost::Message;
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::{Status, Streaming, body::Body, codec::Codec as _};
use tonic_health::pb::HealthCheckRequest;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tower::Service;

use super::{
    Middleware,
    admission::ProbeReservation,
    call_service,
    deadline::{self, Deadline},
    normalise::caller_error,
    protocol,
};
use crate::{
    auth::Scope,
    grpc::{codec::Codec, status},
};

const HEALTH: &str = "/grpc.health.v1.";
/// Both versions have the same messages.
const REFLECTION: [&str; 2] = ["/grpc.reflection.v1.", "/grpc.reflection.v1alpha."];
/// The method with one short answer.
const CHECK: &str = "/grpc.health.v1.Health/Check";
/// The method whose response goes on until somebody ends it.
const WATCH: &str = "/grpc.health.v1.Health/Watch";
/// The largest message: the name of a service or of a symbol. Its memory counts from the start
/// of the call, as a peer may send it slowly.
const MAX_MESSAGE_BYTES: usize = 4 * 1024;

pub fn is_health_or_reflection(path: &str) -> bool {
    path.starts_with(HEALTH) || REFLECTION.iter().any(|it| path.starts_with(it))
}

/// What bounds a call.
pub struct CallBounds {
    /// When the response must have begun.
    deadline: Deadline,
    /// When it must have ended; `None` for a watch without a timeout.
    ends: Option<Deadline>,
    memory: ProbeReservation,
}

impl CallBounds {
    /// Refuses a call with too large headers, with compression, or with a malformed timeout, and
    /// a stream when there are too many.
    pub fn new(middleware: &Middleware, request: &Request<Body>) -> Result<Self, Status> {
        let headers = request.headers();
        protocol::limit_headers(headers, 0)?;
        protocol::refuse_compression(headers)?;
        let requested = deadline::requested(headers)?;
        let limit = middleware.limits.request_timeout;
        let deadline = Deadline::new(Instant::now(), requested, limit);
        let path = request.uri().path();
        let is_watch = path == WATCH;
        let ends = match requested {
            Some(requested) if is_watch => {
                Some(Deadline::new(Instant::now(), Some(requested), requested))
            }
            None if is_watch => None,
            Some(_) | None => Some(deadline),
        };
        let memory = middleware
            .memory
            .reserve_for_probe(MAX_MESSAGE_BYTES, path != CHECK)
            .map_err(|_| status::overloaded())?;
        Ok(Self {
            deadline,
            ends,
            memory,
        })
    }
}

/// Calls the service. A message that it cannot read ends the call, also where the service
/// would ignore the error.
pub async fn call<S>(service: S, mut request: Request<Body>, bounds: CallBounds) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let CallBounds {
        deadline,
        ends,
        memory,
    } = bounds;
    protocol::drop_read_headers(request.headers_mut());
    let rpc = request.uri().path().trim_start_matches('/').to_owned();
    let refusal = Arc::new(OnceLock::new());
    let is_health = request.uri().path().starts_with(HEALTH);
    let request = request.map(|body| match is_health {
        true => checked::<HealthCheckRequest>(body, Arc::clone(&refusal)),
        false => checked::<ServerReflectionRequest>(body, Arc::clone(&refusal)),
    });
    let response = deadline::enforce(deadline.at, call_service(service, request)).await;
    let Some(response) = response else {
        return exceeded(deadline).into_http();
    };
    let normalise = move |status: Status| match refusal.get() {
        Some(refusal) => refusal.clone(),
        None => with_details(status, &rpc),
    };
    match Status::from_header_map(response.headers()) {
        Some(status) => normalise(status).into_http(),
        None => response.map(|inner| {
            Body::new(BoundedBody {
                inner,
                normalise: Box::new(normalise),
                end: ends.map(|ends| (ends, Box::pin(sleep_until(ends.at)))),
                is_ended: false,
                _memory: memory,
            })
        }),
    }
}

fn exceeded(deadline: Deadline) -> Status {
    status::deadline_exceeded(Scope::Read, deadline.source)
}

/// The body of a response, whose errors have details, and which ends in time.
struct BoundedBody {
    inner: Body,
    normalise: Box<dyn Fn(Status) -> Status + Send>,
    end: Option<(Deadline, Pin<Box<Sleep>>)>,
    is_ended: bool,
    /// Held until the end.
    _memory: ProbeReservation,
}

impl HttpBody for BoundedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_ended {
            return Poll::Ready(None);
        }
        // First, as a peer that reads slowly may always have a frame ready.
        if let Some((deadline, timer)) = &mut self.end
            && timer.as_mut().poll(context).is_ready()
        {
            let status = exceeded(*deadline);
            self.is_ended = true;
            let mut trailers = HeaderMap::new();
            let frame = status.add_header(&mut trailers);
            return Poll::Ready(Some(frame.map(|()| Frame::trailers(trailers))));
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map(|it| normalise_trailers(it, &self.normalise))))
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
