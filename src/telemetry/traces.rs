//! Traces: a span for each call and for its work in the database, exported to a
//! collector over OTLP.
//!
//! *Invariants:* no call waits for the collector. Spans go into a bounded queue, and are dropped if
//! the collector is slow or unreachable; OpenTelemetry logs why. Attributes contain only what a log
//! line may contain, and never the content of guides.

use std::{
    env,
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, Uri};
use opentelemetry::{
    Context, KeyValue,
    trace::{
        Span as _, SpanKind, Status as SpanStatus, TraceContextExt, Tracer as _,
        TracerProvider as _,
    },
};
use opentelemetry_otlp::WithTonicConfig;
use opentelemetry_sdk::{
    Resource,
    resource::EnvResourceDetector,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider},
};
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout_at},
};
use tonic::{
    Code,
    transport::{ClientTlsConfig, Endpoint},
};
use tracing::warn;

use super::trace_context;

/// Spans that wait for export; further ones are dropped.
const MAX_QUEUED_SPANS: usize = 4096;
const MAX_BATCH_SPANS: usize = 512;
const BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// How long the collector may take to answer an export.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a shutdown waits for the export of the last spans.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes the spans of the process; unset if they are not exported.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Why traces cannot be exported. Its text is one line.
#[derive(Debug, thiserror::Error)]
#[error("EXPERTISE_OTLP_ENDPOINT is \"{endpoint}\": {reason}")]
pub struct TracesError {
    endpoint: Uri,
    reason: String,
}

/// The export of the spans of the process.
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Starts exporting spans to a collector, which need not be reachable yet. Must be called
    /// within a Tokio runtime.
    pub fn start(endpoint: &Uri) -> Result<Self, TracesError> {
        let exporter = exporter(endpoint).map_err(|reason| TracesError {
            endpoint: endpoint.clone(),
            reason,
        })?;
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_QUEUED_SPANS)
            .with_max_export_batch_size(MAX_BATCH_SPANS)
            .with_scheduled_delay(BATCH_INTERVAL)
            .build();
        let processor = BatchSpanProcessor::builder(exporter)
            .with_batch_config(config)
            .build();
        // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override these.
        let resource = Resource::builder_empty()
            .with_attributes([
                KeyValue::new("service.name", env!("CARGO_PKG_NAME")),
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            ])
            .with_detector(Box::new(EnvResourceDetector::new()))
            .with_attributes(service_name())
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            // OTEL_TRACES_SAMPLER decides what is sampled; by default the caller does.
            .with_resource(resource)
            .build();
        let _ = TRACER.set(provider.tracer(env!("CARGO_PKG_NAME")));
        Ok(Self(provider))
    }

    /// Exports the remaining spans. Stops at `deadline`, and after `SHUTDOWN_TIMEOUT` at the
    /// latest.
    pub async fn end(self, deadline: Instant) {
        let deadline = deadline.min(Instant::now() + SHUTDOWN_TIMEOUT);
        let left = deadline.saturating_duration_since(Instant::now());
        let shutdown = spawn_blocking(move || self.0.shutdown_with_timeout(left));
        if !matches!(timeout_at(deadline, shutdown).await, Ok(Ok(Ok(())))) {
            warn!("the last traces were not exported");
        }
    }
}

/// The name of the service in `OTEL_SERVICE_NAME`.
fn service_name() -> Option<KeyValue> {
    let name = env::var("OTEL_SERVICE_NAME").ok();
    name.filter(|name| !name.is_empty())
        .map(|name| KeyValue::new("service.name", name))
}

fn exporter(endpoint: &Uri) -> Result<opentelemetry_otlp::SpanExporter, String> {
    let mut channel = Endpoint::from(endpoint.clone())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(EXPORT_TIMEOUT);
    if endpoint.scheme_str() == Some("https") {
        channel = channel
            .tls_config(ClientTlsConfig::new().with_native_roots())
            .map_err(|error| format!("no connection can be set up: {error}"))?;
    }
    opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_channel(channel.connect_lazy())
        .build()
        .map_err(|error| format!("no exporter can be set up: {error}"))
}

/// Starts the span of a call with these headers; `rpc` is `package.Service/Method`. If spans are not
/// exported, the context has the caller's span, if any.
pub fn begin_call(rpc: &str, request_id: impl ToString, headers: &HeaderMap) -> Context {
    let parent = trace_context::from_headers(headers);
    let Some(tracer) = TRACER.get() else {
        return parent;
    };
    let (service, method) = rpc.split_once('/').unwrap_or((rpc, ""));
    let span = tracer
        .span_builder(rpc.to_owned())
        .with_kind(SpanKind::Server)
        .with_attributes([
            KeyValue::new("rpc.system", "grpc"),
            KeyValue::new("rpc.service", service.to_owned()),
            KeyValue::new("rpc.method", method.to_owned()),
            KeyValue::new("expertise.request_id", request_id.to_string()),
        ]);
    let span = tracer.build_with_context(span, &parent);
    parent.with_span(span)
}

/// Ends the span of a call. `reason` is empty for OK, and `account` without valid credentials.
pub fn end_call(call: &Context, code: Code, reason: &str, account: &str) {
    if TRACER.get().is_none() {
        return;
    }
    let span = call.span();
    let number = i64::from(i32::from(code));
    span.set_attribute(KeyValue::new("rpc.grpc.status_code", number));
    for (name, value) in [("expertise.account", account), ("expertise.reason", reason)] {
        if !value.is_empty() {
            span.set_attribute(KeyValue::new(name, value.to_owned()));
        }
    }
    if is_server_error(code) {
        span.set_status(SpanStatus::error(""));
    }
    span.end();
}

/// The codes that OpenTelemetry classifies as server errors.
fn is_server_error(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

/// Records an operation that ended just now and took `duration`, below the span of the current call, if that
/// is sampled.
pub fn record_span(name: &'static str, duration: Duration, failed: bool) {
    let Some(tracer) = TRACER.get() else {
        return;
    };
    let call = Context::current();
    if !call.span().span_context().is_sampled() {
        return;
    }
    let now = SystemTime::now();
    let span = tracer
        .span_builder(name)
        .with_kind(SpanKind::Client)
        .with_start_time(now.checked_sub(duration).unwrap_or(now));
    let mut span = tracer.build_with_context(span, &call);
    if failed {
        span.set_status(SpanStatus::error(""));
    }
    span.end_with_timestamp(now);
}
