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
pub mod postgres;
pub mod properties;
pub mod random_edits;
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
pub mod terminal;
pub mod tokens;
pub mod transcript;

/// The attribute of a test that runs on both databases:
///
/// ```ignore
/// #[apply(on_both_databases)]
/// async fn a_deleted_step_is_gone(client: Client) { … }
/// ```
///
/// becomes `a_deleted_step_is_gone::sqlite` and `a_deleted_step_is_gone::postgres`, each with an
/// account of its own. An `fn(cli: Cli)` tests commands in the same way.
macro_rules! on_both_databases {
    ($(#[$attribute:meta])* $visibility:vis async fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* $visibility async fn $test $($rest)+
        $crate::kit::tests_on_both_databases! {
            $test, cfg(all()), cfg_attr(no_postgres, ignore = "no PostgreSQL here")
        }
    };
    ($(#[$attribute:meta])* $visibility:vis fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* $visibility fn $test $($rest)+
        $crate::kit::tests_on_both_databases! {
            $test, cfg(all()), cfg_attr(no_postgres, ignore = "no PostgreSQL here")
        }
    };
}

pub(crate) use on_both_databases;

/// The same for slow tests, which only run with `--include-ignored`.
macro_rules! slow_on_both_databases {
    ($(#[$attribute:meta])* $visibility:vis async fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* $visibility async fn $test $($rest)+
        $crate::kit::tests_on_both_databases! { $test, ignore = "slow", ignore = "slow" }
    };
    ($(#[$attribute:meta])* $visibility:vis fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* $visibility fn $test $($rest)+
        $crate::kit::tests_on_both_databases! { $test, ignore = "slow", ignore = "slow" }
    };
}

pub(crate) use slow_on_both_databases;

/// Both tests of a function, with an attribute for each. `cfg(all())` always holds, and `cfg(any())` never.
macro_rules! tests_on_both_databases {
    ($test:ident, $of_sqlite:meta, $of_postgres:meta) => {
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
    };
}

pub(crate) use tests_on_both_databases;

/// The attribute of a test of something that no statement decides, such as how a request is
/// decoded. It runs once, on SQLite.
macro_rules! on_one_database {
    ($(#[$attribute:meta])* $visibility:vis async fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* $visibility async fn $test $($rest)+
        $crate::kit::tests_on_both_databases! { $test, cfg(all()), cfg(any()) }
    };
    ($(#[$attribute:meta])* $visibility:vis fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* $visibility fn $test $($rest)+
        $crate::kit::tests_on_both_databases! { $test, cfg(all()), cfg(any()) }
    };
}

pub(crate) use on_one_database;

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
    (
        $(#[doc = $doc:expr])* #[cases($cases:expr, $strategy:expr)]
        $visibility:vis async fn $property:ident $($rest:tt)+
    ) => {
        $(#[doc = $doc])* $visibility async fn $property $($rest)+

        $crate::kit::tests_of_a_property! {
            $property, $cases, $strategy, cfg_attr(no_postgres, ignore = "no PostgreSQL here")
        }
    };
}

pub(crate) use property_on_both_databases;

/// The same on SQLite alone.
macro_rules! property_on_one_database {
    (
        $(#[doc = $doc:expr])* #[cases($cases:expr, $strategy:expr)]
        $visibility:vis async fn $property:ident $($rest:tt)+
    ) => {
        $(#[doc = $doc])* $visibility async fn $property $($rest)+

        $crate::kit::tests_of_a_property! { $property, $cases, $strategy, cfg(any()) }
    };
}

pub(crate) use property_on_one_database;

macro_rules! tests_of_a_property {
    ($property:ident, $cases:expr, $strategy:expr, $of_postgres:meta) => {
        mod $property {
            use super::*;
            use $crate::kit::{databases::Database, properties};

            #[test]
            fn sqlite() {
                properties::check(Database::Sqlite, $strategy, $cases, super::$property);
            }

            #[test]
            #[$of_postgres]
            fn postgres() {
                properties::check(Database::Postgres, $strategy, $cases, super::$property);
            }
        }
    };
}

pub(crate) use tests_of_a_property;

/// The attribute of a test that needs a database of its own, an `async fn(url: String)`. It runs
/// on both kinds of database.
macro_rules! on_own_databases {
    ($(#[$attribute:meta])* $visibility:vis async fn $test:ident $($rest:tt)+) => {
        $(#[$attribute])* $visibility async fn $test $($rest)+

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
    };
}

pub(crate) use on_own_databases;

/// What most modules of tests import.
pub mod prelude {
    pub use super::{at_once::*, client::*, documents::*, failure::*, sample::*};
    pub(crate) use super::{
        on_both_databases, on_one_database, on_own_databases, property_on_both_databases,
        property_on_one_database, slow_on_both_databases,
    };
    pub use expertise::proto::v1::*;
    pub use macro_rules_attribute::apply;
    pub use tonic::Code;
}
