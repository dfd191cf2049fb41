//! Group commit on SQLite, which has one writer. Writes that arrive while others run share their
//! transaction, and so its COMMIT, which is most of what a write costs on a disk.
//!
//! Accounts take turns.
//!
//! *Invariants:* nobody is answered before the COMMIT; a failed write is rolled back to
//! its savepoint without touching the others; a single write starts at once.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::BoxFuture};
use sea_orm::ConnectionTrait;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tracing::{Instrument, Span};

use super::{
    LargeReadPermit, Operation, PendingWrite,
    transaction::{
        CallerLiveness, MAX_LOCKED_ATTEMPTS, Tx, WriteConnection, back_off, commit, roll_back,
    },
};
use crate::{
    call_context::CallSpans,
    domain::{Contention, Error, Outage, ids::AccountId},
    store::{
        Account, WriteMode, WriteOutcome,
        connection::{Database, Transaction, TransactionMode},
        error::StoreError,
    },
    turns::Turns,
};

/// How long a transaction takes further writes. Later ones wait for its COMMIT.
const GROUP_TIME: Duration = Duration::from_millis(4);

/// Writes of each account in the order of their arrival.
pub struct WriteQueue {
    jobs: mpsc::UnboundedSender<Box<dyn Job>>,
    wait_timeout: Duration,
}

/// The end of the queue that takes writes out.
struct WaitingJobs {
    arrived: mpsc::UnboundedReceiver<Box<dyn Job>>,
    turns: Turns<Box<dyn Job>>,
}

impl WaitingJobs {
    fn new(arrived: mpsc::UnboundedReceiver<Box<dyn Job>>) -> Self {
        Self {
            arrived,
            turns: Turns::new(|job| job.has_gone()),
        }
    }

    /// Waits for a write. `None` if there will be no more.
    async fn next(&mut self) -> Option<Box<dyn Job>> {
        loop {
            if let Some(job) = self.try_next() {
                return Some(job);
            }
            // Whatever waited has gone.
            let job = self.arrived.recv().await?;
            self.turns.push(&job.account(), job);
        }
    }

    /// A write, if one waits.
    fn try_next(&mut self) -> Option<Box<dyn Job>> {
        while let Ok(job) = self.arrived.try_recv() {
            self.turns.push(&job.account(), job);
        }
        self.turns.pop(|_| true).map(|(_, job)| job)
    }
}

/// A write in the queue, whatever it returns.
trait Job: Send {
    /// Whose write it is.
    fn account(&self) -> AccountId;

    /// Whether nobody waits for it any more.
    fn has_gone(&self) -> bool;

    /// Runs the write in a transaction. Only with `in_savepoint` can it be rolled back without
    /// the writes before it.
    fn run<'a>(
        &'a mut self,
        transaction: &'a Arc<Transaction>,
        in_savepoint: bool,
    ) -> BoxFuture<'a, TransactionState>;

    /// Answers the caller with the write's own outcome, or with the error of the shared
    /// transaction.
    fn end(self: Box<Self>, shared: Result<(), StoreError>);
}

/// The state of the shared transaction after a write.
#[derive(Debug, PartialEq, Eq)]
enum TransactionState {
    /// The write is applied, rolled back or never started.
    Usable,
    /// The transaction must not be committed.
    MustRollBack,
}

impl WriteQueue {
    /// Starts the queue's task, which ends when the queue is dropped. A write that waits
    /// longer than `wait_timeout` to begin is refused.
    pub fn start(writer: Database, wait_timeout: Duration) -> Self {
        let (jobs, arrived) = mpsc::unbounded_channel();
        tokio::spawn(run_jobs(writer, WaitingJobs::new(arrived)));
        Self { jobs, wait_timeout }
    }

    /// Runs a write; again when it loses against another process.
    pub(super) async fn run<O: Operation>(
        &self,
        account: &Account,
        write: &Arc<PendingWrite<O>>,
        large_read_permit: Option<LargeReadPermit>,
    ) -> Result<WriteOutcome<O::Answer>, StoreError> {
        // Dropped with this future, it tells the queue that nobody waits.
        let (_waiting, caller) = CallerLiveness::of_current_call();
        let caller = Arc::new(caller);
        let mut contention = Contention::Changed;
        for attempt in 0..MAX_LOCKED_ATTEMPTS {
            let permit = large_read_permit.clone();
            let outcome = self.enqueue(account, write, permit, &caller).await;
            contention = match outcome {
                Err(StoreError::Locked) => Contention::Locked,
                _ => Contention::Changed,
            };
            match outcome {
                Err(StoreError::Conflict | StoreError::Locked) if !caller.is_gone() => {
                    back_off(account.metrics(), attempt).await
                }
                // The caller has gone.
                Err(StoreError::Conflict | StoreError::Locked) => break,
                outcome => return outcome,
            }
        }
        Err(Error::WriteConflict(contention).into())
    }

    async fn enqueue<O: Operation>(
        &self,
        account: &Account,
        write: &Arc<PendingWrite<O>>,
        large_read_permit: Option<LargeReadPermit>,
        caller: &Arc<CallerLiveness>,
    ) -> Result<WriteOutcome<O::Answer>, StoreError> {
        let (outcome_sender, mut outcome) = oneshot::channel();
        let claimed = Arc::new(AtomicBool::new(false));
        let job = QueuedWrite {
            account: account.clone(),
            write: Arc::clone(write),
            large_read_permit,
            caller: Arc::clone(caller),
            log_span: Span::current(),
            spans: CallSpans::of_current_call(),
            claimed: Arc::clone(&claimed),
            enqueued: Some(Instant::now()),
            given_up: false,
            outcome: None,
            outcome_sender,
        };
        let closed = || StoreError::Unavailable(Outage::Unreachable);
        self.jobs.send(Box::new(job)).map_err(|_| closed())?;
        if let Ok(outcome) = timeout(self.wait_timeout, &mut outcome).await {
            return outcome.map_err(|_| closed())?;
        }
        // Either it is begun or it is given up, never both.
        if !claimed.swap(true, Ordering::SeqCst) {
            account.metrics().record_write_wait(self.wait_timeout);
            return Err(StoreError::Unavailable(Outage::Locked));
        }
        outcome.await.map_err(|_| closed())?
    }
}

async fn run_jobs(writer: Database, mut queue: WaitingJobs) {
    while let Some(job) = queue.next().await {
        for job in run_group(&writer, job, Some(&mut queue)).await {
            run_group(&writer, job, None).await;
        }
    }
}

/// Runs a write and those that arrive meanwhile in one transaction. If it must not be
/// committed, returns all of them, unanswered, to be run again, each alone. A write that is
/// alone is answered.
async fn run_group(
    writer: &Database,
    first: Box<dyn Job>,
    mut queue: Option<&mut WaitingJobs>,
) -> Vec<Box<dyn Job>> {
    let transaction = match writer.begin(TransactionMode::Write).await {
        Ok(transaction) => Arc::new(transaction),
        Err(err) => {
            first.end(Err(not_begun(err.into())));
            return Vec::new();
        }
    };
    let begun = Instant::now();
    let mut jobs: Vec<Box<dyn Job>> = Vec::new();
    let mut next = Some(first);
    while let Some(mut job) = next.take() {
        let state = job.run(&transaction, !jobs.is_empty()).await;
        jobs.push(job);
        if state == TransactionState::MustRollBack {
            // Keep the first error: SQLite may have rolled back already.
            let _ = roll_back(transaction).await;
            if jobs.len() > 1 {
                return jobs;
            }
            // Its own outcome says how it went.
            jobs.into_iter().for_each(|job| job.end(Ok(())));
            return Vec::new();
        }
        if begun.elapsed() < GROUP_TIME {
            next = queue.as_mut().and_then(|queue| queue.try_next());
        }
    }
    let mut stored = commit(writer, transaction).await;
    // The first write gets the error itself, the others a copy.
    for job in jobs {
        let others = stored.as_ref().map_err(StoreError::shared).copied();
        job.end(std::mem::replace(&mut stored, others));
    }
    Vec::new()
}

/// The error of a transaction that could not begin. On a conflict, another process has held the
/// database for as long as SQLite waits, and trying again would wait as long once more.
fn not_begun(error: StoreError) -> StoreError {
    match error {
        StoreError::Conflict | StoreError::Locked => StoreError::Unavailable(Outage::Locked),
        other => other,
    }
}

struct QueuedWrite<O: Operation> {
    account: Account,
    write: Arc<PendingWrite<O>>,
    large_read_permit: Option<LargeReadPermit>,
    caller: Arc<CallerLiveness>,
    /// The span that names the call in the log.
    log_span: Span,
    /// Where statements are recorded in the call's trace.
    spans: CallSpans,
    /// Claimed by whichever comes first: the queue, which starts the write, or the caller,
    /// who gives it up.
    claimed: Arc<AtomicBool>,
    /// When it was added to the queue; `None` once it has begun.
    enqueued: Option<Instant>,
    /// Whether the caller gave it up before it began.
    given_up: bool,
    outcome: Option<Result<WriteOutcome<O::Answer>, StoreError>>,
    outcome_sender: oneshot::Sender<Result<WriteOutcome<O::Answer>, StoreError>>,
}

impl<O: Operation> Job for QueuedWrite<O> {
    fn account(&self) -> AccountId {
        self.account.id.clone()
    }

    fn has_gone(&self) -> bool {
        self.outcome_sender.is_closed()
    }

    fn run<'a>(
        &'a mut self,
        transaction: &'a Arc<Transaction>,
        in_savepoint: bool,
    ) -> BoxFuture<'a, TransactionState> {
        let (spans, log_span) = (self.spans.clone(), self.log_span.clone());
        let run = spans.scope(self.run_in(transaction, in_savepoint));
        Box::pin(run.instrument(log_span))
    }

    fn end(self: Box<Self>, shared: Result<(), StoreError>) {
        if let Some(enqueued) = self.enqueued
            && !self.claimed.load(Ordering::SeqCst)
        {
            // No transaction could begin.
            self.account.metrics().record_write_wait(enqueued.elapsed());
        }
        let outcome = match (shared, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            // It was not run, as its caller had gone.
            (Ok(()), None) => Err(StoreError::Conflict),
            (Err(error), _) => Err(error),
        };
        // This fails when the caller has gone, and nobody waits for it.
        let _ = self.outcome_sender.send(outcome);
    }
}

impl<O: Operation> QueuedWrite<O> {
    async fn run_in(
        &mut self,
        transaction: &Arc<Transaction>,
        in_savepoint: bool,
    ) -> TransactionState {
        self.outcome = None;
        let enqueued = self.enqueued.take();
        if enqueued.is_some() {
            self.given_up = self.claimed.swap(true, Ordering::SeqCst);
        }
        if self.given_up || self.caller.is_gone() {
            return TransactionState::Usable;
        }
        if let Some(enqueued) = enqueued {
            self.account.metrics().record_write_wait(enqueued.elapsed());
        }
        let tx = Tx::of(
            &self.account,
            WriteConnection::Transaction(Arc::clone(transaction)),
            self.large_read_permit.clone(),
        );
        let run = AssertUnwindSafe(run_in_group(&self.write, &tx, in_savepoint)).catch_unwind();
        let (outcome, state) = run.await.unwrap_or_else(|_| {
            let panic = Error::Internal("a write panicked".to_owned());
            (Err(panic.into()), TransactionState::MustRollBack)
        });
        self.outcome = Some(outcome);
        state
    }
}

async fn run_in_group<O: Operation>(
    write: &PendingWrite<O>,
    tx: &Tx,
    in_savepoint: bool,
) -> (
    Result<WriteOutcome<O::Answer>, StoreError>,
    TransactionState,
) {
    match write.run_optimistic(tx).await {
        Ok(Some(outcome)) => return (Ok(outcome), TransactionState::Usable),
        Ok(None) => {}
        Err(error @ (StoreError::Domain(_) | StoreError::NeedsLargeReadPermit(_))) => {
            return (Err(error), TransactionState::Usable);
        }
        Err(error) => return (Err(error), TransactionState::MustRollBack),
    }
    if in_savepoint && let Err(err) = tx.db.execute_unprepared("SAVEPOINT queued_write").await {
        return (Err(err.into()), TransactionState::MustRollBack);
    }
    let outcome = write.run_locked(tx).await;
    let is_kept = outcome.is_ok() && write.mode == WriteMode::Store;
    // Other errors may have broken the transaction.
    let is_usable = matches!(
        outcome,
        Ok(_) | Err(StoreError::Domain(_) | StoreError::NeedsLargeReadPermit(_))
    );
    let state = match (is_kept, in_savepoint) {
        (true, false) => TransactionState::Usable,
        (true, true) => end_savepoint(tx, "RELEASE queued_write").await,
        (false, true) if is_usable => {
            end_savepoint(tx, "ROLLBACK TO queued_write; RELEASE queued_write").await
        }
        (false, _) => TransactionState::MustRollBack,
    };
    (outcome, state)
}

async fn end_savepoint(tx: &Tx, sql: &str) -> TransactionState {
    match tx.db.execute_unprepared(sql).await {
        Ok(_) => TransactionState::Usable,
        Err(_) => TransactionState::MustRollBack,
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    struct FakeJob {
        has_gone: bool,
    }

    impl Job for FakeJob {
        fn account(&self) -> AccountId {
            AccountId::parse("demo").expect("an account")
        }

        fn has_gone(&self) -> bool {
            self.has_gone
        }

        fn run<'a>(
            &'a mut self,
            _: &'a Arc<Transaction>,
            _: bool,
        ) -> BoxFuture<'a, TransactionState> {
            Box::pin(async { TransactionState::Usable })
        }

        fn end(self: Box<Self>, _: Result<(), StoreError>) {}
    }

    #[tokio::test]
    async fn the_queue_goes_on_after_writes_that_nobody_waits_for() {
        let (jobs, arrived) = mpsc::unbounded_channel::<Box<dyn Job>>();
        let mut queue = WaitingJobs::new(arrived);
        let send = |has_gone| jobs.send(Box::new(FakeJob { has_gone })).is_ok();
        assert!(send(true) && send(true));
        assert!(queue.next().now_or_never().is_none(), "it waits for more");
        assert!(send(false));
        assert!(queue.next().now_or_never().flatten().is_some());
    }
}
