//! What the integration tests share: servers, databases, clients, sample requests and
//! assertions.

// Each test binary includes the whole kit and uses a part of it.
#![allow(dead_code, unused_imports, unused_macros)]
// A panic of the kit fails the test or benchmark that uses it.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

pub use macro_rules_attribute::apply;

pub mod at_once;
pub mod calls;
pub mod catalogue;
pub mod child;
pub mod client;
pub mod command;
pub mod contract;
pub mod databases;
pub mod deadline;
pub mod documents;
pub mod exposition;
pub mod failure;
pub mod http2;
pub mod links;
pub mod missing;
pub mod postgres;
pub mod properties;
pub mod random_writes;
pub mod raw;
pub mod relay;
pub mod rng;
pub mod sample;
pub mod scratch;
pub mod server;
pub mod snapshot;
pub mod sql;
pub mod statement_log;

/// The attribute of a test that runs on both databases:
///
/// ```ignore
/// #[apply(on_both_databases)]
/// async fn a_deleted_step_is_gone(client: Client) { … }
/// ```
///
/// becomes `a_deleted_step_is_gone::sqlite` and `a_deleted_step_is_gone::postgres`, each with an
/// account of its own. An `fn(cli: Cli)` tests commands in the same way. An `async fn(url: String)` gets a
/// database of its own.
macro_rules! on_both_databases {
    ($($test:tt)+) => {
        $crate::kit::tests! {
            cfg(all()), cfg_attr(no_postgres, ignore = "no PostgreSQL here"), $($test)+
        }
    };
}

/// The same for slow tests, which only run with `--include-ignored`.
macro_rules! slow_on_both_databases {
    ($($test:tt)+) => {
        $crate::kit::tests! { ignore = "slow", ignore = "slow", $($test)+ }
    };
}

/// The attribute of a test of something that no statement decides, such as how a request is
/// decoded. It runs once, on SQLite.
macro_rules! on_one_database {
    ($($test:tt)+) => {
        $crate::kit::tests! { cfg(all()), cfg(any()), $($test)+ }
    };
}

/// The attribute of a property, an `async fn(Client, Case)` that holds for every case of a
/// strategy, on both databases:
///
/// ```ignore
/// #[apply(property_on_both_databases)]
/// #[cases(24, vec(change(), 1..10))]
/// async fn links_stay_consistent(client: Client, changes: Vec<Change>) { … }
/// ```
///
/// So many cases are tried unless `PROPTEST_CASES` says otherwise.
macro_rules! property_on_both_databases {
    ($($property:tt)+) => {
        $crate::kit::tests! {
            cfg(all()), cfg_attr(no_postgres, ignore = "no PostgreSQL here"), $($property)+
        }
    };
}

/// The same on SQLite alone.
macro_rules! property_on_one_database {
    ($($property:tt)+) => {
        $crate::kit::tests! { cfg(all()), cfg(any()), $($property)+ }
    };
}

/// Both tests of a function, with an attribute for each. `cfg(all())` always holds, and `cfg(any())` never.
macro_rules! tests {
    (@ $of_sqlite:meta, $of_postgres:meta, $test:ident, $database:ident, $run:block) => {
        mod $test {
            use $crate::kit::databases::Database;

            fn run_on($database: Database) $run

            #[test]
            #[$of_sqlite]
            fn sqlite() {
                run_on(Database::Sqlite);
            }

            #[test]
            #[$of_postgres]
            fn postgres() {
                run_on(Database::Postgres);
            }
        }
    };
    (
        $of_sqlite:meta, $of_postgres:meta,
        $(#[doc = $doc:expr])* #[cases($cases:expr, $strategy:expr)]
        async fn $property:ident $($rest:tt)+
    ) => {
        $(#[doc = $doc])* async fn $property $($rest)+

        $crate::kit::tests! { @ $of_sqlite, $of_postgres, $property, database, {
            use super::*;
            $crate::kit::properties::check(database, $strategy, $cases, super::$property);
        }}
    };
    ($of_sqlite:meta, $of_postgres:meta, $(#[$attribute:meta])* async fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* async fn $test $($rest)+

        $crate::kit::tests! { @ $of_sqlite, $of_postgres, $test, database, {
            $crate::kit::databases::DatabaseTest::run_on(super::$test, database);
        }}
    };
    ($of_sqlite:meta, $of_postgres:meta, $(#[$attribute:meta])* fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* fn $test $($rest)+

        $crate::kit::tests! { @ $of_sqlite, $of_postgres, $test, database, {
            $crate::kit::databases::DatabaseTest::run_on(super::$test, database);
        }}
    };
}

pub(crate) use {
    on_both_databases, on_one_database, property_on_both_databases, property_on_one_database,
    slow_on_both_databases, tests,
};

/// What most modules of tests import.
pub mod prelude {
    pub use super::{at_once::*, client::*, documents::*, failure::*, sample::*};
    pub(crate) use super::{
        on_both_databases, on_one_database, property_on_both_databases, property_on_one_database,
        slow_on_both_databases,
    };
    pub use expertise::proto::v1::*;
    pub use macro_rules_attribute::apply;
    pub use tonic::Code;
}
