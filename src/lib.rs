//! `expertise`: the authoring service for guided troubleshooting.

pub mod auth;
pub mod config;
pub mod domain;
pub mod grpc;
pub mod proto;
pub mod server;
pub mod store;
pub mod telemetry;
