//! Begins, ends and retries transactions that write.

use std::{sync::Arc, time::Duration};

use sea_orm::{
    DatabaseConnection, DatabaseTransaction, SqliteTransactionMode, TransactionOptions,
    TransactionTrait,
};
use tokio::time::{sleep, timeout};

use super::writers::Job;
use crate::{
    domain::{Contention, Error, Outage},
    store::{
        WriteMode,
        connect::{Connections, Refusals},
        error::StoreError,
        metrics::StoreMetrics,
    },
};

/// The maximum number of attempts before a write fails with `WRITE_CONFLICT`.
const MAX_ATTEMPTS: u32 = 10;
/// How long the statements of a transaction may take, and then its COMMIT. A database that stops
/// responding must not hold its connection forever.
pub const MAX_TRANSACTION_TIME: Duration = Duration::from_secs(30);

/// Begins and ends transactions that write.
#[derive(Clone)]
pub struct Transactions {
    writer: DatabaseConnection,
    refusals: Refusals,
    pub metrics: Arc<StoreMetrics>,
}

impl Transactions {
    pub fn new(connections: &Connections, metrics: &Arc<StoreMetrics>) -> Self {
        Self {
            writer: connections.pools.writer.clone(),
            refusals: connections.pools.refusals.clone(),
            metrics: Arc::clone(metrics),
        }
    }

    /// Runs a write in a transaction of its own, and retries it on conflicts.
    pub async fn run(&self, job: &Job) -> Result<(), StoreError> {
        let mut contention = Contention::Changed;
        for attempt in 0..MAX_ATTEMPTS {
            job.check_caller()?;
            contention = match self.attempt(job).await {
                Err(StoreError::Conflict) => Contention::Changed,
                Err(StoreError::Locked) => Contention::Locked,
                // Another connection may reach a server that accepts writes.
                Err(StoreError::Unavailable(Outage::ReadOnly)) if self.refusals.record() => {
                    continue;
                }
                outcome => return outcome,
            };
            self.metrics.write_conflicts.inc();
            sleep(Duration::from_millis(1 << attempt.min(6))).await;
        }
        Err(Error::WriteConflict(contention).into())
    }

    async fn attempt(&self, job: &Job) -> Result<(), StoreError> {
        let transaction = self.begin().await?;
        let Ok(outcome) = timeout(MAX_TRANSACTION_TIME, job.run_in(&transaction)).await else {
            // Dropping the transaction does not wait for the silent database, as a rollback would.
            return Err(StoreError::Unavailable(Outage::Unreachable));
        };
        match (&outcome, job.mode()) {
            (Ok(()), WriteMode::Store) => self.commit(transaction).await?,
            (Ok(()), WriteMode::ValidateOnly) => self.rollback(transaction).await?,
            // Keep the first error.
            (Err(_), _) => drop(self.rollback(transaction).await),
        }
        outcome
    }

    /// If this fails, the driver repeats it before the connection is used again.
    pub async fn rollback(&self, transaction: DatabaseTransaction) -> Result<(), StoreError> {
        match timeout(MAX_TRANSACTION_TIME, transaction.rollback()).await {
            Ok(rolled_back) => Ok(rolled_back?),
            Err(_) => Err(StoreError::Unavailable(Outage::Unreachable)),
        }
    }

    /// Begins a transaction. Call it in spawned tasks only, as a cancelled BEGIN would leave a connection
    /// of the pool inside a transaction.
    #[allow(clippy::disallowed_methods)]
    pub async fn begin(&self) -> Result<DatabaseTransaction, StoreError> {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let begun = self.writer.begin_with_options(options).await;
        begun.map_err(|error| match StoreError::from(error) {
            // Another process has locked the SQLite file for as long as BEGIN waits.
            StoreError::Locked => StoreError::Unavailable(Outage::Locked),
            error => error,
        })
    }

    pub async fn commit(&self, transaction: DatabaseTransaction) -> Result<(), StoreError> {
        let commit = timeout(MAX_TRANSACTION_TIME, transaction.commit());
        match self.metrics.measure_commit(commit).await {
            Ok(committed) => committed.map_err(StoreError::from_commit),
            Err(_) => Err(StoreError::Unavailable(Outage::OutcomeUnknown)),
        }
    }
}
