//! A pool of connections to a database, direct or through a pooler that uses another
//! connection for each transaction.

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
    QueryResult, Statement, TransactionOptions, TransactionTrait, prelude::async_trait,
};
use tracing::Instrument;

use super::epoch::ConnectionEpoch;
use crate::store::metrics::{self, StoreMetrics};

/// What is between the store and its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nothing: a connection stays the same, and statements prepared on it are
    /// prepared for as long as it lives.
    Direct,
    /// PgBouncer in transaction mode: what was prepared before a transaction is
    /// somewhere else, and the names of our statements may be taken by somebody
    /// else's.
    PgBouncer,
}

/// As the settings of a connection of our own.
const SETTINGS: &str =
    "SET LOCAL lock_timeout = '2s'; SET LOCAL idle_in_transaction_session_timeout = '10s'; ";

/// A pool of connections to a database.
///
/// Behind PgBouncer every statement runs in a transaction, and every transaction
/// begins by forgetting what others have prepared on its connection. Transactions
/// run in tasks of their own: one that is cancelled while it begins would hold a
/// connection of PgBouncer until its own is used again.
#[derive(Clone)]
pub struct Database {
    pub connection: DatabaseConnection,
    pub link: Link,
    /// Which connections may be used.
    pub epoch: Arc<ConnectionEpoch>,
    /// The name of the pool.
    pub pool: &'static str,
    /// Where waits for connections and times of statements are recorded.
    pub metrics: Option<(Histogram, Arc<StoreMetrics>)>,
}

/// A BEGIN in progress.
///
/// *Invariant:* a connection on which a BEGIN was cancelled is never used again. sqlx
/// returns it to the pool inside a transaction that it does not know of, in which the
/// next write would be acknowledged and never committed. So before such a connection is
/// returned, all open ones are invalidated.
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
    // The connection is given back after this, when the fields are dropped.
    fn drop(&mut self) {
        if !self.ended {
            self.epoch.invalidate_all();
        }
    }
}

impl Database {
    /// Measures the statements from now on, those apart that begin and end
    /// transactions; not those of clones that are there already.
    pub fn measure(&mut self, pool: &'static str, metrics: &Arc<StoreMetrics>) {
        self.pool = pool;
        self.metrics = Some((metrics.waits_of(pool), Arc::clone(metrics)));
        let metrics = Arc::clone(metrics);
        self.connection
            .set_metric_callback(move |info| metrics.statement(info));
    }

    /// Runs work that begins with a wait for a connection.
    async fn waiting<T>(&self, work: impl Future<Output = T>) -> T {
        match &self.metrics {
            Some((waits, _)) => metrics::waiting(waits, work).await,
            None => work.await,
        }
    }

    /// Runs the end of a transaction.
    pub async fn committing<T>(&self, commit: impl Future<Output = T>) -> T {
        match &self.metrics {
            Some((_, metrics)) => metrics.commit(commit).await,
            None => commit.await,
        }
    }

    /// Begins a transaction.
    pub async fn begin(&self, options: TransactionOptions) -> Result<DatabaseTransaction, DbErr> {
        self.waiting(self.begin_with(options)).await
    }

    async fn begin_with(&self, options: TransactionOptions) -> Result<DatabaseTransaction, DbErr> {
        match self.link {
            Link::Direct => {
                let begin = self.connection.begin_with_options(options);
                BeginGuard::new(&self.epoch, begin).await
            }
            Link::PgBouncer => {
                let begin = self.connection.begin();
                let transaction = BeginGuard::new(&self.epoch, begin).await?;
                // SeaORM would prepare a statement to set the isolation level,
                // which is too early; and it has to be set before anything runs.
                let level = options.isolation_level.map_or_else(String::new, |level| {
                    format!("SET TRANSACTION ISOLATION LEVEL {level}; ")
                });
                transaction
                    .execute_unprepared(&format!("{level}{SETTINGS}DEALLOCATE ALL"))
                    .await?;
                Ok(transaction)
            }
        }
    }

    /// Closes all connections.
    pub async fn close(&self) {
        let _ = self.connection.clone().close().await;
    }

    /// Runs one statement in a transaction of its own.
    async fn alone<T, F>(&self, run: F) -> Result<T, DbErr>
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
        match self.link {
            Link::Direct => self.waiting(self.connection.execute_raw(statement)).await,
            Link::PgBouncer => {
                self.alone(move |tx| Box::pin(tx.execute_raw(statement)))
                    .await
            }
        }
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.waiting(self.connection.execute_unprepared(sql)).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        match self.link {
            Link::Direct => self.waiting(self.connection.query_one_raw(statement)).await,
            Link::PgBouncer => {
                self.alone(move |tx| Box::pin(tx.query_one_raw(statement)))
                    .await
            }
        }
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        match self.link {
            Link::Direct => self.waiting(self.connection.query_all_raw(statement)).await,
            Link::PgBouncer => {
                self.alone(move |tx| Box::pin(tx.query_all_raw(statement)))
                    .await
            }
        }
    }
}
