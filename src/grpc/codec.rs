//! The codec of every rpc. A request that cannot be decoded is INVALID_ARGUMENT, where
//! tonic's codec would make it INTERNAL.

use std::marker::PhantomData;

use prost::Message;
use tonic::{
    Status,
    codec::{DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use super::status;
use crate::domain::Error;

/// Sends `T` and receives `U`.
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
    type Encoder = MessageEncoder<T>;
    type Decoder = MessageDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        MessageEncoder(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        MessageDecoder(PhantomData)
    }
}

/// Encodes messages. Reserves their length first, so that a body of megabytes is not
/// copied whenever the buffer grows.
#[derive(Debug)]
pub struct MessageEncoder<T>(PhantomData<fn(T)>);

impl<T: Message> Encoder for MessageEncoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(item.encoded_len());
        item.encode(buffer).map_err(|_| {
            status::from_error(Error::Internal(
                "a message was larger than its buffer".to_owned(),
            ))
        })
    }
}

/// Decodes messages.
#[derive(Debug)]
pub struct MessageDecoder<U>(PhantomData<fn() -> U>);

impl<U: Message + Default> Decoder for MessageDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(buffer)
            .map(Some)
            .map_err(|error| status::undecodable(&error.to_string()))
    }
}
