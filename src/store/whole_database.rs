//! Commands on a whole database that need no server: list and delete accounts, and copy the database.
//!
//! *Invariant:* except for the list of accounts and the copy, every statement belongs to an account.

mod accounts;
mod copy;

use sea_orm::DbErr;

use super::{
    connect::{self, ConnectOptions, Connections, OpenError},
    error,
};
use crate::config::DatabaseUrl;

pub use self::{
    accounts::{accounts, delete_account},
    copy::{CopiedTable, copy},
};

/// Why a command on a whole database failed. Its text is one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum WholeDatabaseError {
    /// The database of the settings cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The source of a copy cannot be opened.
    #[error("{}", .0.to_string().replace("EXPERTISE_DATABASE_URL", "--from"))]
    Source(OpenError),
    /// The source of a copy is distributed over the nodes of Citus.
    #[error(
        "--from names a database that is distributed over several nodes, which have no common state to \
         copy: move its accounts with `export --all` and `apply`"
    )]
    DistributedSource,
    /// A statement failed.
    #[error(
        "the database failed: {0}; fix the cause and repeat the command, for a copy with a new database"
    )]
    Database(String),
    /// The target of a copy has rows already.
    #[error("the table {0} has rows already: copy into a new database")]
    NotEmpty(&'static str),
    /// The copy of a table has a different number of rows.
    #[error(
        "the table {table} should have {expected} rows after the copy and has {found}: stop all \
         servers on the new database, and repeat the copy into an empty one"
    )]
    OtherCount {
        /// The table.
        table: &'static str,
        /// The rows of the source.
        expected: u64,
        /// The rows of the copy.
        found: u64,
    },
}

impl From<DbErr> for WholeDatabaseError {
    fn from(error: DbErr) -> Self {
        Self::Database(error::describe(&error))
    }
}

impl WholeDatabaseError {
    /// Whether a setting must change.
    pub fn is_wrong_setting(&self) -> bool {
        match self {
            Self::Open(error) | Self::Source(error) => error.is_wrong_setting(),
            Self::DistributedSource
            | Self::Database(_)
            | Self::NotEmpty(_)
            | Self::OtherCount { .. } => false,
        }
    }
}

/// Opens a database, whose schema may be created or brought up to date.
async fn open(database: &DatabaseUrl, migrate: bool) -> Result<Connections, OpenError> {
    connect::connect(database, &ConnectOptions::for_command(migrate)).await
}
