//! Tests of what callers and operators see: calls, commands, metrics, traces and logs.
//!
//! Tests of calls run concurrently against a server on SQLite and a server on PostgreSQL, each in
//! its own account. They only use the messages of the library. `tests/README.md` says how to run
//! them and what they need.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

#[path = "../kit/mod.rs"]
mod kit;

mod account_isolation;
mod analysis;
mod authentication;
mod cancelled_reads;
mod cases;
mod changes;
mod cli;
mod concurrent_writes;
mod contended_rows;
mod deleted_steps;
mod dependencies;
mod dependency_shorthand;
mod document_limits;
mod error_details;
mod every_field;
mod export_task;
mod external_ids;
mod feedback_config;
mod health_and_reflection;
mod http2_framing;
mod idempotency;
mod ignored_tests;
mod import_task;
mod index_work;
mod invalid_fields;
mod large_bodies;
mod layers;
mod linked_tasks;
mod malformed_messages;
mod operations;
mod paging;
mod properties;
mod random_guides;
mod response_snapshots;
mod revisions;
mod roles;
mod sensitive_data;
mod settings;
mod shared_sqlite_file;
mod size_limits;
mod statement_counts;
mod statement_tenancy;
mod step_order;
mod steps;
mod subtask_steps;
mod tasks;
mod translate;
mod translation_work;
mod translations;
mod update_masks;
mod write_queue;
