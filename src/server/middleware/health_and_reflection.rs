//! Calls of health and reflection. They need no credentials and no permit, are answered
//! whatever else the server does, and are not recorded. Their headers, messages and time are
//! bounded (only a watch without a timeout goes on), and what they hold counts apart from other
//! calls.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use hyper::body::{Body as HttpBody, Frame};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::codegen::Service;
use tonic::{Status, body::Body};

use super::{
    Middleware,
    admission::ProbeReservation,
    call_service,
    deadline::{self, Deadline},
    protocol,
};
use crate::{auth::Scope, grpc::status};

const HEALTH: &str = "/grpc.health.v1.";
/// Both versions have the same messages.
const REFLECTION: [&str; 2] = ["/grpc.reflection.v1.", "/grpc.reflection.v1alpha."];
/// The method with one short answer.
const CHECK: &str = "/grpc.health.v1.Health/Check";
/// The method whose response goes on until somebody ends it.
const WATCH: &str = "/grpc.health.v1.Health/Watch";
/// The largest message: the name of a service or of a symbol. Its memory counts from the start
/// of the call, as a peer may send it slowly.
pub const MAX_PROBE_BYTES: usize = 4 * 1024;

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
        let now = Instant::now();
        let of_caller = requested.map(|requested| now + requested);
        let deadline = Deadline::new(now, of_caller, limit);
        let path = request.uri().path();
        let is_watch = path == WATCH;
        let ends = match requested {
            Some(requested) if is_watch => Some(Deadline::new(now, of_caller, requested)),
            None if is_watch => None,
            Some(_) | None => Some(deadline),
        };
        let memory = middleware
            .memory
            .reserve_for_probe(MAX_PROBE_BYTES, path != CHECK)
            .map_err(|_| status::overloaded())?;
        Ok(Self {
            deadline,
            ends,
            memory,
        })
    }
}

/// Calls the service within the bounds.
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
    let response = deadline::enforce(deadline.at, call_service(service, request)).await;
    let Some(response) = response else {
        return exceeded(deadline).into_http();
    };
    response.map(|inner| {
        Body::new(BoundedBody {
            inner,
            end: ends.map(|ends| (ends, Box::pin(sleep_until(ends.at)))),
            is_ended: false,
            _memory: memory,
        })
    })
}

fn exceeded(deadline: Deadline) -> Status {
    status::deadline_exceeded(Scope::Read, deadline.source)
}

/// The body of a response, which ends in time.
struct BoundedBody {
    inner: Body,
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
        Pin::new(&mut self.inner).poll_frame(context)
    }

    // So that the HEADERS frame of an error has END_STREAM: clients of gRPC's C core accept no other
    // end.
    fn is_end_stream(&self) -> bool {
        self.is_ended || self.inner.is_end_stream()
    }
}
