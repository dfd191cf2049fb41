//! The tables and connections of the floor.

use std::str::FromStr;

use sqlx::{
    AssertSqlSafe, ConnectOptions, Executor, PgPool, SqlitePool,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

/// The distance between positions, as in the service.
pub const GAP: i64 = 1 << 20;

/// Numbers of connections, as in the service.
const SQLITE_READERS: u32 = 4;
const POSTGRES_CONNECTIONS: u32 = 16;

/// The statements for the tables; `BYTES` stands for the type of binary columns, and `SEQUENCE` for
/// that of numbers which the database draws.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS tasks (
    account_id varchar(64) NOT NULL, guid uuid NOT NULL, name text NOT NULL,
    product_id bigint NOT NULL, kind integer NOT NULL, published integer NOT NULL,
    roles BYTES NOT NULL, dependencies text, parent_guid uuid, idx integer NOT NULL,
    step_count bigint NOT NULL, last_position bigint NOT NULL, etag text NOT NULL,
    dirty_record boolean NOT NULL, mvn_indexed boolean NOT NULL, mvn_version bigint NOT NULL,
    mvn_info text NOT NULL, mvn_ts bigint, created_ts bigint NOT NULL,
    modified_ts bigint NOT NULL, PRIMARY KEY (account_id, guid));
CREATE TABLE IF NOT EXISTS steps (
    account_id varchar(64) NOT NULL, guid uuid NOT NULL, task uuid NOT NULL,
    position bigint NOT NULL, kind integer NOT NULL, product_id bigint NOT NULL,
    title text NOT NULL, cost integer NOT NULL, published integer NOT NULL, dependencies text,
    feedback_config text, instructions text, looping text, parts text, skills text, tags text,
    subtask_id uuid, subtask_pid bigint, link uuid, r_data text, translations text,
    etag text NOT NULL, dirty_record boolean NOT NULL, created_ts bigint NOT NULL,
    modified_ts bigint NOT NULL, body text, PRIMARY KEY (account_id, guid));
CREATE INDEX IF NOT EXISTS steps_order ON steps (account_id, task, position);
CREATE TABLE IF NOT EXISTS step_translations (
    account_id varchar(64) NOT NULL, step uuid NOT NULL, language text NOT NULL,
    locked boolean NOT NULL, title text, body text, source_digest text NOT NULL,
    PRIMARY KEY (account_id, step, language));
CREATE TABLE IF NOT EXISTS changes (
    seq SEQUENCE, position bigint, version bigint, changed_ts bigint NOT NULL,
    transaction_id uuid NOT NULL, task uuid NOT NULL, step uuid,
    transaction_size integer NOT NULL, step_count integer NOT NULL, kind smallint NOT NULL,
    rpc smallint NOT NULL, account_id varchar(64) NOT NULL, fields text NOT NULL,
    subject text NOT NULL);
CREATE INDEX IF NOT EXISTS changes_new ON changes (account_id, seq) WHERE position IS NULL;
";

/// A database of the floor.
#[derive(Clone)]
pub enum Database {
    /// A file, with one connection that writes and some that read.
    Sqlite {
        reader: SqlitePool,
        writer: SqlitePool,
    },
    /// A server.
    Postgres(PgPool),
}

/// Runs a query on the pool for reads or writes of either database.
macro_rules! with_pool {
    ($database:expr, $role:ident, |$pool:ident| $query:expr) => {
        match $database {
            $crate::floor::schema::Database::Sqlite { $role: $pool, .. } => {
                $query.await.expect("SQLite answers")
            }
            $crate::floor::schema::Database::Postgres($pool) => {
                $query.await.expect("PostgreSQL answers")
            }
        }
    };
}
pub(super) use with_pool;

impl Database {
    /// Opens the database and creates its tables.
    pub async fn open(url: &str) -> Self {
        match url.strip_prefix("sqlite:") {
            Some(path) => Self::sqlite(path).await,
            None => Self::postgres(url).await,
        }
    }

    async fn sqlite(path: &str) -> Self {
        let file = SqliteConnectOptions::new()
            .filename(path)
            .synchronous(SqliteSynchronous::Full)
            .disable_statement_logging();
        let writing = file
            .clone()
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal);
        let pool = |connections| {
            SqlitePoolOptions::new()
                .max_connections(connections)
                .test_before_acquire(false)
        };
        let writer = pool(1).connect_with(writing).await.expect("the file");
        let tables = TABLES.replace("BYTES", "blob");
        let tables = tables.replace("SEQUENCE", "integer PRIMARY KEY");
        let made = writer.execute(AssertSqlSafe(tables)).await;
        made.expect("tables");
        let reading = pool(SQLITE_READERS).connect_with(file.read_only(true));
        Self::Sqlite {
            reader: reading.await.expect("the file"),
            writer,
        }
    }

    async fn postgres(url: &str) -> Self {
        let options = PgConnectOptions::from_str(url).expect("a URL");
        let pool = PgPoolOptions::new()
            .max_connections(POSTGRES_CONNECTIONS)
            .test_before_acquire(false)
            .connect_with(options.disable_statement_logging());
        let pool = pool.await.expect("the server");
        let tables = TABLES.replace("BYTES", "bytea");
        let tables = tables.replace("SEQUENCE", "bigserial PRIMARY KEY");
        let made = pool.execute(AssertSqlSafe(tables)).await;
        made.expect("tables");
        Self::Postgres(pool)
    }
}
