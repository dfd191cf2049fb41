//! Two servers on one PostgreSQL, directly and through PgBouncer.

// Of what the behaviours stand on, not everything is needed here.
#![allow(dead_code)]

#[path = "../kit/mod.rs"]
pub mod kit;
pub use kit::{
    missing as absent, pgbouncer, postgres as cluster, scratch, server_process as process,
};
#[path = "../behaviour/harness/failure.rs"]
pub mod failure;
#[path = "../behaviour/harness/links.rs"]
pub mod links;
#[path = "../behaviour/harness/raw.rs"]
pub mod raw;
#[path = "../behaviour/harness/sample.rs"]
pub mod sample;
#[path = "../behaviour/harness/world.rs"]
pub mod world;

use std::sync::OnceLock;

use absent::report_missing;
use cluster::Cluster;
use process::ServerProcess;
use world::World;

/// Runs a test on two servers, directly on PostgreSQL and through PgBouncer.
macro_rules! on_two_servers {
    ($($behaviour:ident),+ $(,)?) => {$(
        mod $behaviour {
            use crate::harness::{Between, Pair, runtime};

            fn run(name: &str, between: Between) {
                let name = format!("{name}_{}", stringify!($behaviour));
                // PostgreSQL takes names of 63 bytes.
                if let Some(pair) = Pair::start(&name[..name.len().min(60)], between) {
                    runtime().block_on(async { super::$behaviour(pair.worlds()).await });
                }
            }

            #[test]
            fn directly() {
                run("direct", Between::Nothing);
            }

            #[test]
            fn through_pgbouncer() {
                run("pooled", Between::PgBouncer);
            }
        }
    )+};
}

pub(crate) use on_two_servers;

/// What a test's module imports.
pub mod prelude {
    pub(crate) use super::on_two_servers;
    pub use super::{failure::*, sample::*, world::*};
    pub use expertise::proto::v1::*;
    pub use tonic::Code;
}

/// What is between the servers and PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    Nothing,
    PgBouncer,
}

/// Two servers on one database.
pub struct Pair {
    servers: [ServerProcess; 2],
}

impl Pair {
    /// Starts them on an empty database of their own; `None` when there is no
    /// PostgreSQL here or no PgBouncer, which is said.
    pub fn start(name: &str, between: Between) -> Option<Self> {
        let mut url = database(name)?;
        if between == Between::PgBouncer {
            url = through_pgbouncer(&url)?;
        }
        let server = |which: &str| {
            let name = format!("{name}-{which}");
            let settings = [
                ("EXPERTISE_DATABASE_URL", url.as_str()),
                ("EXPERTISE_DATABASE_MAX_CONNECTIONS", "8"),
            ];
            ServerProcess::start(&name, &settings)
        };
        Some(Self {
            servers: [server("one"), server("other")],
        })
    }

    /// One fresh account, as each server has it.
    pub fn worlds(&self) -> [World; 2] {
        let one = World::at(self.servers[0].address());
        let other = World::at(self.servers[1].address()).calling_as(one.account());
        [one, other]
    }
}

/// The address of an empty database of this name; `None` when there is no
/// PostgreSQL here.
pub fn database(name: &str) -> Option<String> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| {
        // The cluster does not outlive the run, so it need not survive a crash.
        Cluster::start("postgres", &["fsync=off", "max_connections=200"])
    });
    if cluster.is_none() {
        report_missing("PostgreSQL", "EXPERTISE_REQUIRE_POSTGRES");
    }
    Some(cluster.as_ref()?.make_database(name))
}

/// The same database through a PgBouncer of its own; `None` when there is none
/// here.
pub fn through_pgbouncer(url: &str) -> Option<String> {
    // Servers of the libpq kind ask for the parameter, so it is often ignored.
    let pooler =
        pgbouncer::PgBouncer::start(url, "ignore_startup_parameters = extra_float_digits")?;
    let url = pooler.url().to_owned();
    std::mem::forget(pooler);
    Some(url)
}

/// A runtime for one test.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}
