//! What callers see of the service, one fact a test, asserted through the wire.
//!
//! Every behaviour runs against a server in this process, once on SQLite and
//! once on PostgreSQL, each test in an account of its own and all of them at the
//! same time. Where there is no PostgreSQL the suite runs on SQLite and says so;
//! `EXPERTISE_REQUIRE_POSTGRES=1` makes that a failure, and
//! `EXPERTISE_TEST_POSTGRES_URL` names a server to use instead of a private one.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

mod harness;

mod bad_input;
mod cancellation;
mod concurrency;
mod credentials;
mod dependencies;
mod discovery;
mod errors;
mod exports;
mod framing;
mod imports;
mod isolation;
mod large_bodies;
mod laws;
mod links;
mod masks;
mod order;
mod paging;
mod questions;
mod retries;
mod roles;
mod shorthand;
mod snapshots;
mod steps;
mod subtasks;
mod tasks;
mod together;
mod translations;
mod wire;
mod work;
