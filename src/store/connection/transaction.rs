//! Transactions.

use std::sync::Arc;

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement, prelude::async_trait,
};
use tokio::sync::Mutex;

use super::{driver::Rows, pool::PooledConnection};
use crate::store::metrics::{StatementKind, StoreMetrics};

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionMode {
    /// All statements read one state of the database.
    Snapshot,
    /// It writes. SQLite takes its write lock at BEGIN.
    Write,
}

impl TransactionMode {
    /// The statement that begins the transaction.
    pub fn begin_sql(self, backend: DbBackend) -> &'static str {
        match (self, backend) {
            // A transaction of SQLite always reads one state.
            (Self::Snapshot, DbBackend::Sqlite) => "BEGIN",
            (Self::Snapshot, _) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            (Self::Write, DbBackend::Sqlite) => "BEGIN IMMEDIATE",
            // After a write has waited for a lock, each of its statements sees what the other
            // write left. One that waits longer than `lock_timeout` is retried while its caller
            // waits. Without the other timeout, locks would stay for hours after the network is
            // cut. PgBouncer may give a session another connection for each transaction, so both
            // are set in the transaction.
            (Self::Write, _) => {
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '2s'; \
                 SET LOCAL idle_in_transaction_session_timeout = '10s'"
            }
        }
    }
}

/// A transaction, which is rolled back when it is dropped.
pub struct Transaction {
    connection: Mutex<PooledConnection>,
    backend: DbBackend,
    metrics: Arc<StoreMetrics>,
}

impl Transaction {
    /// A transaction that has begun on the connection.
    pub fn begun(
        connection: PooledConnection,
        backend: DbBackend,
        metrics: Arc<StoreMetrics>,
    ) -> Self {
        Self {
            connection: Mutex::new(connection),
            backend,
            metrics,
        }
    }

    /// All rows, each as it arrives.
    pub fn rows(&mut self, statement: Statement) -> Result<Rows<'_>, DbErr> {
        self.connection.get_mut().rows(statement)
    }

    pub async fn commit(mut self) -> Result<(), DbErr> {
        self.connection.get_mut().commit().await
    }

    /// Rolls back and waits for the end, so that the locks of a write are free afterwards.
    pub async fn rollback(mut self) -> Result<(), DbErr> {
        self.connection.get_mut().rollback().await
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.connection.get_mut().start_rollback();
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Transaction {
    fn get_database_backend(&self) -> DbBackend {
        self.backend
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        let kind = StatementKind::of(&statement.sql);
        let mut connection = self.connection.lock().await;
        self.metrics
            .measure_statement(kind, connection.execute(statement))
            .await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.connection.lock().await.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let kind = StatementKind::of(&statement.sql);
        let mut connection = self.connection.lock().await;
        self.metrics
            .measure_statement(kind, connection.fetch_optional(statement))
            .await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let kind = StatementKind::of(&statement.sql);
        let mut connection = self.connection.lock().await;
        self.metrics
            .measure_statement(kind, connection.fetch_all(statement))
            .await
    }
}
