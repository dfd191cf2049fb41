//! The layers that every call passes, listed in [`port`] and [`handle`].
//!
//! *Invariant:* credentials, scope and deadline are checked when the headers arrive, before a byte of the
//! body is read. A service is called when the whole message has arrived and the call has a permit.

mod admit;
mod authenticate;
mod deadline;
mod message;
mod metrics;
mod probes;
mod protocol;
mod record;

use std::{convert::Infallible, future::ready, pin::pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::Either};
use http::{HeaderValue, Request, Response};
use tokio::time::Instant;
use tonic::{Status, body::Body, codegen::Service, service::Routes};
use tonic_web::GrpcWebLayer;
use tower::{ServiceBuilder, service_fn};
use tower_http::cors::{AllowHeaders, AllowOrigin, Any, CorsLayer};

pub use self::{metrics::CallMetrics, probes::MAX_PROBE_BYTES};
use super::Shared;
use crate::{
    auth::Scope,
    call_context::CallContext,
    grpc::{self, status},
};

/// The service of the port: each call passes the layers from top to bottom.
pub fn port(
    state: &'static Shared,
    health_and_reflection: Routes,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    let probes = health_and_reflection.prepare();
    let calls = service_fn(move |request: Request<Body>| {
        // Before tonic starts to measure the caller's timeout.
        let started = Instant::now();
        match probes::is_probe(request.uri().path()) {
            true => Either::Left(probes::answer(state, probes.clone(), request, started)),
            // Every call gets a request id, a trace, a log line and metrics, however it ends. Panics
            // are caught, and every error gets the details of the API.
            false => Either::Right(record::record(state, request, started, handle)),
        }
        .map(into_response)
    });
    // Translates calls of browsers.
    let mut calls = ServiceBuilder::new()
        .layer(GrpcWebLayer::new())
        .service(calls);
    ServiceBuilder::new()
        .option_layer(cors(&state.config.cors_origins))
        .service_fn(move |request| match protocol::refuse_non_grpc(&request) {
            None => Either::Left(calls.call(request)),
            Some(response) => Either::Right(ready(Ok(response))),
        })
}

/// Handles a recorded call.
async fn handle(state: &'static Shared, call: Arc<CallContext>, request: Request<Body>) -> Outcome {
    let (head, body) = request.into_parts();
    let scope = grpc::required_scope(head.uri.path());
    let timeout = deadline::requested(&head.headers)?;
    let work = pin!(async {
        authenticate::authenticate(state, &call, scope, &head).await?;
        // The message is received, the call waits for a permit, and its service is called.
        admit::admit(state, &call, head, body).await
    });
    let answer = call.until_deadline(timeout, work).await;
    let scope = scope.unwrap_or(Scope::Read);
    answer.unwrap_or_else(|source| Err(status::deadline_exceeded(scope, source)))
}

/// Allows pages of these origins, if any, to make calls.
fn cors(origins: &[HeaderValue]) -> Option<CorsLayer> {
    let origin = match origins {
        [] => return None,
        [any] if any == "*" => AllowOrigin::any(),
        origins => AllowOrigin::list(origins.iter().cloned()),
    };
    let cors = CorsLayer::new().allow_origin(origin);
    // `*` does not allow `authorization`.
    let cors = cors
        .allow_methods([http::Method::POST])
        .allow_headers(AllowHeaders::mirror_request());
    Some(
        cors.expose_headers(Any)
            .max_age(Duration::from_secs(24 * 60 * 60)),
    )
}

/// The response to a call, or an error that becomes its response.
pub type Outcome = Result<Response<Body>, Status>;

fn into_response(outcome: Outcome) -> Result<Response<Body>, Infallible> {
    Ok(outcome.unwrap_or_else(Status::into_http))
}
