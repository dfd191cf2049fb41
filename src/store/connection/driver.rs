//! The driver's pools and connections, which run SeaORM's statements.
//!
//! SeaORM's own executor would copy the text and the values of each statement, such as a
//! body of 16 MB, and begins a transaction with an isolation level in two round trips.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use sea_orm::{
    ConnAcquireErr, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr,
    SqlxPostgresConnector, SqlxSqliteConnector, Statement, Values,
};
use sea_query_sqlx::SqlxValues;
use sqlx::{
    AssertSqlSafe, Connection, Executor, PgPool, Postgres, SqlSafeStr, SqlStr, Sqlite, SqlitePool,
    pool::PoolConnection, query_with, raw_sql,
};
use sqlx_core::transaction::TransactionManager;

/// The pool of either driver.
#[derive(Clone)]
pub enum DriverPool {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

/// How many connections a pool has.
pub struct PoolSize {
    /// Connections that are open.
    pub open: u32,
    /// Those of them that are not in use.
    pub idle: usize,
    /// Most connections.
    pub max: u32,
}

/// Rows that are read one after the other.
pub type Rows<'c> = BoxStream<'c, Result<QueryResult, DbErr>>;

/// A connection of either driver, which returns to its pool when it is dropped.
pub enum DriverConnection {
    Postgres(PoolConnection<Postgres>),
    Sqlite(PoolConnection<Sqlite>),
}

/// Evaluates an expression for the pool or connection of either driver.
macro_rules! for_driver {
    ($self:expr, $inner:ident => $result:expr) => {
        match $self {
            Self::Postgres($inner) => $result,
            Self::Sqlite($inner) => $result,
        }
    };
}

impl DriverPool {
    pub fn backend(&self) -> DbBackend {
        match self {
            Self::Postgres(_) => DbBackend::Postgres,
            Self::Sqlite(_) => DbBackend::Sqlite,
        }
    }

    pub fn size(&self) -> PoolSize {
        for_driver!(self, pool => PoolSize {
            open: pool.size(),
            idle: pool.num_idle(),
            max: pool.options().get_max_connections(),
        })
    }

    /// How long to wait for a connection.
    pub fn acquire_timeout(&self) -> Duration {
        for_driver!(self, pool => pool.options().get_acquire_timeout())
    }

    /// The pool as SeaORM's migrations need it.
    pub fn for_migrations(&self) -> DatabaseConnection {
        match self {
            Self::Postgres(pool) => SqlxPostgresConnector::from_sqlx_postgres_pool(pool.clone()),
            Self::Sqlite(pool) => SqlxSqliteConnector::from_sqlx_sqlite_pool(pool.clone()),
        }
    }

    pub async fn close(&self) {
        for_driver!(self, pool => pool.close().await);
    }

    /// Waits for a connection.
    pub async fn acquire(&self) -> Result<DriverConnection, DbErr> {
        let acquired = match self {
            Self::Postgres(pool) => pool.acquire().await.map(DriverConnection::Postgres),
            Self::Sqlite(pool) => pool.acquire().await.map(DriverConnection::Sqlite),
        };
        acquired.map_err(|error| match error {
            sqlx::Error::PoolTimedOut => DbErr::ConnectionAcquire(ConnAcquireErr::Timeout),
            sqlx::Error::PoolClosed => DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed),
            error => DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))),
        })
    }
}

impl DriverConnection {
    pub async fn execute(&mut self, statement: Statement) -> Result<ExecResult, DbErr> {
        let (sql, values) = sql_and_values(statement);
        for_driver!(self, connection => {
            let executed = query_with(sql, values).execute(&mut **connection).await;
            executed.map(ExecResult::from).map_err(query_error)
        })
    }

    /// Runs statements that have no values, without preparing them.
    pub async fn execute_unprepared(&mut self, sql: &str) -> Result<ExecResult, DbErr> {
        let sql = AssertSqlSafe(sql.to_owned());
        for_driver!(self, connection => {
            let executed = connection.execute(raw_sql(sql)).await;
            executed.map(ExecResult::from).map_err(query_error)
        })
    }

    /// The first row, or `None`.
    pub async fn fetch_optional(
        &mut self,
        statement: Statement,
    ) -> Result<Option<QueryResult>, DbErr> {
        let (sql, values) = sql_and_values(statement);
        for_driver!(self, connection => {
            let row = query_with(sql, values).fetch_optional(&mut **connection).await;
            row.map(|row| row.map(QueryResult::from)).map_err(query_error)
        })
    }

    /// All rows.
    pub async fn fetch_all(&mut self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let (sql, values) = sql_and_values(statement);
        for_driver!(self, connection => {
            let rows = query_with(sql, values).fetch_all(&mut **connection).await;
            rows.map(|rows| rows.into_iter().map(QueryResult::from).collect()).map_err(query_error)
        })
    }

    /// All rows, each as it arrives.
    pub fn rows(&mut self, statement: Statement) -> Rows<'_> {
        let (sql, values) = sql_and_values(statement);
        for_driver!(self, connection => {
            let rows = query_with(sql, values).fetch(&mut **connection);
            rows.map_ok(QueryResult::from).map_err(query_error).boxed()
        })
    }

    /// Begins a transaction. `sql` is its BEGIN and the statements, if any, that are sent with it.
    pub async fn begin(&mut self, sql: String) -> Result<(), DbErr> {
        let sql = AssertSqlSafe(sql).into_sql_str();
        for_driver!(self, connection => begin(connection, sql).await.map_err(query_error))
    }

    pub async fn commit(&mut self) -> Result<(), DbErr> {
        for_driver!(self, connection => commit(connection).await.map_err(query_error))
    }

    pub async fn rollback(&mut self) -> Result<(), DbErr> {
        for_driver!(self, connection => rollback(connection).await.map_err(query_error))
    }

    /// Frees what buffers take beyond their usual size. Otherwise they stay as large as the
    /// largest body that they held.
    pub fn shrink_buffers(&mut self) {
        for_driver!(self, connection => connection.shrink_buffers());
    }

    /// Has the connection closed when it is dropped, and not returned to its pool.
    pub fn close_on_drop(&mut self) {
        for_driver!(self, connection => connection.close_on_drop());
    }

    /// Has the driver roll back an open transaction before it uses the connection again.
    pub fn start_rollback(&mut self) {
        for_driver!(self, connection => start_rollback(connection));
    }
}

async fn begin<DB: sqlx::Database>(
    connection: &mut PoolConnection<DB>,
    sql: SqlStr,
) -> Result<(), sqlx::Error> {
    DB::TransactionManager::begin(connection, Some(sql)).await
}

async fn commit<DB: sqlx::Database>(
    connection: &mut PoolConnection<DB>,
) -> Result<(), sqlx::Error> {
    DB::TransactionManager::commit(connection).await
}

async fn rollback<DB: sqlx::Database>(
    connection: &mut PoolConnection<DB>,
) -> Result<(), sqlx::Error> {
    DB::TransactionManager::rollback(connection).await
}

fn start_rollback<DB: sqlx::Database>(connection: &mut PoolConnection<DB>) {
    DB::TransactionManager::start_rollback(connection);
}

/// The text of a statement, and its values for the driver.
fn sql_and_values(Statement { sql, values, .. }: Statement) -> (AssertSqlSafe<String>, SqlxValues) {
    let values = values.unwrap_or_else(|| Values(Vec::new()));
    (AssertSqlSafe(sql), SqlxValues(values))
}

fn query_error(error: sqlx::Error) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(Arc::new(error)))
}
