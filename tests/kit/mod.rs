//! What the integration binaries share. Each includes it once:
//! `#[path = "../kit/mod.rs"] mod kit;`.

// Each binary uses a part of it.
#![allow(dead_code)]

pub mod child;
#[path = "../behaviour/harness/world.rs"]
pub mod client;
pub mod collector;
pub mod deadline;
#[path = "../behaviour/harness/failure.rs"]
pub mod failure;
#[path = "../behaviour/harness/links.rs"]
pub mod links;
pub mod missing;
pub mod pgbouncer;
pub mod postgres;
#[path = "../behaviour/harness/raw.rs"]
pub mod raw;
pub mod relay;
pub mod rng;
#[path = "../behaviour/harness/sample.rs"]
pub mod sample;
pub mod scratch;
pub mod server_process;
