//! Fuzzers: requests of every rpc as a client may send them, masks, page tokens,
//! signed tokens, shorthands and stored dependencies, mutated from a corpus of
//! valid ones. Each target says what holds besides that nothing panics.
//!
//! `EXPERTISE_FUZZ_EXECUTIONS` is how many executions the targets share, and
//! `EXPERTISE_FUZZ_SEED` a number from which all of them follow. An input that
//! breaks something is printed and kept; what was mended stays in the corpus,
//! which every run tries first.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

mod chance;
mod corpus;
mod dependencies;
mod laws;
mod masks;
mod messages;
mod page_tokens;
#[path = "../behaviour/harness/raw.rs"]
mod raw;
mod requests;
mod run;
mod service;
mod shorthand;
mod tokens;
