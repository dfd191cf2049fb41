//! A request's message on its way in, held until all of it is there.
//!
//! tonic reserves what a message claims to be, and starts a call while its bytes
//! trickle in. Here a message takes room as it arrives, and a call that never
//! sends the rest never starts.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::{Status, body::Body};

use super::{
    admission::{Budget, Share},
    call::Received,
};
use crate::grpc::status;

/// What stands before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// Messages are kept in pieces of up to this many bytes, which are freed one by
/// one as they are handed on: larger than what the allocator keeps for later
/// (`.cargo/config.toml`).
const PIECE: usize = 2 * 1024 * 1024;
const SMALLEST_PIECE: usize = 4 * 1024;
/// Frames that a request may take beyond one for each so many bytes. Clients
/// fill their frames; a flood of tiny or empty ones is work for nothing.
const SPARE_FRAMES: usize = 1024;
const BYTES_A_FRAME: usize = 64;

/// A message that is there.
pub(super) struct Message {
    /// Its bytes, prefix included, as tonic reads them.
    pub body: Body,
    /// How many there are.
    pub bytes: usize,
    /// The room that they hold.
    pub share: Arc<Share>,
}

/// Receives the one message of a request.
///
/// What is wrong with its framing is left to tonic, which sees as much of it as
/// it takes to say so.
pub(super) async fn receive(
    mut body: Body,
    received: &Received,
    budget: &Arc<Budget>,
    max_message_bytes: usize,
) -> Result<Message, Status> {
    let mut pieces = Pieces::default();
    let mut share = None;
    let mut frames = 0;
    while let Some(frame) = next_frame(&mut body).await {
        let frame = frame.inspect_err(|_| received.break_off())?;
        let Ok(data) = frame.into_data() else { break };
        received.count(data.len());
        frames += 1;
        if frames > SPARE_FRAMES + pieces.bytes / BYTES_A_FRAME {
            return Err(status::undecodable(
                "the request comes in too many small frames",
            ));
        }
        // The prefix says how much is to come; before it nothing is kept.
        let arrived = pieces.bytes + data.len();
        if let (None, Some((compressed, length))) = (&share, pieces.prefix(&data)) {
            if compressed || length > max_message_bytes {
                pieces.push(data, PREFIX);
                break;
            }
            let claim = PREFIX + length;
            if claim > budget.limit() {
                return Err(status::message_too_large(budget.limit()));
            }
            share = Some((
                claim,
                budget.share(claim).map_err(|_| status::overloaded())?,
            ));
        }
        match &share {
            Some((claim, share)) => {
                if arrived > *claim {
                    return Err(status::undecodable(
                        "the request must hold one message, and holds more",
                    ));
                }
                share.cover(arrived).map_err(|_| status::overloaded())?;
                pieces.push(data, *claim);
            }
            None => pieces.push(data, PREFIX),
        }
    }
    let share = match share {
        Some((_, share)) => share,
        // Nothing that needs room, and nothing that tonic accepts.
        None => budget.share(0).map_err(|_| status::overloaded())?,
    };
    Ok(Message {
        bytes: pieces.bytes,
        body: Body::new(pieces.whole()),
        share: Arc::new(share),
    })
}

async fn next_frame(body: &mut Body) -> Option<Result<Frame<Bytes>, Status>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

/// What has arrived of a message. It is copied out of the frames, each of which
/// would keep the buffer alive that its neighbours came in.
#[derive(Default)]
struct Pieces {
    full: VecDeque<Bytes>,
    last: BytesMut,
    bytes: usize,
}

impl Pieces {
    /// The compression flag and the length, once they are there.
    fn prefix(&self, data: &[u8]) -> Option<(bool, usize)> {
        let mut prefix = self.last.iter().chain(data).copied();
        let compressed = prefix.next()? != 0;
        let mut byte = || prefix.next();
        let length = u32::from_be_bytes([byte()?, byte()?, byte()?, byte()?]);
        Some((compressed, length as usize))
    }

    /// Adds what has come of a message of `claim` bytes.
    fn push(&mut self, mut data: Bytes, claim: usize) {
        while !data.is_empty() {
            if self.last.capacity() == self.last.len() {
                let full = std::mem::take(&mut self.last).freeze();
                if !full.is_empty() {
                    self.full.push_back(full);
                }
                self.last.reserve(self.next_piece(claim));
            }
            let room = self.last.capacity() - self.last.len();
            let part = data.split_to(room.min(data.len()));
            self.bytes += part.len();
            self.last.extend_from_slice(&part);
        }
    }

    /// The size of the next piece: no more than there is already, so that a claim
    /// alone makes no room.
    fn next_piece(&self, claim: usize) -> usize {
        let piece = self.bytes.clamp(SMALLEST_PIECE, PIECE);
        piece.min(claim.saturating_sub(self.bytes)).max(1)
    }

    fn whole(mut self) -> Whole {
        if !self.last.is_empty() {
            self.full.push_back(self.last.freeze());
        }
        Whole(self.full)
    }
}

/// The body of a message that is there.
struct Whole(VecDeque<Bytes>);

impl HttpBody for Whole {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        let bytes: usize = self.0.iter().map(Bytes::len).sum();
        SizeHint::with_exact(bytes as u64)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
