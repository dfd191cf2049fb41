//! gRPC in and out: one file for each service (decode, one store call,
//! encode), and the conversions between messages and the domain.

pub mod codec;
pub mod status;

mod scope;

pub use scope::required_scope;

use crate::store::Store;

/// The services of the contract by their full names.
pub const SERVICES: [&str; 4] = [
    "expertise.v1.TaskService",
    "expertise.v1.StepService",
    "expertise.v1.RoleService",
    "expertise.v1.TranslationService",
];

/// What the services refuse by size.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest message received or sent, in bytes.
    pub max_message_bytes: usize,
}

/// The services of the contract on a store.
pub fn routes(store: Store, limits: Limits) -> tonic::service::Routes {
    let _ = (store, limits);
    tonic::service::Routes::default()
}
