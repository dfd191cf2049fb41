//! The codec of every rpc. A request that cannot be decoded fails with INVALID_ARGUMENT instead of
//! tonic's INTERNAL.

use std::marker::PhantomData;

use prost::Message;
use tonic::{
    Status,
    codec::{DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use super::status;
use crate::domain::Error;

/// Encodes `T` and decodes `U`.
#[derive(Debug)]
pub struct Codec<T, U>(PhantomData<fn(T) -> U>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + 'static,
    U: Message + Default + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self::default()
    }

    fn decoder(&mut self) -> Self {
        Self::default()
    }
}

impl<T: Message, U> Encoder for Codec<T, U> {
    type Item = T;
    type Error = Status;

    /// Reserves the length of the message first, so that the buffer does not grow and copy large
    /// bodies.
    fn encode(&mut self, item: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(item.encoded_len());
        item.encode(buffer).map_err(|_| {
            Status::from(Error::Internal(
                "a message was larger than its buffer".to_owned(),
            ))
        })
    }
}

impl<T, U: Message + Default> Decoder for Codec<T, U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(buffer)
            .map(Some)
            .map_err(|error| status::undecodable(&error.to_string()))
    }
}
