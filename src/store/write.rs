//! The one way to write.
//!
//! Every write is an [`Operation`], and runs as one transaction in a task of its own: BEGIN, lock and
//! read rows, decide, apply the changes, COMMIT.
//!
//! Rows are locked in one order: tasks by id, then steps by id. On SQLite the transaction itself is the
//! lock. A transaction that conflicts with another one is rolled back and retried.
//!
//! A write that needs to read a large step or guide releases its connection and its locks, waits for a
//! permit, and is retried.

mod apply;
mod batch;
mod change_feed;
mod depths;
mod external_ids;
mod group_commit;
mod guide;
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
mod translations;
mod tx;
mod writers;

use std::{future::Future, sync::Arc};

use tokio::sync::OwnedSemaphorePermit;

use super::{Account, RetryKey, WriteMode, WriteOutcome, error::StoreError};
use crate::domain::{Error, Result, change_feed::WriteRpc, changes::Changes, decide::WriteContext};

use tx::Tx;

pub use imports::{Import, Imported};
pub use revisions::{CreatedRevision, NewRevisionRequest, RestoreRequest, RestoredRevision};
pub use writers::Writers;

/// Lets a write read large steps.
type LargeReadPermit = Arc<OwnedSemaphorePermit>;

/// A write: locks and reads rows, then decides.
trait Operation: Send + Sync + 'static {
    /// The stored state that the decision needs.
    type Snapshot: Send;
    /// The result for the caller.
    type Answer: Send + 'static;
    /// The rpc that it serves, if it changes tasks or steps.
    const RPC: Option<WriteRpc> = None;

    /// Locks what the write is about to change, and reads it.
    fn lock_and_read(
        &self,
        tx: &Tx<'_>,
    ) -> impl Future<Output = Result<Self::Snapshot, StoreError>> + Send;

    /// Decides what changes.
    fn decide(
        &self,
        stored: Self::Snapshot,
        context: &WriteContext,
    ) -> Result<(Changes, Self::Answer)>;
}

/// An operation and how to run it.
struct Write<O: Operation> {
    operation: O,
    mode: WriteMode,
    retry: Option<RetryKey<O::Answer>>,
}

impl<O: Operation> Write<O> {
    /// Runs the write in a transaction, or returns the stored response of a retry.
    async fn run(&self, tx: &Tx<'_>) -> Result<WriteOutcome<O::Answer>, StoreError> {
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
        let stored = self.operation.lock_and_read(tx).await?;
        let (mut changes, answer) = self.operation.decide(stored, &tx.context)?;
        tx.check_claimed_ids(&changes).await?;
        changes.retitle(tx.lock_referring_steps(&changes.renamed).await?);
        tx.check_depths(&changes).await?;
        tx.encode_revision(&mut changes).await?;
        let outcome = match self.mode {
            WriteMode::Store => self.retry.as_ref().map(|retry| retry.outcome(&answer)),
            WriteMode::ValidateOnly => None,
        };
        tx.apply(changes, outcome, O::RPC).await?;
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
        });
        let outcome = self.metrics().measure_write(self.run_write(write)).await;
        if O::RPC.is_some()
            && mode == WriteMode::Store
            && matches!(outcome, Ok(WriteOutcome::Done(_)))
        {
            self.changes_were_written();
        }
        outcome
    }

    async fn run_write<O: Operation>(
        &self,
        write: Arc<Write<O>>,
    ) -> Result<WriteOutcome<O::Answer>> {
        let writers = &self.store.inner.writers;
        let outcome = match writers.run(self, &write, None).await {
            Err(StoreError::NeedsLargeReadPermit(bytes)) => {
                // Taken before the write, because the response contains what was written.
                let permit = self.large_read_permit(bytes).await?;
                writers.run(self, &write, Some(Arc::new(permit))).await
            }
            outcome => outcome,
        };
        outcome.map_err(Error::from)
    }
}
