//! What those who run the service rely on: metrics and what is written about them,
//! traces, readiness, and back-ups that can be restored.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod harness;

mod backups;
mod documented;
mod metrics;
mod readiness;
mod traces;
