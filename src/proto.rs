//! The generated contract: messages, servers and clients of `expertise.v1`.
//!
//! What each element means stands in the proto files' comments, which the
//! generated items carry.

/// Messages and services of `expertise.v1`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    rustdoc::all
)]
pub mod v1 {
    tonic::include_proto!("expertise.v1");
}

/// Encoded descriptors of the contract and everything it imports, without
/// comments: what reflection serves.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
