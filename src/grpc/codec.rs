//! The codec of every rpc.
/// placeholder
pub type Codec<T, U> = tonic_prost::ProstCodec<T, U>;
