//! The codec of every rpc: protobuf, where a request that cannot be decoded is
//! the caller's mistake and says so.

use std::marker::PhantomData;

use prost::Message;
use tonic::{
    Status,
    codec::{DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use super::status;
use crate::domain::Error;

/// Sends `T` and receives `U`. Stands in for tonic's own codec, which blames
/// the server for what it cannot decode.
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
    type Encoder = Outgoing<T>;
    type Decoder = Incoming<U>;

    fn encoder(&mut self) -> Self::Encoder {
        Outgoing(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        Incoming(PhantomData)
    }
}

/// Encodes messages. The room is made once: a body of megabytes is not moved
/// each time that a buffer grows.
#[derive(Debug)]
pub struct Outgoing<T>(PhantomData<fn(T)>);

impl<T: Message> Encoder for Outgoing<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(item.encoded_len());
        item.encode(buffer).map_err(|_| {
            status::from_error(Error::Internal("a message outgrew its buffer".to_owned()))
        })
    }
}

/// Decodes messages.
#[derive(Debug)]
pub struct Incoming<U>(PhantomData<fn() -> U>);

impl<U: Message + Default> Decoder for Incoming<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(buffer)
            .map(Some)
            .map_err(|error| status::undecodable(&error.to_string()))
    }
}
