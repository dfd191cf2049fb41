//! The body of a response: counts what is sent, normalises an error in the trailers,
//! and holds the call's memory until the peer has taken the data.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;
use tonic::{Code, Status, body::Body};
use tracing::error;

use super::{
    admission::{MemoryReservation, WorkPermit},
    call_record::CallRecord,
    deadline::Deadline,
    normalise::normalise,
};
use crate::{auth::Scope, grpc::status, server::connections::PendingCall};

type PolledFrame = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// What a call holds while its response is sent.
pub struct ResponseResources {
    pub deadline: Deadline,
    /// Held until the peer has taken the response.
    pub memory: Arc<MemoryReservation>,
    /// Held until the response is encoded.
    pub permit: Option<Arc<WorkPermit>>,
    /// The scope that the rpc needs.
    pub scope: Scope,
}

/// A body whose trailers end the call.
pub struct ResponseBody {
    inner: Body,
    call: CallRecord,
    resources: ResponseResources,
    max_message_bytes: usize,
    ended: bool,
}

impl ResponseBody {
    pub fn wrap(
        inner: Body,
        call: CallRecord,
        resources: ResponseResources,
        max_message_bytes: usize,
    ) -> Body {
        Body::new(Self {
            inner,
            call,
            resources,
            max_message_bytes,
            ended: false,
        })
    }

    fn end(&mut self, status: Status) -> PolledFrame {
        self.ended = true;
        self.resources.permit = None;
        let status = normalise(status, &self.call, self.max_message_bytes);
        self.call.end(&status);
        let mut trailers = HeaderMap::new();
        let frame = status.add_header(&mut trailers);
        Poll::Ready(Some(frame.map(|()| Frame::trailers(trailers))))
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.resources.deadline.at
    }

    fn send(&mut self, data: Bytes) -> PolledFrame {
        self.resources.permit = None;
        let memory = &self.resources.memory;
        match self.resources.scope {
            Scope::Read if memory.try_hold_response(data.len()).is_err() => {
                return self.end(status::overloaded());
            }
            Scope::Read => {}
            // The change is stored, so the caller must receive this answer.
            Scope::Write | Scope::Translate | Scope::Admin | Scope::Index => {
                memory.hold_response(data.len())
            }
        }
        self.call.count_sent(data.len());
        let outgoing = OutgoingBytes {
            data,
            _memory: Arc::clone(&self.resources.memory),
            _pending: self.call.pending(),
        };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(outgoing)))))
    }

    fn forward(&mut self, frame: Frame<Bytes>) -> PolledFrame {
        let frame = match frame.into_data() {
            Ok(data) => return self.send(data),
            Err(other) => other,
        };
        match frame.trailers_ref().and_then(Status::from_header_map) {
            // A call succeeds only if its response is complete before the deadline.
            Some(status) if status.code() == Code::Ok && self.is_late() => {
                let ResponseResources {
                    scope, deadline, ..
                } = self.resources;
                self.end(status::deadline_exceeded(scope, deadline.source))
            }
            Some(status) => self.end(status),
            None => Poll::Ready(Some(Ok(frame))),
        }
    }
}

/// Data that waits for the peer to take it. The transport may keep it after the body is
/// dropped, so it holds what the call held.
struct OutgoingBytes {
    data: Bytes,
    _memory: Arc<MemoryReservation>,
    _pending: Option<Arc<PendingCall>>,
}

impl AsRef<[u8]> for OutgoingBytes {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame {
        if self.ended {
            return Poll::Ready(None);
        }
        let inner = &mut self.inner;
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(inner).poll_frame(context)));
        match polled {
            Ok(Poll::Ready(Some(Ok(frame)))) => self.forward(frame),
            Ok(Poll::Ready(Some(Err(status)))) => self.end(status),
            Ok(Poll::Ready(None)) => Poll::Ready(None),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => {
                let id = self.call.id().to_string();
                let rpc = self.call.rpc();
                error!(request_id = id, rpc, "encoding a response panicked");
                self.end(status::internal(&id))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.inner.is_end_stream()
    }
}
