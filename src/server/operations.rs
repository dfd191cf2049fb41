//! Metrics, liveness and readiness over plain HTTP, for operators.
//!
//! A connection serves one small request within a few seconds, and the oldest one is
//! closed when there are too many, so that no client can block others. The port needs
//! no credentials, and its answers hold nothing of guides or accounts.

mod process;
mod sampled;

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    metrics::info::Info,
    registry::Registry,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
    time::{sleep, timeout},
};
use tracing::warn;

use self::sampled::SampledMetrics;
use super::{
    ACCEPT_RETRY_PAUSE,
    connections::Connections,
    health::{HealthMonitor, HealthState},
    middleware::Middleware,
    tls::ServerTls,
};
use crate::store::Store;

/// How long a request may take, its answer included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections at once.
const MAX_CONNECTIONS: usize = 16;
const MAX_HEADER_BYTES: usize = 16 * 1024;

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";
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
    pub middleware: Arc<Middleware>,
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
        sources.middleware.register_grpc(&mut registry);
        let own = registry.sub_registry_with_prefix(env!("CARGO_PKG_NAME"));
        own.register(
            "build",
            "The version that runs",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        sources.middleware.register(own);
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
        let mut connections: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    connections.retain(|connection| !connection.is_finished());
                    if connections.len() >= MAX_CONNECTIONS
                        && let Some(oldest) = connections.pop_front()
                    {
                        oldest.abort();
                    }
                    let serving = timeout(REQUEST_TIMEOUT, Arc::clone(&self).serve_stream(stream));
                    connections.push_back(tokio::spawn(serving).abort_handle());
                }
                Err(error) => {
                    warn!(%error, "a connection for metrics was not accepted");
                    sleep(ACCEPT_RETRY_PAUSE).await;
                }
            }
        }
    }

    async fn serve_stream(self: Arc<Self>, stream: TcpStream) {
        let service = service_fn(|request: Request<Incoming>| {
            let response = self.respond(&request);
            async { Ok::<_, Infallible>(response) }
        });
        // Errors of a peer do not concern the server.
        let _ = http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(MAX_HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    fn respond(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "GET only\n");
        }
        match request.uri().path() {
            "/metrics" => self.metrics(),
            "/healthz" => text(StatusCode::OK, "alive\n"),
            "/readyz" => {
                let unavailable = StatusCode::SERVICE_UNAVAILABLE;
                match self.sources.health.state() {
                    HealthState::Starting => text(unavailable, "the server is starting\n"),
                    HealthState::Serving => text(StatusCode::OK, "ready\n"),
                    HealthState::DatabaseDown => {
                        text(unavailable, "the database does not answer\n")
                    }
                    HealthState::ShuttingDown => text(unavailable, "shutting down\n"),
                }
            }
            _ => text(
                StatusCode::NOT_FOUND,
                "there are /metrics, /healthz and /readyz\n",
            ),
        }
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        match self.open_metrics_text() {
            Some(metrics) => response(StatusCode::OK, OPEN_METRICS, metrics),
            None => text(StatusCode::INTERNAL_SERVER_ERROR, "no metrics\n"),
        }
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

fn text(code: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    response(code, PLAIN_TEXT, text)
}

fn response(
    code: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = code;
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
