//! Errors of the database, sorted by what is to be done about them. Driver text goes no
//! further.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlxError};
use tracing::{debug, warn};

use crate::domain::{self, Outage};

/// How often the log repeats that an outage goes on.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// How store work can fail.
#[derive(Debug)]
pub enum StoreError {
    /// As the caller is logged.
    Domain(domain::Error),
    /// The transaction lost against another and is to be run again.
    Conflict,
    /// The database cannot serve at present.
    Unavailable(Outage),
    /// The database failed.
    Database(DbErr),
    /// A row that no version of this service has written.
    Corrupt(&'static str),
}

impl From<DbErr> for StoreError {
    fn from(err: DbErr) -> Self {
        match class(&err) {
            Class::Conflict => Self::Conflict,
            Class::Unavailable(outage) => {
                debug!(cause = describe(&err), "the database is out");
                Self::Unavailable(outage)
            }
            Class::Other => Self::Database(err),
        }
    }
}

impl StoreError {
    /// The same failure for another write of the same COMMIT.
    pub fn shared(&self) -> Self {
        match self {
            Self::Conflict => Self::Conflict,
            Self::Unavailable(outage) => Self::Unavailable(*outage),
            Self::Corrupt(what) => Self::Corrupt(what),
            Self::Domain(_) | Self::Database(_) => {
                Self::Domain(domain::Error::Internal("a shared COMMIT failed".to_owned()))
            }
        }
    }

    /// What it means when a COMMIT fails. A connection that is lost then leaves
    /// open whether the database heard it.
    pub fn of_commit(err: DbErr) -> Self {
        // Without a connection nothing was sent.
        let sent = !matches!(err, DbErr::ConnectionAcquire(_) | DbErr::Conn(_));
        match Self::from(err) {
            fault if !sent => fault,
            Self::Unavailable(Outage::Away | Outage::Disk) => Self::Unavailable(Outage::Undecided),
            fault => fault,
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
    fn from(fault: StoreError) -> Self {
        match fault {
            StoreError::Domain(err) => err,
            StoreError::Conflict => Self::WriteConflict,
            StoreError::Unavailable(outage) => {
                log_outage(outage);
                Self::Unavailable(outage)
            }
            StoreError::Corrupt(what) => Self::Internal(format!("unreadable row: {what}")),
            StoreError::Database(err) => Self::Internal(describe(&err)),
        }
    }
}

/// Logs an outage, at most once in [`LOG_INTERVAL`], as every call meets it.
fn log_outage(outage: Outage) {
    static LOGGED: Mutex<Vec<(Outage, Instant)>> = Mutex::new(Vec::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    logged.retain(|(_, at)| at.elapsed() < LOG_INTERVAL);
    if logged.iter().any(|(other, _)| *other == outage) {
        return;
    }
    logged.push((outage, Instant::now()));
    match outage {
        Outage::Away => warn!("the database ends connections or does not take them"),
        Outage::Busy => warn!(
            "no connection to the database within two seconds: it takes none, or calls hold them \
             all; see what holds them, or raise EXPERTISE_DATABASE_MAX_CONNECTIONS"
        ),
        Outage::ReadOnly => warn!("the database takes no writes: it is read-only or a standby"),
        Outage::Full => warn!("no room on the disk of the database: writes are refused"),
        Outage::Disk => warn!("the database cannot read or write its disk"),
        Outage::Undecided => warn!("the database went away while a write was stored"),
    }
}

enum Class {
    /// Another transaction was in the way.
    Conflict,
    /// The database cannot serve at present.
    Unavailable(Outage),
    /// Anything else.
    Other,
}

fn class(err: &DbErr) -> Class {
    match err {
        DbErr::ConnectionAcquire(ConnAcquireErr::Timeout) => Class::Unavailable(Outage::Busy),
        // Whatever keeps us from having a connection, a refused password as well
        // as a dead host, the caller can do nothing but wait.
        DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed) | DbErr::Conn(_) => {
            Class::Unavailable(Outage::Away)
        }
        DbErr::Exec(RuntimeErr::SqlxError(err)) | DbErr::Query(RuntimeErr::SqlxError(err)) => {
            sqlx_class(err)
        }
        _ => Class::Other,
    }
}

fn sqlx_class(err: &SqlxError) -> Class {
    match err {
        SqlxError::Database(err) => err.code().map_or(Class::Other, |code| code_class(&code)),
        SqlxError::Io(_)
        | SqlxError::Tls(_)
        | SqlxError::Protocol(_)
        | SqlxError::PoolTimedOut
        | SqlxError::PoolClosed
        | SqlxError::WorkerCrashed
        | SqlxError::BeginFailed => Class::Unavailable(Outage::Away),
        _ => Class::Other,
    }
}

/// Sorts a five-character SQLSTATE, or a numeric extended SQLite code.
fn code_class(code: &str) -> Class {
    match code.len() {
        5 => state_class(code),
        _ => sqlite_class(code.parse().unwrap_or_default()),
    }
}

fn state_class(state: &str) -> Class {
    match state {
        // Serialisation failure, deadlock, lock not available; a row that another has
        // just added, such as the outcome of the same request; and the
        // division by zero of a script that found a row changed.
        "40001" | "40P01" | "55P03" | "23505" | "22012" => Class::Conflict,
        // A read-only transaction: the server has become a standby, or the
        // database was set so.
        "25006" => Class::Unavailable(Outage::ReadOnly),
        "53100" => Class::Unavailable(Outage::Full),
        // Time-outs that end the connection of a transaction.
        "25P03" | "25P04" => Class::Unavailable(Outage::Away),
        _ => match state.get(..2) {
            // Connection failure, out of resources, operator intervention, I/O.
            Some("08" | "53" | "57" | "58") => Class::Unavailable(Outage::Away),
            _ => Class::Other,
        },
    }
}

fn sqlite_class(code: u32) -> Class {
    /// SQLITE_IOERR_WRITE and SQLITE_IOERR_SHMSIZE: what a quota and a limit of
    /// the file's size come to, which leave SQLite no other sign.
    const FULL: [u32; 2] = [778, 4874];
    if FULL.contains(&code) {
        return Class::Unavailable(Outage::Full);
    }
    match code & 0xff {
        // SQLITE_BUSY, SQLITE_LOCKED
        5 | 6 => Class::Conflict,
        // SQLITE_READONLY
        8 => Class::Unavailable(Outage::ReadOnly),
        // SQLITE_FULL
        13 => Class::Unavailable(Outage::Full),
        // SQLITE_IOERR, SQLITE_CANTOPEN
        10 | 14 => Class::Unavailable(Outage::Disk),
        _ => Class::Other,
    }
}

/// What went wrong, for the log: codes and names of the schema. The driver's own
/// text may quote what was being written or read.
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

fn describe_sqlx(err: &SqlxError) -> String {
    match err {
        SqlxError::Database(err) => {
            let code = err.code().unwrap_or_default();
            match err.constraint() {
                Some(constraint) => format!("database code {code} of {constraint}"),
                None => format!("database code {code}"),
            }
        }
        SqlxError::ColumnDecode { index, .. } => format!("undecodable column {index}"),
        SqlxError::Io(err) => format!("input or output: {}", err.kind()),
        SqlxError::Tls(_) => "TLS".to_owned(),
        SqlxError::PoolTimedOut => "no connection in time".to_owned(),
        _ => "database driver".to_owned(),
    }
}
