//! Metrics, liveness and readiness over plain HTTP, for operators. The port needs no credentials, and its
//! answers hold nothing of guides or accounts.

mod sampled;

use std::{
    sync::{Arc, OnceLock},
    time::SystemTime,
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
    metrics::info::Info,
    registry::Registry,
};
use tokio::net::TcpListener;

use super::{
    health::{HealthMonitor, HealthState},
    layers::LayerState,
    listen::ConnectionLimit,
    tls::ServerTls,
};
use crate::store::Store;

/// The format of `/metrics`, whatever a request accepts.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The endpoint for operators, with all metrics of the server.
pub struct OperationsEndpoint {
    registry: Registry,
    /// The database and its metrics, once it is open.
    store: OnceLock<(Store, Registry)>,
    calls: &'static LayerState,
    health: HealthMonitor,
    connections: Arc<ConnectionLimit>,
    tls: Option<ServerTls>,
    started: SystemTime,
}

impl OperationsEndpoint {
    pub fn new(
        calls: &'static LayerState,
        health: HealthMonitor,
        connections: Arc<ConnectionLimit>,
        tls: Option<ServerTls>,
    ) -> Arc<Self> {
        let mut registry = Registry::with_prefix(env!("CARGO_PKG_NAME"));
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version that runs", build);
        let help = "Calls that were refused with OVERLOADED, by the limit that was reached";
        registry.register("rejected_calls", help, calls.limits.rejected.clone());
        Arc::new(Self {
            registry,
            store: OnceLock::new(),
            calls,
            health,
            connections,
            tls,
            started: SystemTime::now(),
        })
    }

    /// Serves the metrics of the database, too. Works once.
    pub fn add_store(&self, store: Store) {
        let mut registry = Registry::with_prefix(env!("CARGO_PKG_NAME"));
        store.register(&mut registry);
        let _ = self.store.set((store, registry));
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

    fn open_metrics_text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.calls.metrics.registry)?;
        encode_registry(&mut text, &self.registry)?;
        if let Some((store, registry)) = self.store.get() {
            store.sample_connections();
            encode_registry(&mut text, registry)?;
        }
        encode_registry(&mut text, &sampled::sample_process(self.started))?;
        encode_registry(&mut text, &self.sample_server())?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// A connection has one request, so that idle ones do not add up.
async fn close_connection(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

async fn metrics(State(endpoint): State<Arc<OperationsEndpoint>>) -> Response {
    match endpoint.open_metrics_text() {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "no metrics\n").into_response(),
    }
}

async fn ready(State(endpoint): State<Arc<OperationsEndpoint>>) -> (StatusCode, &'static str) {
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    match endpoint.health.state() {
        HealthState::Starting => (unavailable, "the server is starting\n"),
        HealthState::Serving => (StatusCode::OK, "ready\n"),
        HealthState::DatabaseDown => (unavailable, "the database does not answer\n"),
        HealthState::ShuttingDown => (unavailable, "shutting down\n"),
    }
}
