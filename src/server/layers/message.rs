//! Receives the whole message of a request before its service is called.
//!
//! tonic starts the service while bytes are still arriving. This layer never starts a call with an
//! incomplete message, and gets a permit for a large message before it allocates memory.

use std::sync::atomic::Ordering::Relaxed;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tonic::{Status, body::Body};

use crate::{call_context::CallContext, grpc::status};

/// The prefix of a message: whether it is compressed, and its length.
pub const PREFIX_BYTES: usize = 5;
/// A larger message needs a permit for its bytes.
pub const MAX_SMALL_BYTES: usize = 1024 * 1024;

/// Receives the one message of a request with its prefix. The call holds a permit for a large one.
pub async fn receive(
    mut body: Body,
    max_bytes: usize,
    call: &CallContext,
) -> Result<Bytes, Status> {
    // Frames are copied, because each frame keeps the buffer alive that it was read into.
    let mut message = BytesMut::new();
    let mut length = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            call.cancel();
            status::undecodable("the request ended before it was complete")
        })?;
        let Ok(data) = frame.into_data() else { break };
        call.received_bytes.fetch_add(data.len(), Relaxed);
        message.extend_from_slice(&data);
        if length.is_none() {
            length = declared_length(&message, max_bytes)?;
            if let Some(length) = length {
                if length > MAX_SMALL_BYTES {
                    let limit = &call.limits.messages;
                    call.hold([limit.take_bytes_until(length, call.half_time()).await?]);
                }
                // The system provides the memory only as bytes arrive.
                message.reserve(length.saturating_sub(message.len()));
            }
        }
        if length.is_some_and(|length| message.len() > length) {
            let what = "the request must contain one message, but contains more";
            return Err(status::undecodable(what));
        }
    }
    match length {
        Some(length) if message.len() == length => Ok(message.freeze()),
        None if message.is_empty() => Err(status::undecodable(
            "the request must contain one message, but contains none",
        )),
        _ => Err(status::undecodable(
            "the request ends in the middle of its message",
        )),
    }
}

/// The length of the message with its prefix, once that has arrived.
fn declared_length(message: &[u8], max_bytes: usize) -> Result<Option<usize>, Status> {
    let Some((&[compressed, a, b, c, d], _)) = message.split_first_chunk() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 {
        return Err(status::undecodable(
            "the request's compression flag must be 0: send messages uncompressed",
        ));
    }
    if length > max_bytes {
        return Err(status::message_too_large(max_bytes));
    }
    Ok(Some(PREFIX_BYTES + length))
}
