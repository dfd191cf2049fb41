//! Metrics, liveness and readiness over plain HTTP, for operators. The port needs no credentials,
//! and its responses contain nothing about guides or accounts.

mod sampled;

use std::time::Duration;

use axum::{
    Router,
    extract::State,
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{
    StatusCode,
    header::{CONNECTION, CONTENT_TYPE},
};
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    registry::Registry,
};
use tokio::net::TcpListener;
use tonic::{service::Routes, transport::Server};

use super::{MAX_HEADER_BYTES, Shared, health::HealthState, listen::incoming};

/// The maximum number of open connections. More wait until others end.
pub const MAX_CONNECTIONS: usize = 128;
/// The maximum age of a connection after its first byte, and then the time for its last response. Nobody can
/// hold a connection for longer, so probes never wait for long.
const MAX_CONNECTION_AGE: Duration = Duration::from_secs(2);
const LAST_RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of concurrent requests on a connection of HTTP/2.
const MAX_CONCURRENT_STREAMS: u32 = 10;
/// The format of `/metrics`, regardless of what a request accepts.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers requests until the future is dropped.
pub async fn serve(listener: TcpListener, state: &'static Shared) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get("alive\n"))
        .route("/livez", get("alive\n"))
        .route("/readyz", get(ready))
        .fallback((
            StatusCode::NOT_FOUND,
            "there are /metrics, /livez and /readyz\n",
        ))
        // A connection of HTTP/1.1 serves one request, so idle connections do not accumulate.
        .layer(map_response(async |it: Response| {
            ([(CONNECTION, "close")], it)
        }))
        .with_state(state);
    let incoming = incoming(listener, state, &state.operations_connections, None);
    let server = Server::builder()
        .accept_http1(true)
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .max_connection_age(MAX_CONNECTION_AGE)
        .max_connection_age_grace(LAST_RESPONSE_TIMEOUT);
    let serving = server.serve_with_incoming(Routes::from(router), incoming);
    // It never ends by itself.
    let _ = serving.await;
}

async fn metrics(State(state): State<&'static Shared>) -> Response {
    let mut registry = Registry::with_prefix(env!("CARGO_PKG_NAME"));
    sampled::register_server(&mut registry, state);
    if let Some(store) = state.store.get() {
        store.register_sampled(&mut registry);
    }
    let process = sampled::process(state.started);
    let mut text = String::new();
    let encoded = encode_registry(&mut text, &state.metrics.registry)
        .and_then(|()| encode_registry(&mut text, &registry))
        .and_then(|()| encode_registry(&mut text, &process))
        .and_then(|()| encode_eof(&mut text));
    match encoded {
        Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "no metrics\n").into_response(),
    }
}

async fn ready(State(state): State<&'static Shared>) -> (StatusCode, &'static str) {
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    match state.health.state() {
        HealthState::Starting => (unavailable, "the server is starting\n"),
        HealthState::Serving => (StatusCode::OK, "ready\n"),
        HealthState::DatabaseDown => (unavailable, "the database does not respond\n"),
        HealthState::ShuttingDown => (unavailable, "shutting down\n"),
    }
}
