//! The one way to write: read, decide, apply, answer.
//!
//! Every write is an [`Operation`]. It runs in up to two ways that leave equal rows:
//!
//! - *optimistic*: it reads without locks, and the version of what it read guards a
//!   [script](sql::Script), which is one statement on PostgreSQL and one hand-over to the
//!   connection's thread on SQLite. If a row has changed since, the guard matches no row
//!   and the write is run locked.
//! - *locked*: rows are locked, tasks by id before steps by id, read, and written in
//!   batches. Used for writes of several tasks or steps, for dry runs, and after a guard has
//!   failed.
//!
//! A write that meets a large step is run again under a permit for it, and locked, see
//! [`Account::run_write`].
//!
//! [`statements`] makes every statement that writes tasks and steps: what must happen on
//! every write is added there.

mod change_feed;
mod depths;
mod external_ids;
mod guide;
mod imports;
mod index;
mod links;
mod locks;
mod name_uses;
mod queue;
mod request_outcomes;
mod retention;
mod revisions;
mod roles;
mod rows;
mod sql;
mod statements;
mod steps;
mod tasks;
mod transaction;
mod translations;

use std::{sync::Arc, time::Instant};

use sea_orm::QueryResult;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

use super::{
    Account, RetryKey, WriteMode, WriteOutcome, WritePath, Writers, connection::TransactionMode,
    error::StoreError,
};
use crate::{
    call_context::CallSpans,
    domain::{
        Contention, Error, Outage, Result,
        change_feed::{NewEntries, WriteRpc},
        changes::Changes,
        decide::WriteContext,
    },
};

use statements::{DecidedWrite, FeedRows};
use transaction::{
    CallerLiveness, MAX_LOCKED_ATTEMPTS, Tx, WriteConnection, back_off, commit, roll_back,
};

pub use imports::{Import, Imported};
pub use queue::WriteQueue;
pub use revisions::{CreatedRevision, NewRevisionRequest, RestoreRequest, RestoredRevision};
pub use transaction::WriteSlots;

/// Lets a write read large steps.
type LargeReadPermit = Arc<OwnedSemaphorePermit>;

/// A write: reads, then decides.
trait Operation: Send + Sync + 'static {
    /// What is stored, as far as the decision needs it.
    type Snapshot: Send;
    /// The result for the caller.
    type Answer: Send + 'static;
    /// The rpc that it serves, if it changes tasks or steps.
    const RPC: Option<WriteRpc> = None;

    /// Reads without locks, with one statement at most; `None` when the decision needs
    /// locks.
    fn read(
        &self,
        _tx: &Tx,
    ) -> impl Future<Output = Result<Option<Self::Snapshot>, StoreError>> + Send {
        std::future::ready(Ok(None))
    }

    /// Locks what the write is about to change, and reads it.
    fn read_locked(
        &self,
        tx: &Tx,
    ) -> impl Future<Output = Result<Self::Snapshot, StoreError>> + Send;

    /// Locks the rows that the decision changes and `read_locked` did not lock. Fails with a
    /// conflict if one of them has changed since it was read.
    fn lock_changed(
        &self,
        _tx: &Tx,
        _changes: &Changes,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Decides what changes.
    fn decide(
        &self,
        stored: Self::Snapshot,
        context: &WriteContext,
    ) -> Result<(Changes, Self::Answer)>;

    /// Completes the answer with values from the row of a script's guard, such as a new id.
    fn complete(
        &self,
        answer: Self::Answer,
        _guard: &QueryResult,
    ) -> Result<Self::Answer, StoreError> {
        Ok(answer)
    }
}

/// An operation, and how it is to be run.
struct PendingWrite<O: Operation> {
    operation: O,
    mode: WriteMode,
    path: WritePath,
    retry: Option<RetryKey<O::Answer>>,
}

impl<O: Operation> PendingWrite<O> {
    /// Runs the write as a script. `None` if it needs locks or the guard matched no row.
    /// Nothing is written then, nor on a domain error.
    async fn run_optimistic(&self, tx: &Tx) -> Result<Option<WriteOutcome<O::Answer>>, StoreError> {
        // The statements that read a large step see one state only under locks.
        if self.mode == WriteMode::ValidateOnly
            || self.path == WritePath::LockedOnly
            || tx.large_read_permit.is_some()
        {
            return Ok(None);
        }
        let Some(stored) = self.operation.read(tx).await? else {
            return Ok(None);
        };
        let (changes, answer) = self.operation.decide(stored, &tx.context)?;
        if changes.is_empty() {
            return Ok(Some(WriteOutcome::Done(answer)));
        }
        tx.check_depths(&changes).await?;
        let write = DecidedWrite {
            outcome: self.retry.as_ref().map(|retry| retry.outcome(&answer)),
            feed: feed_rows::<O>(&changes, &tx.context)?,
            came_back: Vec::new(),
            changes,
            context: &tx.context,
            backend: tx.backend(),
            path: self.path,
        };
        let Some(script) = write.script()? else {
            return Ok(None);
        };
        let script = script.statement(tx.backend(), tx.account());
        let Some(guard) = tx.run_script(script).await? else {
            return Ok(None);
        };
        let answer = self.operation.complete(answer, &guard)?;
        Ok(Some(WriteOutcome::Done(answer)))
    }

    /// Runs the write in a transaction, under locks, or answers a retry.
    async fn run_locked(&self, tx: &Tx) -> Result<WriteOutcome<O::Answer>, StoreError> {
        if self.path == WritePath::LockedOnly {
            tx.keep_on_node().await?;
        }
        let Some(retry) = &self.retry else {
            return self.decide_and_write(tx).await;
        };
        if let Some(earlier) = retry.find_stored_outcome(tx).await? {
            return Ok(WriteOutcome::Replayed(earlier));
        }
        match self.decide_and_write(tx).await {
            // The first call may have ended while this one waited for its locks, and what it has
            // changed is then the reason of the refusal.
            Err(StoreError::Domain(refusal)) => match retry.find_stored_outcome(tx).await? {
                Some(earlier) => Ok(WriteOutcome::Replayed(earlier)),
                None => Err(refusal.into()),
            },
            outcome => outcome,
        }
    }

    async fn decide_and_write(&self, tx: &Tx) -> Result<WriteOutcome<O::Answer>, StoreError> {
        let stored = self.operation.read_locked(tx).await?;
        let (mut changes, mut answer) = self.operation.decide(stored, &tx.context)?;
        self.operation.lock_changed(tx, &changes).await?;
        tx.check_claimed_ids(&changes).await?;
        changes.retitle(tx.lock_referring_steps(&changes.renamed).await?);
        tx.check_depths(&changes).await?;
        tx.encode_revision(&mut changes).await?;
        let outcome = match self.mode {
            WriteMode::Store => self.retry.as_ref().map(|retry| retry.outcome(&answer)),
            WriteMode::ValidateOnly => None,
        };
        let decided = |changes, outcome, feed, came_back| DecidedWrite {
            changes,
            outcome,
            feed,
            came_back,
            context: &tx.context,
            backend: tx.backend(),
            path: self.path,
        };
        if changes.role.is_some() {
            let write = decided(changes, outcome, None, Vec::new());
            // Roles are written by the same script with and without locks.
            if let Some(script) = write.script()? {
                let script = script.statement(tx.backend(), tx.account());
                let guard = tx.run_script(script).await?.ok_or(StoreError::Conflict)?;
                answer = self.operation.complete(answer, &guard)?;
            }
        } else {
            let feed = feed_rows::<O>(&changes, &tx.context)?;
            let (mut feed, numbered) = match self.path {
                WritePath::OptimisticFirst => (feed, None),
                WritePath::LockedOnly => (None, feed),
            };
            let mut came_back = changes.came_back();
            let mut outcome = outcome;
            let mut parts = changes.into_parts().peekable();
            while let Some(part) = parts.next() {
                // These belong to the whole write.
                let (outcome, feed, came_back) = match parts.peek() {
                    Some(_) => (None, None, Vec::new()),
                    None => (outcome.take(), feed.take(), std::mem::take(&mut came_back)),
                };
                let part = decided(part, outcome, feed, came_back);
                tx.run_statements(part.under_locks()?).await?;
            }
            // Numbered when all other statements have run, as these may wait for locks, too.
            if let Some(mut feed) = numbered {
                feed.numbers = Some(tx.next_numbers(feed.transaction).await?);
                let feed = decided(Changes::default(), None, Some(feed), Vec::new());
                tx.run_statements(feed.under_locks()?).await?;
            }
        }
        Ok(WriteOutcome::Done(answer))
    }
}

/// The entries of a write in the change feed, if there are any.
fn feed_rows<O: Operation>(
    changes: &Changes,
    context: &WriteContext,
) -> Result<Option<FeedRows>, StoreError> {
    let entries = NewEntries::of(changes);
    if entries.count() == 0 {
        return Ok(None);
    }
    let unnamed = || Error::Internal("a write of tasks or steps names no rpc".to_owned());
    Ok(Some(FeedRows {
        rpc: O::RPC.ok_or_else(unnamed)?,
        transaction: (context.new_id)(),
        entries,
        numbers: None,
    }))
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

    /// Runs one write as one transaction, or answers a retry.
    ///
    /// It runs in a task of its own, or in that of the [`WriteQueue`], so that a caller
    /// who goes away leaves all of it or nothing, and a `begin()` is never cancelled
    /// half-way. A transaction that loses against another one is run again from its
    /// beginning. None is begun for a caller who has gone. On PostgreSQL, where no other write
    /// shares its COMMIT, it is even rolled back if the caller goes before that.
    async fn write_idempotent<O: Operation>(
        &self,
        operation: O,
        mode: WriteMode,
        retry: Option<RetryKey<O::Answer>>,
    ) -> Result<WriteOutcome<O::Answer>> {
        let write = Arc::new(PendingWrite {
            operation,
            mode,
            path: self.write_path(),
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

    /// Runs a write. If it meets a large step, which it would return, it gives up its slot, its
    /// connection and its locks, waits for a permit and for memory for the response, and is run
    /// again.
    async fn run_write<O: Operation>(
        &self,
        write: Arc<PendingWrite<O>>,
    ) -> Result<WriteOutcome<O::Answer>> {
        let outcome = match self.run_in_turn(&write, None).await {
            Err(StoreError::NeedsLargeReadPermit(bytes)) => {
                // Before the write, as what is written must be returned.
                let permit = self.large_read_permit(bytes).await?;
                self.run_in_turn(&write, Some(Arc::new(permit))).await
            }
            outcome => outcome,
        };
        outcome.map_err(Error::from)
    }

    /// Waits until the write may begin, and runs it.
    async fn run_in_turn<O: Operation>(
        &self,
        write: &Arc<PendingWrite<O>>,
        large_read_permit: Option<LargeReadPermit>,
    ) -> Result<WriteOutcome<O::Answer>, StoreError> {
        let slots = match self.writers() {
            Writers::Slots(slots) => slots,
            Writers::Queue(queue) => return queue.run(self, write, large_read_permit).await,
        };
        let requested = Instant::now();
        let permit = slots.acquire(&self.id).await;
        self.metrics().record_write_wait(requested.elapsed());
        let permit = permit?;
        // Dropped with this future, it tells the spawned task that nobody waits.
        let (waiting, caller) = CallerLiveness::of_current_call();
        let (account, write) = (self.clone(), Arc::clone(write));
        let run = async move {
            let attempts = account.run_attempts(&write, large_read_permit, &caller);
            let outcome = attempts.await;
            drop(permit);
            outcome
        };
        let run = CallSpans::of_current_call().scope(run);
        let outcome = tokio::spawn(run.in_current_span())
            .await
            .unwrap_or_else(|_| Err(Error::Internal("a write panicked".to_owned()).into()));
        drop(waiting);
        outcome
    }

    async fn run_attempts<O: Operation>(
        &self,
        write: &PendingWrite<O>,
        large_read_permit: Option<LargeReadPermit>,
        caller: &CallerLiveness,
    ) -> Result<WriteOutcome<O::Answer>, StoreError> {
        let permit = large_read_permit.as_ref();
        match self.attempt_optimistic(write, permit, caller).await {
            Ok(Some(outcome)) => return Ok(outcome),
            // Run it under locks, which waits for the other transaction, or finds a server that
            // takes writes.
            Ok(None)
            | Err(
                StoreError::Conflict
                | StoreError::Locked
                | StoreError::Unavailable(Outage::ReadOnly),
            ) => {}
            Err(error) => return Err(error),
        }
        let mut contention = Contention::Changed;
        for attempt in 0..MAX_LOCKED_ATTEMPTS {
            let outcome = self.attempt_locked(write, permit, caller).await;
            contention = match outcome {
                Err(StoreError::Locked) => Contention::Locked,
                _ => Contention::Changed,
            };
            match outcome {
                Err(StoreError::Conflict | StoreError::Locked) if !caller.is_gone() => {
                    back_off(self.metrics(), attempt).await;
                }
                // The caller has gone.
                Err(StoreError::Conflict | StoreError::Locked) => break,
                // Another connection may lead to a server that takes writes.
                Err(StoreError::Unavailable(Outage::ReadOnly)) if self.writer().pool.expire() => {}
                outcome => return outcome,
            }
        }
        Err(Error::WriteConflict(contention).into())
    }

    async fn attempt_optimistic<O: Operation>(
        &self,
        write: &PendingWrite<O>,
        large_read_permit: Option<&LargeReadPermit>,
        caller: &CallerLiveness,
    ) -> Result<Option<WriteOutcome<O::Answer>>, StoreError> {
        if caller.is_gone() {
            return Err(StoreError::Conflict);
        }
        let connection = WriteConnection::Autocommit(self.writer().clone());
        let tx = Tx::of(self, connection, large_read_permit.cloned());
        tokio::select! {
            outcome = write.run_optimistic(&tx) => outcome,
            () = caller.abandoned() => Err(StoreError::Conflict),
        }
    }

    async fn attempt_locked<O: Operation>(
        &self,
        write: &PendingWrite<O>,
        large_read_permit: Option<&LargeReadPermit>,
        caller: &CallerLiveness,
    ) -> Result<WriteOutcome<O::Answer>, StoreError> {
        // No caller is left to receive the error.
        if caller.is_gone() {
            return Err(StoreError::Conflict);
        }
        let transaction = Arc::new(self.writer().begin(TransactionMode::Write).await?);
        let outcome = {
            let connection = WriteConnection::Transaction(Arc::clone(&transaction));
            let tx = Tx::of(self, connection, large_read_permit.cloned());
            tokio::select! {
                outcome = write.run_locked(&tx) => outcome,
                // A database that fell silent must not hold the connection for ever.
                () = caller.abandoned() => return Err(StoreError::Conflict),
            }
        };
        match (&outcome, write.mode) {
            (Ok(_), WriteMode::Store) if caller.is_gone() => {
                roll_back(transaction).await?;
                return Err(StoreError::Conflict);
            }
            (Ok(_), WriteMode::Store) => commit(self.writer(), transaction).await?,
            (Ok(_), WriteMode::ValidateOnly) => roll_back(transaction).await?,
            // Keep the first error. If the rollback fails, the driver repeats it before the
            // connection is used again.
            (Err(_), _) => drop(roll_back(transaction).await),
        }
        outcome
    }
}

#[cfg(test)]
mod tests;
