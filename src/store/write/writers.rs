//! Runs writes in transactions, as many concurrently as the database allows.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sea_orm::{
    DatabaseConnection, DatabaseTransaction, SqliteTransactionMode, TransactionOptions,
    TransactionTrait,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tracing::Instrument;

use super::{LargeReadPermit, Operation, Tx, Write, group_commit::GroupCommit};
use crate::{
    call_context::{CallContext, CallSpans},
    domain::{Contention, Error, Outage},
    store::{
        Account, WriteMode, WriteOutcome,
        connect::{Connections, Refusals},
        error::StoreError,
        metrics::StoreMetrics,
    },
};

/// The maximum number of attempts before a write fails with `WRITE_CONFLICT`.
const MAX_ATTEMPTS: u32 = 10;
/// How long a write waits for its turn on PostgreSQL.
const SLOT_WAIT: Duration = Duration::from_secs(2);
/// How long the statements of a transaction may take, and then its COMMIT. A database that stops
/// responding must not hold its connection forever.
const MAX_TRANSACTION_TIME: Duration = Duration::from_secs(30);

/// Runs writes.
///
/// *Invariant:* a write waits for its turn in its caller's future, and never for a connection. If the
/// caller goes away or its deadline passes meanwhile, the write never starts. A write that has begun
/// runs to its end even if its caller goes away, so BEGIN is never cancelled.
pub enum Writers {
    /// PostgreSQL: each write runs in a task of its own, as soon as there is a slot.
    Slots {
        slots: Arc<Semaphore>,
        transactions: Transactions,
    },
    /// SQLite: writes run in turn on one connection, and may share a COMMIT.
    GroupCommit(GroupCommit),
}

/// A write of an account that waits for its turn.
pub(super) struct Pending<O: Operation> {
    pub account: Account,
    pub write: Arc<Write<O>>,
    pub large_read_permit: Option<LargeReadPermit>,
    /// Keeps what the call holds until the write has ended.
    pub call: Option<CallContext>,
    pub spans: CallSpans,
}

impl<O: Operation> Pending<O> {
    /// Whether nobody is left to receive the response.
    pub fn is_over(&self) -> bool {
        self.call.as_ref().is_some_and(CallContext::is_over)
    }

    pub(super) async fn run_in(
        &self,
        transaction: &DatabaseTransaction,
    ) -> Result<WriteOutcome<O::Answer>, StoreError> {
        // BEGIN may have waited for another process.
        if self.is_over() {
            return Err(Error::CallOver.into());
        }
        let tx = Tx::new(&self.account, transaction, self.large_read_permit.clone());
        self.write.run(&tx).await
    }
}

impl Writers {
    pub fn new(connections: &Connections, metrics: &Arc<StoreMetrics>) -> Self {
        let transactions = Transactions {
            writer: connections.writer.clone(),
            refusals: connections.refusals.clone(),
            metrics: Arc::clone(metrics),
        };
        match connections.refusals {
            Some(_) => Self::Slots {
                slots: Arc::new(Semaphore::new(connections.max_writes)),
                transactions,
            },
            None => Self::GroupCommit(GroupCommit::start(transactions)),
        }
    }

    /// Waits until the write may begin, and runs it.
    pub(super) async fn run<O: Operation>(
        &self,
        account: &Account,
        write: &Arc<Write<O>>,
        large_read_permit: Option<LargeReadPermit>,
    ) -> Result<WriteOutcome<O::Answer>, StoreError> {
        let spans = CallSpans::of_current_call();
        let pending = Pending {
            account: account.clone(),
            write: Arc::clone(write),
            large_read_permit,
            call: CallContext::current(),
            spans: spans.clone(),
        };
        let (slots, transactions) = match self {
            Self::GroupCommit(queue) => return queue.run(pending).await,
            Self::Slots {
                slots,
                transactions,
            } => (slots, transactions.clone()),
        };
        let slot = wait_for_slot(slots, &transactions.metrics).await?;
        let run = async move {
            let outcome = transactions.run(&pending).await;
            drop(slot);
            outcome
        };
        tokio::spawn(spans.scope(run).in_current_span())
            .await
            .unwrap_or_else(|_| Err(Error::Internal("a write panicked".to_owned()).into()))
    }
}

async fn wait_for_slot(
    slots: &Arc<Semaphore>,
    metrics: &StoreMetrics,
) -> Result<OwnedSemaphorePermit, StoreError> {
    let requested = Instant::now();
    let slot = timeout(SLOT_WAIT, Arc::clone(slots).acquire_owned()).await;
    metrics.record_write_wait(requested.elapsed());
    match slot {
        Ok(Ok(slot)) => Ok(slot),
        _ => Err(StoreError::Unavailable(Outage::NoConnection)),
    }
}

/// Begins and ends transactions that write.
#[derive(Clone)]
pub struct Transactions {
    writer: DatabaseConnection,
    refusals: Option<Refusals>,
    pub metrics: Arc<StoreMetrics>,
}

impl Transactions {
    /// Runs a write in a transaction of its own, and retries it on conflicts.
    pub(super) async fn run<O: Operation>(
        &self,
        pending: &Pending<O>,
    ) -> Result<WriteOutcome<O::Answer>, StoreError> {
        let mut contention = Contention::Changed;
        for attempt in 0..MAX_ATTEMPTS {
            if pending.is_over() {
                return Err(Error::CallOver.into());
            }
            contention = match self.attempt(pending).await {
                Err(StoreError::Conflict) => Contention::Changed,
                Err(StoreError::Locked) => Contention::Locked,
                // Another connection may reach a server that accepts writes.
                Err(StoreError::Unavailable(Outage::ReadOnly))
                    if self.refusals.as_ref().is_some_and(Refusals::record) =>
                {
                    continue;
                }
                outcome => return outcome,
            };
            self.metrics.write_conflicts.inc();
            sleep(Duration::from_millis(1 << attempt.min(6))).await;
        }
        Err(Error::WriteConflict(contention).into())
    }

    async fn attempt<O: Operation>(
        &self,
        pending: &Pending<O>,
    ) -> Result<WriteOutcome<O::Answer>, StoreError> {
        let transaction = self.begin().await?;
        let outcome = timeout(MAX_TRANSACTION_TIME, pending.run_in(&transaction)).await;
        let Ok(outcome) = outcome else {
            // Dropping the transaction does not wait for the silent database, as a rollback would.
            return Err(StoreError::Unavailable(Outage::Unreachable));
        };
        match (&outcome, pending.write.mode) {
            (Ok(_), WriteMode::Store) => self.commit(transaction).await?,
            (Ok(_), WriteMode::ValidateOnly) => transaction.rollback().await?,
            // Keep the first error. If the rollback fails, the driver repeats it before the
            // connection is used again.
            (Err(_), _) => drop(transaction.rollback().await),
        }
        outcome
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
