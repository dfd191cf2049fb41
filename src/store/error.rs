//! Errors of the database, classified by how the service reacts to them. The driver's text never
//! leaves this module, because it may quote stored values.

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlxError};
use sqlx::error::DatabaseError;
use tracing::{debug, warn};

use super::connect::refusal;
use crate::domain::{self, Outage, ids::TaskId};

/// How often the log repeats a lasting outage.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub enum StoreError {
    /// An error for the caller.
    Domain(domain::Error),
    /// A concurrent transaction conflicted. A write is retried; a read has waited for a lock as long as
    /// allowed.
    Conflict,
    /// Another transaction held a lock for longer than this one waits. It is retried like a
    /// conflict.
    Locked,
    /// The database cannot be used at present.
    Unavailable(Outage),
    /// The database refuses new connections, for this reason.
    Refused(Cow<'static, str>),
    /// A row with an invalid value in this column.
    Corrupt(&'static str),
    /// The call would read this many bytes of large rows and has no permit for that. It waits for one
    /// and is retried. See [`LARGE_BYTES`](super::read::LARGE_BYTES).
    NeedsLargeReadPermit(usize),
    /// The write must create checkpoints of the guides of these tasks, but has not locked the
    /// guides. It is retried, and locks them first, with the other tasks that it has locked.
    NeedsCheckpoints {
        guides: Vec<TaskId>,
        others: Vec<TaskId>,
    },
}

impl From<DbErr> for StoreError {
    fn from(err: DbErr) -> Self {
        let error = classify(&err);
        if let Some(Self::Unavailable(_)) = error {
            debug!(cause = describe(&err), "the database cannot be used");
        }
        error.unwrap_or_else(|| domain::Error::Internal(describe(&err)).into())
    }
}

impl StoreError {
    /// The error of a failed COMMIT. If the connection was lost during the COMMIT, the outcome of
    /// the write is unknown.
    pub fn from_commit(err: DbErr) -> Self {
        // Without a connection, no COMMIT was sent.
        let sent = !matches!(err, DbErr::ConnectionAcquire(_) | DbErr::Conn(_));
        match Self::from(err) {
            Self::Unavailable(Outage::Unreachable | Outage::Disk) if sent => {
                Self::Unavailable(Outage::OutcomeUnknown)
            }
            error => error,
        }
    }
}

impl From<domain::Error> for StoreError {
    fn from(err: domain::Error) -> Self {
        Self::Domain(err)
    }
}

impl From<domain::Precondition> for StoreError {
    fn from(precondition: domain::Precondition) -> Self {
        Self::Domain(precondition.into())
    }
}

impl From<StoreError> for domain::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Domain(err) => err,
            // From a read. A write returns `WriteConflict` itself after its last attempt.
            StoreError::Conflict | StoreError::Locked => {
                warn_at_intervals(
                    "a read waited too long for a lock: find and end the session that holds it; on \
                     PostgreSQL, pg_locks and pg_stat_activity show a session with LOCK TABLE or \
                     ALTER TABLE",
                );
                Self::Unavailable(Outage::Locked)
            }
            StoreError::Refused(why) => {
                warn_at_intervals(&format!("the database refuses connections: {why}"));
                Self::Unavailable(Outage::Unreachable)
            }
            StoreError::Unavailable(outage) => {
                warn_at_intervals(outage_explanation(outage));
                Self::Unavailable(outage)
            }
            StoreError::Corrupt(what) => Self::Internal(format!("invalid value in a row: {what}")),
            // A call with a permit never fails with this.
            StoreError::NeedsLargeReadPermit(_) => {
                Self::Internal("large texts were read without a permit".to_owned())
            }
            // Only writes that are retried fail with this.
            StoreError::NeedsCheckpoints { .. } => {
                Self::Internal("a checkpoint was not kept".to_owned())
            }
        }
    }
}

/// Logs a warning at most once per [`LOG_INTERVAL`], because every call meets the same outage.
fn warn_at_intervals(message: &str) {
    static LOGGED: Mutex<Vec<(String, Instant)>> = Mutex::new(Vec::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    logged.retain(|(_, at)| at.elapsed() < LOG_INTERVAL);
    if logged.iter().all(|(other, _)| *other != message) {
        logged.push((message.to_owned(), Instant::now()));
        warn!("{message}");
    }
}

/// Maps an error to a reaction; `None` for bugs and corruption.
fn classify(err: &DbErr) -> Option<StoreError> {
    Some(match err {
        DbErr::ConnectionAcquire(ConnAcquireErr::Timeout) => {
            StoreError::Unavailable(Outage::NoConnection)
        }
        // Any failure to connect is an outage, because the caller can only wait.
        DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed) | DbErr::Conn(_) => {
            match database_error(err).and_then(refusal) {
                Some(refusal) => StoreError::Refused(refusal.why),
                None => StoreError::Unavailable(Outage::Unreachable),
            }
        }
        _ => match sqlx_error(err)? {
            SqlxError::Database(err) => classify_code(&err.code()?)?,
            SqlxError::Io(_)
            | SqlxError::Tls(_)
            | SqlxError::Protocol(_)
            | SqlxError::PoolTimedOut
            | SqlxError::PoolClosed
            | SqlxError::WorkerCrashed
            | SqlxError::BeginFailed => StoreError::Unavailable(Outage::Unreachable),
            _ => return None,
        },
    })
}

/// Classifies a SQLSTATE of five characters or a numeric SQLite code.
fn classify_code(code: &str) -> Option<StoreError> {
    Some(match code {
        // Serialization failure; deadlock; a key that a concurrent transaction inserted.
        "40001" | "40P01" | "23505" => StoreError::Conflict,
        // Lock not available.
        "55P03" => StoreError::Locked,
        // A read-only transaction: the server is a standby, or the database is set to read-only.
        "25006" => StoreError::Unavailable(Outage::ReadOnly),
        // SQLite reports SQLITE_IOERR_WRITE and SQLITE_IOERR_SHMSIZE when a quota or a file size
        // limit is reached.
        "53100" | "778" | "4874" => StoreError::Unavailable(Outage::Full),
        // Timeouts that end the connection of a transaction.
        "25P03" | "25P04" => StoreError::Unavailable(Outage::Unreachable),
        // Query canceled.
        "57014" => StoreError::Unavailable(Outage::StatementTimeout),
        _ => match (primary_sqlite_code(code), code.get(..2).unwrap_or_default()) {
            // SQLITE_BUSY, SQLITE_LOCKED
            (Some(5 | 6), _) => StoreError::Locked,
            // SQLITE_READONLY
            (Some(8), _) => StoreError::Unavailable(Outage::ReadOnly),
            // SQLITE_FULL
            (Some(13), _) => StoreError::Unavailable(Outage::Full),
            // SQLITE_IOERR, SQLITE_CANTOPEN
            (Some(10 | 14), _) => StoreError::Unavailable(Outage::Disk),
            // Connection failure, out of resources, operator intervention, I/O.
            (None, "08" | "53" | "57" | "58") => StoreError::Unavailable(Outage::Unreachable),
            _ => return None,
        },
    })
}

/// The primary code of an SQLite error; `None` for PostgreSQL.
pub(super) fn primary_sqlite_code(code: &str) -> Option<u32> {
    let is_sqlite = code.len() < 5;
    let code: u32 = code.parse().ok().filter(|_| is_sqlite)?;
    Some(code & 0xff)
}

/// Whether the database could not be reached, or ended the connection.
pub(super) fn is_connection_lost(err: &DbErr) -> bool {
    matches!(
        classify(err),
        Some(
            StoreError::Refused(_)
                | StoreError::Unavailable(Outage::Unreachable | Outage::NoConnection)
        )
    )
}

fn sqlx_error(err: &DbErr) -> Option<&SqlxError> {
    match err {
        DbErr::Conn(RuntimeErr::SqlxError(err))
        | DbErr::Exec(RuntimeErr::SqlxError(err))
        | DbErr::Query(RuntimeErr::SqlxError(err)) => Some(err),
        _ => None,
    }
}

/// The error that the database itself reports.
pub(super) fn database_error(err: &DbErr) -> Option<&dyn DatabaseError> {
    sqlx_error(err)?.as_database_error()
}

/// Describes an error for the log by an explanation, or by codes and names of the schema.
pub(super) fn describe(err: &DbErr) -> String {
    if let Some(err) = database_error(err) {
        let code = err.code().unwrap_or_default();
        return match (explanation(&code), err.constraint()) {
            (Some(explanation), _) => explanation.to_owned(),
            (None, Some(constraint)) => format!("database code {code} of {constraint}"),
            (None, None) => format!("database code {code}"),
        };
    }
    match (sqlx_error(err), err) {
        (Some(SqlxError::ColumnDecode { index, .. }), _) => format!("undecodable column {index}"),
        (Some(SqlxError::Io(err)), _) => format!("I/O error: {}", err.kind()),
        (Some(SqlxError::Tls(_)), _) => "TLS error".to_owned(),
        (Some(_), _) => "database driver".to_owned(),
        (None, DbErr::ConnectionAcquire(_)) => "no connection".to_owned(),
        (None, DbErr::Type(_) | DbErr::TryIntoErr { .. }) => "unexpected column type".to_owned(),
        (None, DbErr::Json(_)) => "a column has JSON that cannot be read".to_owned(),
        (None, _) => "database layer".to_owned(),
    }
}

/// What the code of an error means to an operator, and what to do.
pub(super) fn explanation(code: &str) -> Option<&'static str> {
    Some(match (code, primary_sqlite_code(code)) {
        // duplicate_prepared_statement, invalid_sql_statement_name
        ("42P05" | "26000", _) => {
            "another client uses the same connection, as happens with PgBouncer and \
             pool_mode=transaction: use PgBouncer 1.21 or later with max_prepared_statements above \
             0, or pool_mode=session"
        }
        // undefined_table
        ("42P01", _) => "a table is missing: the database was replaced, or emptied",
        // insufficient_privilege
        ("42501", _) => {
            "the database user lacks a permission on a table: grant it SELECT, INSERT, UPDATE and \
             DELETE on all tables"
        }
        // SQLITE_NOMEM
        (_, Some(7)) => "out of memory: give the process more",
        // SQLITE_CORRUPT
        (_, Some(11)) => "the SQLite file is damaged: restore a backup, or use another file",
        // SQLITE_NOTADB
        (_, Some(26)) => "it is not an SQLite database: use another file, or restore a backup",
        _ => match classify_code(code)? {
            StoreError::Locked => {
                "another process has locked it: stop that process, or use another database"
            }
            StoreError::Unavailable(outage) => outage_explanation(outage),
            _ => return None,
        },
    })
}

fn outage_explanation(outage: Outage) -> &'static str {
    match outage {
        Outage::Unreachable => {
            "the database refuses or ends connections: check that it runs and can be reached"
        }
        Outage::NoConnection => {
            "a call waited too long for a connection to the database: unless the log says that it \
             does not answer, all connections of this server are in use, or all for writes: check \
             what uses them, or, on PostgreSQL, raise EXPERTISE_DATABASE_MAX_CONNECTIONS"
        }
        Outage::Locked => {
            "a write waited too long for its turn on SQLite: another process locks the file, or \
             writes arrive faster than the disk commits them"
        }
        Outage::ReadOnly => {
            "the database is read-only or a standby, and refuses writes: use one that can be written"
        }
        Outage::Full => {
            "the disk of the database is full, so writes are refused: free some space, or use another"
        }
        Outage::Disk => {
            "the database cannot read or write its disk: check the disk, and the limit of open files"
        }
        Outage::OutcomeUnknown => {
            "the connection to the database was lost during a COMMIT: the write may be stored"
        }
        Outage::StatementTimeout => {
            "the database canceled a statement: raise statement_timeout of the user with ALTER ROLE \
             … SET statement_timeout, or ask who canceled it"
        }
    }
}
