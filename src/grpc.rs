//! gRPC in and out.
pub mod codec;
