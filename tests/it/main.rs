//! Tests of what callers and operators see: calls, commands, metrics, traces and logs.
//!
//! Tests of calls run concurrently against a server on SQLite and a server on PostgreSQL, each in
//! its own account. They only use the messages of the library. `tests/README.md` says how to run
//! them and what they need.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

#[path = "../kit/mod.rs"]
mod kit;

#[macro_use]
mod databases;

mod api;
mod cli;
mod command;
mod fixture;
mod ignored_tests;
mod laws;
mod layers;
mod marks;
mod ops;
mod prelude;
