//! Opens the connections to SQLite or PostgreSQL and brings the schema up to date.

mod database;
mod driver;
mod message;
mod migrations;
mod open_error;
mod pool;
mod postgres;
mod postgres_server;
mod probe;
mod sqlite;
mod transaction;

use std::{sync::Arc, time::Duration};

use sea_orm::EntityTrait;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::{Writers, metrics::StoreMetrics, schema::entity::server_key, write::WriteSlots};
use crate::config::{DatabaseUrl, PostgresUrl};

use migrations::{
    OldSchemaPolicy, check_schema, is_distributed, prepare_distributed_schema, prepare_schema,
};
pub use migrations::{SchemaChange, mark_unfinished_copy};
use postgres_server::{NeededPermissions, check_permissions, check_server, warn_if_read_only};
use probe::HealthProbe;

pub use database::Database;
pub use driver::PoolSize;
pub use message::{ConnectMessage, SHARED_CONNECTION, is_shared_connection, refusal};
pub use open_error::OpenError;
pub use transaction::{Transaction, TransactionMode};

/// The label in metrics of the connections to PostgreSQL, of reads and of writes.
const POOL: &str = "shared";
/// The name of the key that signs page tokens, in `server_keys`.
const PAGE_KEY: &str = "page_token";
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

/// Checks whether a server could use a database now, and changes nothing in it. Returns what the
/// server would do to the schema.
pub async fn check(database: &DatabaseUrl, migrate: bool) -> Result<SchemaChange, OpenError> {
    let old = OldSchemaPolicy::of_setting(migrate);
    match database {
        DatabaseUrl::SqliteFile(path) => sqlite::check_file(path, old).await,
        DatabaseUrl::SqliteMemory => Ok(SchemaChange::Created),
        DatabaseUrl::Postgres(url) => {
            let (_, pool) = postgres::open(url, 1).await?;
            let checked = check_postgres(&pool, old).await;
            pool.close().await;
            checked
        }
    }
}

async fn check_postgres(pool: &Database, old: OldSchemaPolicy) -> Result<SchemaChange, OpenError> {
    check_server(pool).await?;
    let change = check_schema(pool, old).await?;
    check_permissions(pool, NeededPermissions::Serve).await?;
    warn_if_read_only(pool).await?;
    if change == SchemaChange::Current {
        page_key(pool).await?;
    }
    Ok(change)
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

/// Creates the schema in an empty PostgreSQL database with tables that Citus distributes, or brings
/// such a schema up to date.
pub async fn migrate_distributed(database: &DatabaseUrl) -> Result<SchemaChange, OpenError> {
    let DatabaseUrl::Postgres(url) = database else {
        return Err(OpenError::DistributedSqlite);
    };
    let (_, pool) = postgres::open(url, 1).await?;
    let change = match check_server(&pool).await {
        Ok(()) => prepare_distributed_schema(&pool).await,
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
    /// Slots or queue of writes.
    pub writers: Writers,
    /// Whether the tables are distributed over the nodes of Citus.
    pub is_distributed: bool,
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
        DatabaseUrl::SqliteFile(path) => return sqlite::open_file(path, options).await,
        DatabaseUrl::SqliteMemory => return sqlite::open_memory(&options.metrics).await,
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
    let (options, mut pool) = postgres::open(url, *max_connections).await?;
    check_server(&pool).await?;
    let schema_change = prepare_schema(&pool, OldSchemaPolicy::of_setting(*migrate)).await?;
    if *serves {
        check_permissions(&pool, NeededPermissions::Serve).await?;
        warn_if_read_only(&pool).await?;
    }
    let page_key = page_key(&pool).await?;
    let is_distributed = is_distributed(&pool).await?;
    pool.measure(POOL, metrics);
    let slots = WriteSlots::of_connections(*max_connections as usize, postgres::ACQUIRE_TIMEOUT);
    Ok(DatabaseConnections {
        writer: pool.clone(),
        reader: pool.clone(),
        probe: HealthProbe::postgres(options, pool),
        page_key,
        schema_change,
        is_distributed,
        writers: Writers::Slots(slots),
    })
}

/// Reads the secret that signs page tokens.
pub async fn page_key(db: &Database) -> Result<[u8; 32], OpenError> {
    server_key::Entity::find_by_id(PAGE_KEY)
        .one(db)
        .await
        .map_err(|err| message::schema_error(&err))?
        .and_then(|key| key.value.try_into().ok())
        .ok_or_else(message::no_page_key)
}
