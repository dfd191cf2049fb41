//! Several servers on one database, each a process of its own: they agree on
//! everything, start at the same moment, and answer for one another.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

mod harness;

mod histories;
mod pooler;
mod relay;
mod start;
