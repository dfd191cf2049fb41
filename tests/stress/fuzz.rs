//! Fuzzing: requests of every rpc, those of `tests/calls.json` mutated, and signed tokens.
//! Nothing may panic, and each target asserts more. What has a grammar of its own, such as
//! shorthands, page tokens and masks, has properties beside its code and in `it`.
//!
//! `EXPERTISE_TEST_FUZZ_EXECUTIONS` is how many executions the targets share, and
//! `EXPERTISE_TEST_FUZZ_SEED` the seed of all of them. A failing input is printed and saved.
//! Every run tries the corpus first, which keeps the inputs that failed once.

mod corpus;
mod executions;
mod local_service;
mod messages;
mod mutations;
mod requests;
mod response_rules;
mod tokens;
