//! The gRPC services: one file for each (decode, one store call, encode). The conversions
//! between messages and domain values are in `messages`.
//!
//! *Invariant:* a handler makes at most one store call, and none for a request with
//! violations. UpdateTask and UpdateStep with a valid `guid` are the exception, as some of their
//! violations depend on what is stored. The store reads the task or step, has the update decoded
//! against it, and then refuses it with all violations, those of the mask too.

use tonic::service::Routes;

use crate::{
    domain::page::PAGE_BYTES,
    proto::v1::{
        analysis_service_server::AnalysisServiceServer, change_service_server::ChangeServiceServer,
        index_service_server::IndexServiceServer, revision_service_server::RevisionServiceServer,
        role_service_server::RoleServiceServer, step_service_server::StepServiceServer,
        task_service_server::TaskServiceServer,
        translation_service_server::TranslationServiceServer,
    },
    store::Store,
};

pub mod codec;
pub mod status;

mod analysis;
mod call;
mod changes;
mod compared_guide;
mod idempotency;
mod index;
mod page;
mod previews;
mod references;
mod revisions;
mod roles;
mod scope;
mod sent_guide;
mod steps;
mod tasks;
mod translations;
mod validations;

pub use crate::messages::kept_guide::GUIDE_CODEC;
pub use scope::{required_scope, rpcs};

/// The services of the contract by their full names.
pub const SERVICES: [&str; 8] = [
    "expertise.v1.TaskService",
    "expertise.v1.StepService",
    "expertise.v1.RevisionService",
    "expertise.v1.RoleService",
    "expertise.v1.TranslationService",
    "expertise.v1.AnalysisService",
    "expertise.v1.ChangeService",
    "expertise.v1.IndexService",
];

/// Limits of the services.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest message received or sent, in bytes.
    pub max_message_bytes: usize,
}

/// The services of the contract on a store. Each call must have its
/// [`Caller`](crate::auth::Caller) in the request's extensions, checked for the scope
/// of [`required_scope`].
pub fn routes(store: Store, limits: Limits) -> Routes {
    let Limits { max_message_bytes } = limits;
    let services = Services {
        store,
        page_bytes: PAGE_BYTES.min(max_message_bytes),
    };
    macro_rules! serve {
        ($($server:ident)*) => {
            Routes::default()$(.add_service(
                $server::new(services.clone())
                    .max_decoding_message_size(max_message_bytes)
                    .max_encoding_message_size(max_message_bytes),
            ))*
        };
    }
    serve! {
        TaskServiceServer
        StepServiceServer
        RevisionServiceServer
        RoleServiceServer
        TranslationServiceServer
        AnalysisServiceServer
        ChangeServiceServer
        IndexServiceServer
    }
}

/// The services of the contract; each file of a service implements one.
#[derive(Clone)]
struct Services {
    store: Store,
    /// A page ends early once it has this many encoded bytes.
    page_bytes: usize,
}
