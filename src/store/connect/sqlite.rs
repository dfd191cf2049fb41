//! The connections to SQLite.

use std::{fs, future::ready, io, os::unix::fs::OpenOptionsExt, path::Path, time::Duration};

use rustix::{
    fs::{Access, access},
    io::Errno,
};
use sea_orm::{DatabaseConnection, SqlxSqliteConnector};
use sqlx::{
    ConnectOptions as _, Connection,
    sqlite::{
        SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqlitePoolOptions,
        SqliteSynchronous,
    },
};
use tokio::time::{Instant, sleep};

use super::{
    ConnectOptions, OpenError, Pools, Refusals,
    probe::{HealthProbe, OpenedFile},
};
use crate::store::error::{explanation, primary_sqlite_code};

/// The maximum number of connections that read from SQLite.
const MAX_READERS: u32 = 8;
/// How many rows SQLite's thread reads ahead. If this were less than a page of a list, the thread
/// would pause in the middle of the page.
const ROW_BUFFER: usize = 1_024;
/// The same for commands that read whole tables, where every row may have a large body.
const COMMAND_ROW_BUFFER: usize = 1;
/// How long a statement waits while another process locks the file. A write waits for at most half of the
/// request timeout, but not less than [`MIN_BUSY_TIMEOUT`], so that migrations can wait for another server.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const MIN_BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long [`is_used`] waits for a process that is about to close the file.
const USED_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause before opening a locked SQLite file again.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// The cache of the writing connection: a negative number is in KiB. The default of 2 MB would make each
/// write to a larger file read most pages again. A much larger cache slows down commits: after a page
/// split, SQLite visits every cached page. Reading connections use the default, because each write makes
/// them drop their pages.
const WRITER_CACHE: &str = "-8192";
/// The number of 4 KiB pages in the write-ahead log that triggers a checkpoint. The default is
/// 1,000. With more, pages that change often, such as index pages, are copied less often.
const CHECKPOINT_PAGES: &str = "4000";
/// How many rows of an index `PRAGMA optimize` looks at.
const ANALYZED_ROWS: u32 = 400;
/// How long a call waits for an SQLite connection. It is longer than for PostgreSQL, because all writes
/// queue for one connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(15);

/// Opens a file, and creates it if `options` permit that.
pub async fn open_file(path: &Path, options: &ConnectOptions) -> Result<Pools, OpenError> {
    if is_missing(path, options.migrate)? {
        create_private(path)?;
    }
    let writing = settings()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout((options.request_timeout / 2).clamp(MIN_BUSY_TIMEOUT, BUSY_TIMEOUT))
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("cache_size", WRITER_CACHE)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        // This updates SQLite's statistics of the tables that grew.
        .optimize_on_close(true, ANALYZED_ROWS);
    let writer = open_pool(path, 1, writing).await?;
    let row_buffer = if options.serves {
        ROW_BUFFER
    } else {
        COMMAND_ROW_BUFFER
    };
    let reading = settings()
        .filename(path)
        .read_only(true)
        .row_buffer_size(row_buffer);
    Ok(Pools {
        writer,
        reader: open_pool(path, MAX_READERS, reading.clone()).await?,
        max_writes: 1,
        refusals: Refusals::default(),
        probe: HealthProbe::Sqlite {
            pool: open_pool(path, 1, reading).await?,
            file: OpenedFile::at(path).ok(),
        },
    })
}

/// Opens an in-memory database, which lives as long as its one connection.
pub async fn open_memory() -> Result<Pools, OpenError> {
    let pool = open_pool(Path::new(":memory:"), 1, settings().in_memory(true)).await?;
    Ok(Pools {
        writer: pool.clone(),
        reader: pool.clone(),
        max_writes: 1,
        refusals: Refusals::default(),
        probe: HealthProbe::Sqlite { pool, file: None },
    })
}

/// Opens a file to check it. Returns `None` if [`open_file`] would create it. Creates an unnamed
/// file in the same directory to test whether it could.
pub async fn open_existing(
    path: &Path,
    migrate: bool,
) -> Result<Option<DatabaseConnection>, OpenError> {
    if is_missing(path, migrate)? {
        let created = tempfile::tempfile_in(parent_directory(path));
        return created.map(|_| None).map_err(|_| permission_error(path));
    }
    // This reads the schema, so a file that is not a database is detected.
    let options = settings().filename(path).pragma("table_info", "tasks");
    open_pool(path, 1, options).await.map(Some)
}

/// Whether another process has the file open. Each connection to a file with a write-ahead log
/// holds a shared lock on it, so no other process can lock the file exclusively.
pub async fn is_used(path: &Path) -> bool {
    let options = settings()
        .filename(path)
        .busy_timeout(USED_TIMEOUT)
        .locking_mode(SqliteLockingMode::Exclusive)
        .pragma("table_info", "tasks");
    match options.connect().await {
        Ok(connection) => {
            let _ = connection.close().await;
            false
        }
        Err(err) => {
            let code = err.as_database_error().and_then(|err| err.code());
            // SQLITE_BUSY
            code.is_some_and(|code| primary_sqlite_code(&code) == Some(5))
        }
    }
}

/// The settings of every SQLite connection. `synchronous=FULL` syncs the write-ahead log at each
/// COMMIT, so a write is durable once it returns OK.
fn settings() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .row_buffer_size(ROW_BUFFER)
        .disable_statement_logging()
}

/// Opens connections. Tries again while the file is locked: SQLite itself does not wait when it sets the
/// journal mode, and several servers may open a new file concurrently.
async fn open_pool(
    path: &Path,
    connections: u32,
    options: SqliteConnectOptions,
) -> Result<DatabaseConnection, OpenError> {
    let begun = Instant::now();
    let pool = SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // SQLite ends a transaction itself on some errors, such as a full disk. sqlx then assumes
        // that it is still open, and cannot begin another one.
        .before_acquire(|connection, _| Box::pin(ready(Ok(!connection.is_in_transaction()))));
    loop {
        let err = match pool.clone().connect_with(options.clone()).await {
            Ok(pool) => return Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool)),
            Err(err) => err,
        };
        let code = err.as_database_error().and_then(|err| err.code());
        let code = code.as_deref().unwrap_or_default();
        let why = match primary_sqlite_code(code) {
            // SQLITE_BUSY, SQLITE_LOCKED
            Some(5 | 6) if begun.elapsed() < BUSY_TIMEOUT => {
                sleep(RETRY_INTERVAL).await;
                continue;
            }
            // SQLITE_PERM, SQLITE_READONLY
            Some(3 | 8) => return Err(permission_error(path)),
            _ => match explanation(code) {
                Some(explanation) => explanation.to_owned(),
                None => format!("SQLite fails with code {code:?}: check the file"),
            },
        };
        return Err(OpenError::unusable(file_message(path, &why)));
    }
}

fn file_message(path: &Path, why: &str) -> String {
    let path = path.display();
    format!("EXPERTISE_DATABASE_URL names the file {path}, which cannot be used: {why}")
}

/// Whether a file is missing. Fails if no file can be at this path, if this user may not write the file
/// that is there, or if it is missing and may not be created.
fn is_missing(path: &Path, migrate: bool) -> Result<bool, OpenError> {
    let directory = parent_directory(path);
    // An existing file is not opened to find out whether it may be written: when a process closes
    // any descriptor of a file, it loses the locks of its connections on it, and another process
    // may then consider the file unused and delete its write-ahead log.
    let why = match access(path, Access::WRITE_OK) {
        _ if path.is_dir() => "it is a directory: use the path of a file in it".to_owned(),
        Err(Errno::NOTDIR) => format!(
            "{} is not a directory: use another path",
            directory.display()
        ),
        Err(Errno::NOENT) if !directory.exists() => format!(
            "the directory {} does not exist: create it, or use another path",
            directory.display()
        ),
        Err(Errno::NOENT) if migrate => return Ok(true),
        Err(Errno::NOENT) => {
            return Err(OpenError::unusable(format!(
                "the file {} does not exist: check the path; `expertise migrate` creates a new database",
                path.display()
            )));
        }
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => return Err(permission_error(path)),
        // SQLite reports any other error itself.
        _ => return Ok(false),
    };
    Err(OpenError::WrongSetting(file_message(path, &why).into()))
}

/// Creates a missing file that only this user may read. SQLite creates its other files with the
/// same mode. On errors other than a missing permission, SQLite fails later and reports why.
fn create_private(path: &Path) -> Result<(), OpenError> {
    let mut options = fs::File::options();
    let created = options.write(true).create_new(true).mode(0o600).open(path);
    match created.map_err(|err| err.kind()) {
        Err(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            Err(permission_error(path))
        }
        _ => Ok(()),
    }
}

fn permission_error(path: &Path) -> OpenError {
    let directory = parent_directory(path).display();
    let why = format!(
        "this user may not write it or create files in its directory {directory}: grant both \
         permissions, or use another path"
    );
    OpenError::WrongSetting(file_message(path, &why).into())
}

fn parent_directory(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    parent.unwrap_or(Path::new("."))
}
