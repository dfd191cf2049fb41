//! The command line as people meet it: the built binary against a server in a
//! process of its own, what goes well and what a newcomer does wrong.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod credentials;
mod databases;
mod export;
mod harness;
mod health;
mod import;
mod list;
mod manual;
mod repetitions;
mod show;
mod tls;
mod version;
