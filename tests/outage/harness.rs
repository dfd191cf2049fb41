//! Databases that can be taken away, and callers who keep a record.

// Of what the behaviours stand on, not everything is needed here.
#![allow(dead_code)]

#[path = "../kit/mod.rs"]
pub mod kit;
pub use kit::{missing as absent, postgres as cluster, relay, scratch, server_process as process};
pub mod admin;
pub mod client;
pub mod deadline;
#[path = "../behaviour/harness/failure.rs"]
pub mod failure;
pub mod health;
#[path = "../behaviour/harness/links.rs"]
mod links;
pub mod load;
#[path = "../behaviour/harness/raw.rs"]
pub mod raw;
#[path = "../behaviour/harness/sample.rs"]
pub mod sample;
pub mod until;
pub mod verdict;
#[path = "../behaviour/harness/world.rs"]
pub mod world;

use std::{env, sync::OnceLock};

use cluster::Cluster;
use process::ServerProcess;

/// What a test's module imports.
pub mod prelude {
    pub use super::{
        failure::*, health::Health, load::Load, relay::Relay, sample::*, until::until, world::*,
    };
    pub use expertise::proto::v1::*;
    pub use tonic::Code;
}

/// A cluster of its own with these settings; `None` where there is no PostgreSQL,
/// which is said.
pub fn cluster(name: &str, settings: &[&str]) -> Option<Cluster> {
    let cluster = Cluster::start(&format!("{name}.cluster"), settings);
    if cluster.is_none() {
        absent::report_missing("PostgreSQL", "EXPERTISE_REQUIRE_POSTGRES");
    }
    cluster
}

/// An empty database of this name in the cluster that tests share which leave it as
/// it is, and the cluster's port; `None` as with [`cluster`].
pub fn database(name: &str) -> Option<(String, u16)> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| cluster("shared", &["fsync=off"]));
    let cluster = cluster.as_ref()?;
    Some((cluster.make_database(name), cluster.port()))
}

/// A server on this database.
pub fn serve(name: &str, url: &str, more: &[(&str, &str)]) -> ServerProcess {
    let mut settings = vec![("EXPERTISE_DATABASE_URL", url), ("EXPERTISE_LOG", "warn")];
    settings.extend(more);
    ServerProcess::start(name, &settings)
}

/// How often the long form of a test goes round; once in the short one.
pub fn rounds() -> usize {
    let given = env::var("EXPERTISE_OUTAGE_ROUNDS").ok();
    given.map_or(1, |number| number.parse().expect("EXPERTISE_OUTAGE_ROUNDS"))
}
