//! What every behaviour stands on: a server on each database, a fresh account
//! a test, sample resources, and assertions about refusals.

#[path = "../kit/mod.rs"]
pub mod kit;
pub use kit::{pgbouncer, postgres as cluster, scratch};
pub mod contract;
pub mod databases;
pub mod documents;
pub mod failure;
pub mod laws;
pub mod links;
pub mod raw;
pub mod sample;
pub mod shown;
pub mod statements;
pub mod stream;
pub mod tenancy;
pub mod world;

/// Registers behaviours: each named `async fn(World)` of the module becomes two
/// tests, one on SQLite and one on PostgreSQL. A behaviour left out of the list
/// is dead code, which the compiler points out.
macro_rules! on_both_databases {
    ($($behaviour:ident),+ $(,)?) => {$(
        mod $behaviour {
            #[test]
            fn sqlite() {
                $crate::harness::databases::Database::Sqlite.run(super::$behaviour);
            }

            #[test]
            fn postgres() {
                $crate::harness::databases::Database::Postgres.run(super::$behaviour);
            }
        }
    )+};
}

/// Registers laws: each named `async fn(World, Case)` holds for every case that
/// the strategy makes, on both databases. The number is how many cases are
/// tried unless `PROPTEST_CASES` says otherwise.
macro_rules! laws_on_both_databases {
    ($($law:ident: $strategy:expr, $cases:expr);+ $(;)?) => {$(
        mod $law {
            use super::*;

            #[test]
            fn sqlite() {
                $crate::harness::laws::hold(
                    $crate::harness::databases::Database::Sqlite,
                    $strategy,
                    $cases,
                    super::$law,
                );
            }

            #[test]
            fn postgres() {
                $crate::harness::laws::hold(
                    $crate::harness::databases::Database::Postgres,
                    $strategy,
                    $cases,
                    super::$law,
                );
            }
        }
    )+};
}

pub(crate) use {laws_on_both_databases, on_both_databases};

/// What a behaviour's module imports.
pub mod prelude {
    pub(crate) use super::on_both_databases;
    pub use super::{documents::*, failure::*, sample::*, world::*};
    pub use expertise::proto::v1::*;
    pub use tonic::Code;
}
