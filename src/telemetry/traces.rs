//! Traces: a span for each call and what it asks of the database, sent to a
//! collector over OTLP.
//!
//! *Invariants:* a collector that is slow or away costs spans and nothing else: calls
//! hand theirs over to a bounded queue and go on. An attribute holds what a log line
//! may hold, and nothing that a caller wrote into a guide.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::Uri;
use opentelemetry::{
    Context, KeyValue,
    trace::{
        Span as _, SpanContext, SpanKind, Status as SpanStatus, TraceContextExt, Tracer as _,
        TracerProvider as _,
    },
};
use opentelemetry_otlp::{ExporterBuildError, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    trace::{
        BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider, Span,
        SpanData, SpanExporter,
    },
};
use tokio::{
    runtime::Handle,
    task::spawn_blocking,
    time::{Instant, timeout, timeout_at},
};
use tonic::{
    Code,
    transport::{self, ClientTlsConfig, Endpoint},
};
use tracing::{info, warn};

use crate::call_context::SpanRecorder;

/// Spans that wait to be sent; what comes then is lost.
const QUEUE: usize = 4096;
/// Spans that are sent at once, and how often at least.
const BATCH: usize = 512;
const DELAY: Duration = Duration::from_secs(1);
/// How long a collector may take, all attempts included.
const PATIENCE: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(3);
/// How long a server that ends waits for its last spans to be taken.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why traces cannot be sent. A display is one line.
#[derive(Debug, thiserror::Error)]
#[error("EXPERTISE_OTLP_ENDPOINT is \"{endpoint}\": {why}")]
pub struct TracesError {
    endpoint: Uri,
    why: Why,
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("it cannot be connected to: {0}")]
    Endpoint(#[from] transport::Error),
    #[error("spans cannot be sent there: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// Sends spans until it is ended.
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    sent: Arc<Sent>,
}

/// How many spans reached the collector, and how many did not.
#[derive(Debug, Default)]
pub struct Sent {
    taken: AtomicU64,
    lost: AtomicU64,
}

impl Sent {
    /// Spans that the collector took.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Spans that were sent and that the collector did not take.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Traces {
    /// Begins to send spans to a collector, which need not be there yet. To be
    /// called in a runtime.
    pub fn start(endpoint: &Uri) -> Result<Self, TracesError> {
        let refused = |why| TracesError {
            endpoint: endpoint.clone(),
            why,
        };
        let sent = Arc::<Sent>::default();
        let exporter = exporter(endpoint).map_err(refused)?;
        let exporter = Watched {
            exporter: Arc::new(exporter),
            runtime: Handle::current(),
            sent: Arc::clone(&sent),
            failing: AtomicBool::new(false),
        };
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(DELAY)
            .build();
        let processor = BatchSpanProcessor::builder(exporter)
            .with_batch_config(config)
            .build();
        let resource = Resource::builder_empty()
            .with_attributes([
                KeyValue::new("service.name", env!("CARGO_PKG_NAME")),
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            ])
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            // As the caller has decided, who alone knows what else is sampled.
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .with_resource(resource)
            .build();
        let tracer = provider.tracer(env!("CARGO_PKG_NAME"));
        Ok(Self {
            provider,
            tracer,
            sent,
        })
    }

    /// What makes spans.
    pub fn tracer(&self) -> Tracer {
        Tracer(self.tracer.clone())
    }

    /// What became of the spans so far.
    pub fn sent(&self) -> Arc<Sent> {
        Arc::clone(&self.sent)
    }

    /// Sends what is left, and gives it up when that takes too long.
    pub async fn end(self, until: Instant) {
        let until = until.min(Instant::now() + FAREWELL);
        let left = until.saturating_duration_since(Instant::now());
        let ended = spawn_blocking(move || self.provider.shutdown_with_timeout(left));
        if !matches!(timeout_at(until, ended).await, Ok(Ok(Ok(())))) {
            warn!("the last traces were not sent");
        }
    }
}

fn exporter(endpoint: &Uri) -> Result<opentelemetry_otlp::SpanExporter, Why> {
    let mut channel = Endpoint::from(endpoint.clone()).connect_timeout(CONNECT);
    if endpoint.scheme_str() == Some("https") {
        channel = channel.tls_config(ClientTlsConfig::new().with_native_roots())?;
    }
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_channel(channel.connect_lazy())
        .with_timeout(PATIENCE)
        .build()?;
    Ok(exporter)
}

/// Sends spans from the runtime, where a collector that says nothing is waited for
/// no longer than [`PATIENCE`]. Says once that spans do not arrive, and once that they
/// do again. What the collector or the transport says is not repeated.
#[derive(Debug)]
struct Watched {
    exporter: Arc<opentelemetry_otlp::SpanExporter>,
    runtime: Handle,
    sent: Arc<Sent>,
    failing: AtomicBool,
}

impl SpanExporter for Watched {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let exporter = Arc::clone(&self.exporter);
        let export = async move { timeout(PATIENCE, exporter.export(batch)).await };
        let outcome = match self.runtime.spawn(export).await {
            Ok(Ok(outcome)) => outcome,
            // Too slow, or the runtime has ended.
            Ok(Err(_)) | Err(_) => Err(OTelSdkError::Timeout(PATIENCE)),
        };
        let failed = outcome.is_err();
        let count = match failed {
            true => &self.sent.lost,
            false => &self.sent.taken,
        };
        count.fetch_add(spans, Ordering::Relaxed);
        match (self.failing.swap(failed, Ordering::Relaxed), failed) {
            (false, true) => warn!("traces do not reach the collector, and are lost"),
            (true, false) => info!("traces reach the collector again"),
            (true, true) | (false, false) => {}
        }
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        // Nobody else has it yet.
        if let Some(exporter) = Arc::get_mut(&mut self.exporter) {
            exporter.set_resource(resource);
        }
    }
}

/// Makes spans.
#[derive(Clone)]
pub struct Tracer(SdkTracer);

/// What is said of a call when it ends.
pub struct Ended<'a> {
    /// How it ended.
    pub code: Code,
    /// Why, as the contract names it; empty when it went well.
    pub reason: &'a str,
    /// Whose guides it was about; empty when its credentials were refused.
    pub account: &'a str,
}

/// The span of a call at hand.
pub struct CallSpan(Span);

impl Tracer {
    /// A call begins; `rpc` is `package.Service/Method`.
    pub fn call(
        &self,
        rpc: &str,
        request_id: impl ToString,
        parent: Option<SpanContext>,
    ) -> CallSpan {
        let (service, method) = rpc.split_once('/').unwrap_or((rpc, ""));
        let span = self
            .0
            .span_builder(rpc.to_owned())
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new("rpc.system", "grpc"),
                KeyValue::new("rpc.service", service.to_owned()),
                KeyValue::new("rpc.method", method.to_owned()),
                KeyValue::new("expertise.request_id", request_id.to_string()),
            ]);
        let parent = parent.map_or_else(Context::new, |parent| {
            Context::new().with_remote_span_context(parent)
        });
        CallSpan(self.0.build_with_context(span, &parent))
    }
}

impl CallSpan {
    /// Where the call is in its trace.
    pub fn context(&self) -> &SpanContext {
        self.0.span_context()
    }

    /// The call has ended.
    pub fn end(mut self, ended: &Ended<'_>) {
        let Ended {
            code,
            reason,
            account,
        } = *ended;
        let number = i64::from(i32::from(code));
        self.0
            .set_attribute(KeyValue::new("rpc.grpc.status_code", number));
        for (name, value) in [("expertise.account", account), ("expertise.reason", reason)] {
            if !value.is_empty() {
                self.0.set_attribute(KeyValue::new(name, value.to_owned()));
            }
        }
        if is_our_failure(code) {
            self.0.set_status(SpanStatus::error(""));
        }
        self.0.end();
    }
}

/// The codes that make a server's span an error; others are the caller's affair.
fn is_our_failure(code: Code) -> bool {
    match code {
        Code::Unknown
        | Code::DeadlineExceeded
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => true,
        Code::Ok
        | Code::Cancelled
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unauthenticated => false,
    }
}

/// Records spans below the span of a sampled call.
pub struct ChildSpans {
    tracer: Tracer,
    parent: SpanContext,
}

impl ChildSpans {
    /// A recorder for the call; `None` when its trace is not sampled.
    pub fn of(tracer: &Tracer, call: &CallSpan) -> Option<Self> {
        call.context().is_sampled().then(|| Self {
            tracer: tracer.clone(),
            parent: call.context().clone(),
        })
    }
}

impl SpanRecorder for ChildSpans {
    fn record(&self, name: &'static str, duration: Duration, failed: bool) {
        let now = SystemTime::now();
        let tracer = &self.tracer.0;
        let span = tracer
            .span_builder(name)
            .with_kind(SpanKind::Client)
            .with_start_time(now.checked_sub(duration).unwrap_or(now));
        let parent = Context::new().with_remote_span_context(self.parent.clone());
        let mut span = tracer.build_with_context(span, &parent);
        if failed {
            span.set_status(SpanStatus::error(""));
        }
        span.end_with_timestamp(now);
    }
}
