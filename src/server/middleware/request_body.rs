//! Receives the whole message of a request before its service is called.
//!
//! tonic allocates the declared length of a message, and starts the service while bytes
//! still arrive. Here memory grows with the bytes that arrive, and a call whose
//! message stays incomplete never starts.

use std::{
    collections::{VecDeque, vec_deque},
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tonic::{Status, body::Body};

use super::{
    admission::{MemoryBudget, MemoryReservation},
    call_record::ReceivedBody,
};
use crate::{domain::ids::AccountId, grpc::status};

/// The prefix of a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
/// Messages are kept in chunks, which are freed one by one as they are read. A full
/// chunk is larger than what the allocator keeps for reuse (`.cargo/config.toml`).
const MAX_CHUNK_BYTES: usize = 2 * 1024 * 1024;
const MIN_CHUNK_BYTES: usize = 4 * 1024;
/// A request may have this many frames, and one more for each
/// [`MIN_BYTES_PER_FRAME`]. Clients fill their frames; tiny or empty ones only make work.
const MAX_SPARE_FRAMES: usize = 1024;
const MIN_BYTES_PER_FRAME: usize = 64;

/// A message that has arrived.
#[derive(Clone)]
pub struct ReceivedMessage {
    /// The message with its prefix, as tonic reads it.
    pub body: MessageBody,
    /// Its size, prefix included.
    pub bytes: usize,
    /// The memory that it holds.
    pub memory: Arc<MemoryReservation>,
}

/// Receives the one message of a request.
pub async fn receive(
    mut body: Body,
    received: &ReceivedBody,
    budget: &Arc<MemoryBudget>,
    account: &AccountId,
    max_message_bytes: usize,
) -> Result<ReceivedMessage, Status> {
    let mut chunks = Chunks::default();
    let mut declared = None;
    let mut frames = 0;
    while let Some(frame) = next_frame(&mut body).await {
        let frame = frame.inspect_err(|_| received.set_broken())?;
        let Ok(data) = frame.into_data() else { break };
        received.count(data.len());
        frames += 1;
        if frames > MAX_SPARE_FRAMES + chunks.bytes / MIN_BYTES_PER_FRAME {
            return Err(status::undecodable(
                "the request comes in too many small frames",
            ));
        }
        // Nothing but the prefix is kept before memory is reserved.
        let arrived = chunks.bytes + data.len();
        if let (None, Some((compressed, length))) = (&declared, chunks.prefix(&data)) {
            if compressed {
                return Err(status::undecodable(
                    "the request's compression flag must be 0: send messages uncompressed",
                ));
            }
            if length > max_message_bytes {
                return Err(status::message_too_large(max_message_bytes));
            }
            let length = PREFIX_BYTES + length;
            if length > budget.limit() {
                return Err(status::message_too_large(budget.limit()));
            }
            let memory = budget.reserve(account, length);
            let memory = memory.map_err(|_| status::overloaded())?;
            declared = Some((length, memory));
        }
        match &declared {
            Some((length, memory)) => {
                if arrived > *length {
                    return Err(status::undecodable(
                        "the request must hold one message, and holds more",
                    ));
                }
                memory.cover(arrived).map_err(|_| status::overloaded())?;
                chunks.push(data, *length);
            }
            None => chunks.push(data, PREFIX_BYTES),
        }
    }
    let memory = match declared {
        Some((length, memory)) if chunks.bytes == length => memory,
        None if chunks.bytes == 0 => {
            return Err(status::undecodable(
                "the request must hold one message, and holds none",
            ));
        }
        Some(_) | None => {
            return Err(status::undecodable(
                "the request ends in the middle of its message",
            ));
        }
    };
    Ok(ReceivedMessage {
        bytes: chunks.bytes,
        body: chunks.finish(),
        memory: Arc::new(memory),
    })
}

async fn next_frame(body: &mut Body) -> Option<Result<Frame<Bytes>, Status>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

/// The received part of a message. It is copied out of the frames, as each of them keeps
/// the whole buffer alive that it was read into.
#[derive(Default)]
struct Chunks {
    full: VecDeque<Bytes>,
    last: BytesMut,
    bytes: usize,
}

impl Chunks {
    /// The compression flag and the length, once they have arrived.
    fn prefix(&self, data: &[u8]) -> Option<(bool, usize)> {
        let mut prefix = self.last.iter().chain(data).copied();
        let compressed = prefix.next()? != 0;
        let mut byte = || prefix.next();
        let length = u32::from_be_bytes([byte()?, byte()?, byte()?, byte()?]);
        Some((compressed, length as usize))
    }

    /// Adds data of a message of this declared length.
    fn push(&mut self, mut data: Bytes, length: usize) {
        while !data.is_empty() {
            if self.last.capacity() == self.last.len() {
                let full = std::mem::take(&mut self.last).freeze();
                if !full.is_empty() {
                    self.full.push_back(full);
                }
                self.last.reserve(self.next_chunk_bytes(length));
            }
            let free = self.last.capacity() - self.last.len();
            let part = data.split_to(free.min(data.len()));
            self.bytes += part.len();
            self.last.extend_from_slice(&part);
        }
    }

    /// The size of the next chunk. Above [`MIN_CHUNK_BYTES`] it is no larger than what has arrived,
    /// so that memory grows with the message and not with its declared length.
    fn next_chunk_bytes(&self, length: usize) -> usize {
        let bytes = self.bytes.clamp(MIN_CHUNK_BYTES, MAX_CHUNK_BYTES);
        bytes.min(length.saturating_sub(self.bytes)).max(1)
    }

    fn finish(mut self) -> MessageBody {
        if !self.last.is_empty() {
            self.full.push_back(self.last.freeze());
        }
        MessageBody(self.full)
    }
}

/// The body of a received message.
#[derive(Clone)]
pub struct MessageBody(VecDeque<Bytes>);

impl MessageBody {
    /// Reads the message without its prefix.
    pub fn message(&self) -> impl Buf {
        let mut reader = ChunkReader {
            remaining: self.0.iter().map(Bytes::len).sum(),
            chunk: &[],
            others: self.0.iter(),
        };
        reader.advance(PREFIX_BYTES.min(reader.remaining));
        reader
    }
}

/// Reads chunks one after the other.
struct ChunkReader<'a> {
    remaining: usize,
    /// What is left of the current chunk. Empty only at the end, and before the first.
    chunk: &'a [u8],
    others: vec_deque::Iter<'a, Bytes>,
}

impl Buf for ChunkReader<'_> {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.chunk
    }

    fn advance(&mut self, mut count: usize) {
        self.remaining -= count;
        while let None | Some([]) = self.chunk.get(count..) {
            count -= self.chunk.len();
            let Some(next) = self.others.next() else {
                self.chunk = &[];
                return;
            };
            self.chunk = next;
        }
        self.chunk = self.chunk.get(count..).unwrap_or_default();
    }
}

impl HttpBody for MessageBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
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
mod tests;
