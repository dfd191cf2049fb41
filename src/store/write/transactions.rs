//! Runs writes in transactions, and retries them on conflicts.

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
/// How long the statements of a write may take, and then its COMMIT. A database that stops responding
/// must not hold its connection forever.
pub const MAX_TRANSACTION_TIME: Duration = Duration::from_secs(30);

/// Runs writes. A transaction that is dropped is rolled back before its connection is used again.
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

    /// Runs writes in one transaction. If any write must roll back, runs each in its own transaction.
    pub async fn run_group(&self, jobs: Vec<Job>) {
        // Dry runs are rolled back.
        let is_stored = |job: &Job| job.mode() == WriteMode::Store;
        let (shared, mut alone): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_stored);
        let outcome = match shared.len() {
            0 | 1 => Err(StoreError::Conflict),
            _ => self.run_shared(&shared).await,
        };
        match outcome {
            Ok(outcomes) => {
                let responses = shared.into_iter().zip(outcomes);
                responses.for_each(|(job, outcome)| job.respond(outcome));
            }
            Err(StoreError::Conflict | StoreError::Locked) => alone.extend(shared),
            // Not retried: each BEGIN waits for seconds while another process locks the file.
            Err(error) => {
                let responses = shared.into_iter();
                responses.for_each(|job| job.respond(Err(error.clone())));
            }
        }
        for job in alone {
            let outcome = self.run(&job).await;
            job.respond(outcome);
        }
    }

    /// Returns the outcome of each write. Fails with a conflict if each write must run in its own
    /// transaction.
    async fn run_shared(&self, jobs: &[Job]) -> Result<Vec<Result<(), StoreError>>, StoreError> {
        let transaction = self.begin().await?;
        let mut outcomes = Vec::with_capacity(jobs.len());
        for job in jobs {
            let outcome = job.run_in(&transaction).await;
            match &outcome {
                // A write that is refused has written nothing.
                Ok(())
                | Err(StoreError::NeedsLargeReadPermit(_) | StoreError::NeedsCheckpoints { .. }) => {
                }
                Err(StoreError::Domain(error)) if !matches!(error, Error::Internal(_)) => {}
                Err(error @ StoreError::Unavailable(Outage::Unreachable)) => {
                    return Err(error.clone());
                }
                Err(_) => return Err(StoreError::Conflict),
            }
            outcomes.push(outcome);
        }
        self.commit(transaction).await?;
        Ok(outcomes)
    }

    /// Runs a write in its own transaction, and retries it on conflicts.
    async fn run(&self, job: &Job) -> Result<(), StoreError> {
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
        match (job.run_in(&transaction).await, job.mode()) {
            (Ok(()), WriteMode::Store) => self.commit(transaction).await,
            // Unlike a rollback, dropping the transaction does not wait for a database that does
            // not respond.
            (outcome @ Err(StoreError::Unavailable(_)), _) => outcome,
            (outcome, _) => {
                // Its locks must not delay the next attempt.
                let _ = timeout(MAX_TRANSACTION_TIME, transaction.rollback()).await;
                outcome
            }
        }
    }

    /// Begins a transaction. Call it only in spawned tasks, because a canceled BEGIN would leave a
    /// connection of the pool inside a transaction.
    #[allow(clippy::disallowed_methods)]
    async fn begin(&self) -> Result<DatabaseTransaction, StoreError> {
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

    async fn commit(&self, transaction: DatabaseTransaction) -> Result<(), StoreError> {
        let commit = timeout(MAX_TRANSACTION_TIME, transaction.commit());
        match self.metrics.measure_commit(commit).await {
            Ok(committed) => committed.map_err(StoreError::from_commit),
            Err(_) => Err(StoreError::Unavailable(Outage::OutcomeUnknown)),
        }
    }
}
