//! Bodies on their way through: counted, and errors at their end normalised.
//! Data passes as it is.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::{Status, body::Body};
use tracing::error;

use super::{
    call::{Call, Received},
    normalise::normalise,
};
use crate::grpc::status;

type PolledFrame = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// A request's body.
pub(super) struct Intake {
    body: Body,
    received: Arc<Received>,
}

impl Intake {
    pub fn wrap(body: Body, received: Arc<Received>) -> Body {
        Body::new(Self { body, received })
    }
}

impl HttpBody for Intake {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.received.count(data.len());
                }
            }
            Poll::Ready(Some(Err(_))) => self.received.break_off(),
            Poll::Ready(None) | Poll::Pending => {}
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// A response's body; the call ends with its trailers.
pub(super) struct Reply {
    body: Body,
    call: Call,
    max_message_bytes: usize,
    ended: bool,
}

impl Reply {
    pub fn wrap(body: Body, call: Call, max_message_bytes: usize) -> Body {
        Body::new(Self {
            body,
            call,
            max_message_bytes,
            ended: false,
        })
    }

    /// Ends the call with the status, as the client gets it.
    fn end(&mut self, status: Status) -> PolledFrame {
        self.ended = true;
        let status = normalise(status, &self.call, self.max_message_bytes);
        self.call.end(&status);
        let mut trailers = HeaderMap::new();
        let frame = status.add_header(&mut trailers);
        Poll::Ready(Some(frame.map(|()| Frame::trailers(trailers))))
    }

    fn pass(&mut self, frame: Frame<Bytes>) -> PolledFrame {
        if let Some(data) = frame.data_ref() {
            self.call.count_sent(data.len());
        }
        match frame.trailers_ref().map(Status::from_header_map) {
            Some(Some(status)) => self.end(status),
            Some(None) | None => Poll::Ready(Some(Ok(frame))),
        }
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
