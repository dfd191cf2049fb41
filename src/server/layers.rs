//! The layers that every call passes, listed in [`port`], and the state that they share.
//!
//! *Invariant:* credentials, scope and deadline are checked when the headers arrive, before a byte of the
//! body is read. A service is called when the whole message has arrived and the call has a permit.

mod admit;
mod authenticate;
mod deadline;
mod error_details;
mod message;
mod metrics;
mod probes;
mod protocol;
mod record;

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{Either, Map},
};
use http::{HeaderValue, Request, Response};
use tonic::{Status, body::Body, codegen::Service, service::Routes};
use tonic_web::GrpcWebLayer;
use tower::{Layer, ServiceBuilder};
use tower_http::cors::{AllowHeaders, AllowOrigin, Any, CorsLayer};

use self::metrics::CallMetrics;
pub use self::probes::MAX_PROBE_BYTES;
use super::{
    health::HealthMonitor,
    routes::{ContractRoutes, contract},
};
use crate::{
    auth::Authenticator, call_limits::CallLimits, config::Config,
    proto::decoded_size::DecodedSizes, telemetry::Tracer,
};

/// What the layers of all calls share.
pub struct CallState {
    pub authenticator: Authenticator,
    pub limits: Arc<CallLimits>,
    pub metrics: CallMetrics,
    /// The services of the contract, once the database is open.
    pub contract: ContractRoutes,
    health: HealthMonitor,
    tracer: Option<Tracer>,
    sizes: DecodedSizes,
    request_timeout: Duration,
    max_message_bytes: usize,
}

impl CallState {
    pub fn new(
        config: &Config,
        authenticator: Authenticator,
        tracer: Option<Tracer>,
        health: HealthMonitor,
    ) -> Self {
        Self {
            authenticator,
            limits: CallLimits::new(config.limits.max_inflight_bytes),
            metrics: CallMetrics::new(),
            contract: ContractRoutes::new(),
            health,
            tracer,
            sizes: DecodedSizes::for_api(),
            request_timeout: config.limits.request_timeout,
            max_message_bytes: config.limits.max_message_bytes,
        }
    }
}

/// The service of the port: each call passes the layers from top to bottom.
pub fn port(
    state: &'static CallState,
    cors_origins: &[HeaderValue],
    health_and_reflection: Routes,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    let probes = ServiceBuilder::new()
        .layer(layer(state, probes::bound))
        .service(health_and_reflection.prepare());
    let contract = ServiceBuilder::new()
        // A request id, a trace, a log line and metrics, however the call ends. Panics are caught.
        .layer(layer(state, record::record))
        .layer(layer(state, deadline::enforce))
        .layer(layer(state, authenticate::authenticate))
        // The message is received, and the call waits for a permit.
        .layer(layer(state, admit::admit))
        .layer(layer(state, error_details::complete))
        .service(layer(state, contract).layer(()));
    ServiceBuilder::new()
        .option_layer(cors(cors_origins))
        .layer(layer(state, protocol::require_grpc))
        // Translates calls of browsers.
        .layer(GrpcWebLayer::new())
        .service(Port { probes, contract })
}

/// Allows pages of these origins to make calls, if there are any.
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

/// A layer that is an asynchronous function of the state, a request, and the service below it.
fn layer<F>(state: &'static CallState, function: F) -> FunctionLayer<F> {
    FunctionLayer { state, function }
}

#[derive(Clone)]
struct FunctionLayer<F> {
    state: &'static CallState,
    function: F,
}

impl<S, F: Clone> Layer<S> for FunctionLayer<F> {
    type Service = FunctionService<F, S>;

    fn layer(&self, next: S) -> Self::Service {
        FunctionService {
            layer: self.clone(),
            next,
        }
    }
}

#[derive(Clone)]
struct FunctionService<F, S> {
    layer: FunctionLayer<F>,
    next: S,
}

pub type Outcome = Result<Response<Body>, Status>;

impl<F, S, R> Service<Request<Body>> for FunctionService<F, S>
where
    F: Fn(&'static CallState, Request<Body>, S) -> R,
    R: Future<Output = Outcome>,
    S: Clone,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Map<R, fn(Outcome) -> Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // All services below are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let response = (self.layer.function)(self.layer.state, request, self.next.clone());
        response.map(|outcome| Ok(outcome.unwrap_or_else(Status::into_http)))
    }
}

/// The service below a layer.
trait Next:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone + Send
{
}

impl<S> Next for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
{
}

/// Calls the service below. As an `async fn` it would keep two more copies of the request in the future of each layer.
fn run(mut next: impl Next, request: Request<Body>) -> impl Future<Output = Outcome> + Send {
    next.call(request).map(|response| {
        let Ok(response) = response;
        Ok(response)
    })
}

/// Health and reflection, or the contract.
#[derive(Clone)]
struct Port<P, C> {
    probes: P,
    contract: C,
}

impl<P: Next, C: Next> Service<Request<Body>> for Port<P, C> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<P::Future, C::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if probes::is_probe(request.uri().path()) {
            Either::Left(self.probes.call(request))
        } else {
            Either::Right(self.contract.call(request))
        }
    }
}
