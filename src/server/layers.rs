//! The layers that every call passes, listed in [`port`].
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

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::Either};
use http::{HeaderValue, Request, Response};
use tonic::{Status, body::Body, codegen::Service, service::Routes};
use tonic_web::GrpcWebLayer;
use tower::{Layer, ServiceBuilder, layer::layer_fn, service_fn};
use tower_http::cors::{AllowHeaders, AllowOrigin, Any, CorsLayer};

pub use self::{metrics::CallMetrics, probes::MAX_PROBE_BYTES};
use super::Shared;
use crate::call_context::CallContext;

/// The service of the port: each call passes the layers from top to bottom.
pub fn port(state: &'static Shared, health_and_reflection: Routes) -> impl Next + 'static {
    let mut probes = ServiceBuilder::new()
        .layer(layer(state, probes::bound))
        .service(health_and_reflection.prepare());
    let mut services = ServiceBuilder::new()
        // Every call gets a request id, a trace, a log line and metrics, however it ends. Panics
        // are caught, and every error gets the details of the API.
        .layer(layer(state, record::record))
        .layer(layer(state, deadline::enforce))
        .layer(layer(state, authenticate::authenticate))
        // The message is received, the call waits for a permit, and its service is called.
        .service(service_fn(move |request| {
            admit::admit(state, request).map(into_response)
        }));
    ServiceBuilder::new()
        .option_layer(cors(&state.config.cors_origins))
        .layer(layer(state, protocol::require_grpc))
        // Translates calls of browsers.
        .layer(GrpcWebLayer::new())
        .service(service_fn(
            move |request: Request<Body>| match probes::is_probe(request.uri().path()) {
                true => Either::Left(probes.call(request)),
                false => Either::Right(services.call(request)),
            },
        ))
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

/// A layer that is an asynchronous function of the state, a request, and the service below it.
fn layer<S, F, R>(
    state: &'static Shared,
    function: F,
) -> impl Layer<S, Service = impl Next + use<S, F, R>>
where
    S: Next,
    F: Fn(&'static Shared, Request<Body>, S) -> R + Clone + Send,
    R: Future<Output = Outcome> + Send,
{
    layer_fn(move |next: S| {
        let function = function.clone();
        service_fn(move |request| function(state, request, next.clone()).map(into_response))
    })
}

/// A service that is always ready, and answers each call.
pub trait Next:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone + Send
{
}

impl<S> Next for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
{
}

/// Calls the service below. An `async fn` would keep two more copies of the request in the future of each layer.
fn run(mut next: impl Next, request: Request<Body>) -> impl Future<Output = Outcome> + Send {
    next.call(request).map(|response| {
        let Ok(response) = response;
        Ok(response)
    })
}

/// The call that a layer below [`record`] handles.
fn current_call() -> Arc<CallContext> {
    #[allow(clippy::expect_used)]
    CallContext::current().expect("`record` is above this layer")
}
