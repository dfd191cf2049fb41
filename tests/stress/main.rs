//! What loads the machine or breaks the database: crashes, cancelled calls, shutdown,
//! outages, several servers, overload, and fuzzing.
//!
//! Tests that measure the machine run alone, see [`machine`]; all others run in
//! parallel.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

#[path = "../kit/mod.rs"]
mod kit;

mod frame_peer;
mod health;
mod machine;
mod service;
mod usage;
mod variables;
mod writers;

mod deadlocks;
mod faults;
mod fleet;
mod fuzz;
mod load;
mod outage;
