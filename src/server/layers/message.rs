//! Receives the whole message of a request before its service is called.
//!
//! tonic allocates the declared length of a message, and starts the service while bytes
//! still arrive. Here memory grows with the bytes that arrive, and a call whose
//! message stays incomplete never starts.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Status, body::Body};

use super::record::Call;
use crate::grpc::status;

/// The prefix of a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
/// A frame keeps the buffer alive that it was read into, so smaller frames are copied together.
const MIN_FRAME_BYTES: usize = 4 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;
/// A request may have this many frames, and one more for each
/// [`MIN_BYTES_PER_FRAME`]. Clients fill their frames; tiny or empty ones only make work.
const MAX_SPARE_FRAMES: usize = 1024;
const MIN_BYTES_PER_FRAME: usize = 64;

/// How large a message may be.
pub struct Limits {
    pub max_bytes: usize,
    /// A larger message waits for a permit before it is received.
    pub max_uncounted_bytes: usize,
}

/// A message with its prefix, as tonic reads it.
#[derive(Clone, Default)]
pub struct Message {
    chunks: VecDeque<Bytes>,
    small_frames: BytesMut,
    bytes: usize,
}

impl Message {
    /// Receives the one message of a request, and the permit for it if it is large.
    pub async fn receive(
        mut body: Body,
        limits: Limits,
        call: &Call,
    ) -> Result<(Self, Option<OwnedSemaphorePermit>), Status> {
        let mut message = Self::default();
        let mut permit = None;
        let mut length = None;
        let mut frames = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| {
                call.set_broken();
                status::undecodable("the request broke off before its end")
            })?;
            let Ok(data) = frame.into_data() else { break };
            call.count_received(data.len());
            frames += 1;
            if frames > MAX_SPARE_FRAMES + message.bytes / MIN_BYTES_PER_FRAME {
                let what = "the request comes in too many small frames";
                return Err(status::undecodable(what));
            }
            message.push(data);
            if length.is_none() {
                length = message.declared_length(limits.max_bytes)?;
                if let Some(length) = length
                    && length > limits.max_uncounted_bytes
                {
                    let waiting = call
                        .context
                        .limits()
                        .message(length, call.context.half_time());
                    permit = Some(waiting.await.map_err(Status::from)?);
                }
            }
            if length.is_some_and(|length| message.bytes > length) {
                let what = "the request must hold one message, and holds more";
                return Err(status::undecodable(what));
            }
        }
        match length {
            Some(length) if message.bytes == length => {}
            None if message.bytes == 0 => {
                let what = "the request must hold one message, and holds none";
                return Err(status::undecodable(what));
            }
            _ => {
                let what = "the request ends in the middle of its message";
                return Err(status::undecodable(what));
            }
        }
        message.end_chunk();
        Ok((message, permit))
    }

    /// The length of the message with its prefix, once that has arrived.
    fn declared_length(&mut self, limit: usize) -> Result<Option<usize>, Status> {
        if self.bytes < PREFIX_BYTES {
            return Ok(None);
        }
        self.end_chunk();
        let mut prefix = [0; PREFIX_BYTES];
        let sent = self.chunks.iter().flatten();
        prefix
            .iter_mut()
            .zip(sent)
            .for_each(|(byte, sent)| *byte = *sent);
        let [compressed, length @ ..] = prefix;
        let length = u32::from_be_bytes(length) as usize;
        if compressed != 0 {
            return Err(status::undecodable(
                "the request's compression flag must be 0: send messages uncompressed",
            ));
        }
        if length > limit {
            return Err(status::message_too_large(limit));
        }
        Ok(Some(PREFIX_BYTES + length))
    }

    fn push(&mut self, data: Bytes) {
        self.bytes += data.len();
        if data.len() < MIN_FRAME_BYTES && !(self.bytes == data.len() && data.len() > PREFIX_BYTES)
        {
            self.small_frames.extend_from_slice(&data);
            if self.small_frames.len() >= CHUNK_BYTES {
                self.end_chunk();
            }
        } else {
            self.end_chunk();
            self.chunks.push_back(data);
        }
    }

    fn end_chunk(&mut self) {
        if !self.small_frames.is_empty() {
            let chunk = std::mem::take(&mut self.small_frames).freeze();
            self.chunks.push_back(chunk);
        }
    }

    /// The size, prefix included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The message without its prefix.
    pub fn content(&self) -> impl Buf {
        let mut content = self.clone();
        content.advance(PREFIX_BYTES.min(content.bytes));
        content
    }
}

/// Reads the chunks of a received message one after the other.
impl Buf for Message {
    fn remaining(&self) -> usize {
        self.bytes
    }

    fn chunk(&self) -> &[u8] {
        self.chunks.front().map_or(&[], |chunk| chunk)
    }

    fn advance(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(chunk) = self.chunks.front_mut() {
            if count < chunk.len() {
                chunk.advance(count);
                return;
            }
            count -= chunk.len();
            self.chunks.pop_front();
        }
    }
}

impl HttpBody for Message {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.chunks.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.chunks.iter().map(|chunk| chunk.len() as u64).sum())
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_over_the_bounds_of_its_frames() {
        let mut message = Message::default();
        for frame in [&b"\0\0\0"[..], b"", b"\0", b"\x03a", b"bc"] {
            message.push(Bytes::from_static(frame));
        }
        assert!(matches!(message.declared_length(3), Ok(Some(8))));
        assert!(message.declared_length(2).is_err());
        message.push(Bytes::from(vec![7; MIN_FRAME_BYTES]));
        message.end_chunk();
        let mut content = message.content();
        assert_eq!(&content.copy_to_bytes(3)[..], b"abc");
        assert_eq!(content.remaining(), MIN_FRAME_BYTES);
        assert_eq!(message.bytes(), 8 + MIN_FRAME_BYTES);
        assert_eq!(message.chunks.len(), 2);
    }
}
