//! Bounds calls of health and reflection. They need no credentials and no permit, are answered
//! whatever else the server does, and are not recorded. Their headers, messages and time are
//! bounded; only a watch without a timeout goes on.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::{Body as HttpBody, Frame};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tonic::{Status, body::Body};

use super::{CallState, Next, Outcome, deadline, protocol, run};
use crate::{auth::Scope, call_context::DeadlineSource, grpc::status};

/// Health, and both versions of reflection, which have the same messages.
const PACKAGES: [&str; 3] = [
    "/grpc.health.v1.",
    "/grpc.reflection.v1.",
    "/grpc.reflection.v1alpha.",
];
/// The method whose response goes on until somebody ends it.
const WATCH: &str = "/grpc.health.v1.Health/Watch";
/// The largest message: the name of a service or of a symbol.
pub const MAX_PROBE_BYTES: usize = 4 * 1024;

pub fn is_probe(path: &str) -> bool {
    PACKAGES.iter().any(|package| path.starts_with(package))
}

pub async fn bound(state: &'static CallState, request: Request<Body>, next: impl Next) -> Outcome {
    protocol::check_headers(request.headers(), 0)?;
    let requested = deadline::requested(request.headers())?;
    let (limit, now) = (state.request_timeout, Instant::now());
    let (begins, source) = match requested {
        Some(requested) if requested <= limit => (now + requested, DeadlineSource::Caller),
        _ => (now + limit, DeadlineSource::Server),
    };
    let ends = match (request.uri().path(), requested) {
        (WATCH, Some(requested)) => Some((now + requested, DeadlineSource::Caller)),
        (WATCH, None) => None,
        _ => Some((begins, source)),
    };
    if Instant::now() >= begins {
        return Err(exceeded(source));
    }
    let answer = timeout_at(begins, run(next, request)).await;
    let response = answer.map_err(|_| exceeded(source))??;
    Ok(response.map(|inner| {
        Body::new(BoundedBody {
            inner,
            end: ends.map(|(at, source)| (Box::pin(sleep_until(at)), source)),
            is_ended: false,
        })
    }))
}

fn exceeded(source: DeadlineSource) -> Status {
    status::deadline_exceeded(Scope::Read, source)
}

/// The body of a response, which ends in time.
struct BoundedBody {
    inner: Body,
    end: Option<(Pin<Box<Sleep>>, DeadlineSource)>,
    is_ended: bool,
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
        if let Some((timer, source)) = &mut self.end
            && timer.as_mut().poll(context).is_ready()
        {
            let mut trailers = HeaderMap::new();
            let added = exceeded(*source).add_header(&mut trailers);
            self.is_ended = true;
            return Poll::Ready(Some(added.map(|()| Frame::trailers(trailers))));
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }

    // So that the HEADERS frame of an error has END_STREAM: clients of gRPC's C core accept no other
    // end.
    fn is_end_stream(&self) -> bool {
        self.is_ended || self.inner.is_end_stream()
    }
}
