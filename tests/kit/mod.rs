//! What the integration binaries share. Each includes it once:

// Each binary uses a part of it.
#![allow(dead_code)]

pub mod child;
pub mod client;
pub mod collector;
pub mod deadline;
pub mod failure;
pub mod links;
pub mod missing;
pub mod pgbouncer;
pub mod postgres;
pub mod raw;
pub mod relay;
pub mod rng;
pub mod sample;
pub mod scratch;
pub mod server_process;
