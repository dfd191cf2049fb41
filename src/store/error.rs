//! Errors of the database, classified by how the service reacts. The driver's text stays
//! in this module.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlxError};
use tracing::{debug, warn};

use super::connect::{ConnectMessage, SHARED_CONNECTION, is_shared_connection, refusal};
use crate::domain::{self, Outage};

/// How often the log repeats a lasting outage.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Why a read or write of the store fails.
#[derive(Debug)]
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
    Refused(ConnectMessage),
    /// Any other error of the database.
    Database(DbErr),
    /// A row with an invalid value in this column.
    Corrupt(&'static str),
    /// The call would read this many bytes of large rows and has no permit for that. It waits for one
    /// and is retried. See [`LARGE_BYTES`](super::read::LARGE_BYTES).
    NeedsLargeReadPermit(usize),
}

impl From<DbErr> for StoreError {
    fn from(err: DbErr) -> Self {
        if let Some(why) = refusal(&err) {
            return Self::Refused(why);
        }
        match class(&err) {
            ErrorClass::Conflict => Self::Conflict,
            ErrorClass::Locked => Self::Locked,
            ErrorClass::Unavailable(outage) => {
                debug!(cause = describe(&err), "the database cannot be used");
                Self::Unavailable(outage)
            }
            ErrorClass::Other => Self::Database(err),
        }
    }
}

impl StoreError {
    /// The same failure for another write of the same COMMIT.
    pub fn shared(&self) -> Self {
        match self {
            Self::Conflict => Self::Conflict,
            Self::Locked => Self::Locked,
            Self::Unavailable(outage) => Self::Unavailable(*outage),
            Self::Refused(why) => Self::Refused(why.clone()),
            Self::Corrupt(what) => Self::Corrupt(what),
            Self::NeedsLargeReadPermit(bytes) => Self::NeedsLargeReadPermit(*bytes),
            Self::Domain(_) | Self::Database(_) => {
                Self::Domain(domain::Error::Internal("a shared COMMIT failed".to_owned()))
            }
        }
    }

    /// The error of a failed COMMIT. If the connection is lost meanwhile, the write may
    /// have been committed.
    pub fn from_commit(err: DbErr) -> Self {
        // Without a connection, no COMMIT was sent.
        let sent = !matches!(err, DbErr::ConnectionAcquire(_) | DbErr::Conn(_));
        match Self::from(err) {
            error if !sent => error,
            Self::Unavailable(Outage::Unreachable | Outage::Disk) => {
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
                warn_at_intervals(READ_LOCKED);
                Self::Unavailable(Outage::Locked)
            }
            StoreError::Refused(why) => {
                warn_at_intervals(&format!("the database refuses connections: {why}"));
                Self::Unavailable(Outage::Unreachable)
            }
            StoreError::Unavailable(outage) => {
                warn_at_intervals(outage_message(outage));
                Self::Unavailable(outage)
            }
            StoreError::Corrupt(what) => Self::Internal(format!("invalid value in a row: {what}")),
            StoreError::Database(err) => Self::Internal(describe(&err)),
            // A call with a permit never fails with this.
            StoreError::NeedsLargeReadPermit(_) => {
                Self::Internal("large texts were read without a permit".to_owned())
            }
        }
    }
}

/// What the log says when a read gives up its wait for a lock.
const READ_LOCKED: &str = "a read waited too long for a lock: find what holds it and end it; on \
    PostgreSQL, pg_locks and pg_stat_activity show a session with LOCK TABLE or ALTER TABLE";

const STATEMENT_TIMEOUT: &str = "the database cancelled a statement: raise statement_timeout of the \
    user with ALTER ROLE … SET statement_timeout, or ask who cancelled it";

/// SQLSTATE query_canceled.
const QUERY_CANCELED: &str = "57014";

fn outage_message(outage: Outage) -> &'static str {
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
        Outage::ReadOnly => "the database is read-only or a standby: writes are refused",
        Outage::Full => "the disk of the database is full: writes are refused",
        Outage::Disk => "the database cannot read or write its disk",
        Outage::OutcomeUnknown => {
            "the connection to the database was lost during a COMMIT: the write may be stored"
        }
        Outage::StatementTimeout => STATEMENT_TIMEOUT,
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

/// How an error of the database is treated.
enum ErrorClass {
    /// A concurrent transaction conflicted.
    Conflict,
    /// A lock was held for too long.
    Locked,
    /// The database cannot be used at present.
    Unavailable(Outage),
    /// Anything else.
    Other,
}

fn class(err: &DbErr) -> ErrorClass {
    match err {
        DbErr::ConnectionAcquire(ConnAcquireErr::Timeout) => {
            ErrorClass::Unavailable(Outage::NoConnection)
        }
        // A failure to connect is an outage whatever the cause: the caller can only
        // wait.
        DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed) | DbErr::Conn(_) => {
            ErrorClass::Unavailable(Outage::Unreachable)
        }
        DbErr::Exec(RuntimeErr::SqlxError(err)) | DbErr::Query(RuntimeErr::SqlxError(err)) => {
            sqlx_class(err)
        }
        _ => ErrorClass::Other,
    }
}

fn sqlx_class(err: &SqlxError) -> ErrorClass {
    match err {
        SqlxError::Database(err) => err
            .code()
            .map_or(ErrorClass::Other, |code| code_class(&code)),
        SqlxError::Io(_)
        | SqlxError::Tls(_)
        | SqlxError::Protocol(_)
        | SqlxError::PoolTimedOut
        | SqlxError::PoolClosed
        | SqlxError::WorkerCrashed
        | SqlxError::BeginFailed => ErrorClass::Unavailable(Outage::Unreachable),
        _ => ErrorClass::Other,
    }
}

/// Classifies a SQLSTATE of five characters or a numeric SQLite code.
fn code_class(code: &str) -> ErrorClass {
    match code.len() {
        5 => state_class(code),
        _ => sqlite_class(code.parse().unwrap_or_default()),
    }
}

fn state_class(state: &str) -> ErrorClass {
    match state {
        // Serialization failure; deadlock; a key that a concurrent transaction inserted.
        "40001" | "40P01" | "23505" => ErrorClass::Conflict,
        // Lock not available.
        "55P03" => ErrorClass::Locked,
        // A read-only transaction: the server is a standby, or the database is
        // set to read-only.
        "25006" => ErrorClass::Unavailable(Outage::ReadOnly),
        "53100" => ErrorClass::Unavailable(Outage::Full),
        // Time-outs that end the connection of a transaction.
        "25P03" | "25P04" => ErrorClass::Unavailable(Outage::Unreachable),
        QUERY_CANCELED => ErrorClass::Unavailable(Outage::StatementTimeout),
        _ => match state.get(..2) {
            // Connection failure, out of resources, operator intervention, I/O.
            Some("08" | "53" | "57" | "58") => ErrorClass::Unavailable(Outage::Unreachable),
            _ => ErrorClass::Other,
        },
    }
}

fn sqlite_class(code: u32) -> ErrorClass {
    /// SQLITE_IOERR_WRITE and SQLITE_IOERR_SHMSIZE, which SQLite reports when a quota or a
    /// limit of the file size is reached.
    const FULL: [u32; 2] = [778, 4874];
    if FULL.contains(&code) {
        return ErrorClass::Unavailable(Outage::Full);
    }
    match code & 0xff {
        // SQLITE_BUSY, SQLITE_LOCKED
        5 | 6 => ErrorClass::Locked,
        // SQLITE_READONLY
        8 => ErrorClass::Unavailable(Outage::ReadOnly),
        // SQLITE_FULL
        13 => ErrorClass::Unavailable(Outage::Full),
        // SQLITE_IOERR, SQLITE_CANTOPEN
        10 | 14 => ErrorClass::Unavailable(Outage::Disk),
        _ => ErrorClass::Other,
    }
}

/// Whether the database could not be reached, or ended the connection.
pub(super) fn is_connection_lost(err: &DbErr) -> bool {
    matches!(
        class(err),
        ErrorClass::Unavailable(Outage::Unreachable | Outage::NoConnection)
    )
}

/// Describes an error for the log by codes and names of the schema. The driver's text is
/// left out, as it may quote stored values.
pub(super) fn describe(err: &DbErr) -> String {
    match err {
        DbErr::Conn(RuntimeErr::SqlxError(err))
        | DbErr::Exec(RuntimeErr::SqlxError(err))
        | DbErr::Query(RuntimeErr::SqlxError(err)) => describe_sqlx(err),
        DbErr::ConnectionAcquire(_) => "no connection".to_owned(),
        DbErr::Type(_) | DbErr::TryIntoErr { .. } => "unexpected column type".to_owned(),
        _ => "database layer".to_owned(),
    }
}

/// Whether a code is SQLITE_CORRUPT or SQLITE_NOTADB, extended or not.
fn is_damage(code: &str) -> bool {
    let is_sqlite = code.len() < 5;
    is_sqlite
        && code
            .parse()
            .is_ok_and(|code: u32| matches!(code & 0xff, 11 | 26))
}

fn describe_sqlx(err: &SqlxError) -> String {
    match err {
        SqlxError::Database(err) => {
            let code = err.code().unwrap_or_default();
            if is_damage(&code) {
                return "the SQLite file is damaged: restore a backup, or use another file"
                    .to_owned();
            }
            if is_shared_connection(&code) {
                return SHARED_CONNECTION.to_owned();
            }
            if code == QUERY_CANCELED {
                return STATEMENT_TIMEOUT.to_owned();
            }
            if let ErrorClass::Unavailable(Outage::Full) = code_class(&code) {
                return "its disk is full".to_owned();
            }
            // Undefined table.
            if code == "42P01" {
                return "a table is missing: the database was replaced, or emptied".to_owned();
            }
            // Insufficient privilege.
            if code == "42501" {
                return "no permission: the user of the database lacks one on a table; grant it \
                        SELECT, INSERT, UPDATE and DELETE on all tables"
                    .to_owned();
            }
            match err.constraint() {
                Some(constraint) => format!("database code {code} of {constraint}"),
                None => format!("database code {code}"),
            }
        }
        SqlxError::ColumnDecode { index, .. } => format!("undecodable column {index}"),
        SqlxError::Io(err) => format!("I/O error: {}", err.kind()),
        SqlxError::Tls(_) => "TLS error".to_owned(),
        SqlxError::PoolTimedOut => "no connection in time".to_owned(),
        _ => "database driver".to_owned(),
    }
}
