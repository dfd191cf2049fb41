//! The record of a call: its context, one log line, its metrics and its span. It is written when
//! the call ends, however it ends.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, stream};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use opentelemetry::{context::FutureExt as _, trace::TraceContextExt};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt;
use tracing::{Instrument, debug, error, field, info, info_span};
use uuid::Uuid;

use super::{super::listen::Peer, Outcome, Shared, metrics::RpcMetrics};
use crate::{call_context::CallContext, grpc::status, proto::code_name, telemetry};

/// The maximum length of a path that is repeated in a log line or a response.
const MAX_PATH_BYTES: usize = 200;
/// A larger response holds memory that others need until its peer has read it. It is sent in chunks of
/// this size.
const MAX_UNWATCHED_BYTES: usize = 64 * 1024;
/// A peer has the time limit of a call plus this time to read a large response.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Up to this size, a response or the rest of one is given to the h2 crate in chunks that it copies together with the trailers, and
/// sends in one system call. It sends a larger chunk on its own, and the trailers after it.
const MAX_SPLIT_BYTES: usize = 4 * 1024;
const SPLIT_CHUNK_BYTES: usize = 255;

/// Records a call, and catches its panics.
pub async fn record<F: Future<Output = Outcome> + Send>(
    state: &'static Shared,
    request: Request<Body>,
    started: Instant,
    handle: fn(&'static Shared, Arc<CallContext>, Request<Body>) -> F,
) -> Outcome {
    let path = request.uri().path().trim_start_matches('/');
    let (rpc, _) = path.split_at(path.floor_char_boundary(MAX_PATH_BYTES));
    let id = Uuid::now_v7();
    let time_limit = state.config.limits.request_timeout;
    let call = CallContext::new(id, rpc.to_owned(), started, time_limit, state.limits);
    let trace = telemetry::begin_call(&call.rpc, id, request.headers());
    let mut record = CallRecord {
        metrics: state.metrics.begin(request.uri().path()),
        peer: request.extensions().get::<Peer>().cloned(),
        trace: trace.clone(),
        sent_bytes: 0,
        outcome: None,
        call: Arc::clone(&call),
    };
    // Boxed, because each outer future would move it.
    let work = Box::pin(handle(state, Arc::clone(&call), request));
    let work = call.scope(work);
    let work = work
        .with_context(trace)
        .instrument(info_span!("call", request_id = %id));
    let response = match AssertUnwindSafe(work).catch_unwind().await {
        Ok(outcome) => outcome.unwrap_or_else(Status::into_http),
        Err(_) => {
            let (request_id, rpc) = (id.to_string(), &record.call.rpc);
            error!(request_id, rpc, "a call panicked");
            status::internal(&request_id).into_http()
        }
    };
    // An error is in the headers. Any other response has a body, whose trailers end the call.
    let Some(status) = Status::from_header_map(response.headers()) else {
        let (head, body) = response.into_parts();
        // `admit` has buffered the body, so this neither waits nor fails.
        let body = body.collect().await?;
        record.call.end_work();
        let unread = UnreadResponse {
            trailers: body.trailers().cloned(),
            data: body.to_bytes(),
            record,
        };
        let body = unread.into_body(time_limit + READ_TIMEOUT);
        return Ok(Response::from_parts(head, body));
    };
    if status.code() != Code::Ok && status.details().is_empty() {
        let status = with_details(&status, &record.call);
        record.end(&status);
        return Err(status);
    }
    // The request is incomplete because the caller has disconnected, so the call counts as
    // canceled.
    if !record.call.is_cancelled() {
        record.end(&status);
    }
    Ok(response)
}

/// Replaces an error without details by an error of the API. Errors of our services have details.
/// Errors without details come from tonic, and report an unknown rpc or a fault of the server.
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

/// What is recorded about a call. If it is dropped before [`CallRecord::end`], the client has
/// canceled.
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
            peer = self.peer.as_ref().map(|peer| field::display(peer.address)),
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

/// What the transport has not taken of a response. The trailers end the call.
struct UnreadResponse {
    data: Bytes,
    trailers: Option<HeaderMap>,
    record: CallRecord,
}

impl UnreadResponse {
    /// The body of the response. The transport takes a chunk of a large response when the peer has read
    /// the one before. If the peer does not read it in time, the rest is dropped with what the call
    /// holds, and the connection is closed.
    fn into_body(self, read_timeout: Duration) -> Body {
        let is_large = self.data.len() > MAX_UNWATCHED_BYTES;
        let unread = Arc::new(Mutex::new(Some(self)));
        let mut timer = JoinSet::new();
        if is_large {
            let unread = Arc::clone(&unread);
            timer.spawn(async move {
                sleep(read_timeout).await;
                let unread = unread.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(peer) = unread.and_then(|unread| unread.record.peer.clone()) {
                    let address = field::display(peer.address);
                    info!(
                        peer = address,
                        "a connection is closed: its peer does not read its responses"
                    );
                    peer.close();
                }
            });
        }
        let frames = stream::poll_fn(move |_| {
            // Aborted when the body is dropped.
            let _timer = &timer;
            let mut unread = unread.lock().unwrap_or_else(PoisonError::into_inner);
            Poll::Ready(match unread.as_mut() {
                Some(unread) => unread.next_frame(is_large).map(Ok),
                None => Some(Err(Status::cancelled("the response was not read in time"))),
            })
        });
        Body::new(StreamBody::new(frames))
    }

    fn next_frame(&mut self, is_large: bool) -> Option<Frame<Bytes>> {
        if self.data.is_empty() {
            let trailers = self.trailers.take()?;
            if let Some(status) = Status::from_header_map(&trailers) {
                self.record.end(&status);
            }
            return Some(Frame::trailers(trailers));
        }
        let max_bytes = match self.data.len() {
            ..=MAX_SPLIT_BYTES => SPLIT_CHUNK_BYTES,
            _ => MAX_UNWATCHED_BYTES,
        };
        let chunk = self.data.split_to(max_bytes.min(self.data.len()));
        self.record.sent_bytes += chunk.len();
        Some(Frame::data(match is_large {
            // A part of the response would keep all of it in memory.
            true => Bytes::copy_from_slice(&chunk),
            false => chunk,
        }))
    }
}
