//! Opens the connections to SQLite or PostgreSQL and brings the schema up to date.

mod connect_failure;
mod migrations;
mod open_error;
mod postgres;
mod postgres_server;
mod probe;
mod sqlite;

use std::time::{Duration, Instant};

use backon::{ConstantBuilder, Retryable};
use sea_orm::{DatabaseConnection, DbBackend};
use tracing::{info, warn};

use super::WriteMode;
use crate::config::{DatabaseUrl, TableLayout};

use migrations::{is_distributed, page_key, prepare_schema};
use postgres_server::{check_permissions, check_server, serving_permissions};
use probe::HealthProbe;

pub use connect_failure::refusal;
pub use migrations::{SchemaChange, mark_unfinished_copy};
pub use open_error::OpenError;
pub use postgres::Refusals;

/// How long a command waits for a PostgreSQL that cannot be reached.
const MAX_COMMAND_WAIT: Duration = Duration::from_secs(10);
/// The pause between two attempts to reach PostgreSQL.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// How often the log says that PostgreSQL cannot be reached yet.
const WAIT_LOG_INTERVAL: Duration = Duration::from_secs(3);

pub struct ConnectOptions {
    pub max_connections: u32,
    /// Whether to bring the schema up to date, or to refuse an old one.
    pub migrate: bool,
    pub layout: TableLayout,
    /// Whether calls are served. If so, the database user needs permissions on all tables, and an
    /// unreachable PostgreSQL is retried forever.
    pub serves: bool,
    /// How long a call may take.
    pub request_timeout: Duration,
}

impl ConnectOptions {
    /// For a command that exits when its work is done.
    pub fn for_command(migrate: bool) -> Self {
        Self {
            max_connections: 2,
            migrate,
            layout: TableLayout::Plain,
            serves: false,
            request_timeout: Duration::MAX,
        }
    }
}

/// Brings the schema of a database up to date, or creates it in this layout.
pub async fn migrate(
    database: &DatabaseUrl,
    layout: TableLayout,
) -> Result<SchemaChange, OpenError> {
    let options = ConnectOptions {
        layout,
        ..ConnectOptions::for_command(true)
    };
    let connections = connect(database, &options).await?;
    connections.close().await;
    Ok(connections.schema_change)
}

/// Checks whether a server could use a database now, and changes nothing in it. Returns what the
/// server would do to the schema.
pub async fn check(database: &DatabaseUrl, migrate: bool) -> Result<SchemaChange, OpenError> {
    let options = ConnectOptions {
        serves: true,
        ..ConnectOptions::for_command(migrate)
    };
    let db = match database {
        DatabaseUrl::SqliteMemory => return Ok(SchemaChange::Created),
        DatabaseUrl::SqliteFile(path) => match sqlite::open_existing(path, migrate).await? {
            Some(db) => db,
            None => return Ok(SchemaChange::Created),
        },
        DatabaseUrl::Postgres(url) => postgres::open(url, 1).await?.writer,
    };
    let checked = match prepare(&db, &options, migrate, WriteMode::ValidateOnly).await {
        Ok(change @ SchemaChange::Current) => page_key(&db).await.map(|_| change),
        checked => checked,
    };
    let _ = db.close().await;
    checked
}

/// Whether another process has the file of a database open.
pub async fn is_used(database: &DatabaseUrl) -> bool {
    match database {
        DatabaseUrl::SqliteFile(path) => sqlite::is_used(path).await,
        DatabaseUrl::SqliteMemory | DatabaseUrl::Postgres(_) => false,
    }
}

pub struct Pools {
    /// For transactions that write. On SQLite a single connection.
    pub writer: DatabaseConnection,
    /// For reads. On SQLite read-only connections, on PostgreSQL the pool that also writes.
    pub reader: DatabaseConnection,
    pub max_writes: usize,
    /// Closes connections on which a write was refused; only PostgreSQL uses this.
    pub refusals: Refusals,
    pub probe: HealthProbe,
}

/// Connections to a database with the schema of this version.
pub struct Connections {
    pub pools: Pools,
    /// Whether Citus distributes the tables.
    pub is_distributed: bool,
    /// The secret that signs page tokens.
    pub page_key: [u8; 32],
    pub schema_change: SchemaChange,
}

impl Connections {
    /// Each pool with its name in metrics.
    pub fn named_pools(&self) -> Vec<(&'static str, &DatabaseConnection)> {
        let Pools { writer, reader, .. } = &self.pools;
        match writer.get_database_backend() {
            DbBackend::Sqlite => vec![("writer", writer), ("reader", reader)],
            _ => vec![("shared", writer)],
        }
    }

    /// Closes all connections. The writer is closed last, because SQLite moves the write-ahead log
    /// into the file only if the last connection can write.
    pub async fn close(&self) {
        let Pools {
            writer,
            reader,
            probe,
            ..
        } = &self.pools;
        let (HealthProbe::Postgres { pool, .. } | HealthProbe::Sqlite { pool, .. }) = probe;
        for pool in [pool, reader, writer] {
            // The pool is closed even if this returns an error.
            let _ = pool.close_by_ref().await;
        }
    }
}

/// Connects to a database and brings its schema up to date, or refuses an old one. While PostgreSQL
/// cannot be reached, this logs a warning and retries.
pub async fn connect(
    database: &DatabaseUrl,
    options: &ConnectOptions,
) -> Result<Connections, OpenError> {
    let begun = Instant::now();
    let mut logged: Option<Instant> = None;
    let every_interval = ConstantBuilder::new()
        .with_delay(RETRY_INTERVAL)
        .without_max_times();
    let connected = (|| connect_once(database, options))
        .retry(every_interval)
        .when(|error| {
            matches!(error, OpenError::Unreachable(_))
                && (options.serves || begun.elapsed() < MAX_COMMAND_WAIT)
        })
        .notify(|error, _| {
            if logged.is_none_or(|at| at.elapsed() >= WAIT_LOG_INTERVAL) {
                logged = Some(Instant::now());
                warn!("waiting for the database: {error}");
            }
        })
        .await;
    if logged.is_some() && connected.is_ok() {
        info!("the database can be reached again");
    }
    connected
}

async fn connect_once(
    database: &DatabaseUrl,
    options: &ConnectOptions,
) -> Result<Connections, OpenError> {
    let pools = match database {
        DatabaseUrl::Postgres(url) => postgres::open(url, options.max_connections).await?,
        _ if options.layout == TableLayout::Distributed => {
            return Err(OpenError::WrongSetting(
                "--distribute is for PostgreSQL: set EXPERTISE_DATABASE_URL to a PostgreSQL \
                 database, or leave out --distribute"
                    .into(),
            ));
        }
        DatabaseUrl::SqliteFile(path) => sqlite::open_file(path, options).await?,
        DatabaseUrl::SqliteMemory => sqlite::open_memory().await?,
    };
    // An in-memory database is always new.
    let migrate = options.migrate || matches!(database, DatabaseUrl::SqliteMemory);
    let schema_change = prepare(&pools.writer, options, migrate, WriteMode::Store).await?;
    Ok(Connections {
        page_key: page_key(&pools.writer).await?,
        is_distributed: is_distributed(&pools.writer).await?,
        pools,
        schema_change,
    })
}

/// Checks the server and the permissions of its user, if it is PostgreSQL, and prepares the schema.
async fn prepare(
    db: &DatabaseConnection,
    options: &ConnectOptions,
    migrate: bool,
    mode: WriteMode,
) -> Result<SchemaChange, OpenError> {
    let is_postgres = db.get_database_backend() == DbBackend::Postgres;
    if is_postgres {
        check_server(db, options.serves).await?;
    }
    let change = prepare_schema(db, migrate, options.layout, mode).await?;
    if is_postgres && options.serves {
        check_permissions(db, serving_permissions()).await?;
    }
    Ok(change)
}
