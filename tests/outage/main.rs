//! The database away: stopped, silent, read-only, without a connection to spare,
//! without room on its disk. The server runs on in a process of its own; what
//! callers hear meanwhile is one of few answers, each of which holds, and it serves
//! again by itself.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod harness;

mod exhausted;
mod full;
mod read_only;
mod replica;
mod restart;
mod silent;
mod standby;
mod undecided;
