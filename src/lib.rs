//! `expertise`: the authoring service for guided troubleshooting.

pub mod auth;
pub mod domain;
pub mod grpc;
pub mod proto;
pub mod store;
