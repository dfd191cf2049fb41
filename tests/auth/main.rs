//! Who is let in, through the wire: tokens, their keys, and TLS.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod accepted;
mod binary;
mod forged;
mod harness;
mod rotation;
mod scopes;
mod start;
mod tls;
