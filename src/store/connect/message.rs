//! Errors of opening a database as one line that says what to do. The driver's own text
//! is left out, as it may quote names and values.

mod connect_failure;

use std::{fs, io, path::Path};

use rustix::{
    fs::{Access, access},
    io::Errno,
};
use sea_orm::{DbErr, RuntimeErr};

use super::{OpenError, SchemaChange};
use crate::store::error;

pub use self::connect_failure::{
    ConnectMessage, NO_ANSWER, SHARED_CONNECTION, TOO_MANY_CONNECTIONS, connect_message,
    is_shared_connection, postgres_error, refusal,
};

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
            why: sqlite_message(code),
        },
    }
}

/// Whether another connection has locked an SQLite file.
pub fn is_locked(err: &sqlx::Error) -> bool {
    // SQLITE_BUSY, SQLITE_LOCKED
    sqlite_code(err).is_some_and(|code| matches!(code & 0xff, 5 | 6))
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

/// Fails if this user may not create an SQLite file in its directory, which is tried with another
/// file that has no name.
pub fn check_creatable(path: &Path) -> Result<SchemaChange, OpenError> {
    match tempfile::tempfile_in(directory_of(path)) {
        Ok(_) => Ok(SchemaChange::Created),
        Err(_) => Err(OpenError::Path {
            path: path.display().to_string(),
            why: permission_error(path),
        }),
    }
}

/// What is wrong with an SQLite file by the primary code of the error, and what to do.
fn sqlite_message(code: Option<u32>) -> String {
    let message = match code {
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
    message.to_owned()
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

/// Whether this user may not write or create the file. An existing file is not opened to find out: when
/// a process closes any descriptor of a file, it loses the locks of its connections on it, and
/// another process then takes the file for unused and deletes its write-ahead log. A missing one is
/// created, as SQLite would.
fn is_permission_denied(path: &Path) -> bool {
    let error = match access(path, Access::WRITE_OK) {
        Err(Errno::NOENT) => {
            let created = fs::File::options().append(true).create_new(true).open(path);
            created.err().map(|error| error.kind())
        }
        accessible => accessible.err().map(|error| error.kind()),
    };
    matches!(
        error,
        Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
    )
}

fn directory_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    parent.unwrap_or(Path::new("."))
}

fn sqlite_code(err: &sqlx::Error) -> Option<u32> {
    err.as_database_error()?.code()?.parse().ok()
}

const INCOMPLETE: &str = "a table or its rows are missing, as after a part of a dump was restored: \
    restore a full dump, or use an empty database";

/// The key that signs page tokens is missing.
pub fn no_page_key() -> OpenError {
    OpenError::Schema(format!(
        "the table server_keys has no valid key: {INCOMPLETE}"
    ))
}

const OTHER_TABLES: &str =
    "the database has tables of another application: use a database of its own";

/// Whether the message of a database's error has this part.
fn has_message(err: &DbErr, part: &str) -> bool {
    let (DbErr::Exec(RuntimeErr::SqlxError(err)) | DbErr::Query(RuntimeErr::SqlxError(err))) = err
    else {
        return false;
    };
    let err = err.as_database_error();
    err.is_some_and(|err| err.message().contains(part))
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
        // insufficient_privilege
        Some("42501") => {
            "this user may not create tables: grant CREATE on the schema to the user, or make it \
             the owner of the database"
                .to_owned()
        }
        // duplicate_table
        Some("42P07") => OTHER_TABLES.to_owned(),
        // SQLITE_ERROR, whose cause only the message has.
        Some("1") if has_message(err, "already exists") => OTHER_TABLES.to_owned(),
        // undefined_table
        Some("42P01") => INCOMPLETE.to_owned(),
        Some("1") if has_message(err, "no such table") => INCOMPLETE.to_owned(),
        // SQLITE_BUSY, SQLITE_BUSY_RECOVERY, SQLITE_BUSY_SNAPSHOT
        Some("5" | "261" | "517") => {
            "another process has locked it: stop that process, or use another database".to_owned()
        }
        // read_only_sql_transaction, SQLITE_READONLY, SQLITE_READONLY_DBMOVED
        Some("25006" | "8" | "1032") => {
            "the database is read-only: use one that can be written".to_owned()
        }
        _ => error::describe(err),
    })
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, error::Error, fmt, sync::Arc};

    use sqlx::error::{DatabaseError, ErrorKind};

    use super::*;

    /// An error of PostgreSQL with this state.
    #[derive(Debug)]
    struct State(&'static str);

    impl fmt::Display for State {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.message())
        }
    }

    impl Error for State {}

    impl DatabaseError for State {
        fn message(&self) -> &'static str {
            "the words of the driver"
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.into())
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }

        fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
            self
        }
    }

    #[test]
    fn an_error_of_the_schema_says_what_to_do() {
        for (state, advice) in [
            ("42501", "grant CREATE on the schema to the user"),
            ("42P05", "use PgBouncer 1.21 or later"),
            ("26000", "use PgBouncer 1.21 or later"),
            ("25006", "use one that can be written"),
        ] {
            let failed = sqlx::Error::Database(Box::new(State(state)));
            let error = schema_error(&DbErr::Exec(RuntimeErr::SqlxError(Arc::new(failed))));
            let said = error.to_string();
            assert!(said.contains(advice), "{state}: {said}");
            assert!(!said.contains("driver"), "{state}: {said}");
        }
    }
}
