//! Errors of opening a database as one line that says what to do. The driver's own text
//! is left out, as it may quote names and values.

use std::{borrow::Cow, fs, io, path::Path};

use sea_orm::{DbErr, RuntimeErr};
use sqlx::{error::DatabaseError, postgres::PgConnectOptions};

use self::ConnectFailure::{Permanent, Temporary};
use super::OpenError;
use crate::store::error;

/// The error of an SQLite file.
pub fn file_error(path: &Path, err: &sqlx::Error) -> OpenError {
    let code = sqlite_code(err).map(|code| code & 0xff);
    let wrong_path = match code {
        // SQLITE_PERM, SQLITE_READONLY
        Some(3 | 8) => Some(path_error(path).unwrap_or_else(|| permission_error(path))),
        // SQLITE_CANTOPEN, which has other causes than the path, such as too many open files
        Some(14) => {
            path_error(path).or_else(|| is_permission_denied(path).then(|| permission_error(path)))
        }
        _ => None,
    };
    let path = path.display().to_string();
    match wrong_path {
        Some(why) => OpenError::Path { path, why },
        None => OpenError::File {
            path,
            why: sqlite_advice(code),
        },
    }
}

/// Fails if this user may not write an SQLite file that exists.
pub fn check_writable(path: &Path) -> Result<(), OpenError> {
    match is_permission_denied(path) {
        true => Err(OpenError::Path {
            path: path.display().to_string(),
            why: permission_error(path),
        }),
        false => Ok(()),
    }
}

/// What is wrong with an SQLite file by the primary code of the error, and what to do.
fn sqlite_advice(code: Option<u32>) -> String {
    let advice = match code {
        // SQLITE_BUSY, SQLITE_LOCKED
        Some(5 | 6) => "another process has locked it: stop that process, or use another file",
        // SQLITE_NOMEM
        Some(7) => "the memory is used up: give the process more",
        // SQLITE_IOERR
        Some(10) => "its disk cannot be read or written: check the disk",
        // SQLITE_CORRUPT
        Some(11) => "it is damaged: restore a backup, or use another file",
        // SQLITE_FULL
        Some(13) => "its disk is full: free some space, or use another file",
        // SQLITE_CANTOPEN
        Some(14) => "it cannot be opened: check the disk, and the limit of open files",
        // SQLITE_NOTADB
        Some(26) => "it is not an SQLite database: use another file",
        Some(code) => return format!("SQLite fails with error code {code}: check the file"),
        None => "it cannot be opened: check the file",
    };
    advice.to_owned()
}

/// Why no SQLite file can be at this path, if that is so.
fn path_error(path: &Path) -> Option<String> {
    if path.is_dir() {
        return Some("it is a directory: use the path of a file in it".to_owned());
    }
    let directory = directory_of(path);
    let shown = directory.display();
    match fs::metadata(directory) {
        Ok(metadata) if !metadata.is_dir() => {
            Some(format!("{shown} is not a directory: use another path"))
        }
        Ok(_) => None,
        Err(err) if err.kind() == io::ErrorKind::NotFound => Some(format!(
            "the directory {shown} does not exist: create it, or use another path"
        )),
        Err(_) => Some(format!(
            "this user may not access the directory {shown}: grant the permission, or use \
             another path"
        )),
    }
}

fn permission_error(path: &Path) -> String {
    let directory = directory_of(path).display();
    format!(
        "this user may not write it or create files in its directory {directory}: grant both \
         permissions, or use another path"
    )
}

/// Whether this user may not write or create the file. Creates it if it is missing, as
/// SQLite would.
fn is_permission_denied(path: &Path) -> bool {
    let opened = fs::File::options().append(true).create(true).open(path);
    opened.is_err_and(|err| {
        matches!(
            err.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        )
    })
}

fn directory_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    parent.unwrap_or(Path::new("."))
}

fn sqlite_code(err: &sqlx::Error) -> Option<u32> {
    err.as_database_error()?.code()?.parse().ok()
}

/// The error of a connection to PostgreSQL. `address` holds neither user nor password.
pub fn postgres_error(address: &str, options: &PgConnectOptions, err: &sqlx::Error) -> OpenError {
    let address = address.to_owned();
    match connect_failure(options, err) {
        Temporary(why) => OpenError::Unreachable {
            address,
            why: why.into_owned(),
        },
        Permanent(why) => OpenError::Connect {
            address,
            why: why.into_owned(),
        },
    }
}

/// Why there is no connection to PostgreSQL, and what to do.
pub fn connect_advice(options: &PgConnectOptions, err: &sqlx::Error) -> Advice {
    match connect_failure(options, err) {
        Temporary(why) | Permanent(why) => why,
    }
}

/// Why PostgreSQL or PgBouncer refuses connections, if it says so by a known SQLSTATE.
pub fn refusal(err: &DbErr) -> Option<Advice> {
    let DbErr::Conn(RuntimeErr::SqlxError(err)) = err else {
        return None;
    };
    match state_error(err.as_database_error()?)? {
        Temporary(why) | Permanent(why) => Some(why),
    }
}

fn connect_failure(options: &PgConnectOptions, err: &sqlx::Error) -> ConnectFailure {
    match err {
        sqlx::Error::Io(err) if is_tls(err) => permanent(TLS_FAILED),
        sqlx::Error::Io(err) => network_error(options, err),
        sqlx::Error::Tls(err) if err.to_string() == NOT_OFFERED => permanent(NO_TLS),
        sqlx::Error::Tls(_) => permanent(TLS_FAILED),
        sqlx::Error::Protocol(message) if is_closed_at_once(message) => temporary(CLOSED),
        sqlx::Error::PoolTimedOut => temporary(NO_ANSWER),
        sqlx::Error::Database(err) => state_error(err.as_ref()).unwrap_or_else(|| {
            let state = err.code().unwrap_or_default();
            Permanent(format!("it refuses the connection with SQLSTATE {state}").into())
        }),
        _ => permanent("the server is not PostgreSQL: check host and port"),
    }
}

/// What is wrong, and what to do.
pub type Advice = Cow<'static, str>;

/// Why there is no connection.
enum ConnectFailure {
    /// It may pass by itself.
    Temporary(Advice),
    /// It stays until a setting is changed.
    Permanent(Advice),
}

fn temporary(why: &'static str) -> ConnectFailure {
    Temporary(why.into())
}

fn permanent(why: &'static str) -> ConnectFailure {
    Permanent(why.into())
}

/// Why a PostgreSQL that stays silent is not used.
pub const NO_ANSWER: &str =
    "it did not answer in time: check that it runs and has free connections";

const TLS_FAILED: &str = "the TLS handshake failed: check sslmode and sslrootcert in the URL";

const NO_TLS: &str = "the server offers no TLS: set it up there, or change sslmode in the URL";
/// What the driver says then.
const NOT_OFFERED: &str = "server does not support TLS";

const CLOSED: &str =
    "it closes the connection: check that PostgreSQL runs, also behind a proxy or load balancer";

/// Whether the server closed the connection before it sent a byte, as a proxy does whose
/// PostgreSQL is down. The driver takes the missing answer for a zero.
fn is_closed_at_once(message: &str) -> bool {
    message.contains("SSLRequest: 0x00 ")
}

/// Whether TLS failed: the driver reports its errors as those of the network.
fn is_tls(err: &io::Error) -> bool {
    err.get_ref().is_some_and(|err| err.is::<rustls::Error>())
}

fn network_error(options: &PgConnectOptions, err: &io::Error) -> ConnectFailure {
    let is_socket = options.get_socket().is_some() || options.get_host().starts_with('/');
    match err.kind() {
        io::ErrorKind::ConnectionRefused => {
            temporary("the connection is refused: start PostgreSQL, or check host and port")
        }
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => temporary(CLOSED),
        io::ErrorKind::NotFound if is_socket => {
            temporary("the socket does not exist: start PostgreSQL, or check the socket's path")
        }
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => permanent(
            "a file that the URL names cannot be read: check sslrootcert, sslcert and sslkey",
        ),
        _ if err.to_string().contains("lookup address") => {
            temporary("the host name has no address: check the host")
        }
        _ => temporary("it cannot be reached: check that it runs, and its host and port"),
    }
}

/// A failure of PostgreSQL or PgBouncer by its SQLSTATE, if that is known.
fn state_error(err: &dyn DatabaseError) -> Option<ConnectFailure> {
    let state = err.code()?;
    Some(match &*state {
        "28P01" | "28000" => {
            permanent("it rejects the login: check user and password, and its pg_hba.conf")
        }
        "3D000" => {
            permanent("the database does not exist: create it with createdb, or use another")
        }
        "42501" => permanent("this user may not connect to it: grant CONNECT to the user"),
        "53300" => temporary("it has no free connection: raise its max_connections"),
        "57P01" | "57P02" | "57P03" => temporary("it is starting or stopping"),
        // PgBouncer uses this state for its refusals of logins, too.
        "08P01" if err.message().contains("server") => {
            temporary("PgBouncer cannot reach PostgreSQL: check that PostgreSQL runs")
        }
        "08P01" if err.message().contains("startup parameter") => permanent(
            "PgBouncer refuses settings of the session: leave out options and PGOPTIONS, and use \
             ALTER ROLE … SET",
        ),
        _ => return None,
    })
}

const OTHER_TABLES: &str =
    "the database has tables of another application: use a database of its own";

/// Whether the message of a database's error ends so.
fn has_message(err: &DbErr, end: &str) -> bool {
    let (DbErr::Exec(RuntimeErr::SqlxError(err)) | DbErr::Query(RuntimeErr::SqlxError(err))) = err
    else {
        return false;
    };
    let err = err.as_database_error();
    err.is_some_and(|err| err.message().ends_with(end))
}

/// The error of reading or changing the schema.
pub fn schema_error(err: &DbErr) -> OpenError {
    if error::is_connection_lost(err) {
        return OpenError::Lost;
    }
    let code = match err {
        DbErr::Exec(RuntimeErr::SqlxError(err))
        | DbErr::Query(RuntimeErr::SqlxError(err))
        | DbErr::Conn(RuntimeErr::SqlxError(err)) => {
            err.as_database_error().and_then(|err| err.code())
        }
        _ => None,
    };
    OpenError::Schema(match code.as_deref() {
        Some("42501") => {
            "this user may not create tables: grant CREATE on the schema to the user, or make it \
             the owner of the database"
                .to_owned()
        }
        Some("42P07") => OTHER_TABLES.to_owned(),
        // SQLITE_ERROR, whose cause only the message has.
        Some("1") if has_message(err, "already exists") => OTHER_TABLES.to_owned(),
        Some("5" | "261" | "517") => {
            "another process has locked it: stop that process, or use another database".to_owned()
        }
        Some("25006" | "8" | "1032") => {
            "the database is read-only: use one that can be written".to_owned()
        }
        _ => error::describe(err),
    })
}
