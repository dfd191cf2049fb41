//! A pool of connections to a database, direct or through PgBouncer.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use prometheus_client::metrics::histogram::Histogram;
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult,
    QueryResult, SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait,
    prelude::async_trait,
};
use tracing::Instrument;

use super::{
    driver::DriverPool,
    epoch::ConnectionEpoch,
    no_connection::NoConnectionLog,
    pool::{Pool, PooledConnection},
    transaction::{Purpose, Transaction},
};
use crate::{
    call_context::CallSpans,
    store::metrics::{ConnectionWait, StatementKind, StoreMetrics, measure_statement},
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
    /// Decides which open connections may still be used.
    pub epoch: Arc<ConnectionEpoch>,
    /// The pool's label in metrics.
    pub pool_name: &'static str,
    /// How long calls wait for connections of this pool.
    connection_waits: Option<Histogram>,
    metrics: Option<Arc<StoreMetrics>>,
    no_connection: NoConnectionLog,
}

/// A BEGIN in progress.
///
/// *Invariant:* a connection on which a BEGIN was cancelled is never used again. sqlx
/// returns it to the pool inside an unknown transaction, in which the next write would be
/// acknowledged and never committed. So all open connections are invalidated before it is
/// returned.
struct BeginGuard<'a, F> {
    begin: Pin<Box<F>>,
    epoch: &'a ConnectionEpoch,
    ended: bool,
}

impl<'a, F> BeginGuard<'a, F> {
    fn new(epoch: &'a ConnectionEpoch, begin: F) -> Self {
        Self {
            begin: Box::pin(begin),
            epoch,
            ended: false,
        }
    }
}

impl<F: Future> Future for BeginGuard<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.begin.as_mut().poll(context);
        self.ended = polled.is_ready();
        polled
    }
}

impl<F> Drop for BeginGuard<'_, F> {
    // The connection returns to the pool after this, when the fields are dropped.
    fn drop(&mut self) {
        if !self.ended {
            self.epoch.invalidate_all();
        }
    }
}

impl Database {
    /// A pool without metrics.
    pub fn new(pool: DriverPool, pooling: Pooling, epoch: &Arc<ConnectionEpoch>) -> Self {
        Self {
            pool: Pool::new(pool, epoch),
            pooling,
            epoch: Arc::clone(epoch),
            pool_name: "unmeasured",
            connection_waits: None,
            metrics: None,
            no_connection: NoConnectionLog::default(),
        }
    }

    /// From now on records the waits for connections of this pool, its prepared statements and
    /// what `measure_commit` runs. Clones made earlier stay unmeasured.
    pub fn measure(&mut self, pool_name: &'static str, metrics: &Arc<StoreMetrics>) {
        self.pool_name = pool_name;
        self.connection_waits = Some(metrics.connection_waits(pool_name));
        self.metrics = Some(Arc::clone(metrics));
    }

    /// Records how long a COMMIT takes.
    pub async fn measure_commit<T>(&self, commit: impl Future<Output = T>) -> T {
        match &self.metrics {
            Some(metrics) => metrics.measure_commit(commit).await,
            None => commit.await,
        }
    }

    /// Waits for a connection, and records the wait. If it times out, logs why.
    async fn acquire(&self) -> Result<PooledConnection, DbErr> {
        let _wait = self.connection_waits.as_ref().map(ConnectionWait::begin);
        let acquired = self.pool.acquire().await;
        if let Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)) = &acquired {
            self.log_why_no_connection();
        }
        acquired
    }

    /// Logs why PostgreSQL had no connection in time; does nothing on SQLite.
    pub fn log_why_no_connection(&self) {
        match &self.pool.driver {
            DriverPool::Postgres(pool) => self.no_connection.report(pool),
            DriverPool::Sqlite(_) => {}
        }
    }

    /// Begins a transaction in one round trip.
    pub async fn begin(&self, purpose: Purpose) -> Result<Transaction, DbErr> {
        let mut sql = purpose.begin_sql(self.pool.backend()).to_owned();
        if self.pooling == Pooling::Transaction {
            sql.push_str("; ");
            sql.push_str(TRANSACTION_SETTINGS);
        }
        let connection = self.acquire().await?;
        let (backend, metrics) = (self.pool.backend(), self.metrics.clone());
        let begin = async move {
            let mut connection = connection;
            if let Err(error) = connection.begin(sql).await {
                // What follows BEGIN may have failed inside the transaction.
                connection.execute_unprepared("ROLLBACK").await.ok();
                return Err(error);
            }
            Ok(Transaction::begun(connection, backend, metrics))
        };
        BeginGuard::new(&self.epoch, begin).await
    }

    /// Begins a transaction of SeaORM, which its migrator needs. With `Immediate`, SQLite
    /// takes its write lock at BEGIN.
    pub async fn begin_seaorm_transaction(
        &self,
        mode: Option<SqliteTransactionMode>,
    ) -> Result<DatabaseTransaction, DbErr> {
        let pool = self.pool.for_migrations();
        let begin = pool.begin_with_options(TransactionOptions {
            sqlite_transaction_mode: mode,
            ..TransactionOptions::default()
        });
        let transaction = BeginGuard::new(&self.epoch, begin).await?;
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
            let transaction = database.begin(Purpose::Statement).await?;
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
        measure_statement(&self.metrics, kind, connection.execute(statement)).await
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
        measure_statement(&self.metrics, kind, connection.fetch_optional(statement)).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        if self.pooling == Pooling::Transaction {
            let run = self.run_in_transaction(move |tx| Box::pin(tx.query_all_raw(statement)));
            return run.await;
        }
        let kind = StatementKind::of(&statement.sql);
        let mut connection = self.acquire().await?;
        measure_statement(&self.metrics, kind, connection.fetch_all(statement)).await
    }
}

#[cfg(test)]
mod tests;
