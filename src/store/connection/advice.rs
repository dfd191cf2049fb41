//! What to do about a database that cannot be used, in a line. What a driver says
//! may quote names and values, so it stays out.

use std::{fs, io, path::Path};

use sea_orm::{DbErr, RuntimeErr};

use super::OpenError;
use crate::store::error;

/// Of an SQLite file.
pub fn of_file(path: &Path, err: &sqlx::Error) -> OpenError {
    OpenError::File {
        path: path.display().to_string(),
        why: match sqlite_code(err).map(|code| code & 0xff) {
            // SQLITE_BUSY, SQLITE_LOCKED
            Some(5 | 6) => {
                "another process holds it: end that one, or name another file".to_owned()
            }
            // SQLITE_IOERR
            Some(10) => "its disk cannot be read or written".to_owned(),
            // SQLITE_CORRUPT
            Some(11) => "it is damaged: put back a copy of it, or name another file".to_owned(),
            // SQLITE_FULL
            Some(13) => "its disk is full: make room, or name another file".to_owned(),
            // SQLITE_NOTADB
            Some(26) => "it is no SQLite database: name another file".to_owned(),
            // SQLITE_PERM, SQLITE_READONLY, SQLITE_CANTOPEN and what has no code
            _ => of_place(path),
        },
    }
}

/// What is wrong with a place in which SQLite cannot make its files.
fn of_place(path: &Path) -> String {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = parent.unwrap_or(Path::new("."));
    if path.is_dir() {
        return "it is a directory: name a file in it".to_owned();
    }
    let shown = directory.display();
    match fs::metadata(directory) {
        Ok(about) if !about.is_dir() => format!("{shown} is no directory: name another place"),
        Ok(_) => format!(
            "this user may not write it, or may not make files in its directory {shown}: allow \
             it both, or name another place"
        ),
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            format!("there is no directory {shown}: make it, or name another place")
        }
        Err(_) => format!("this user may not look into {shown}: allow it, or name another place"),
    }
}

fn sqlite_code(err: &sqlx::Error) -> Option<u32> {
    err.as_database_error()?.code()?.parse().ok()
}

/// Of a PostgreSQL database at this place, which shows neither user nor password.
pub fn of_postgres(place: &str, err: &sqlx::Error) -> OpenError {
    OpenError::Connect {
        place: place.to_owned(),
        why: match err {
            sqlx::Error::Io(err) => of_network(err).to_owned(),
            sqlx::Error::Tls(_) => {
                "TLS with it cannot be begun: see sslmode and sslrootcert in the URL".to_owned()
            }
            sqlx::Error::PoolTimedOut => {
                "it does not answer in time: see that it runs and has connections to spare"
                    .to_owned()
            }
            sqlx::Error::Database(err) => of_state(&err.code().unwrap_or_default()),
            _ => "it does not answer as PostgreSQL does: see its host and port".to_owned(),
        },
    }
}

fn of_network(err: &io::Error) -> &'static str {
    match err.kind() {
        io::ErrorKind::ConnectionRefused => {
            "nothing listens there: start PostgreSQL, or see its host and port"
        }
        io::ErrorKind::NotFound => "its socket is not there: start PostgreSQL, or see its host",
        _ if err.to_string().contains("lookup address") => {
            "its host cannot be found: its name has no address"
        }
        _ => "it cannot be reached: see that it runs, and its host and port",
    }
}

/// By SQLSTATE.
fn of_state(state: &str) -> String {
    match state {
        "28P01" | "28000" => {
            "it does not let this user in: see user and password, and its pg_hba.conf".to_owned()
        }
        "3D000" => {
            "there is no database of this name: make it with createdb, or name another".to_owned()
        }
        "42501" => "this user may not connect to it: grant it CONNECT".to_owned(),
        "53300" => "it has no connection to spare: raise its max_connections".to_owned(),
        "57P03" => "it is still starting: try again later".to_owned(),
        state => format!("it refuses the connection with SQLSTATE {state}"),
    }
}

/// Of a schema that cannot be looked at or changed.
pub fn of_schema(err: &DbErr) -> OpenError {
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
            "this user may not make tables there: grant it CREATE on the schema, or make it the \
             owner of the database"
                .to_owned()
        }
        Some("42P07") => {
            "it holds tables of something else: give the service a database of its own".to_owned()
        }
        Some("5" | "261" | "517") => {
            "another process holds it: end that one, or name another".to_owned()
        }
        Some("25006" | "8" | "1032") => "it takes no writes: name one that does".to_owned(),
        _ => error::describe(err),
    })
}
