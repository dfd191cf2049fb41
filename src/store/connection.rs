//! Opens the connections to SQLite or PostgreSQL and brings the schema up to date.

mod advice;
mod database;
mod driver;
mod epoch;
mod migrations;
mod no_connection;
mod open_error;
mod permissions;
mod pool;
mod pooler;
mod postgres;
mod postgres_server;
mod probe;
mod replica;
mod transaction;

use std::{
    fs, future::ready, os::unix::fs::OpenOptionsExt, path::Path, str::FromStr, sync::Arc,
    time::Duration,
};

use sea_orm::EntityTrait;
use sqlx::{
    ConnectOptions as _, Connection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::{
    Writers,
    metrics::StoreMetrics,
    schema::entity::server_key,
    write::{WriteQueue, WriteSlots},
};
use crate::config::{DatabaseUrl, PostgresUrl};

use database::Pooling;
pub use migrations::SchemaChange;
use migrations::{OldSchemaPolicy, prepare_partitions, prepare_schema};
use permissions::{NeededPermissions, check_permissions, warn_if_read_only};
use postgres_server::check_server;
use probe::HealthProbe;

pub use advice::{Advice, SHARED_CONNECTION, is_shared_connection, refusal};
pub use database::Database;
use driver::DriverPool;
pub use driver::PoolSize;
pub use epoch::ConnectionEpoch;
pub use open_error::OpenError;
pub use replica::{Replica, ReplicaOrPrimary, ReplicaSettings};
pub use transaction::{Purpose, Transaction};

/// The name of the key that signs page tokens, in `server_keys`.
const PAGE_KEY: &str = "page_token";
/// Connections that read from SQLite.
const MAX_SQLITE_READERS: u32 = 4;
/// How many rows SQLite's thread reads ahead. If a page of a list had more, the thread would
/// stop and be woken again within it.
const SQLITE_ROW_BUFFER: usize = 1_024;
/// How long a write waits for another process that holds the SQLite file.
const SQLITE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a locked SQLite file is opened again.
const SQLITE_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// The pages that SQLite's writing connection keeps at most, as kibibytes below zero. By default
/// it keeps 2 MB, and reads most pages of a larger file again for each write. With many more, commits
/// take longer: after a page was split, SQLite looks at each page that it keeps. Connections
/// that read keep the default: each write makes them drop their pages.
const SQLITE_WRITER_CACHE: &str = "-8192";
/// Pages of 4 KiB in the write-ahead log before a checkpoint. The default is 1,000; with more, pages
/// that many writes change, such as those of an index, are copied less often.
const SQLITE_CHECKPOINT_PAGES: &str = "4000";
/// How long a call waits for an SQLite connection. It is longer than
/// [`postgres::ACQUIRE_TIMEOUT`], as all writes queue for one connection, large ones too.
const SQLITE_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long `migrate` waits for a PostgreSQL that cannot be reached.
const MIGRATE_WAIT: Duration = Duration::from_secs(10);
/// The pause between two attempts to reach PostgreSQL.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// How often the log says that PostgreSQL cannot be reached yet.
const WAIT_LOG_INTERVAL: Duration = Duration::from_secs(5);

/// Brings the schema of a database up to date.
pub async fn migrate(database: &DatabaseUrl) -> Result<SchemaChange, OpenError> {
    let options = ConnectOptions {
        max_connections: 1,
        migrate: true,
        serves: false,
        max_wait: Some(MIGRATE_WAIT),
        metrics: Arc::default(),
    };
    let connections = connect(database, &options).await?;
    connections.close().await;
    Ok(connections.schema_change)
}

/// How a database is opened.
pub struct ConnectOptions {
    /// Most connections to PostgreSQL.
    pub max_connections: u32,
    /// Whether to bring the schema up to date, or to refuse an old one.
    pub migrate: bool,
    /// Whether calls are served, so that the user needs permissions on all tables.
    pub serves: bool,
    /// How long to wait for a PostgreSQL that cannot be reached; `None` is without end.
    pub max_wait: Option<Duration>,
    /// Records the use of the connections.
    pub metrics: Arc<StoreMetrics>,
}

/// Creates the schema in an empty PostgreSQL database, each table of account data in this
/// many partitions by account, or brings such a schema up to date.
pub async fn migrate_partitioned(
    database: &DatabaseUrl,
    partitions: u16,
) -> Result<SchemaChange, OpenError> {
    let DatabaseUrl::Postgres(url) = database else {
        return Err(OpenError::PartitionsOfSqlite);
    };
    let epoch = Arc::new(ConnectionEpoch::new());
    let (_, pool) = postgres::open(url, 1, &epoch).await?;
    let change = match check_server(&pool).await {
        Ok(()) => prepare_partitions(&pool, partitions).await,
        Err(error) => Err(error),
    };
    pool.close().await;
    change
}

/// Connections to a database with the schema of this version.
pub struct DatabaseConnections {
    /// For transactions that write. On SQLite a single connection.
    pub writer: Database,
    /// For reads. On SQLite read-only connections, on PostgreSQL the same pool.
    pub reader: Database,
    /// For checks of the database's health.
    pub probe: HealthProbe,
    /// Decides which open connections may still be used.
    pub epoch: Arc<ConnectionEpoch>,
    /// Slots or queue of writes.
    pub writers: Writers,
    /// The secret that signs page tokens.
    pub page_key: [u8; 32],
    /// What was done to the schema.
    pub schema_change: SchemaChange,
}

impl DatabaseConnections {
    /// Records the size and use of each pool.
    pub fn sample_pools(&self, metrics: &StoreMetrics) {
        for database in [&self.writer, &self.reader] {
            metrics.sample_pool(database.pool_name, &database.pool.size());
        }
    }

    /// Closes all connections. The writer is closed last: SQLite moves the write-ahead
    /// log into the file when its last connection is a writing one.
    pub async fn close(&self) {
        self.probe.close().await;
        self.reader.close().await;
        self.writer.close().await;
    }
}

/// Connects to a database and brings its schema up to date, or refuses an old one. While
/// PostgreSQL cannot be reached, the log says so and it is tried again.
pub async fn connect(
    database: &DatabaseUrl,
    options: &ConnectOptions,
) -> Result<DatabaseConnections, OpenError> {
    let url = match database {
        DatabaseUrl::SqliteFile(path) => return open_sqlite_file(path, options).await,
        DatabaseUrl::SqliteMemory => return open_sqlite_memory(&options.metrics).await,
        DatabaseUrl::Postgres(url) => url,
    };
    let begun = Instant::now();
    let mut logged: Option<Instant> = None;
    loop {
        let error = match open_postgres(url, options).await {
            Err(error @ (OpenError::Unreachable { .. } | OpenError::Lost)) => error,
            result => {
                if logged.is_some() && result.is_ok() {
                    info!("the database is there");
                }
                return result;
            }
        };
        if options.max_wait.is_some_and(|max| begun.elapsed() >= max) {
            return Err(error);
        }
        if logged.is_none_or(|at| at.elapsed() >= WAIT_LOG_INTERVAL) {
            logged = Some(Instant::now());
            warn!("waiting for the database: {error}");
        }
        sleep(RETRY_INTERVAL).await;
    }
}

async fn open_sqlite_file(
    path: &Path,
    options: &ConnectOptions,
) -> Result<DatabaseConnections, OpenError> {
    let ConnectOptions {
        migrate, metrics, ..
    } = options;
    let epoch = Arc::new(ConnectionEpoch::new());
    let file_error = |err| advice::file_error(path, &err);
    let file = || SqliteConnectOptions::new().filename(path);
    let old_schema = OldSchemaPolicy::of_setting(*migrate);
    if old_schema == OldSchemaPolicy::Refuse && is_absent(path) {
        return Err(OpenError::NoFile {
            path: path.display().to_string(),
        });
    }
    create_private(path);
    let options = with_sqlite_settings(file())
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("cache_size", SQLITE_WRITER_CACHE)
        .pragma("wal_autocheckpoint", SQLITE_CHECKPOINT_PAGES);
    let mut writer = open_sqlite_writer(options, &epoch)
        .await
        .map_err(file_error)?;
    // Without permission to write the file, SQLite opens it read-only and reports no error.
    advice::check_writable(path)?;
    let schema_change = prepare_schema(&writer, old_schema).await?;
    let page_key = page_key(&writer).await?;
    writer.measure("writer", metrics);
    let reading = || with_sqlite_settings(file()).read_only(true);
    let reader = open_sqlite_pool(MAX_SQLITE_READERS, reading(), &epoch);
    let mut reader = reader.await.map_err(file_error)?;
    reader.measure("reader", metrics);
    let probe = open_sqlite_pool(1, reading(), &epoch);
    let probe = probe.await.map_err(file_error)?;
    Ok(DatabaseConnections {
        writers: Writers::Queue(WriteQueue::start(writer.clone(), SQLITE_ACQUIRE_TIMEOUT)),
        writer,
        reader,
        probe: HealthProbe::Sqlite(probe),
        epoch,
        page_key,
        schema_change,
    })
}

/// Opens the connection that writes. Tries again while the file is locked: SQLite itself does not
/// wait when it sets the journal mode, and several servers may open a new file at once.
async fn open_sqlite_writer(
    options: SqliteConnectOptions,
    epoch: &Arc<ConnectionEpoch>,
) -> Result<Database, sqlx::Error> {
    let begun = Instant::now();
    loop {
        match open_sqlite_pool(1, options.clone(), epoch).await {
            Err(err) if advice::is_locked(&err) && begun.elapsed() < SQLITE_BUSY_TIMEOUT => {
                sleep(SQLITE_RETRY_INTERVAL).await;
            }
            opened => return opened,
        }
    }
}

/// Creates a missing file that only this user may read. SQLite gives the files beside it the
/// same mode. A file that exists is left as it is; after any other error SQLite fails, too, and
/// its error is reported.
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

/// A database in memory exists as long as its one connection.
async fn open_sqlite_memory(metrics: &Arc<StoreMetrics>) -> Result<DatabaseConnections, OpenError> {
    let epoch = Arc::new(ConnectionEpoch::new());
    let options =
        SqliteConnectOptions::from_str("sqlite::memory:").map_err(|_| OpenError::InvalidUrl)?;
    let mut writer = open_sqlite_pool(1, with_sqlite_settings(options), &epoch)
        .await
        .map_err(|err| advice::file_error(Path::new(":memory:"), &err))?;
    let schema_change = prepare_schema(&writer, OldSchemaPolicy::Migrate).await?;
    let page_key = page_key(&writer).await?;
    writer.measure("shared", metrics);
    Ok(DatabaseConnections {
        writers: Writers::Queue(WriteQueue::start(writer.clone(), SQLITE_ACQUIRE_TIMEOUT)),
        reader: writer.clone(),
        probe: HealthProbe::Sqlite(writer.clone()),
        writer,
        epoch,
        page_key,
        schema_change,
    })
}

async fn open_postgres(
    url: &PostgresUrl,
    options: &ConnectOptions,
) -> Result<DatabaseConnections, OpenError> {
    let ConnectOptions {
        max_connections,
        migrate,
        serves,
        max_wait: _,
        metrics,
    } = options;
    let epoch = Arc::new(ConnectionEpoch::new());
    let (options, mut pool) = postgres::open(url, *max_connections, &epoch).await?;
    check_server(&pool).await?;
    let schema_change = prepare_schema(&pool, OldSchemaPolicy::of_setting(*migrate)).await?;
    if *serves {
        check_permissions(&pool, NeededPermissions::Serve).await?;
        warn_if_read_only(&pool).await?;
    }
    let page_key = page_key(&pool).await?;
    pool.measure("shared", metrics);
    // One connection is kept free of writes, which may wait for locks, so that reads go on.
    let writers = max_connections.saturating_sub(1).max(1);
    let slots = WriteSlots::new(writers as usize, postgres::ACQUIRE_TIMEOUT, pool.clone());
    Ok(DatabaseConnections {
        writer: pool.clone(),
        reader: pool.clone(),
        probe: HealthProbe::postgres(options, pool),
        epoch,
        page_key,
        schema_change,
        writers: Writers::Slots(slots),
    })
}

/// Adds the settings of every SQLite connection. `synchronous=FULL` syncs the write-ahead log
/// at each COMMIT, so a write that was answered is durable.
fn with_sqlite_settings(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(SQLITE_BUSY_TIMEOUT)
        .row_buffer_size(SQLITE_ROW_BUFFER)
        .disable_statement_logging()
}

async fn open_sqlite_pool(
    connections: u32,
    options: SqliteConnectOptions,
    epoch: &Arc<ConnectionEpoch>,
) -> Result<Database, sqlx::Error> {
    let open_epoch = Arc::clone(epoch);
    let pool = SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(connections)
        .acquire_timeout(SQLITE_ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // SQLite ends a transaction itself on some errors, such as a full disk. sqlx then
        // believes that it is still open and could not begin another one.
        .before_acquire(move |connection, about| {
            let usable = open_epoch.includes(about.age) && !connection.is_in_transaction();
            Box::pin(ready(Ok(usable)))
        })
        .connect_with(options)
        .await?;
    Ok(Database::new(
        DriverPool::Sqlite(pool),
        Pooling::Session,
        epoch,
    ))
}

/// Reads the secret that signs page tokens.
pub async fn page_key(db: &Database) -> Result<[u8; 32], OpenError> {
    server_key::Entity::find_by_id(PAGE_KEY)
        .one(db)
        .await
        .map_err(|err| advice::schema_error(&err))?
        .and_then(|key| key.value.try_into().ok())
        .ok_or_else(advice::no_page_key)
}
