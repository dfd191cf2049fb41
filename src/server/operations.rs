//! Metrics, liveness and readiness over plain HTTP, for operators. The port needs no credentials, and its
//! answers hold nothing of guides or accounts.

mod process;
mod sampled;

use std::{
    sync::{Arc, OnceLock},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    extract::State,
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{
    HeaderValue, StatusCode,
    header::{CONNECTION, CONTENT_TYPE},
};
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    metrics::{gauge::Gauge, info::Info},
    registry::{Registry, Unit},
};
use tokio::net::TcpListener;

use self::sampled::SampledMetrics;
use super::{
    health::{HealthMonitor, HealthState},
    layers::LayerState,
    listen::Connections,
    tls::ServerTls,
};
use crate::store::Store;

/// The format of `/metrics`, whatever a request accepts.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The endpoint for operators, with all metrics of the server.
pub struct OperationsEndpoint {
    registry: Registry,
    store: OnceLock<StoreRegistry>,
    sources: Arc<MetricSources>,
}

/// The parts of the server that the metrics and the readiness are read from.
pub struct MetricSources {
    pub calls: &'static LayerState,
    pub health: HealthMonitor,
    pub connections: Arc<Connections>,
    pub tls: Option<ServerTls>,
}

/// The metrics of the database, once it is open.
struct StoreRegistry {
    store: Store,
    registry: Registry,
}

impl OperationsEndpoint {
    pub fn new(sources: MetricSources) -> Self {
        let mut registry = Registry::default();
        let sources = Arc::new(sources);
        process::register(&mut registry);
        sources.calls.metrics.register_grpc(&mut registry);
        let own = registry.sub_registry_with_prefix(env!("CARGO_PKG_NAME"));
        own.register(
            "build",
            "The version that runs",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        sources.calls.metrics.register(own);
        let limit = Gauge::<i64>::default();
        limit.set(i64::try_from(sources.calls.limits.max_work_bytes()).unwrap_or(i64::MAX));
        own.register_with_unit(
            "inflight_limit",
            "Most bytes that calls hold at once",
            Unit::Bytes,
            limit,
        );
        own.register(
            "rejected_calls",
            "Calls that were refused with OVERLOADED, by the limit that was reached",
            sources.calls.limits.rejected.clone(),
        );
        own.register_collector(Box::new(SampledMetrics(Arc::clone(&sources))));
        Self {
            registry,
            store: OnceLock::new(),
            sources,
        }
    }

    /// Serves the metrics of the database, too. Works once.
    pub fn add_store(&self, store: Store) {
        let mut registry = Registry::with_prefix(env!("CARGO_PKG_NAME"));
        store.register(&mut registry);
        let _ = self.store.set(StoreRegistry { store, registry });
    }

    /// Answers requests until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get("alive\n"))
            .route("/livez", get("alive\n"))
            .route("/readyz", get(ready))
            .fallback((
                StatusCode::NOT_FOUND,
                "there are /metrics, /livez and /readyz\n",
            ))
            .layer(map_response(close_connection))
            .with_state(self);
        // It never ends by itself.
        let _ = axum::serve(listener, router).await;
    }

    fn open_metrics_text(&self) -> Option<String> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry).ok()?;
        if let Some(StoreRegistry { store, registry }) = self.store.get() {
            store.sample_connections();
            encode_registry(&mut text, registry).ok()?;
        }
        encode_eof(&mut text).ok()?;
        Some(text)
    }
}

/// Seconds since 1970.
fn seconds_since_epoch(time: SystemTime) -> f64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// A connection has one request, so that idle ones do not add up.
async fn close_connection(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

async fn metrics(State(endpoint): State<Arc<OperationsEndpoint>>) -> Response {
    match endpoint.open_metrics_text() {
        Some(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "no metrics\n").into_response(),
    }
}

async fn ready(State(endpoint): State<Arc<OperationsEndpoint>>) -> (StatusCode, &'static str) {
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    match endpoint.sources.health.state() {
        HealthState::Starting => (unavailable, "the server is starting\n"),
        HealthState::Serving => (StatusCode::OK, "ready\n"),
        HealthState::DatabaseDown => (unavailable, "the database does not answer\n"),
        HealthState::ShuttingDown => (unavailable, "shutting down\n"),
    }
}
