//! Fuzzing: requests of every rpc, update masks, page tokens, signed tokens, shorthands
//! and stored dependencies, mutated from a corpus of valid ones. Nothing may panic, and
//! each target asserts more.
//!
//! `EXPERTISE_FUZZ_EXECUTIONS` is how many executions the targets share, and
//! `EXPERTISE_FUZZ_SEED` the seed of all of them. A failing input is printed and saved.
//! Every run tries the corpus first, which keeps the inputs that failed once.

mod corpus;
mod dependencies;
mod executions;
mod local_service;
mod masks;
mod messages;
mod mutations;
mod page_tokens;
mod requests;
mod response_rules;
mod shorthand;
mod tokens;
