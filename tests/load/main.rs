//! What a server does under more load than it can carry, and under abuse: memory
//! stays bounded, honest callers are served, and what does not fit is refused
//! with a proper answer.
//!
//! A short form always runs. `EXPERTISE_LOAD=full` takes the real numbers, which
//! are meant for a release build (`EXPERTISE_LOAD_BINARY`).

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod floods;
mod harness;
mod limits;
mod memory;
mod overload;
mod unread;
