//! What the database says, sorted by what is to be done about it. Driver text
//! stays here.

use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlxError};

use crate::domain;

/// How a piece of store work can fail.
#[derive(Debug)]
pub enum Fault {
    /// As the caller is told.
    Domain(domain::Error),
    /// The transaction lost against another and is to be run again.
    Lost,
    /// The database failed.
    Database(DbErr),
    /// A row that no version of this service has written.
    Corrupt(&'static str),
}

impl From<DbErr> for Fault {
    fn from(err: DbErr) -> Self {
        match class(&err) {
            Class::Lost => Self::Lost,
            Class::Away | Class::Fault => Self::Database(err),
        }
    }
}

impl From<domain::Error> for Fault {
    fn from(err: domain::Error) -> Self {
        Self::Domain(err)
    }
}

impl From<domain::Precondition> for Fault {
    fn from(precondition: domain::Precondition) -> Self {
        Self::Domain(precondition.into())
    }
}

impl From<Fault> for domain::Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Domain(err) => err,
            Fault::Lost => Self::WriteConflict,
            Fault::Corrupt(what) => Self::Internal(format!("unreadable row: {what}")),
            Fault::Database(err) => {
                tracing::debug!(driver = %err, "database");
                match class(&err) {
                    Class::Away => Self::Unavailable,
                    Class::Lost => Self::WriteConflict,
                    Class::Fault => Self::Internal(describe(&err)),
                }
            }
        }
    }
}

enum Class {
    /// Another transaction was in the way.
    Lost,
    /// The database cannot be reached or cannot write at present.
    Away,
    /// Anything else.
    Fault,
}

fn class(err: &DbErr) -> Class {
    match err {
        DbErr::ConnectionAcquire(ConnAcquireErr::Timeout | ConnAcquireErr::ConnectionClosed) => {
            Class::Away
        }
        DbErr::Conn(RuntimeErr::SqlxError(err))
        | DbErr::Exec(RuntimeErr::SqlxError(err))
        | DbErr::Query(RuntimeErr::SqlxError(err)) => sqlx_class(err),
        _ => Class::Fault,
    }
}

fn sqlx_class(err: &SqlxError) -> Class {
    match err {
        SqlxError::Database(err) => err.code().map_or(Class::Fault, |code| code_class(&code)),
        SqlxError::Io(_)
        | SqlxError::Tls(_)
        | SqlxError::Protocol(_)
        | SqlxError::PoolTimedOut
        | SqlxError::PoolClosed
        | SqlxError::WorkerCrashed
        | SqlxError::BeginFailed => Class::Away,
        _ => Class::Fault,
    }
}

/// Sorts a five-character SQLSTATE, or a numeric extended SQLite code.
fn code_class(code: &str) -> Class {
    match code {
        // Serialisation failure, deadlock, lock not available.
        "40001" | "40P01" | "55P03" => return Class::Lost,
        // A read-only transaction: the server has become a standby.
        "25006" => return Class::Away,
        _ => {}
    }
    if code.len() == 5 {
        return match code.get(..2) {
            // Connection failure, out of resources, operator intervention, I/O.
            Some("08" | "53" | "57" | "58") => Class::Away,
            _ => Class::Fault,
        };
    }
    match code.parse::<u32>().map(|code| code & 0xff) {
        // SQLITE_BUSY, SQLITE_LOCKED
        Ok(5 | 6) => Class::Lost,
        // SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN
        Ok(8 | 10 | 13 | 14) => Class::Away,
        _ => Class::Fault,
    }
}

/// A class of fault for the log: codes, no driver text.
fn describe(err: &DbErr) -> String {
    match err {
        DbErr::Conn(RuntimeErr::SqlxError(err))
        | DbErr::Exec(RuntimeErr::SqlxError(err))
        | DbErr::Query(RuntimeErr::SqlxError(err)) => match &**err {
            SqlxError::Database(err) => {
                format!("database code {}", err.code().unwrap_or_default())
            }
            SqlxError::ColumnDecode { index, .. } => format!("undecodable column {index}"),
            _ => "database driver".to_owned(),
        },
        DbErr::Type(_) | DbErr::TryIntoErr { .. } => "unexpected column type".to_owned(),
        _ => "database layer".to_owned(),
    }
}
