//! The record of a call: its context, one log line, its metrics and its span, written when the
//! call ends, however it ends.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::Request;
use http_body::{Body as HttpBody, Frame};
use opentelemetry::trace::{SpanContext, TraceId};
use tokio::{task::AbortHandle, time::sleep};
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt;
use tracing::{Instrument, error, field, info, info_span};
use uuid::Uuid;

use super::{CallState, Next, Outcome, metrics::RpcMetrics, run};
use crate::{
    auth::Caller,
    call_context::{CallContext, CallGuard, SpanRecorder},
    grpc::status,
    proto::code_name,
    server::listen::Peer,
    telemetry::{CallSpan, ChildSpans, SpanOutcome, trace_context},
};

/// The longest path that is repeated in a log line or an answer, in characters.
const MAX_PATH_CHARS: usize = 200;
/// A response of more bytes holds memory that others need until its peer has read it.
const MAX_UNWATCHED_BYTES: usize = 64 * 1024;
/// A peer has the time limit of a call plus this time to read such a response.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Up to this size, a response is given to the h2 crate in chunks that it copies together with the trailers, and
/// sends in one system call. It sends a larger chunk on its own, and the trailers after it.
const MAX_SPLIT_BYTES: usize = 4 * 1024;
const SPLIT_CHUNK_BYTES: usize = 255;

/// Records a call, and catches its panics.
pub async fn record(
    state: &'static CallState,
    mut request: Request<Body>,
    next: impl Next,
) -> Outcome {
    let mut record = CallRecord::new(state, &request);
    let call = Arc::clone(&record.call);
    let id = call.context.id();
    request.extensions_mut().insert(Arc::clone(&call));
    let work = call.context.clone().scope(run(next, request));
    let work = work.instrument(info_span!("call", request_id = %id));
    let response = match AssertUnwindSafe(work).catch_unwind().await {
        Ok(outcome) => outcome?,
        Err(_) => {
            let request_id = id.to_string();
            error!(request_id, rpc = call.rpc, "a call panicked");
            status::internal(&request_id).into_http()
        }
    };
    let read_timeout = state.request_timeout + READ_TIMEOUT;
    // An error is in the headers. Any other response has a body, whose trailers end the call.
    match Status::from_header_map(response.headers()) {
        None => Ok(response.map(|inner| {
            Body::new(RecordedBody {
                inner,
                record,
                read_timeout,
                unsent: Bytes::new(),
            })
        })),
        Some(status) => {
            // A request breaks off when the caller disconnects. Its call ends as cancelled.
            if !call.is_broken.load(Relaxed) {
                record.end(&status);
            }
            Ok(response)
        }
    }
}

/// The call of a request that has passed [`record`].
pub fn call_of(request: &Request<Body>) -> Arc<Call> {
    let call = request.extensions().get::<Arc<Call>>();
    #[allow(clippy::expect_used)]
    Arc::clone(call.expect("`record` is above this layer"))
}

/// A call, as the layers know it.
pub struct Call {
    pub context: CallContext,
    /// `package.Service/Method`, as the client sent it.
    pub rpc: String,
    caller: OnceLock<Caller>,
    peer: Option<Peer>,
    received_bytes: AtomicU64,
    is_broken: AtomicBool,
}

impl Call {
    pub fn set_caller(&self, caller: Caller) {
        let _ = self.caller.set(caller);
    }

    pub fn count_received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Reading the request failed below gRPC.
    pub fn set_broken(&self) {
        self.is_broken.store(true, Relaxed);
    }
}

/// What is recorded of a call. If it is dropped before [`CallRecord::end`], the client has cancelled.
struct CallRecord {
    call: Arc<Call>,
    sent_bytes: u64,
    outcome: Option<(Code, String)>,
    metrics: &'static RpcMetrics,
    trace: Option<TraceId>,
    span: Option<CallSpan>,
    _cancel_on_drop: CallGuard,
}

impl CallRecord {
    fn new(state: &'static CallState, request: &Request<Body>) -> Self {
        let id = Uuid::now_v7();
        let path = request.uri().path().trim_start_matches('/');
        let rpc: String = match path.len() {
            ..=MAX_PATH_CHARS => path.to_owned(),
            _ => path.chars().take(MAX_PATH_CHARS).collect(),
        };
        let parent = trace_context::from_headers(request.headers());
        let parent_trace = parent.as_ref().map(SpanContext::trace_id);
        let tracer = state.tracer.as_ref();
        let span = tracer.map(|tracer| tracer.call(&rpc, id, parent));
        let children = tracer.zip(span.as_ref());
        let children = children.and_then(|(tracer, span)| ChildSpans::for_call(tracer, span));
        let context = CallContext::new(
            id,
            state.request_timeout,
            &state.limits,
            children.map(|spans| Arc::new(spans) as Arc<dyn SpanRecorder>),
        );
        let own_trace = span.as_ref().map(|span| span.context().trace_id());
        Self {
            metrics: state.metrics.begin(request.uri().path()),
            sent_bytes: 0,
            outcome: None,
            trace: own_trace.or(parent_trace),
            span,
            _cancel_on_drop: context.guard(),
            call: Arc::new(Call {
                context,
                rpc,
                caller: OnceLock::new(),
                peer: request.extensions().get::<Peer>().cloned(),
                received_bytes: AtomicU64::new(0),
                is_broken: AtomicBool::new(false),
            }),
        }
    }

    /// Notes the status that the client gets.
    fn end(&mut self, status: &Status) {
        let reason = status.get_details_error_info().map(|info| info.reason);
        self.outcome = Some((status.code(), reason.unwrap_or_default()));
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        let call = &self.call;
        let (code, reason) = match &self.outcome {
            Some((code, reason)) => (*code, reason.as_str()),
            None => (Code::Cancelled, ""),
        };
        let caller = call.caller.get();
        let account = caller.map_or("", |caller| caller.account.as_str());
        let (duration, waited) = call.context.durations();
        self.metrics.end(code, reason, duration);
        if let Some(span) = self.span.take() {
            span.end(&SpanOutcome {
                code,
                reason,
                account,
            });
        }
        info!(
            rpc = call.rpc,
            code = code_name(code),
            reason,
            account,
            subject = caller.map_or("", |caller| caller.subject.as_str()),
            peer = call.peer.as_ref().map(|peer| field::display(peer.address())),
            // The id of the call; not the `request_id` that a client chooses for retries.
            request_id = %call.context.id(),
            trace_id = self.trace.map(field::display),
            bytes_in = call.received_bytes.load(Relaxed),
            bytes_out = self.sent_bytes,
            duration_us = duration.as_micros() as u64,
            waited_us = (!waited.is_zero()).then_some(waited.as_micros() as u64),
            "call"
        );
    }
}

/// The body of a response, whose trailers end the call.
struct RecordedBody {
    inner: Body,
    record: CallRecord,
    read_timeout: Duration,
    /// The rest of a response that is sent in chunks.
    unsent: Bytes,
}

impl RecordedBody {
    /// Data that waits for the peer to take it. The transport may keep it after the body is
    /// dropped, so it holds what the call holds.
    fn send(&mut self, mut data: Bytes) -> Bytes {
        let call = &self.record.call;
        call.context.end_work();
        self.record.sent_bytes += data.len() as u64;
        if (SPLIT_CHUNK_BYTES..=MAX_SPLIT_BYTES).contains(&data.len()) {
            self.unsent = data.split_off(SPLIT_CHUNK_BYTES);
        }
        let Some(peer) = call
            .peer
            .clone()
            .filter(|_| data.len() > MAX_UNWATCHED_BYTES)
        else {
            return data;
        };
        let read_timeout = self.read_timeout;
        let timer = tokio::spawn(async move {
            sleep(read_timeout).await;
            info!(peer = %peer.address(), "a connection is closed: its peer does not read its responses");
            peer.close();
        });
        Bytes::from_owner(UnreadResponse {
            data,
            timer: timer.abort_handle(),
            _context: call.context.clone(),
        })
    }
}

impl HttpBody for RecordedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.unsent.is_empty() {
            let bytes = self.unsent.len().min(SPLIT_CHUNK_BYTES);
            return Poll::Ready(Some(Ok(Frame::data(self.unsent.split_to(bytes)))));
        }
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        polled.map_ok(|frame| match frame.into_data() {
            Ok(data) => Frame::data(self.send(data)),
            Err(frame) => {
                if let Some(status) = frame.trailers_ref().and_then(Status::from_header_map) {
                    self.record.end(&status);
                }
                frame
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.unsent.is_empty() && self.inner.is_end_stream()
    }
}

/// A large response. The connection of a peer that does not read it in time is closed.
struct UnreadResponse {
    data: Bytes,
    timer: AbortHandle,
    _context: CallContext,
}

impl AsRef<[u8]> for UnreadResponse {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for UnreadResponse {
    fn drop(&mut self) {
        self.timer.abort();
    }
}
