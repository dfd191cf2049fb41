//! Opens the connections to SQLite or PostgreSQL and brings the schema up to date.

mod advice;
mod database;
mod epoch;
mod pooler;
mod postgres;
mod probe;
mod replica;

use std::{future::ready, path::Path, str::FromStr, sync::Arc, time::Duration};

use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, EntityTrait, SqliteTransactionMode,
    SqlxSqliteConnector, TransactionOptions,
};
use sea_orm_migration::MigratorTrait;
use sqlx::{
    ConnectOptions, Connection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{
    Writers,
    metrics::{self, StoreMetrics},
    schema::{Migrator, entity::server_key},
    write::{WriteQueue, WriteSlots},
};
use crate::config::{DatabaseUrl, PostgresUrl};

use database::Pooling;
use probe::HealthProbe;

pub use database::Database;
pub use epoch::ConnectionEpoch;
pub use replica::{Replica, ReplicaOrPrimary, ReplicaSettings};

/// The name of the key that seals page tokens, in `server_keys`.
const PAGE_KEY: &str = "page_token";
/// Connections that read from SQLite.
const MAX_SQLITE_READERS: u32 = 4;
/// How long a write waits for another process that holds the SQLite file.
const SQLITE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a write waits for SQLite's one writing connection. It is longer than
/// [`postgres::ACQUIRE_TIMEOUT`], as all writes queue for this connection, large ones too.
const SQLITE_WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// Key of the PostgreSQL advisory lock that a server holds while it migrates.
const MIGRATION_LOCK: i64 = 0x6578_7065_7274_6973;

/// Why the database cannot be used: one line that says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is not valid.
    #[error(
        "EXPERTISE_DATABASE_URL is not a valid PostgreSQL URL: check its port and its parameters, such as sslmode=require"
    )]
    InvalidUrl,
    /// The SQLite file cannot be opened or created.
    #[error("EXPERTISE_DATABASE_URL names the file {path}, which cannot be used: {why}")]
    File {
        /// The path of the file.
        path: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// No connection to PostgreSQL can be opened.
    #[error("EXPERTISE_DATABASE_URL names {address}, which cannot be used: {why}")]
    Connect {
        /// Host, port and database, without user and password.
        address: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The schema has migrations that this version does not know.
    #[error(
        "the database has a schema that this version does not know: run the version that created it, or set EXPERTISE_DATABASE_URL to another database"
    )]
    UnknownSchema,
    /// The schema is older than this version, and migrating is switched off.
    #[error(
        "the database schema is older than this version ({pending} migrations are missing): run `expertise migrate`, or set EXPERTISE_MIGRATE=true"
    )]
    OldSchema {
        /// How many migrations are missing.
        pending: usize,
    },
    /// The schema cannot be created, changed or read.
    #[error("the database schema cannot be read or brought up to date: {0}")]
    Schema(String),
}

/// Brings the schema of a database up to date.
pub async fn migrate(database: &DatabaseUrl) -> Result<(), OpenError> {
    let metrics = Arc::default();
    connect(database, 1, true, &metrics).await?.close().await;
    Ok(())
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
}

impl DatabaseConnections {
    /// Records the size and use of each pool.
    pub fn sample_pools(&self, metrics: &StoreMetrics) {
        for database in [&self.writer, &self.reader] {
            metrics.sample_pool(database.pool_name, &database.connection);
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

/// Connects to a database and brings its schema up to date, or refuses an old one.
pub async fn connect(
    database: &DatabaseUrl,
    max_connections: u32,
    migrate: bool,
    metrics: &Arc<StoreMetrics>,
) -> Result<DatabaseConnections, OpenError> {
    match database {
        DatabaseUrl::SqliteFile(path) => sqlite_file(path, migrate, metrics).await,
        DatabaseUrl::SqliteMemory => sqlite_memory(metrics).await,
        DatabaseUrl::Postgres(url) => postgres(url, max_connections, migrate, metrics).await,
    }
}

async fn sqlite_file(
    path: &Path,
    migrate: bool,
    metrics: &Arc<StoreMetrics>,
) -> Result<DatabaseConnections, OpenError> {
    let epoch = Arc::new(ConnectionEpoch::new());
    let file_error = |err| advice::file_error(path, &err);
    let file = || SqliteConnectOptions::new().filename(path);
    let options = sqlite(file())
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let mut writer = sqlite_pool(1, options, &epoch).await.map_err(file_error)?;
    prepare_schema(&writer, migrate).await?;
    writer.measure("writer", metrics);
    let reading = || sqlite(file()).read_only(true);
    let reader = sqlite_pool(MAX_SQLITE_READERS, reading(), &epoch);
    let mut reader = reader.await.map_err(file_error)?;
    reader.measure("reader", metrics);
    let probe = sqlite_pool(1, reading(), &epoch);
    let probe = probe.await.map_err(file_error)?;
    Ok(DatabaseConnections {
        writers: Writers::Queue(WriteQueue::start(writer.clone(), SQLITE_WRITE_TIMEOUT)),
        writer,
        reader,
        probe: HealthProbe::Sqlite(probe),
        epoch,
    })
}

/// A database in memory exists as long as its one connection.
async fn sqlite_memory(metrics: &Arc<StoreMetrics>) -> Result<DatabaseConnections, OpenError> {
    let epoch = Arc::new(ConnectionEpoch::new());
    let options =
        SqliteConnectOptions::from_str("sqlite::memory:").map_err(|_| OpenError::InvalidUrl)?;
    let mut writer = sqlite_pool(1, sqlite(options), &epoch)
        .await
        .map_err(|err| advice::file_error(Path::new(":memory:"), &err))?;
    prepare_schema(&writer, true).await?;
    writer.measure("shared", metrics);
    Ok(DatabaseConnections {
        writers: Writers::Queue(WriteQueue::start(writer.clone(), SQLITE_WRITE_TIMEOUT)),
        reader: writer.clone(),
        probe: HealthProbe::Sqlite(writer.clone()),
        writer,
        epoch,
    })
}

async fn postgres(
    url: &PostgresUrl,
    max_connections: u32,
    migrate: bool,
    metrics: &Arc<StoreMetrics>,
) -> Result<DatabaseConnections, OpenError> {
    let epoch = Arc::new(ConnectionEpoch::new());
    let (options, mut pool) = postgres::open(url, max_connections, &epoch).await?;
    prepare_schema(&pool, migrate).await?;
    pool.measure("shared", metrics);
    // One connection is kept free of writes, which may wait for locks, so that reads go on.
    let writers = max_connections.saturating_sub(1).max(1);
    Ok(DatabaseConnections {
        writer: pool.clone(),
        reader: pool.clone(),
        probe: HealthProbe::postgres(options, pool),
        epoch,
        writers: Writers::Slots(WriteSlots::new(writers as usize, postgres::ACQUIRE_TIMEOUT)),
    })
}

/// The settings of every SQLite connection. `synchronous=FULL` syncs the write-ahead log
/// at each COMMIT, so a write that was answered is durable.
fn sqlite(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(SQLITE_BUSY_TIMEOUT)
        .disable_statement_logging()
}

async fn sqlite_pool(
    connections: u32,
    options: SqliteConnectOptions,
    epoch: &Arc<ConnectionEpoch>,
) -> Result<Database, sqlx::Error> {
    let open_epoch = Arc::clone(epoch);
    let pool = SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(connections)
        .acquire_timeout(SQLITE_WRITE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // SQLite ends a transaction itself on some errors, such as a full disk. sqlx then
        // believes that it is still open and could not begin another one.
        .after_connect(|_, _| {
            metrics::end_connection_wait();
            Box::pin(ready(Ok(())))
        })
        .before_acquire(move |connection, about| {
            let usable = open_epoch.includes(about.age) && !connection.is_in_transaction();
            if usable {
                metrics::end_connection_wait();
            }
            Box::pin(ready(Ok(usable)))
        })
        .connect_with(options)
        .await?;
    Ok(Database {
        connection: SqlxSqliteConnector::from_sqlx_sqlite_pool(pool),
        pooling: Pooling::Session,
        epoch: Arc::clone(epoch),
        pool_name: "unmeasured",
        metrics: None,
    })
}

/// Brings the schema up to date, or refuses an old one.
async fn prepare_schema(db: &Database, migrate: bool) -> Result<(), OpenError> {
    let schema = |err: DbErr| advice::schema_error(&err);
    let transaction = db
        .begin(TransactionOptions::default())
        .await
        .map_err(schema)?;
    let pending = match pending_migrations(&transaction).await {
        Ok(pending) => pending,
        // The database has migrations that this version does not know.
        Err(DbErr::Custom(_)) => return Err(OpenError::UnknownSchema),
        Err(err) => return Err(schema(err)),
    };
    transaction.rollback().await.map_err(schema)?;
    if pending == 0 {
        return Ok(());
    }
    if !migrate {
        return Err(OpenError::OldSchema { pending });
    }
    // When several servers start at once, one migrates while the others wait for it.
    let transaction = db
        .begin(TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        })
        .await
        .map_err(schema)?;
    if super::backend(&transaction) == DbBackend::Postgres {
        // Migrations of another server may take longer than `lock_timeout`.
        let lock =
            format!("SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
        transaction
            .execute_unprepared(&lock)
            .await
            .map_err(schema)?;
    }
    Migrator::up(&transaction, None).await.map_err(schema)?;
    transaction.commit().await.map_err(schema)
}

/// How many migrations the database lacks.
async fn pending_migrations(db: &DatabaseTransaction) -> Result<usize, DbErr> {
    let pending = Migrator::get_pending_migrations_read_only(db).await?;
    Ok(pending.len())
}

/// Reads the secret that seals page tokens.
pub async fn page_key(db: &Database) -> Result<[u8; 32], OpenError> {
    server_key::Entity::find_by_id(PAGE_KEY)
        .one(db)
        .await
        .map_err(|err| advice::schema_error(&err))?
        .and_then(|key| key.value.try_into().ok())
        .ok_or_else(|| {
            OpenError::Schema("the table server_keys has no valid key named page_token".to_owned())
        })
}
