//! The generated API: messages, servers and clients of `expertise.v1`.
//!
//! The comments of the proto files document the generated items.

use tonic::Code;

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

/// Encoded descriptors of the API and its imports, with annotations but without comments.
/// Reflection serves them.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The name of a code in the gRPC specification.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
