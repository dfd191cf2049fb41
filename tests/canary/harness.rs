//! The service in a process of its own, its log at its fullest, and callers
//! whose texts are marked.

// Of what the behaviours stand on, not everything is needed here.
#![allow(dead_code)]

pub mod caller;
#[path = "../kit/mod.rs"]
pub mod kit;
pub use kit::{collector, postgres as cluster, scratch, server_process as process};
#[path = "../behaviour/harness/contract.rs"]
pub mod contract;
pub mod marks;
#[path = "../behaviour/harness/raw.rs"]
pub mod raw;
#[path = "../behaviour/harness/sample.rs"]
pub mod sample;
pub mod service;
#[path = "../behaviour/harness/world.rs"]
pub mod world;

pub use self::{caller::Caller, service::Service};
