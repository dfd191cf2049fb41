//! The record of a call: one log line, its metrics and its span, written when the
//! call ends, however it ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use http::Request;
use opentelemetry::trace::{SpanContext, TraceId};
use tokio::time::Instant;
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt;
use tracing::{field, info};
use uuid::Uuid;

use super::call_metrics::RpcMetrics;
use crate::{
    auth::Caller,
    call_context::SpanRecorder,
    proto::code_name,
    server::connections::PendingCall,
    telemetry::{CallSpan, ChildSpans, SpanOutcome, Tracer, trace_context},
};

/// The longest path that is repeated in a log line or an answer, in characters.
const MAX_PATH_CHARS: usize = 200;

/// One call. If it is dropped before [`CallRecord::end`], the client has cancelled.
pub struct CallRecord {
    id: Uuid,
    rpc: String,
    caller: Option<Caller>,
    started: Instant,
    received: ReceivedBody,
    sent_bytes: u64,
    /// How long it waited for something to answer.
    waited: Duration,
    outcome: Option<CallOutcome>,
    pending: Option<Arc<PendingCall>>,
    metrics: Arc<RpcMetrics>,
    trace: Option<TraceId>,
    span: Option<CallSpan>,
}

struct CallOutcome {
    code: Code,
    reason: String,
}

/// What was received of a request's body.
#[derive(Default)]
pub struct ReceivedBody {
    bytes: AtomicU64,
    broken: AtomicBool,
}

impl ReceivedBody {
    pub fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// The body ended in an error of the transport.
    pub fn set_broken(&self) {
        self.broken.store(true, Relaxed);
    }
}

impl CallRecord {
    /// A call that has started, with its entry among the calls of its connection.
    pub fn new(
        request: &Request<Body>,
        started: Instant,
        pending: Option<PendingCall>,
        metrics: Arc<RpcMetrics>,
        tracer: Option<&Tracer>,
    ) -> Self {
        let id = Uuid::now_v7();
        let path = request.uri().path().trim_start_matches('/');
        let rpc = match path.len() {
            ..=MAX_PATH_CHARS => path.to_owned(),
            _ => path.chars().take(MAX_PATH_CHARS).collect(),
        };
        let parent = trace_context::of_headers(request.headers());
        let parent_trace = parent.as_ref().map(SpanContext::trace_id);
        let span = tracer.map(|tracer| tracer.call(&rpc, id, parent));
        let own_trace = span.as_ref().map(|span| span.context().trace_id());
        Self {
            id,
            rpc,
            caller: None,
            started,
            received: ReceivedBody::default(),
            sent_bytes: 0,
            waited: Duration::ZERO,
            outcome: None,
            pending: pending.map(Arc::new),
            metrics,
            trace: own_trace.or(parent_trace),
            span,
        }
    }

    /// The call's id in the log, and in an INTERNAL answer.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// `package.Service/Method`, as the client sent it.
    pub fn rpc(&self) -> &str {
        &self.rpc
    }

    pub fn started(&self) -> Instant {
        self.started
    }

    pub fn set_caller(&mut self, caller: Caller) {
        self.caller = Some(caller);
    }

    pub fn received(&self) -> &ReceivedBody {
        &self.received
    }

    /// Whether reading the request failed below gRPC.
    pub fn is_broken(&self) -> bool {
        self.received.broken.load(Relaxed)
    }

    /// The call's entry among those of its connection, which ends with the last clone.
    pub fn pending(&self) -> Option<Arc<PendingCall>> {
        self.pending.clone()
    }

    /// Records spans below the call's, if its trace is sampled.
    pub fn child_spans(&self, tracer: Option<&Tracer>) -> Option<Arc<dyn SpanRecorder>> {
        let spans = ChildSpans::of(tracer?, self.span.as_ref()?)?;
        Some(Arc::new(spans))
    }

    /// Counts a wait for something to answer, which is no part of the call's duration.
    pub fn count_wait(&mut self, waited: Duration) {
        self.waited += waited;
    }

    pub fn count_sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
    }

    /// Notes the status that the client gets.
    pub fn end(&mut self, status: &Status) {
        let reason = status.get_details_error_info().map(|info| info.reason);
        self.outcome = Some(CallOutcome {
            code: status.code(),
            reason: reason.unwrap_or_default(),
        });
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        let (code, reason) = match &self.outcome {
            Some(outcome) => (outcome.code, outcome.reason.as_str()),
            None => (Code::Cancelled, ""),
        };
        let caller = self.caller.as_ref();
        let account = caller.map_or("", |caller| caller.account.as_str());
        let duration = self.started.elapsed().saturating_sub(self.waited);
        self.metrics.end(code, reason, duration);
        if let Some(span) = self.span.take() {
            span.end(&SpanOutcome {
                code,
                reason,
                account,
            });
        }
        info!(
            rpc = self.rpc,
            code = code_name(code),
            reason,
            account,
            subject = caller.map_or("", |caller| caller.subject.as_str()),
            peer = self.pending.as_ref().map(|call| field::display(call.peer())),
            // The id of the call; not the `request_id` that a client chooses for retries.
            request_id = %self.id,
            trace_id = self.trace.map(field::display),
            bytes_in = self.received.bytes.load(Relaxed),
            bytes_out = self.sent_bytes,
            duration_us = duration.as_micros() as u64,
            waited_us = (!self.waited.is_zero()).then_some(self.waited.as_micros() as u64),
            "call"
        );
    }
}
