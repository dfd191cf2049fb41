//! What callers send stays between them and the database: marked texts, tokens
//! and passwords go through every call of the contract, good and bad ones, while
//! everything is logged that can be, and come up in no log line and in no error.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod harness;

mod calls;
mod every_call;
mod spoiled;
mod unreadable;
