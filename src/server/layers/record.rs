//! The record of a call: its context, one log line, its metrics and its span, written when the
//! call ends, however it ends.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::Request;
use http_body::{Body as HttpBody, Frame};
use opentelemetry::{context::FutureExt as _, trace::TraceContextExt};
use tokio::{task::JoinSet, time::sleep};
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt;
use tracing::{Instrument, debug, error, field, info, info_span};
use uuid::Uuid;

use super::{LayerState, Next, Outcome, metrics::RpcMetrics, run};
use crate::{
    call_context::CallContext, grpc::status, proto::code_name, server::listen::Peer, telemetry,
};

/// The longest path that is repeated in a log line or an answer.
const MAX_PATH_BYTES: usize = 200;
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
    state: &'static LayerState,
    request: Request<Body>,
    next: impl Next,
) -> Outcome {
    let path = request.uri().path().trim_start_matches('/');
    let (rpc, _) = path.split_at(path.floor_char_boundary(MAX_PATH_BYTES));
    let id = Uuid::now_v7();
    let call = CallContext::new(id, rpc.to_owned(), state.request_timeout, state.limits);
    let trace = telemetry::begin_call(&call.rpc, id, request.headers());
    let mut record = CallRecord {
        metrics: state.metrics.begin(request.uri().path()),
        peer: request.extensions().get::<Peer>().cloned(),
        trace: trace.clone(),
        sent_bytes: 0,
        outcome: None,
        call: Arc::clone(&call),
    };
    // Boxed, as each future around it would move it.
    let work = call.scope(Box::pin(run(next, request)));
    let work = work
        .with_context(trace)
        .instrument(info_span!("call", request_id = %id));
    let response = match AssertUnwindSafe(work).catch_unwind().await {
        Ok(outcome) => outcome?,
        Err(_) => {
            let (request_id, rpc) = (id.to_string(), &record.call.rpc);
            error!(request_id, rpc, "a call panicked");
            status::internal(&request_id).into_http()
        }
    };
    // An error is in the headers. Any other response has a body, whose trailers end the call.
    let Some(status) = Status::from_header_map(response.headers()) else {
        let read_timeout = state.request_timeout + READ_TIMEOUT;
        return Ok(response.map(|inner| {
            Body::new(RecordedBody {
                inner,
                record,
                read_timeout,
                unsent: Bytes::new(),
            })
        }));
    };
    if status.code() != Code::Ok && status.details().is_empty() {
        let status = with_details(&status, &record.call);
        record.end(&status);
        return Err(status);
    }
    // A request breaks off when the caller disconnects. Its call ends as cancelled.
    if !record.call.is_cancelled() {
        record.end(&status);
    }
    Ok(response)
}

/// Replaces an error without details by one of the contract. Errors of the services have details. Those
/// without come from tonic, and are about an unknown rpc or a fault of the server.
fn with_details(status: &Status, call: &CallContext) -> Status {
    if status.code() == Code::Unimplemented {
        return status::unimplemented(&format!("/{}", call.rpc));
    }
    let request_id = call.id.to_string();
    let (rpc, code) = (&call.rpc, code_name(status.code()));
    error!(
        request_id,
        rpc, code, "a call ended in an error without details"
    );
    // Its text may quote the request.
    debug!(request_id, text = status.message());
    status::internal(&request_id)
}

/// What is recorded of a call. If it is dropped before [`CallRecord::end`], the client has cancelled.
struct CallRecord {
    call: Arc<CallContext>,
    peer: Option<Peer>,
    sent_bytes: usize,
    outcome: Option<(Code, String)>,
    metrics: &'static RpcMetrics,
    trace: opentelemetry::Context,
}

impl CallRecord {
    /// Notes the status that the client gets.
    fn end(&mut self, status: &Status) {
        let reason = status.get_details_error_info().map(|info| info.reason);
        self.outcome = Some((status.code(), reason.unwrap_or_default()));
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        let call = &self.call;
        call.cancel();
        let (code, reason) = match &self.outcome {
            Some((code, reason)) => (*code, reason.as_str()),
            None => (Code::Cancelled, ""),
        };
        let caller = call.caller.get();
        let account = caller.map_or("", |caller| caller.account.as_str());
        let (duration, waited) = call.durations();
        self.metrics.end(code, reason, duration);
        telemetry::end_call(&self.trace, code, reason, account);
        let trace_id = self.trace.span().span_context().trace_id();
        info!(
            rpc = call.rpc,
            code = code_name(code),
            reason,
            account,
            subject = caller.map_or("", |caller| caller.subject.as_str()),
            peer = self.peer.as_ref().map(|peer| field::display(peer.address())),
            request_id = %call.id,
            trace_id = self.trace.has_active_span().then(|| field::display(trace_id)),
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
        let CallRecord { call, peer, .. } = &self.record;
        call.end_work();
        if (SPLIT_CHUNK_BYTES..=MAX_SPLIT_BYTES).contains(&data.len()) {
            self.unsent = data.split_off(SPLIT_CHUNK_BYTES);
        }
        let Some(peer) = peer.clone().filter(|_| data.len() > MAX_UNWATCHED_BYTES) else {
            return data;
        };
        let read_timeout = self.read_timeout;
        let mut timer = JoinSet::new();
        timer.spawn(async move {
            sleep(read_timeout).await;
            info!(peer = %peer.address(), "a connection is closed: its peer does not read its responses");
            peer.close();
        });
        Bytes::from_owner(UnreadResponse {
            data,
            _timer: timer,
            _call: Arc::clone(call),
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
            Ok(data) => {
                self.record.sent_bytes += data.len();
                Frame::data(self.send(data))
            }
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
    /// Aborted when it is dropped.
    _timer: JoinSet<()>,
    _call: Arc<CallContext>,
}

impl AsRef<[u8]> for UnreadResponse {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}
