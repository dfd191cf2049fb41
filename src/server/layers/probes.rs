//! Answers health and reflection calls. They need no credentials and no permit, work under any load,
//! and are not recorded. Their headers, messages and time are limited; only a watch may run without
//! a timeout.

use futures_util::stream;
use http::{HeaderMap, Request};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::{Status, body::Body, codegen::Service, service::Routes};

use super::{Outcome, Shared, deadline, protocol};
use crate::{auth::Scope, call_context::DeadlineSource, grpc::status};

/// Health, and both versions of reflection, which have the same messages.
const PACKAGES: [&str; 3] = [
    "/grpc.health.v1.",
    "/grpc.reflection.v1.",
    "/grpc.reflection.v1alpha.",
];
/// The method whose response ends only when the client or the server ends it.
const WATCH: &str = "/grpc.health.v1.Health/Watch";
/// The largest message: the name of a service or of a symbol.
pub const MAX_PROBE_BYTES: usize = 4 * 1024;

pub fn is_probe(path: &str) -> bool {
    PACKAGES.iter().any(|package| path.starts_with(package))
}

pub async fn answer(
    state: &Shared,
    mut probes: Routes,
    request: Request<Body>,
    started: Instant,
) -> Outcome {
    protocol::check_headers(request.headers(), 0)?;
    let requested = deadline::requested(request.headers())?;
    let limit = state.config.limits.request_timeout;
    let (begins, source) = match requested {
        Some(requested) if requested <= limit => (started + requested, DeadlineSource::Caller),
        _ => (started + limit, DeadlineSource::Server),
    };
    let ends = match (request.uri().path(), requested) {
        (WATCH, requested) => requested.map(|it| (started + it, DeadlineSource::Caller)),
        _ => Some((begins, source)),
    };
    if Instant::now() >= begins {
        return Err(exceeded(source));
    }
    let answer = timeout_at(begins, probes.call(request)).await;
    let Ok(response) = answer.map_err(|_| exceeded(source))?;
    match ends {
        // An error has no body, because clients of gRPC's C core accept nothing else.
        Some((at, source)) if !response.body().is_end_stream() => {
            Ok(response.map(|body| until(at, source, body)))
        }
        _ => Ok(response),
    }
}

/// The body until this time, then an error.
fn until(at: Instant, source: DeadlineSource, body: Body) -> Body {
    let frames = stream::unfold(Some(body), move |body| async move {
        let mut body = body?;
        tokio::select! {
            // Checks the time first, because a frame may always be ready for a peer that reads
            // slowly.
            biased;
            () = sleep_until(at) => {
                let mut trailers = HeaderMap::new();
                let added = exceeded(source).add_header(&mut trailers);
                Some((added.map(|()| Frame::trailers(trailers)), None))
            }
            frame = body.frame() => Some((frame?, Some(body))),
        }
    });
    Body::new(StreamBody::new(frames))
}

fn exceeded(source: DeadlineSource) -> Status {
    status::deadline_exceeded(Scope::Read, source)
}
