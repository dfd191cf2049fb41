//! The connections to SQLite.

use std::{
    fs, future::ready, os::unix::fs::OpenOptionsExt, path::Path, str::FromStr, sync::Arc,
    time::Duration,
};

use sea_orm::{DatabaseConnection, SqlxSqliteConnector};
use sqlx::{
    ConnectOptions as _, Connection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::time::{Instant, sleep};

use super::{
    ConnectOptions, Connections, OpenError, message,
    migrations::{OldSchemaPolicy, SchemaChange, check_schema, prepare_schema},
    page_key,
    probe::{HealthProbe, OpenedFile},
};
use crate::store::metrics::StoreMetrics;

/// The maximum number of connections that read from SQLite.
const MAX_READERS: u32 = 8;
/// How many rows SQLite's thread reads ahead. If it were fewer than a page of a list, the thread would
/// pause within the page.
const ROW_BUFFER: usize = 1_024;
/// The same for commands that read whole tables, where every row may have a large body.
const ROW_BUFFER_OF_COMMANDS: usize = 1;
/// How long a write waits for another process that holds the SQLite file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a locked SQLite file is opened again.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// The cache of the writing connection: a negative number is in KiB. The default of 2 MB would make each
/// write to a larger file read most pages again. A much larger cache slows down commits: after a page
/// split, SQLite visits every cached page. Reading connections use the default, because each write makes
/// them drop their pages.
const WRITER_CACHE: &str = "-8192";
/// Pages of 4 KiB in the write-ahead log before a checkpoint. The default is 1,000; with more, pages
/// that many writes change, such as those of an index, are copied less often.
const CHECKPOINT_PAGES: &str = "4000";
/// How many rows of an index `PRAGMA optimize` looks at.
const ANALYZED_ROWS: u32 = 400;
/// How long a call waits for an SQLite connection. It is longer than for PostgreSQL, because all writes
/// queue for one connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(15);

/// Opens a file, and creates it if `options` permit that.
pub async fn open_file(path: &Path, options: &ConnectOptions) -> Result<Connections, OpenError> {
    let ConnectOptions {
        migrate,
        serves,
        metrics,
        ..
    } = options;
    let file_error = |err| message::file_error(path, &err);
    let file = || SqliteConnectOptions::new().filename(path);
    let old_schema = OldSchemaPolicy::for_setting(*migrate);
    if old_schema == OldSchemaPolicy::Refuse && is_absent(path) {
        return Err(OpenError::NoFile {
            path: path.display().to_string(),
        });
    }
    create_private(path);
    let options = with_settings(file())
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("cache_size", WRITER_CACHE)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        // This updates SQLite's statistics of the tables that grew.
        .optimize_on_close(true, ANALYZED_ROWS);
    let mut writer = open_writer(options).await.map_err(file_error)?;
    // Without permission to write the file, SQLite opens it read-only and reports no error.
    message::check_writable(path)?;
    let schema_change = prepare_schema(&writer, old_schema).await?;
    let page_key = page_key(&writer).await?;
    metrics.measure(&mut writer);
    let row_buffer = match serves {
        true => ROW_BUFFER,
        false => ROW_BUFFER_OF_COMMANDS,
    };
    let reading = || {
        with_settings(file())
            .read_only(true)
            .row_buffer_size(row_buffer)
    };
    let reader = open_pool(MAX_READERS, reading());
    let mut reader = reader.await.map_err(file_error)?;
    metrics.measure(&mut reader);
    let probe = open_pool(1, reading());
    let probe = probe.await.map_err(file_error)?;
    Ok(Connections {
        max_writes: 1,
        refusals: None,
        writer,
        reader,
        probe: HealthProbe::Sqlite {
            pool: probe,
            file: OpenedFile::at(path).ok(),
        },
        page_key,
        schema_change,
        is_distributed: false,
    })
}

/// Checks whether [`open_file`] would succeed, without creating the file or changing it.
pub async fn check_file(path: &Path, old: OldSchemaPolicy) -> Result<SchemaChange, OpenError> {
    if is_absent(path) {
        return match old {
            OldSchemaPolicy::Migrate => message::check_creatable(path),
            OldSchemaPolicy::Refuse => Err(OpenError::NoFile {
                path: path.display().to_string(),
            }),
        };
    }
    let file_error = |err| message::file_error(path, &err);
    message::check_writable(path)?;
    let options = with_settings(SqliteConnectOptions::new().filename(path));
    // This reads the schema, so a file that is not a database is detected.
    let options = options.pragma("table_info", "tasks");
    let db = open_pool(1, options).await.map_err(file_error)?;
    let change = check_schema(&db, old).await?;
    if change == SchemaChange::Current {
        page_key(&db).await?;
    }
    let _ = db.close().await;
    Ok(change)
}

/// Opens the connection that writes. Tries again while the file is locked: SQLite itself does not wait
/// when it sets the journal mode, and several servers may open a new file concurrently.
async fn open_writer(options: SqliteConnectOptions) -> Result<DatabaseConnection, sqlx::Error> {
    let begun = Instant::now();
    loop {
        match open_pool(1, options.clone()).await {
            Err(err) if message::is_locked(&err) && begun.elapsed() < BUSY_TIMEOUT => {
                sleep(RETRY_INTERVAL).await;
            }
            opened => return opened,
        }
    }
}

/// Creates a missing file that only this user may read. SQLite gives its companion files the same mode.
/// An existing file is left unchanged. Other errors are ignored, because SQLite then fails itself and
/// reports why.
fn create_private(file: &Path) {
    let mut options = fs::File::options();
    let _ = options.write(true).create_new(true).mode(0o600).open(file);
}

/// Whether a file is not there, but could be created in its directory.
fn is_absent(file: &Path) -> bool {
    let directory = file.parent().unwrap_or(Path::new(""));
    let directory_exists = directory.as_os_str().is_empty() || directory.is_dir();
    directory_exists && matches!(file.try_exists(), Ok(false))
}

/// Opens an in-memory database, which lives as long as its one connection.
pub async fn open_memory(metrics: &Arc<StoreMetrics>) -> Result<Connections, OpenError> {
    let options =
        SqliteConnectOptions::from_str("sqlite::memory:").map_err(|_| OpenError::InvalidUrl)?;
    let mut writer = open_pool(1, with_settings(options))
        .await
        .map_err(|err| message::file_error(Path::new(":memory:"), &err))?;
    let schema_change = prepare_schema(&writer, OldSchemaPolicy::Migrate).await?;
    let page_key = page_key(&writer).await?;
    metrics.measure(&mut writer);
    Ok(Connections {
        max_writes: 1,
        refusals: None,
        reader: writer.clone(),
        probe: HealthProbe::Sqlite {
            pool: writer.clone(),
            file: None,
        },
        writer,
        page_key,
        schema_change,
        is_distributed: false,
    })
}

/// Adds the settings of every SQLite connection. `synchronous=FULL` syncs the write-ahead log at each
/// COMMIT, so a write is durable once it returns OK.
fn with_settings(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .row_buffer_size(ROW_BUFFER)
        .disable_statement_logging()
}

async fn open_pool(
    connections: u32,
    options: SqliteConnectOptions,
) -> Result<DatabaseConnection, sqlx::Error> {
    let pool = SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // SQLite ends a transaction itself on some errors, such as a full disk. sqlx then
        // believes that it is still open and could not begin another one.
        .before_acquire(|connection, _| Box::pin(ready(Ok(!connection.is_in_transaction()))))
        .connect_with(options)
        .await?;
    Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool))
}
