//! The generated contract: messages, servers and clients of `expertise.v1`.
//!
//! The comments of the proto files document the generated items.

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

/// Encoded descriptors of the contract and its imports, without comments; reflection
/// serves them.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
