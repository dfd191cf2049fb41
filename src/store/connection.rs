//! Connections to the two databases.

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

use database::Link;
use probe::HealthProbe;

pub use database::Database;
pub use epoch::ConnectionEpoch;
pub use replica::{Replica, ReplicaOrPrimary, ReplicaSettings};

/// Name of the key that seals page tokens.
const PAGE_KEY: &str = "page_token";
/// How many reads SQLite serves at once.
const SQLITE_READERS: u32 = 4;
/// How long a write waits for another process that holds the SQLite file.
const SQLITE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a write waits for its turn on SQLite's one writing connection. All
/// writes pass there, large ones too, so a queue is no sign of trouble as it is
/// with [`postgres::ACQUIRE_TIMEOUT`].
const SQLITE_WRITE_WAIT: Duration = Duration::from_secs(15);
/// Key of the PostgreSQL advisory lock under which one server migrates.
const MIGRATION_LOCK: i64 = 0x6578_7065_7274_6973;

/// Why the database cannot be used. One line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address cannot be read.
    #[error(
        "EXPERTISE_DATABASE_URL cannot be read: see its port and its parametricss, such as sslmode=require"
    )]
    Address,
    /// The SQLite file cannot be opened or created.
    #[error("EXPERTISE_DATABASE_URL names the file {path}, which cannot be used: {why}")]
    File {
        /// The file.
        path: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// PostgreSQL does not let us in.
    #[error("EXPERTISE_DATABASE_URL names {place}, which cannot be used: {why}")]
    Connect {
        /// The database, without user and password.
        place: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The schema has migrations that this version does not know.
    #[error(
        "the database was made by a version whose schema this one does not know: run that version, or name another database in EXPERTISE_DATABASE_URL"
    )]
    UnknownSchema,
    /// The schema is older than this version and may not be changed.
    #[error(
        "the database schema is not the one of this version ({pending} migrations to go): run `expertise migrate`, or set EXPERTISE_MIGRATE=true"
    )]
    OldSchema {
        /// How many migrations are missing.
        pending: usize,
    },
    /// The schema cannot be made or read.
    #[error("cannot bring the database schema up to date: {0}")]
    Schema(String),
}

/// Brings the schema of a database up to date.
pub async fn migrate(database: &DatabaseUrl) -> Result<(), OpenError> {
    let metrics = Arc::default();
    connect(database, 1, true, &metrics).await?.close().await;
    Ok(())
}

/// A database whose schema is that of this version.
pub struct Connections {
    /// For transactions that write. On SQLite a single connection.
    pub writer: Database,
    /// For reads. On SQLite read-only connections, on PostgreSQL the same pool.
    pub reader: Database,
    /// For the question whether it answers.
    pub probe: HealthProbe,
    /// Which connections may be used.
    pub epoch: Arc<ConnectionEpoch>,
    /// Who writes.
    pub writers: Writers,
}

impl Connections {
    /// Samples the pools.
    pub fn sample_pools(&self, metrics: &StoreMetrics) {
        for database in [&self.writer, &self.reader] {
            metrics.sample_pool(database.pool, &database.connection);
        }
    }

    /// Closes all of them. SQLite folds the write-ahead log in with the last one,
    /// which must be the one that writes.
    pub async fn close(&self) {
        self.probe.close().await;
        self.reader.close().await;
        self.writer.close().await;
    }
}

pub async fn connect(
    database: &DatabaseUrl,
    max_connections: u32,
    migrate: bool,
    metrics: &Arc<StoreMetrics>,
) -> Result<Connections, OpenError> {
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
) -> Result<Connections, OpenError> {
    let epoch = Arc::new(ConnectionEpoch::new());
    let refused = |err| advice::of_file(path, &err);
    let file = || SqliteConnectOptions::new().filename(path);
    let options = sqlite(file())
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let mut writer = sqlite_pool(1, options, &epoch).await.map_err(refused)?;
    prepare_schema(&writer, migrate).await?;
    writer.measure("writer", metrics);
    let reading = || sqlite(file()).read_only(true);
    let reader = sqlite_pool(SQLITE_READERS, reading(), &epoch);
    let mut reader = reader.await.map_err(refused)?;
    reader.measure("reader", metrics);
    let probe = sqlite_pool(1, reading(), &epoch);
    let probe = probe.await.map_err(refused)?;
    Ok(Connections {
        writers: Writers::Queue(WriteQueue::on(writer.clone(), SQLITE_WRITE_WAIT)),
        writer,
        reader,
        probe: HealthProbe::Sqlite(probe),
        epoch,
    })
}

/// The database lives and dies with its one connection.
async fn sqlite_memory(metrics: &Arc<StoreMetrics>) -> Result<Connections, OpenError> {
    let epoch = Arc::new(ConnectionEpoch::new());
    let options =
        SqliteConnectOptions::from_str("sqlite::memory:").map_err(|_| OpenError::Address)?;
    let mut writer = sqlite_pool(1, sqlite(options), &epoch)
        .await
        .map_err(|err| advice::of_file(Path::new(":memory:"), &err))?;
    prepare_schema(&writer, true).await?;
    writer.measure("shared", metrics);
    Ok(Connections {
        writers: Writers::Queue(WriteQueue::on(writer.clone(), SQLITE_WRITE_WAIT)),
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
) -> Result<Connections, OpenError> {
    let epoch = Arc::new(ConnectionEpoch::new());
    let options = postgres::options(url)?;
    let place = url.place();
    let refused = |err| advice::of_postgres(&place, &err);
    let link = postgres::link(options, url.pgbouncer()).await;
    let (options, link) = link.map_err(refused)?;
    let pool = postgres::open(options.clone(), link, max_connections, &epoch).await;
    let mut pool = pool.map_err(refused)?;
    prepare_schema(&pool, migrate).await?;
    pool.measure("shared", metrics);
    // Writes that wait for a lock leave reads a connection, where there are two.
    let writers = max_connections.saturating_sub(1).max(1);
    Ok(Connections {
        writer: pool.clone(),
        reader: pool.clone(),
        probe: HealthProbe::of_postgres(options, pool),
        epoch,
        writers: Writers::Slots(WriteSlots::new(writers as usize, postgres::ACQUIRE_TIMEOUT)),
    })
}

/// What SQLite files and connections have in common. An answer OK means durable:
/// `synchronous=FULL` syncs the log at each commit.
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
    let at_hand = Arc::clone(epoch);
    let pool = SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(connections)
        .acquire_timeout(SQLITE_WRITE_WAIT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // SQLite ends a transaction by itself when the disk is full, say. sqlx
        // does not hear of it, and would never begin one on this connection again.
        .after_connect(|_, _| {
            metrics::has_connection();
            Box::pin(ready(Ok(())))
        })
        .before_acquire(move |connection, about| {
            let usable = at_hand.includes(about.age) && !connection.is_in_transaction();
            if usable {
                metrics::has_connection();
            }
            Box::pin(ready(Ok(usable)))
        })
        .connect_with(options)
        .await?;
    Ok(Database {
        connection: SqlxSqliteConnector::from_sqlx_sqlite_pool(pool),
        link: Link::Direct,
        epoch: Arc::clone(epoch),
        pool: "unmeasured",
        metrics: None,
    })
}

/// Brings the schema up to date, or refuses one that is not.
async fn prepare_schema(db: &Database, migrate: bool) -> Result<(), OpenError> {
    let schema = |err: DbErr| advice::of_schema(&err);
    let look = db
        .begin(TransactionOptions::default())
        .await
        .map_err(schema)?;
    let pending = match pending(&look).await {
        Ok(pending) => pending,
        // There are migrations that this version does not know.
        Err(DbErr::Custom(_)) => return Err(OpenError::UnknownSchema),
        Err(err) => return Err(schema(err)),
    };
    look.rollback().await.map_err(schema)?;
    if pending == 0 {
        return Ok(());
    }
    if !migrate {
        return Err(OpenError::OldSchema { pending });
    }
    // Several servers may start at once: one migrates, the others wait and find
    // nothing left to do.
    let transaction = db
        .begin(TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        })
        .await
        .map_err(schema)?;
    if super::backend(&transaction) == DbBackend::Postgres {
        // Whoever migrates may take its time.
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

/// How many migrations are missing.
async fn pending(db: &DatabaseTransaction) -> Result<usize, DbErr> {
    let pending = Migrator::get_pending_migrations_read_only(db).await?;
    Ok(pending.len())
}

/// The secret under which page tokens are sealed.
pub async fn page_key(db: &Database) -> Result<[u8; 32], OpenError> {
    server_key::Entity::find_by_id(PAGE_KEY)
        .one(db)
        .await
        .map_err(|err| advice::of_schema(&err))?
        .and_then(|key| key.value.try_into().ok())
        .ok_or_else(|| OpenError::Schema("the key of page tokens is missing".to_owned()))
}
