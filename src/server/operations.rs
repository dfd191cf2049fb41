//! What those who run the service ask over plain HTTP: metrics, whether the process
//! lives, and whether calls should be sent to it.
//!
//! One request a connection, of a few kilobytes and a few seconds, and when there are
//! too many, the oldest gives way: whoever reaches this port can hold little, and keep
//! nobody from an answer. It asks for no credentials and tells nothing of what
//! guides say or whose they are.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fs,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use prometheus_client::{
    encoding::text::encode,
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
    ACCEPT_PAUSE,
    gate::Gate,
    health::{Condition, Pulse},
};
use crate::{store::Store, telemetry::Sent};

/// How long a request may take, its answer included.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections at once.
const AT_ONCE: usize = 16;
const HEADER_BYTES: usize = 16 * 1024;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Everything that is measured of a server.
pub(super) struct Operations {
    registry: Registry,
    store: Store,
    gate: Gate,
    pulse: Pulse,
    sent: Option<Arc<Sent>>,
    at_scrape: AtScrape,
}

/// What is looked up when somebody asks.
#[derive(Default)]
struct AtScrape {
    bytes: Gauge,
    in_work: Gauge,
    waiting: Gauge,
    resident: Gauge,
    spans: Counter,
    lost_spans: Counter,
}

impl Operations {
    /// What is measured of a server and its parts.
    pub fn of(store: Store, gate: Gate, pulse: Pulse, sent: Option<Arc<Sent>>) -> Self {
        let mut registry = Registry::with_prefix(env!("CARGO_PKG_NAME"));
        let at_scrape = AtScrape::default();
        registry.register(
            "build",
            "The version that runs",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        gate.watch().register(&mut registry);
        gate.budget().register(&mut registry);
        gate.turns().register(&mut registry);
        store.register(&mut registry);
        at_scrape.register(&mut registry, sent.is_some());
        Self {
            registry,
            store,
            gate,
            pulse,
            sent,
            at_scrape,
        }
    }

    /// Answers on a port, until this is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut connected: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            match listener.accept().await {
                Ok((peer, _)) => {
                    connected.retain(|connection| !connection.is_finished());
                    // An answer takes a moment; the oldest has not asked for one yet.
                    if connected.len() >= AT_ONCE
                        && let Some(oldest) = connected.pop_front()
                    {
                        oldest.abort();
                    }
                    let answered = timeout(PATIENCE, Arc::clone(&self).answer(peer));
                    connected.push_back(tokio::spawn(answered).abort_handle());
                }
                Err(error) => {
                    warn!(%error, "a connection for metrics was not accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn answer(self: Arc<Self>, peer: TcpStream) {
        let service = service_fn(|request: Request<Incoming>| {
            let answer = self.respond(request.method(), request.uri().path());
            async { Ok::<_, Infallible>(answer) }
        });
        // A peer that breaks off or speaks something else is its own affair.
        let _ = http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(TokioIo::new(peer), service)
            .await;
    }

    fn respond(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET only\n");
        }
        match path {
            "/metrics" => match self.metrics() {
                Some(metrics) => response(StatusCode::OK, OPEN_METRICS, metrics),
                None => response(StatusCode::INTERNAL_SERVER_ERROR, TEXT, "no metrics\n"),
            },
            "/healthz" => response(StatusCode::OK, TEXT, "alive\n"),
            "/readyz" => match self.pulse.condition() {
                Condition::Well => response(StatusCode::OK, TEXT, "ready\n"),
                Condition::Unwell => unready("the database does not answer\n"),
                Condition::Leaving => unready("shutting down\n"),
            },
            _ => response(
                StatusCode::NOT_FOUND,
                TEXT,
                "here are /metrics, /healthz and /readyz\n",
            ),
        }
    }

    fn metrics(&self) -> Option<String> {
        self.store.sample_pools();
        self.at_scrape.look(&self.gate, self.sent.as_deref());
        let mut text = String::new();
        encode(&mut text, &self.registry).ok()?;
        Some(text)
    }
}

impl AtScrape {
    fn register(&self, registry: &mut Registry, traces: bool) {
        registry.register_with_unit(
            "inflight",
            "Bytes of messages at hand",
            Unit::Bytes,
            self.bytes.clone(),
        );
        registry.register(
            "calls_in_work",
            "Calls whose turn it is: their messages are there and they are worked on",
            self.in_work.clone(),
        );
        registry.register(
            "calls_waiting",
            "Calls whose messages are there and that wait for their turn",
            self.waiting.clone(),
        );
        registry.register_with_unit(
            "process_resident",
            "Memory that the process holds",
            Unit::Bytes,
            self.resident.clone(),
        );
        if traces {
            registry.register(
                "spans_exported",
                "Spans that the collector took",
                self.spans.clone(),
            );
            registry.register(
                "spans_lost",
                "Spans that were sent and that the collector did not take",
                self.lost_spans.clone(),
            );
        }
    }

    fn look(&self, gate: &Gate, sent: Option<&Sent>) {
        set(&self.bytes, gate.budget().used());
        set(&self.in_work, gate.turns().in_work());
        set(&self.waiting, gate.turns().waiting());
        if let Some(resident) = resident_bytes() {
            self.resident.set(resident);
        }
        if let Some(sent) = sent {
            self.spans.inner().store(sent.taken(), Relaxed);
            self.lost_spans.inner().store(sent.lost(), Relaxed);
        }
    }
}

fn set(gauge: &Gauge, value: usize) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

/// Where the system says it.
fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn unready(why: &'static str) -> Response<Full<Bytes>> {
    response(StatusCode::SERVICE_UNAVAILABLE, TEXT, why)
}

fn response(code: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = code;
    let kind = http::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
