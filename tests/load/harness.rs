//! A server in a process of its own for each test, and what is set on it.

// Of what other tests stand on, not everything is needed here.
#![allow(dead_code)]

#[path = "../kit/mod.rs"]
pub mod kit;
pub use kit::{missing as absent, postgres as cluster, scratch, server_process as process};
pub mod cores;
#[path = "../behaviour/harness/failure.rs"]
pub mod failure;
pub mod frames;
pub mod honest;
pub mod peer;
#[path = "../behaviour/harness/raw.rs"]
pub mod raw;
#[path = "../behaviour/harness/sample.rs"]
pub mod sample;
pub mod service;
pub mod volley;
pub mod wire;
#[path = "../behaviour/harness/world.rs"]
pub mod world;

/// Runs a test on a server of its own, on SQLite and on PostgreSQL. No two run at
/// once: each measures what a machine does.
macro_rules! on_both_databases {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            use crate::harness::service::Database;

            #[test]
            fn on_sqlite() {
                Database::Sqlite.run(stringify!($test), super::$test);
            }

            #[test]
            fn on_postgres() {
                Database::Postgres.run(stringify!($test), super::$test);
            }
        }
    )+};
}

pub(crate) use on_both_databases;

/// What a test's module imports.
pub mod prelude {
    pub(crate) use super::on_both_databases;
    pub use super::{
        failure::*, frames, honest::Honest, peer::Peer, sample::*, service::*, wire::Connection,
        world::*,
    };
}
