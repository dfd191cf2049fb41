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
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, ExecResult,
    IsolationLevel, QueryResult, Statement, TransactionOptions, TransactionTrait,
    prelude::async_trait,
};
use tracing::Instrument;

use super::epoch::ConnectionEpoch;
use crate::store::metrics::{self, StoreMetrics};

/// How long a connection of the pool keeps the same connection of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// As long as it is open: prepared statements stay prepared.
    Session,
    /// For one transaction, as PgBouncer is between. The next transaction may run on a
    /// connection on which another client prepared statements under the same names.
    Transaction,
}

/// Settings of a transaction behind PgBouncer, equal to those of a session.
const TRANSACTION_SETTINGS: &str =
    "SET LOCAL lock_timeout = '2s'; SET LOCAL idle_in_transaction_session_timeout = '10s'; ";

/// A pool of connections to a database.
///
/// Behind PgBouncer every statement runs in a transaction, and every transaction first
/// deallocates the prepared statements of its connection. Single statements run in a
/// spawned task: a cancelled BEGIN would hold a connection of PgBouncer.
#[derive(Clone)]
pub struct Database {
    pub connection: DatabaseConnection,
    pub pooling: Pooling,
    /// Decides which open connections may still be used.
    pub epoch: Arc<ConnectionEpoch>,
    /// The pool's label in metrics.
    pub pool_name: &'static str,
    /// Waits for connections of this pool, and all metrics of the store.
    pub metrics: Option<(Histogram, Arc<StoreMetrics>)>,
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
    /// Records metrics of this pool's statements from now on, except BEGIN and COMMIT.
    /// Clones made earlier stay unmeasured.
    pub fn measure(&mut self, pool: &'static str, metrics: &Arc<StoreMetrics>) {
        self.pool_name = pool;
        self.metrics = Some((metrics.connection_waits(pool), Arc::clone(metrics)));
        let metrics = Arc::clone(metrics);
        self.connection
            .set_metric_callback(move |info| metrics.record_statement(info));
    }

    /// Records how long `work` waits for its connection.
    async fn measure_wait<T>(&self, work: impl Future<Output = T>) -> T {
        match &self.metrics {
            Some((waits, _)) => metrics::measure_wait(waits, work).await,
            None => work.await,
        }
    }

    /// Records how long a COMMIT takes.
    pub async fn measure_commit<T>(&self, commit: impl Future<Output = T>) -> T {
        match &self.metrics {
            Some((_, metrics)) => metrics.measure_commit(commit).await,
            None => commit.await,
        }
    }

    pub async fn begin(&self, options: TransactionOptions) -> Result<DatabaseTransaction, DbErr> {
        self.measure_wait(self.begin_with(options)).await
    }

    /// Begins a transaction of which all statements read one state of the database.
    pub async fn begin_snapshot(&self) -> Result<DatabaseTransaction, DbErr> {
        let isolation_level = match self.get_database_backend() {
            DbBackend::Postgres => Some(IsolationLevel::RepeatableRead),
            // A transaction of SQLite always reads one state.
            _ => None,
        };
        let options = TransactionOptions {
            isolation_level,
            ..TransactionOptions::default()
        };
        self.begin(options).await
    }

    async fn begin_with(&self, options: TransactionOptions) -> Result<DatabaseTransaction, DbErr> {
        match self.pooling {
            Pooling::Session => {
                let begin = self.connection.begin_with_options(options);
                BeginGuard::new(&self.epoch, begin).await
            }
            Pooling::Transaction => {
                let begin = self.connection.begin();
                let transaction = BeginGuard::new(&self.epoch, begin).await?;
                // The level must be set before any other statement. SeaORM would
                // prepare a statement for it, which must not happen before DEALLOCATE.
                let level = options.isolation_level.map_or_else(String::new, |level| {
                    format!("SET TRANSACTION ISOLATION LEVEL {level}; ")
                });
                transaction
                    .execute_unprepared(&format!("{level}{TRANSACTION_SETTINGS}DEALLOCATE ALL"))
                    .await?;
                Ok(transaction)
            }
        }
    }

    pub async fn close(&self) {
        let _ = self.connection.clone().close().await;
    }

    /// Runs one statement in a transaction of its own.
    async fn run_in_transaction<T, F>(&self, run: F) -> Result<T, DbErr>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t DatabaseTransaction) -> BoxFuture<'t, Result<T, DbErr>>
            + Send
            + 'static,
    {
        let database = self.clone();
        let task = async move {
            let transaction = database.begin(TransactionOptions::default()).await?;
            let outcome = run(&transaction).await;
            match outcome {
                Ok(_) => transaction.commit().await?,
                Err(_) => transaction.rollback().await?,
            }
            outcome
        };
        tokio::spawn(task.in_current_span())
            .await
            .unwrap_or_else(|_| Err(DbErr::Custom("a statement panicked".to_owned())))
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Database {
    fn get_database_backend(&self) -> DbBackend {
        self.connection.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        match self.pooling {
            Pooling::Session => {
                self.measure_wait(self.connection.execute_raw(statement))
                    .await
            }
            Pooling::Transaction => {
                self.run_in_transaction(move |tx| Box::pin(tx.execute_raw(statement)))
                    .await
            }
        }
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.measure_wait(self.connection.execute_unprepared(sql))
            .await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        match self.pooling {
            Pooling::Session => {
                self.measure_wait(self.connection.query_one_raw(statement))
                    .await
            }
            Pooling::Transaction => {
                self.run_in_transaction(move |tx| Box::pin(tx.query_one_raw(statement)))
                    .await
            }
        }
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        match self.pooling {
            Pooling::Session => {
                self.measure_wait(self.connection.query_all_raw(statement))
                    .await
            }
            Pooling::Transaction => {
                self.run_in_transaction(move |tx| Box::pin(tx.query_all_raw(statement)))
                    .await
            }
        }
    }
}

#[cfg(test)]
mod tests;
