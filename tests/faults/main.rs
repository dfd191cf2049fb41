//! What is left when things break: callers that go away, servers and databases
//! that crash, and servers that are told to end, all of it at random moments
//! under a load of mixed writes.
//!
//! Each writer knows what it was told. Afterwards every acknowledged write must
//! be there, every other one whole or not at all, and nothing else. A failure
//! says its seed; `EXPERTISE_FAULTS_SEED` takes it again, which repeats the
//! choices though not the moments.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod cancellation;
mod crash;
mod harness;
mod shutdown;
