//! What the integration tests share: servers, databases, clients, sample requests and
//! assertions.

// Each test binary includes the whole kit and uses a part of it.
#![allow(dead_code, unused_imports, unused_macros)]
// A panic of the kit fails the test or benchmark that uses it.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

pub mod at_once;
pub mod certificates;
pub mod child;
pub mod client;
pub mod collector;
pub mod command;
pub mod contract;
pub mod databases;
pub mod deadline;
pub mod documents;
pub mod exposition;
pub mod failure;
pub mod http2;
pub mod key_server;
pub mod links;
pub mod missing;
pub mod plans;
pub mod postgres;
pub mod properties;
pub mod random_writes;
pub mod raw;
pub mod relay;
pub mod rng;
pub mod sample;
pub mod scratch;
pub mod server;
pub mod server_process;
pub mod snapshot;
pub mod sql;
pub mod statement_log;
pub mod store_server;
pub mod stored_sizes;
pub mod terminal;
pub mod tokens;

/// Registers tests that run once on SQLite and once on PostgreSQL: each named function
/// of the module, an `async fn(Client)` that calls or an `fn(Cli)` that runs commands. A
/// function left out of the list is dead code, which the compiler points out. A list that
/// begins with `slow:` is ignored unless all tests are run.
///
/// `name: strategy, cases;` registers a property, an `async fn(Client, Case)` that holds
/// for every case of the strategy. The number is how many cases are tried unless
/// `PROPTEST_CASES` says otherwise.
macro_rules! on_both_databases {
    ($($test:ident),+ $(,)?) => {
        // `cfg(all())` always holds: a test on SQLite needs no attribute.
        on_both_databases![
            @attributes cfg(all()), cfg_attr(no_postgres, ignore = "no PostgreSQL here"):
            $($test),+
        ];
    };
    (slow: $($test:ident),+ $(,)?) => {
        on_both_databases![@attributes ignore = "slow", ignore = "slow": $($test),+];
    };
    (@attributes $of_sqlite:meta, $of_postgres:meta: $($test:ident),+) => {$(
        mod $test {
            use $crate::kit::databases::{Database, DatabaseTest};

            #[test]
            #[$of_sqlite]
            fn sqlite() {
                super::$test.run_on(Database::Sqlite);
            }

            #[test]
            #[$of_postgres]
            fn postgres() {
                super::$test.run_on(Database::Postgres);
            }
        }
    )+};
    ($($property:ident: $strategy:expr, $cases:expr);+ $(;)?) => {$(
        mod $property {
            use super::*;
            use $crate::kit::{databases::Database, properties};

            #[test]
            fn sqlite() {
                properties::check(Database::Sqlite, $strategy, $cases, super::$property);
            }

            #[test]
            #[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
            fn postgres() {
                properties::check(Database::Postgres, $strategy, $cases, super::$property);
            }
        }
    )+};
}

pub(crate) use on_both_databases;

/// The same for what no statement decides, such as how a request is decoded: it runs once,
/// on SQLite.
macro_rules! on_one_database {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            use $crate::kit::databases::{Database, DatabaseTest};

            #[test]
            fn sqlite() {
                super::$test.run_on(Database::Sqlite);
            }
        }
    )+};
    ($($property:ident: $strategy:expr, $cases:expr);+ $(;)?) => {$(
        mod $property {
            use super::*;
            use $crate::kit::{databases::Database, properties};

            #[test]
            fn sqlite() {
                properties::check(Database::Sqlite, $strategy, $cases, super::$property);
            }
        }
    )+};
}

pub(crate) use on_one_database;

/// Makes two tests of each function that takes the URL of a new database.
macro_rules! on_own_databases {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            use $crate::kit::{databases, scratch::Scratch};

            #[test]
            fn sqlite() {
                let url = Scratch::of_this_run().sqlite_url(stringify!($test));
                databases::runtime().block_on(super::$test(url));
            }

            #[test]
            #[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
            fn postgres() {
                let url = databases::postgres(stringify!($test));
                databases::runtime().block_on(super::$test(url));
            }
        }
    )+};
}

pub(crate) use on_own_databases;

/// What most modules of tests import.
pub mod prelude {
    pub use super::{at_once::*, client::*, documents::*, failure::*, sample::*};
    pub(crate) use super::{on_both_databases, on_one_database, on_own_databases};
    pub use expertise::proto::v1::*;
    pub use tonic::Code;
}
