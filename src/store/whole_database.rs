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
    copy::copy,
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
    /// What the database's error code means. Never the driver's text, which quotes rows.
    #[error(
        "the database failed: {0}; fix the cause and repeat the command, for a copy with a new \
         database"
    )]
    Database(String),
    #[error("{0}")]
    Refused(String),
}

impl From<DbErr> for WholeDatabaseError {
    fn from(error: DbErr) -> Self {
        Self::Database(error::describe(&error))
    }
}

impl WholeDatabaseError {
    pub fn is_wrong_setting(&self) -> bool {
        matches!(self, Self::Open(error) | Self::Source(error) if error.is_wrong_setting())
    }
}

/// Opens a database, whose schema may be created or brought up to date.
async fn open(database: &DatabaseUrl, migrate: bool) -> Result<Connections, OpenError> {
    connect::connect(database, &ConnectOptions::for_command(migrate)).await
}
