//! The service in a process of its own, its log at its fullest, and callers
//! whose texts are marked.

// Of what the behaviours stand on, not everything is needed here.
#![allow(dead_code)]

pub mod caller;
#[path = "../support/cluster.rs"]
pub mod cluster;
#[path = "../support/collector.rs"]
pub mod collector;
#[path = "../behaviour/harness/contract.rs"]
pub mod contract;
pub mod marks;
#[path = "../support/process.rs"]
pub mod process;
#[path = "../behaviour/harness/raw.rs"]
pub mod raw;
#[path = "../behaviour/harness/sample.rs"]
pub mod sample;
#[path = "../support/scratch.rs"]
pub mod scratch;
pub mod service;
#[path = "../behaviour/harness/world.rs"]
pub mod world;

pub use self::{caller::Caller, service::Service};
