//! Connections to the two databases.

use std::{path::Path, str::FromStr, time::Duration};

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, DbErr, EntityTrait, SqliteTransactionMode,
    SqlxPostgresConnector, SqlxSqliteConnector, TransactionOptions, TransactionTrait,
};
use sea_orm_migration::MigratorTrait;
use sqlx::{
    ConnectOptions, Executor,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{PAGE_KEY, entity::server_key, migration::Migrator};
use crate::config::DatabaseUrl;

/// How many reads SQLite serves at once.
const SQLITE_READERS: u32 = 4;
/// How long a write waits for another process that holds the SQLite file.
const SQLITE_BUSY: Duration = Duration::from_secs(5);
/// How long a call waits for a connection before it answers UNAVAILABLE.
const ACQUIRE: Duration = Duration::from_secs(10);
/// Key of the PostgreSQL advisory lock under which one server migrates.
const MIGRATION_LOCK: i64 = 0x6578_7065_7274_6973;

/// Why the database cannot be used. One line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address cannot be read.
    #[error(
        "the database address cannot be read: use sqlite:PATH, sqlite::memory: or postgres://USER@HOST/NAME"
    )]
    Address,
    /// The SQLite file cannot be opened or created.
    #[error("cannot open or create the database file {path}: {why}")]
    File {
        /// The file.
        path: String,
        /// What the system says.
        why: String,
    },
    /// PostgreSQL does not let us in.
    #[error("cannot connect to PostgreSQL: {0}")]
    Connect(String),
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
    let (writer, reader) = connect(database, 1, true).await?;
    let _ = reader.close().await;
    let _ = writer.close().await;
    Ok(())
}

/// The writing and the reading side of a database whose schema is that of this
/// version.
pub(super) async fn connect(
    database: &DatabaseUrl,
    max_connections: u32,
    migrate: bool,
) -> Result<(DatabaseConnection, DatabaseConnection), OpenError> {
    match database {
        DatabaseUrl::SqliteFile(path) => {
            let file = || SqliteConnectOptions::new().filename(path);
            let options = sqlite(file())
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal);
            let writer = sqlite_pool(1, options)
                .await
                .map_err(|err| file_error(path, &err))?;
            prepare_schema(&writer, migrate).await?;
            let options = sqlite(file()).read_only(true);
            let reader = sqlite_pool(SQLITE_READERS, options)
                .await
                .map_err(|err| file_error(path, &err))?;
            Ok((writer, reader))
        }
        DatabaseUrl::SqliteMemory => {
            // The database lives and dies with its one connection.
            let options = SqliteConnectOptions::from_str("sqlite::memory:")
                .map_err(|_| OpenError::Address)?;
            let writer = sqlite_pool(1, sqlite(options))
                .await
                .map_err(|err| file_error(Path::new(":memory:"), &err))?;
            prepare_schema(&writer, true).await?;
            Ok((writer.clone(), writer))
        }
        DatabaseUrl::Postgres(url) => {
            let pool = postgres(url, max_connections).await?;
            prepare_schema(&pool, migrate).await?;
            Ok((pool.clone(), pool))
        }
    }
}

fn file_error(path: &Path, err: &sqlx::Error) -> OpenError {
    OpenError::File {
        path: path.display().to_string(),
        why: cause(err),
    }
}

/// What SQLite files and connections have in common. An answer OK means durable:
/// `synchronous=FULL` syncs the log at each commit.
fn sqlite(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(SQLITE_BUSY)
        .disable_statement_logging()
}

async fn sqlite_pool(
    connections: u32,
    options: SqliteConnectOptions,
) -> Result<DatabaseConnection, sqlx::Error> {
    let pool = SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(connections)
        .acquire_timeout(ACQUIRE)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_with(options)
        .await?;
    Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool))
}

async fn postgres(url: &str, max_connections: u32) -> Result<DatabaseConnection, OpenError> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| OpenError::Address)?
        .application_name("expertise")
        .disable_statement_logging();
    let pool = PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE)
        .test_before_acquire(false)
        // A `begin()` that was cancelled half-way leaves a connection in a
        // transaction that sqlx does not know of; the next write would be
        // acknowledged and never committed. This pair ends any such
        // transaction, is silent when there is none, and shows that the
        // connection lives.
        .before_acquire(|connection, _| {
            Box::pin(async move {
                connection.execute("BEGIN; ROLLBACK").await?;
                Ok(true)
            })
        })
        .connect_with(options)
        .await
        .map_err(|err| OpenError::Connect(cause(&err)))?;
    Ok(SqlxPostgresConnector::from_sqlx_postgres_pool(pool))
}

/// What the database or the system says, in one line.
fn cause(err: &sqlx::Error) -> String {
    let text = match err {
        sqlx::Error::Database(err) => err.message().to_owned(),
        sqlx::Error::Io(err) => err.to_string(),
        sqlx::Error::PoolTimedOut => "no answer".to_owned(),
        other => other.to_string(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}

/// Brings the schema up to date, or refuses one that is not.
async fn prepare_schema(db: &DatabaseConnection, migrate: bool) -> Result<(), OpenError> {
    let schema = |err: DbErr| OpenError::Schema(err.to_string());
    let pending = Migrator::get_pending_migrations_read_only(db)
        .await
        .map_err(schema)?
        .len();
    if pending == 0 {
        return Ok(());
    }
    if !migrate {
        return Err(OpenError::OldSchema { pending });
    }
    // Several servers may start at once: one migrates, the others wait and find
    // nothing left to do.
    let transaction = db
        .begin_with_options(TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        })
        .await
        .map_err(schema)?;
    if super::backend(&transaction) == DbBackend::Postgres {
        let lock = format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
        transaction
            .execute_unprepared(&lock)
            .await
            .map_err(schema)?;
    }
    Migrator::up(&transaction, None).await.map_err(schema)?;
    transaction.commit().await.map_err(schema)
}

/// The secret under which page tokens are sealed.
pub(super) async fn page_key(db: &DatabaseConnection) -> Result<[u8; 32], OpenError> {
    server_key::Entity::find_by_id(PAGE_KEY)
        .one(db)
        .await
        .map_err(|err| OpenError::Schema(err.to_string()))?
        .and_then(|key| key.value.try_into().ok())
        .ok_or_else(|| OpenError::Schema("the key of page tokens is missing".to_owned()))
}
