//! What the integration tests share: servers, databases, clients and sample requests.

// Each test binary includes the whole kit and uses a part of it.
#![allow(dead_code, unused_imports)]
// A panic of the kit fails the test or benchmark that uses it.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

pub mod calls;
pub mod catalogue;
pub mod child;
pub mod client;
pub mod contract;
pub mod deadline;
pub mod failure;
pub mod http2;
pub mod links;
pub mod postgres;
pub mod random_writes;
pub mod raw;
pub mod relay;
pub mod rng;
pub mod runtime;
pub mod sample;
pub mod scratch;
pub mod server;
pub mod snapshot;
pub mod sql;

/// What most modules of tests import.
pub mod prelude {
    pub use super::{client::*, failure::*, sample::*};
    pub use expertise::proto::v1::*;
    pub use macro_rules_attribute::apply;
    pub use tonic::Code;
}
