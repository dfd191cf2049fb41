//! What the database says, sorted by what is to be done about it. Driver text
//! stays here.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlxError};
use tracing::{debug, warn};

use crate::domain::{self, Outage};

/// How long the log is silent about an outage that it has told of.
const SILENCE: Duration = Duration::from_secs(10);

/// How a piece of store work can fail.
#[derive(Debug)]
pub enum Fault {
    /// As the caller is told.
    Domain(domain::Error),
    /// The transaction lost against another and is to be run again.
    Lost,
    /// The database cannot serve at present.
    Out(Outage),
    /// The database failed.
    Database(DbErr),
    /// A row that no version of this service has written.
    Corrupt(&'static str),
}

impl From<DbErr> for Fault {
    fn from(err: DbErr) -> Self {
        match class(&err) {
            Class::Lost => Self::Lost,
            Class::Out(outage) => {
                debug!(cause = describe(&err), "the database is out");
                Self::Out(outage)
            }
            Class::Fault => Self::Database(err),
        }
    }
}

impl Fault {
    /// What the others are told who share a failure.
    pub fn likewise(&self) -> Self {
        match self {
            Self::Lost => Self::Lost,
            Self::Out(outage) => Self::Out(*outage),
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
            Self::Out(Outage::Away | Outage::Disk) => Self::Out(Outage::Undecided),
            fault => fault,
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
            Fault::Out(outage) => {
                tell(outage);
                Self::Unavailable(outage)
            }
            Fault::Corrupt(what) => Self::Internal(format!("unreadable row: {what}")),
            Fault::Database(err) => Self::Internal(describe(&err)),
        }
    }
}

/// Tells the operator what is wrong, and again only after a [`SILENCE`]: every
/// call meets it.
fn tell(outage: Outage) {
    static TOLD: Mutex<Vec<(Outage, Instant)>> = Mutex::new(Vec::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    told.retain(|(_, at)| at.elapsed() < SILENCE);
    if told.iter().any(|(other, _)| *other == outage) {
        return;
    }
    told.push((outage, Instant::now()));
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
    Lost,
    /// The database cannot serve at present.
    Out(Outage),
    /// Anything else.
    Fault,
}

fn class(err: &DbErr) -> Class {
    match err {
        DbErr::ConnectionAcquire(ConnAcquireErr::Timeout) => Class::Out(Outage::Busy),
        // Whatever keeps us from having a connection, a refused password as well
        // as a dead host, the caller can do nothing but wait.
        DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed) | DbErr::Conn(_) => {
            Class::Out(Outage::Away)
        }
        DbErr::Exec(RuntimeErr::SqlxError(err)) | DbErr::Query(RuntimeErr::SqlxError(err)) => {
            sqlx_class(err)
        }
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
        | SqlxError::BeginFailed => Class::Out(Outage::Away),
        _ => Class::Fault,
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
        // just added, such as the outcome of the same request; and what a wary script
        // divides by when a row has changed.
        "40001" | "40P01" | "55P03" | "23505" | "22012" => Class::Lost,
        // A read-only transaction: the server has become a standby, or the
        // database was set so.
        "25006" => Class::Out(Outage::ReadOnly),
        "53100" => Class::Out(Outage::Full),
        // Time-outs that end the connection of a transaction.
        "25P03" | "25P04" => Class::Out(Outage::Away),
        _ => match state.get(..2) {
            // Connection failure, out of resources, operator intervention, I/O.
            Some("08" | "53" | "57" | "58") => Class::Out(Outage::Away),
            _ => Class::Fault,
        },
    }
}

fn sqlite_class(code: u32) -> Class {
    /// SQLITE_IOERR_WRITE and SQLITE_IOERR_SHMSIZE: what a quota and a limit of
    /// the file's size come to, which leave SQLite no other sign.
    const FULL: [u32; 2] = [778, 4874];
    if FULL.contains(&code) {
        return Class::Out(Outage::Full);
    }
    match code & 0xff {
        // SQLITE_BUSY, SQLITE_LOCKED
        5 | 6 => Class::Lost,
        // SQLITE_READONLY
        8 => Class::Out(Outage::ReadOnly),
        // SQLITE_FULL
        13 => Class::Out(Outage::Full),
        // SQLITE_IOERR, SQLITE_CANTOPEN
        10 | 14 => Class::Out(Outage::Disk),
        _ => Class::Fault,
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
