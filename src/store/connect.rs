//! Opens the connections to SQLite or PostgreSQL and brings the schema up to date.

mod message;
mod migrations;
mod open_error;
mod postgres;
mod postgres_server;
mod probe;
mod sqlite;

use std::{sync::Arc, time::Duration};

use sea_orm::{DatabaseConnection, DbBackend, EntityTrait};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::{
    entity::server_key,
    metrics::{PoolSize, StoreMetrics},
};
use crate::config::{DatabaseUrl, PostgresUrl};

use migrations::{
    OldSchemaPolicy, check_schema, is_distributed, prepare_distributed_schema, prepare_schema,
};
pub use migrations::{SchemaChange, mark_unfinished_copy};
use postgres_server::{NeededPermissions, check_permissions, check_server, warn_if_read_only};
use probe::HealthProbe;

pub use message::{ConnectMessage, SHARED_CONNECTION, is_shared_connection, refusal};
pub use open_error::OpenError;
pub use postgres::Refusals;

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
    let old = OldSchemaPolicy::for_setting(migrate);
    match database {
        DatabaseUrl::SqliteFile(path) => sqlite::check_file(path, old).await,
        DatabaseUrl::SqliteMemory => Ok(SchemaChange::Created),
        DatabaseUrl::Postgres(url) => {
            let pool = postgres::open(url, 1).await?.pool;
            let checked = check_postgres(&pool, old).await;
            let _ = pool.close().await;
            checked
        }
    }
}

async fn check_postgres(
    pool: &DatabaseConnection,
    old: OldSchemaPolicy,
) -> Result<SchemaChange, OpenError> {
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
    /// The maximum number of connections to PostgreSQL.
    pub max_connections: u32,
    /// Whether to bring the schema up to date, or to refuse an old one.
    pub migrate: bool,
    /// Whether calls are served, so that the user needs permissions on all tables.
    pub serves: bool,
    /// How long to wait for a PostgreSQL that cannot be reached; `None` waits forever.
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
    let pool = postgres::open(url, 1).await?.pool;
    let change = match check_server(&pool).await {
        Ok(()) => prepare_distributed_schema(&pool).await,
        Err(error) => Err(error),
    };
    let _ = pool.close().await;
    change
}

/// Connections to a database with the schema of this version.
pub struct Connections {
    /// For transactions that write. On SQLite a single connection.
    pub writer: DatabaseConnection,
    /// For reads. On SQLite read-only connections, on PostgreSQL the pool that also writes.
    pub reader: DatabaseConnection,
    /// The maximum number of writes that run concurrently.
    pub max_writes: usize,
    /// Closes connections on which a write was refused; PostgreSQL only.
    pub refusals: Option<Refusals>,
    /// For checks of the database's health.
    pub probe: HealthProbe,
    /// Whether Citus distributes the tables.
    pub is_distributed: bool,
    /// The secret that signs page tokens.
    pub page_key: [u8; 32],
    /// What was done to the schema.
    pub schema_change: SchemaChange,
}

impl Connections {
    /// Records the size and use of each pool.
    pub fn sample_pools(&self, metrics: &StoreMetrics) {
        for (name, pool) in self.pools() {
            metrics.sample_pool(name, &pool_size(pool));
        }
    }

    fn pools(&self) -> Vec<(&'static str, &DatabaseConnection)> {
        match self.refusals {
            Some(_) => vec![(POOL, &self.writer)],
            None => vec![("writer", &self.writer), ("reader", &self.reader)],
        }
    }

    /// Closes all connections. The writer is closed last: SQLite moves the write-ahead
    /// log into the file when its last connection is a writing one.
    pub async fn close(&self) {
        self.probe.close().await;
        // The pool is closed even if this reports an error.
        let _ = self.reader.close_by_ref().await;
        let _ = self.writer.close_by_ref().await;
    }
}

fn pool_size(db: &DatabaseConnection) -> PoolSize {
    macro_rules! size {
        ($pool:expr) => {
            PoolSize {
                open: $pool.size(),
                idle: $pool.num_idle(),
                max: $pool.options().get_max_connections(),
            }
        };
    }
    match db.get_database_backend() {
        DbBackend::Sqlite => size!(db.get_sqlite_connection_pool()),
        _ => size!(db.get_postgres_connection_pool()),
    }
}

/// Connects to a database and brings its schema up to date, or refuses an old one. While PostgreSQL
/// cannot be reached, this logs a warning and retries.
pub async fn connect(
    database: &DatabaseUrl,
    options: &ConnectOptions,
) -> Result<Connections, OpenError> {
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
                    info!("the database can be reached again");
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
) -> Result<Connections, OpenError> {
    let ConnectOptions {
        max_connections,
        migrate,
        serves,
        max_wait: _,
        metrics,
    } = options;
    let postgres::Opened {
        options,
        mut pool,
        refusals,
    } = postgres::open(url, *max_connections).await?;
    check_server(&pool).await?;
    let schema_change = prepare_schema(&pool, OldSchemaPolicy::for_setting(*migrate)).await?;
    if *serves {
        check_permissions(&pool, NeededPermissions::Serve).await?;
        warn_if_read_only(&pool).await?;
    }
    let page_key = page_key(&pool).await?;
    let is_distributed = is_distributed(&pool).await?;
    metrics.measure(&mut pool);
    Ok(Connections {
        writer: pool.clone(),
        reader: pool.clone(),
        // One connection is left for reads while writes wait for locks.
        max_writes: (*max_connections as usize).saturating_sub(1).max(1),
        refusals: Some(refusals),
        probe: HealthProbe::postgres(options, pool),
        page_key,
        schema_change,
        is_distributed,
    })
}

/// Reads the secret that signs page tokens, which belongs to no account.
#[allow(clippy::disallowed_methods)]
pub async fn page_key(db: &DatabaseConnection) -> Result<[u8; 32], OpenError> {
    server_key::Entity::find_by_id(PAGE_KEY)
        .one(db)
        .await
        .map_err(|err| message::schema_error(&err))?
        .and_then(|key| key.value.try_into().ok())
        .ok_or_else(message::no_page_key)
}
