//! Answers on their way out: counted, and errors at their end normalised. Data
//! passes as it is.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;
use tonic::{Code, Status, body::Body};
use tracing::error;

use super::{
    admission::{Share, Turn},
    call::Call,
    normalise::normalise,
    peers::AtHand,
};
use crate::grpc::status;

type PolledFrame = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// What a call holds while its answer goes out.
pub(super) struct Held {
    /// When the answer is too late.
    pub deadline: Instant,
    /// Room, until the answer has been taken.
    pub share: Arc<Share>,
    /// The turn, until the answer is encoded.
    pub turn: Option<Arc<Turn>>,
    /// What was done.
    pub work: Work,
}

/// What a call does, by its scope.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// Nothing is lost when its answer is given up.
    Read,
    /// Something has changed.
    Write,
}

/// A response's body; the call ends with its trailers.
pub(super) struct Reply {
    body: Body,
    call: Call,
    held: Held,
    max_message_bytes: usize,
    ended: bool,
}

impl Reply {
    pub fn wrap(body: Body, call: Call, held: Held, max_message_bytes: usize) -> Body {
        Body::new(Self {
            body,
            call,
            held,
            max_message_bytes,
            ended: false,
        })
    }

    /// Ends the call with the status, as the client gets it.
    fn end(&mut self, status: Status) -> PolledFrame {
        self.ended = true;
        self.held.turn = None;
        let status = normalise(status, &self.call, self.max_message_bytes);
        self.call.end(&status);
        let mut trailers = HeaderMap::new();
        let frame = status.add_header(&mut trailers);
        Poll::Ready(Some(frame.map(|()| Frame::trailers(trailers))))
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.held.deadline
    }

    fn send(&mut self, data: Bytes) -> PolledFrame {
        self.held.turn = None;
        let share = &self.held.share;
        match self.held.work {
            // It is done, and the caller must know.
            Work::Write => share.stretch(data.len()),
            Work::Read => {
                if share.stretch_within(data.len()).is_err() {
                    return self.end(status::overloaded());
                }
            }
        }
        self.call.count_sent(data.len());
        let sent = Sent {
            data,
            _share: Arc::clone(share),
            _at_hand: self.call.at_hand(),
        };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(sent)))))
    }

    fn pass(&mut self, frame: Frame<Bytes>) -> PolledFrame {
        let frame = match frame.into_data() {
            Ok(data) => return self.send(data),
            Err(other) => other,
        };
        match frame.trailers_ref().map(Status::from_header_map) {
            // Nothing succeeds past its deadline, the last byte included.
            Some(Some(status)) if status.code() == Code::Ok && self.is_late() => {
                self.end(status::deadline_exceeded())
            }
            Some(Some(status)) => self.end(status),
            Some(None) | None => Poll::Ready(Some(Ok(frame))),
        }
    }
}

/// Bytes that wait for the peer to take them. The transport keeps them when it is
/// done with the body, so they hold what the call held.
struct Sent {
    data: Bytes,
    _share: Arc<Share>,
    _at_hand: Option<Arc<AtHand>>,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl HttpBody for Reply {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame {
        if self.ended {
            return Poll::Ready(None);
        }
        let body = &mut self.body;
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(context)));
        match polled {
            Ok(Poll::Ready(Some(Ok(frame)))) => self.pass(frame),
            Ok(Poll::Ready(Some(Err(status)))) => self.end(status),
            Ok(Poll::Ready(None)) => Poll::Ready(None),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => {
                let id = self.call.id().to_string();
                error!(
                    request_id = id,
                    rpc = self.call.rpc(),
                    "writing an answer panicked"
                );
                self.end(status::internal(&id))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }
}
