//! The record of one call: one log line when it ends, however it ends, its counts
//! and its span.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use http::HeaderMap;
use opentelemetry::trace::{SpanContext, TraceId};
use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use tracing::{field, info};
use uuid::Uuid;

use super::{
    peers::AtHand,
    watch::{Rpc, Watch},
};
use crate::{
    auth::Caller,
    call_context::SpanRecorder,
    telemetry::{CallSpan, ChildSpans, Ended, Tracer, trace_context},
};

/// The longest path that is repeated in a log line or an answer.
const PATH_MAX: usize = 200;

/// One call. Dropped before [`Call::end`], it was cancelled: the client went
/// away.
pub(super) struct Call {
    id: Uuid,
    rpc: String,
    caller: Option<Caller>,
    begun: Instant,
    received: Arc<Received>,
    sent: u64,
    outcome: Option<Outcome>,
    at_hand: Option<Arc<AtHand>>,
    counted: Arc<Rpc>,
    trace: Option<TraceId>,
    span: Option<CallSpan>,
}

struct Outcome {
    code: Code,
    reason: String,
}

/// What came in of a request's body.
#[derive(Default)]
pub(super) struct Received {
    bytes: AtomicU64,
    broken: AtomicBool,
}

impl Received {
    pub fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The body ended in an error of the transport.
    pub fn break_off(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }
}

impl Call {
    /// The call among those of its peer, which it is until nobody holds this.
    pub fn at_hand(&self) -> Option<Arc<AtHand>> {
        self.at_hand.clone()
    }

    /// A call that begins now, on a connection that is known.
    pub fn begin(
        watch: &Watch,
        path: &str,
        headers: &HeaderMap,
        begun: Instant,
        at_hand: Option<AtHand>,
    ) -> Self {
        let id = Uuid::now_v7();
        let rpc = path.trim_start_matches('/').chars().take(PATH_MAX);
        let rpc: String = rpc.collect();
        let parent = trace_context::of_headers(headers);
        let trace = parent.as_ref().map(SpanContext::trace_id);
        let span = watch.span(&rpc, id, parent);
        let made = span.as_ref().map(|span| span.context().trace_id());
        Self {
            id,
            rpc,
            counted: watch.begin(path),
            trace: made.or(trace),
            span,
            caller: None,
            begun,
            received: Arc::default(),
            sent: 0,
            outcome: None,
            at_hand: at_hand.map(Arc::new),
        }
    }

    /// Records spans below the call's, if its trace is sampled.
    pub fn child_spans(&self, tracer: Option<&Tracer>) -> Option<Arc<dyn SpanRecorder>> {
        let spans = ChildSpans::of(tracer?, self.span.as_ref()?)?;
        Some(Arc::new(spans))
    }

    /// The call's name in the log, and in an answer INTERNAL.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// `package.Service/Method`, as the client put it.
    pub fn rpc(&self) -> &str {
        &self.rpc
    }

    pub fn begun(&self) -> Instant {
        self.begun
    }

    pub fn identify(&mut self, caller: Caller) {
        self.caller = Some(caller);
    }

    pub fn received(&self) -> Arc<Received> {
        Arc::clone(&self.received)
    }

    /// Whether reading the request failed below gRPC.
    pub fn is_broken(&self) -> bool {
        self.received.broken.load(Ordering::Relaxed)
    }

    pub fn count_sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// Notes the answer that the client gets.
    pub fn end(&mut self, status: &Status) {
        let reason = status.get_details_error_info().map(|info| info.reason);
        self.outcome = Some(Outcome {
            code: status.code(),
            reason: reason.unwrap_or_default(),
        });
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let (code, reason) = match &self.outcome {
            Some(outcome) => (outcome.code, outcome.reason.as_str()),
            None => (Code::Cancelled, ""),
        };
        let caller = self.caller.as_ref();
        let account = caller.map_or("", |caller| caller.account.as_str());
        let took = self.begun.elapsed();
        self.counted.end(code, reason, took);
        if let Some(span) = self.span.take() {
            span.end(&Ended {
                code,
                reason,
                account,
            });
        }
        info!(
            rpc = self.rpc,
            code = name(code),
            reason,
            account,
            subject = caller.map_or("", |caller| caller.subject.as_str()),
            request_id = %self.id,
            trace_id = self.trace.map(field::display),
            bytes_in = self.received.bytes.load(Ordering::Relaxed),
            bytes_out = self.sent,
            duration_us = took.as_micros() as u64,
            "call"
        );
    }
}

/// A code as the gRPC specification spells it.
pub(super) fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
