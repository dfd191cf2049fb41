//! The gRPC services: one file for each, with a method of `Call` for each rpc (decode, one store
//! call, encode). The conversions between messages and domain values are in `messages`.
//!
//! *Invariant:* an rpc makes at most one store call, and none for a request with violations.
//! UpdateTask and UpdateStep with a valid `guid` are exceptions, because some of their violations
//! depend on what is stored. The store reads the task or step, decodes the update against it, and
//! then returns all violations, including those of the mask. ListChanges with `wait` reads again
//! after each wait.

use tonic::{Request, Response, Status, service::Routes};

use crate::{domain::page::PAGE_BYTES, proto::v1, store::Store};

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

pub use crate::messages::{
    decoded_size::request_bytes as decoded_request_bytes, kept_guide::GUIDE_CODEC,
};
pub use scope::{required_scope, rpcs};

// The build script generates `SERVICES` (the names of the API's services), `serve`, and the
// implementations of tonic's service traits, which call the methods of `Call`.
include!(concat!(env!("OUT_DIR"), "/services.rs"));

/// The services of the API on a store. The context of each call must have a caller who was checked
/// for the [`required_scope`]. A message has at most `max_message_bytes`.
pub fn routes(store: Store, max_message_bytes: usize) -> Routes {
    let services = Services {
        store,
        page_bytes: PAGE_BYTES.min(max_message_bytes),
    };
    serve(&services, max_message_bytes)
}

/// The services of the API.
#[derive(Clone)]
struct Services {
    store: Store,
    /// A page ends early once it has this many encoded bytes.
    page_bytes: usize,
}
