//! A pool of connections to a database, direct or through PgBouncer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use prometheus_client::metrics::histogram::Histogram;
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult, QueryResult,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait, prelude::async_trait,
};
use tracing::Instrument;

use super::{
    driver::DriverPool,
    pool::{Generation, Pool, PooledConnection},
    transaction::{Transaction, TransactionMode},
};
use crate::{
    call_context::CallSpans,
    domain::ids::AccountId,
    store::metrics::{ConnectionWait, StatementKind, StoreMetrics},
};

/// How long a connection of the pool keeps the same connection of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// As long as it is open: prepared statements stay prepared.
    Session,
    /// For one transaction, behind PgBouncer. The next transaction may run on a connection on
    /// which another client prepared statements under the same names.
    Transaction,
}

/// Sent after BEGIN behind PgBouncer. Gives the transaction the settings that a session has
/// otherwise, and removes the prepared statements of other clients.
const TRANSACTION_SETTINGS: &str = "SET LOCAL lock_timeout = '2s'; \
     SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL jit = off; DEALLOCATE ALL";

/// A pool of connections to a database.
///
/// Behind PgBouncer every prepared statement runs in a transaction, and every transaction first
/// deallocates the prepared statements of its connection. Single statements run in a
/// spawned task: a cancelled BEGIN would hold a connection of PgBouncer.
#[derive(Clone)]
pub struct Database {
    pub pool: Pool,
    pub pooling: Pooling,
    /// The pool's label in metrics.
    pub pool_name: &'static str,
    /// How long calls wait for connections of this pool.
    connection_waits: Histogram,
    pub metrics: Arc<StoreMetrics>,
    /// Whose statements it runs. Accounts take turns with the connections.
    account: AccountId,
}

impl Database {
    /// A pool whose metrics nobody reads.
    pub fn new(pool: DriverPool, pooling: Pooling, generation: Arc<Generation>) -> Self {
        let metrics = Arc::<StoreMetrics>::default();
        let pool_name = "unmeasured";
        Self {
            pool: Pool::new(pool, generation),
            pooling,
            pool_name,
            connection_waits: metrics.connection_waits(pool_name),
            metrics,
            account: AccountId::NONE,
        }
    }

    /// From now on records the waits for connections of this pool, its prepared statements and its
    /// commits of writes. Clones made earlier stay unmeasured.
    pub fn measure(&mut self, pool_name: &'static str, metrics: &Arc<StoreMetrics>) {
        self.pool_name = pool_name;
        self.connection_waits = metrics.connection_waits(pool_name);
        self.metrics = Arc::clone(metrics);
    }

    /// The same pool, for statements of an account.
    pub fn for_account(&self, account: &AccountId) -> Self {
        Self {
            account: account.clone(),
            ..self.clone()
        }
    }

    /// Waits for a connection, and records the wait.
    async fn acquire(&self) -> Result<PooledConnection, DbErr> {
        let _wait = ConnectionWait::begin(&self.connection_waits);
        self.pool.acquire(&self.account).await
    }

    /// Begins a transaction in one round trip.
    pub async fn begin(&self, mode: TransactionMode) -> Result<Transaction, DbErr> {
        let mut sql = mode.begin_sql(self.pool.backend()).to_owned();
        if self.pooling == Pooling::Transaction {
            sql.push_str("; ");
            sql.push_str(TRANSACTION_SETTINGS);
        }
        let mut connection = self.acquire().await?;
        if let Err(error) = connection.begin(sql).await {
            // What follows BEGIN may have failed inside the transaction.
            connection.execute_unprepared("ROLLBACK").await.ok();
            return Err(error);
        }
        let (backend, metrics) = (self.pool.backend(), self.metrics.clone());
        Ok(Transaction::begun(connection, backend, metrics))
    }

    /// Begins a transaction of SeaORM, which its migrator needs. Whoever cancels this must not use
    /// the pool again.
    pub async fn begin_seaorm_transaction(
        &self,
        mode: TransactionMode,
    ) -> Result<DatabaseTransaction, DbErr> {
        let pool = self.pool.for_migrations();
        let options = TransactionOptions {
            sqlite_transaction_mode: (mode == TransactionMode::Write)
                .then_some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let transaction = pool.begin_with_options(options).await?;
        // SQLite always reads one state. Before any other statement, and unprepared: another client
        // of PgBouncer may have prepared statements on this connection.
        if mode == TransactionMode::Snapshot && self.get_database_backend() == DbBackend::Postgres {
            let one_state = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
            transaction.execute_unprepared(one_state).await?;
        }
        if self.pooling == Pooling::Transaction {
            transaction.execute_unprepared(TRANSACTION_SETTINGS).await?;
        }
        Ok(transaction)
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Runs one statement in a transaction of its own.
    async fn run_in_transaction<T, F>(&self, run: F) -> Result<T, DbErr>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Transaction) -> BoxFuture<'t, Result<T, DbErr>> + Send + 'static,
    {
        let database = self.clone();
        let task = async move {
            let transaction = database.begin(TransactionMode::Statement).await?;
            let outcome = run(&transaction).await;
            match outcome {
                Ok(_) => transaction.commit().await?,
                // Keep the first error: the connection may be lost.
                Err(_) => drop(transaction.rollback().await),
            }
            outcome
        };
        let task = CallSpans::of_current_call().scope(task);
        tokio::spawn(task.in_current_span())
            .await
            .unwrap_or_else(|_| Err(DbErr::Custom("a statement panicked".to_owned())))
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Database {
    fn get_database_backend(&self) -> DbBackend {
        self.pool.backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        if self.pooling == Pooling::Transaction {
            let run = self.run_in_transaction(move |tx| Box::pin(tx.execute_raw(statement)));
            return run.await;
        }
        let kind = StatementKind::of(&statement.sql);
        let mut connection = self.acquire().await?;
        self.metrics
            .measure_statement(kind, connection.execute(statement))
            .await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.acquire().await?.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        if self.pooling == Pooling::Transaction {
            let run = self.run_in_transaction(move |tx| Box::pin(tx.query_one_raw(statement)));
            return run.await;
        }
        let kind = StatementKind::of(&statement.sql);
        let mut connection = self.acquire().await?;
        self.metrics
            .measure_statement(kind, connection.fetch_optional(statement))
            .await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        if self.pooling == Pooling::Transaction {
            let run = self.run_in_transaction(move |tx| Box::pin(tx.query_all_raw(statement)));
            return run.await;
        }
        let kind = StatementKind::of(&statement.sql);
        let mut connection = self.acquire().await?;
        self.metrics
            .measure_statement(kind, connection.fetch_all(statement))
            .await
    }
}

#[cfg(test)]
mod tests;
