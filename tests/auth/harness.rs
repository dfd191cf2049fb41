//! What the tests of credentials share.

mod authority;
mod issuer;
mod key_server;
#[path = "../behaviour/harness/raw.rs"]
pub mod raw;
mod service;
#[allow(dead_code)]
#[path = "../behaviour/harness/stream.rs"]
pub mod stream;

pub mod prelude {
    pub use serde_json::json;
    pub use tonic::Code;

    pub use super::{
        authority::Authority,
        issuer::{Signer, claims, key_set, now, sign},
        key_server::KeyServer,
        service::{AUDIENCE, Client, ISSUER, SECRET, Service, answered, hs256, jwt},
    };
}

pub use self::service::bounded;

use std::{fs, path::Path};

/// Replaces a file as deployments do: a new one takes its name.
pub fn replace(path: &Path, text: &str) {
    let next = path.with_extension("next");
    fs::write(&next, text).expect("a file of our own");
    fs::rename(&next, path).expect("a file of our own");
}
