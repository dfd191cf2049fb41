//! The one way to write.
//!
//! Every write is an [`Operation`], and runs as one transaction in its own tokio task: BEGIN, lock
//! and read rows, decide, apply the changes, COMMIT.
//!
//! Rows are locked in a fixed order: tasks by id, then steps by id. On SQLite the transaction
//! itself is the lock. A transaction that conflicts with another one is rolled back and retried.
//!
//! A write that needs to read a large step or guide releases its connection and its locks, waits for a
//! permit, and is retried.

mod apply;
mod batch;
mod change_feed;
mod checkpoints;
mod depths;
mod external_ids;
mod guide;
mod ids;
mod imports;
mod index;
mod links;
mod locks;
mod request_outcomes;
mod retention;
mod revisions;
mod roles;
mod steps;
mod tasks;
mod transactions;
mod translations;
mod tx;
mod writers;

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
};

use futures_util::future::BoxFuture;
use tracing::info;

use super::{Account, RetryKey, Store, WriteMode, WriteOutcome, error::StoreError, read::MaxBytes};
use crate::domain::{Error, Result, change_feed::WriteRpc, changes::Changes, size::stored_count};
use checkpoints::{Checkpoints, CheckpointsOf};
use tx::Tx;

pub use imports::{Import, RestoreRequest};
pub use revisions::{CreatedRevision, NewRevisionRequest};
pub use writers::Writers;

/// A write: locks and reads rows, and decides what changes.
trait Operation: Send + Sync + 'static {
    /// The result for the caller.
    type Answer: Send + 'static;
    /// The rpc that it serves, if it changes tasks or steps.
    const RPC: Option<WriteRpc> = None;
    /// Which guides get a checkpoint before the write changes them.
    const CHECKPOINTS: CheckpointsOf = CheckpointsOf::NoGuides;

    /// Locks what is about to change, reads what the decision needs, and decides. A retry of the write
    /// calls it again.
    fn decide(
        &self,
        tx: &Tx<'_>,
    ) -> impl Future<Output = Result<(Changes, Self::Answer), StoreError>> + Send;
}

/// An operation and how to run it.
struct Write<O: Operation> {
    operation: O,
    mode: WriteMode,
    retry: Option<RetryKey<O::Answer>>,
    outcome: Mutex<Option<WriteOutcome<O::Answer>>>,
    checkpoints: Mutex<Checkpoints>,
}

/// A write of any kind.
trait AnyWrite: Send + Sync {
    fn mode(&self) -> WriteMode;

    fn checkpoints(&self) -> &Mutex<Checkpoints>;

    /// Runs the write in a transaction, and keeps its outcome, which is valid once the transaction
    /// is committed.
    fn run<'a>(&'a self, tx: &'a Tx<'_>) -> BoxFuture<'a, Result<(), StoreError>>;
}

impl<O: Operation> AnyWrite for Write<O> {
    fn mode(&self) -> WriteMode {
        self.mode
    }

    fn checkpoints(&self) -> &Mutex<Checkpoints> {
        &self.checkpoints
    }

    fn run<'a>(&'a self, tx: &'a Tx<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let outcome = self.run_or_replay(tx).await?;
            *lock(&self.outcome) = Some(outcome);
            Ok(())
        })
    }
}

impl<O: Operation> Write<O> {
    /// Runs the write, or returns the stored response of a retry.
    async fn run_or_replay(&self, tx: &Tx<'_>) -> Result<WriteOutcome<O::Answer>, StoreError> {
        tx.keep_on_node().await?;
        let Some(retry) = &self.retry else {
            return self.decide_and_apply(tx).await;
        };
        if let Some(earlier) = retry.find_stored_outcome(tx).await? {
            return Ok(WriteOutcome::Replayed(earlier));
        }
        match self.decide_and_apply(tx).await {
            // The first call may have committed while this one waited for locks. Then its changes may be
            // the reason for the refusal.
            Err(StoreError::Domain(refusal)) => match retry.find_stored_outcome(tx).await? {
                Some(earlier) => Ok(WriteOutcome::Replayed(earlier)),
                None => Err(refusal.into()),
            },
            outcome => outcome,
        }
    }

    async fn decide_and_apply(&self, tx: &Tx<'_>) -> Result<WriteOutcome<O::Answer>, StoreError> {
        let checkpoints = lock(&self.checkpoints).clone();
        let locked = tx.lock_for_checkpoints(&checkpoints).await?;
        let (mut changes, answer) = self.operation.decide(tx).await?;
        tx.check_claimed_ids(&changes).await?;
        let renamed = changes.renamed_tasks();
        changes.follow(tx.lock_referring_steps(renamed.keys()).await?, &renamed);
        tx.check_depths(&changes).await?;
        tx.encode_revision(&mut changes).await?;
        // After all checks, because a refused write must not have written anything.
        tx.keep_checkpoints(O::CHECKPOINTS, &changes, &checkpoints, &locked)
            .await?;
        let outcome = match self.mode {
            WriteMode::Store => {
                let retry = self.retry.as_ref();
                retry.map(|retry| retry.outcome(&answer, tx))
            }
            WriteMode::ValidateOnly => None,
        };
        let guide_to_keep = std::mem::take(&mut changes.guide_to_keep);
        tx.apply(changes, outcome, O::RPC).await?;
        if !guide_to_keep.is_empty() {
            tx.keep_published(&guide_to_keep).await?;
        }
        Ok(WriteOutcome::Done(answer))
    }
}

impl Account {
    /// Runs a write without a request id.
    async fn write<O: Operation>(&self, operation: O, mode: WriteMode) -> Result<O::Answer> {
        match self.write_idempotent(operation, mode, None).await? {
            WriteOutcome::Done(answer) => Ok(answer),
            WriteOutcome::Replayed(_) => Err(Error::Internal(
                "a write without a request id was replayed".to_owned(),
            )),
        }
    }

    /// Runs one write as one transaction, or returns the stored response of a retry.
    async fn write_idempotent<O: Operation>(
        &self,
        operation: O,
        mode: WriteMode,
        retry: Option<RetryKey<O::Answer>>,
    ) -> Result<WriteOutcome<O::Answer>> {
        let write = Arc::new(Write {
            operation,
            mode,
            retry,
            outcome: Mutex::default(),
            checkpoints: Mutex::default(),
        });
        let written = self
            .metrics()
            .measure_write(self.run_write(write.clone()))
            .await;
        if mode == WriteMode::Store {
            self.store.log_recovery(&written);
        }
        written?;
        let outcome = lock(&write.outcome)
            .take()
            .ok_or_else(|| Error::Internal("a write has no outcome".to_owned()))?;
        if O::RPC.is_some() && mode == WriteMode::Store && matches!(outcome, WriteOutcome::Done(_))
        {
            self.changes_were_written();
        }
        Ok(outcome)
    }

    async fn run_write(&self, write: Arc<dyn AnyWrite>) -> Result<()> {
        let writers = &self.store.inner.writers;
        let (mut max_bytes, mut permit) = (MaxBytes::SMALL, None);
        loop {
            let outcome = writers.run(self, write.clone(), max_bytes, permit.take());
            match outcome.await {
                // A call must hold neither a permit nor a transaction while it waits for a permit.
                Err(StoreError::NeedsLargeReadPermit(bytes)) => {
                    match self.large_read_permit(bytes).await {
                        Ok(granted) => {
                            permit = Some(granted);
                            max_bytes = MaxBytes::permitted(stored_count(bytes));
                        }
                        // Lack of memory for a checkpoint must not fail the write.
                        Err(_) if lock(write.checkpoints()).are_kept() => {
                            *lock(write.checkpoints()) = Checkpoints::Skip;
                            max_bytes = MaxBytes::SMALL;
                        }
                        Err(error) => return Err(error),
                    }
                }
                Err(StoreError::NeedsCheckpoints { guides, others }) => {
                    *lock(write.checkpoints()) = Checkpoints::Keep { guides, others };
                    max_bytes = MaxBytes::SMALL;
                }
                outcome => return Ok(outcome?),
            }
        }
    }
}

impl Store {
    /// Logs when writes work again after an outage.
    fn log_recovery(&self, written: &Result<()>) {
        let fail = &self.inner.writes_fail;
        match written {
            Err(Error::Unavailable(_)) => fail.store(true, Relaxed),
            Ok(()) if fail.load(Relaxed) && fail.swap(false, Relaxed) => {
                info!("writes work again");
            }
            _ => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
