//! A database as the store speaks to it: directly, or through a pooler that
//! hands out another connection for each transaction.

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

use super::{
    connect::Freshness,
    meter::{self, Meter},
};

/// What is between the store and its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Link {
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
pub(super) struct Database {
    pub connection: DatabaseConnection,
    pub link: Link,
    /// Which connections may be used.
    pub freshness: Arc<Freshness>,
    /// The name of the pool.
    pub pool: &'static str,
    /// Where it is noted how long connections are waited for, and what they cost.
    pub meter: Option<(Histogram, Arc<Meter>)>,
}

/// A transaction that begins.
///
/// *Invariant:* a connection on which a BEGIN was cancelled half-way is never used
/// again. sqlx gives it back inside a transaction that it does not know of, in
/// which the next write would be acknowledged and never committed. So before such
/// a connection is given back, all that are open are condemned.
struct Beginning<'a, F> {
    begin: Pin<Box<F>>,
    freshness: &'a Freshness,
    ended: bool,
}

impl<'a, F> Beginning<'a, F> {
    fn new(freshness: &'a Freshness, begin: F) -> Self {
        Self {
            begin: Box::pin(begin),
            freshness,
            ended: false,
        }
    }
}

impl<F: Future> Future for Beginning<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.begin.as_mut().poll(context);
        self.ended = polled.is_ready();
        polled
    }
}

impl<F> Drop for Beginning<'_, F> {
    // The connection is given back after this, when the fields are dropped.
    fn drop(&mut self) {
        if !self.ended {
            self.freshness.condemn();
        }
    }
}

impl Database {
    /// Measures the statements from now on, those apart that begin and end
    /// transactions; not those of clones that are there already.
    pub fn measure(&mut self, pool: &'static str, meter: &Arc<Meter>) {
        self.pool = pool;
        self.meter = Some((meter.waits_of(pool), Arc::clone(meter)));
        let meter = Arc::clone(meter);
        self.connection
            .set_metric_callback(move |info| meter.statement(info));
    }

    /// Does what begins with a wait for a connection.
    async fn waiting<T>(&self, work: impl Future<Output = T>) -> T {
        match &self.meter {
            Some((waits, _)) => meter::waiting(waits, work).await,
            None => work.await,
        }
    }

    /// Does what ends a transaction.
    pub async fn committing<T>(&self, commit: impl Future<Output = T>) -> T {
        match &self.meter {
            Some((_, meter)) => meter.commit(commit).await,
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
                Beginning::new(&self.freshness, begin).await
            }
            Link::PgBouncer => {
                let begin = self.connection.begin();
                let transaction = Beginning::new(&self.freshness, begin).await?;
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
