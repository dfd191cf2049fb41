//! Metrics, liveness and readiness over plain HTTP, for operators.
//!
//! A connection serves one small request within a few seconds, and the oldest one is
//! closed when there are too many, so that no client can block others. The port needs
//! no credentials, and its answers hold nothing of guides or accounts.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fs,
    sync::{Arc, OnceLock, atomic::Ordering::Relaxed},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    metrics::{counter::Counter, gauge::Gauge, info::Info},
    registry::{Registry, Unit},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
    time::{sleep, timeout},
};
use tracing::warn;

use super::{
    ACCEPT_RETRY_PAUSE,
    health::{HealthMonitor, HealthState},
    middleware::Middleware,
};
use crate::{store::Store, telemetry::SpanCounts};

/// How long a request may take, its answer included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections at once.
const MAX_CONNECTIONS: usize = 16;
const MAX_HEADER_BYTES: usize = 16 * 1024;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// The endpoint for operators, with all metrics of the server.
pub struct OperationsEndpoint {
    registry: Registry,
    store: OnceLock<StoreRegistry>,
    middleware: Arc<Middleware>,
    health: HealthMonitor,
    spans: Option<Arc<SpanCounts>>,
    sampled: SampledMetrics,
}

/// The metrics of the database, once it is open.
struct StoreRegistry {
    store: Store,
    registry: Registry,
}

/// Metrics that are sampled when they are requested.
#[derive(Default)]
struct SampledMetrics {
    inflight_bytes: Gauge,
    calls_in_work: Gauge,
    calls_waiting: Gauge,
    resident_bytes: Gauge,
    spans_exported: Counter,
    spans_lost: Counter,
}

impl OperationsEndpoint {
    pub fn new(
        middleware: Arc<Middleware>,
        health: HealthMonitor,
        spans: Option<Arc<SpanCounts>>,
    ) -> Self {
        let mut registry = new_registry();
        let sampled = SampledMetrics::default();
        registry.register(
            "build",
            "The version that runs",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        middleware.register(&mut registry);
        sampled.register(&mut registry, spans.is_some());
        Self {
            registry,
            store: OnceLock::new(),
            middleware,
            health,
            spans,
            sampled,
        }
    }

    /// Serves the metrics of the database, too. Works once.
    pub fn add_store(&self, store: Store) {
        let mut registry = new_registry();
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
            let response = self.respond(request.method(), request.uri().path());
            async { Ok::<_, Infallible>(response) }
        });
        // Errors of a peer do not concern the server.
        let _ = http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(MAX_HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    fn respond(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "GET only\n");
        }
        match path {
            "/metrics" => match self.metrics() {
                Some(metrics) => response(StatusCode::OK, OPEN_METRICS, metrics),
                None => text(StatusCode::INTERNAL_SERVER_ERROR, "no metrics\n"),
            },
            "/healthz" => text(StatusCode::OK, "alive\n"),
            "/readyz" => {
                let unavailable = StatusCode::SERVICE_UNAVAILABLE;
                match self.health.state() {
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

    fn metrics(&self) -> Option<String> {
        self.sampled.sample(&self.middleware, self.spans.as_deref());
        let mut text = String::new();
        encode_registry(&mut text, &self.registry).ok()?;
        if let Some(StoreRegistry { store, registry }) = self.store.get() {
            store.sample_pools();
            encode_registry(&mut text, registry).ok()?;
        }
        encode_eof(&mut text).ok()?;
        Some(text)
    }
}

fn new_registry() -> Registry {
    Registry::with_prefix(env!("CARGO_PKG_NAME"))
}

impl SampledMetrics {
    fn register(&self, registry: &mut Registry, has_traces: bool) {
        registry.register_with_unit(
            "inflight",
            "Bytes of messages that are held",
            Unit::Bytes,
            self.inflight_bytes.clone(),
        );
        registry.register(
            "calls_in_work",
            "Calls that are worked on: their messages have arrived and they have a permit",
            self.calls_in_work.clone(),
        );
        registry.register(
            "calls_waiting",
            "Calls that wait in the queue for a permit",
            self.calls_waiting.clone(),
        );
        registry.register_with_unit(
            "process_resident",
            "Resident memory of the process",
            Unit::Bytes,
            self.resident_bytes.clone(),
        );
        if has_traces {
            registry.register(
                "spans_exported",
                "Spans that the collector accepted",
                self.spans_exported.clone(),
            );
            registry.register(
                "spans_lost",
                "Spans that were sent and that the collector did not accept",
                self.spans_lost.clone(),
            );
        }
    }

    fn sample(&self, middleware: &Middleware, spans: Option<&SpanCounts>) {
        let load = middleware.current_load();
        for (gauge, value) in [
            (&self.inflight_bytes, load.inflight_bytes),
            (&self.calls_in_work, load.calls_in_work),
            (&self.calls_waiting, load.calls_waiting),
        ] {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        if let Some(bytes) = resident_bytes() {
            self.resident_bytes.set(bytes);
        }
        if let Some(spans) = spans {
            self.spans_exported.inner().store(spans.exported(), Relaxed);
            self.spans_lost.inner().store(spans.lost(), Relaxed);
        }
    }
}

/// On Linux; `None` elsewhere.
fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
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
