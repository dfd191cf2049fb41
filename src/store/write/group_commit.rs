//! Group commit for SQLite, which has one writer. Waiting writes share a transaction and its COMMIT,
//! whose sync to disk takes longer than everything else.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::BoxFuture};
use sea_orm::DatabaseTransaction;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tracing::{Instrument, Span};

use super::{
    Operation,
    writers::{Pending, Transactions},
};
use crate::{
    domain::{Error, Outage},
    store::{WriteMode, WriteOutcome, error::StoreError},
};

/// The maximum number of writes that share a transaction.
const MAX_GROUP: usize = 64;
/// How long a write waits for its turn.
const MAX_WAIT: Duration = Duration::from_secs(15);

/// The states of a queued write.
const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// The queue of writes.
pub struct GroupCommit {
    jobs: mpsc::UnboundedSender<Box<dyn Job>>,
}

/// A queued write of any kind.
trait Job: Send {
    /// Marks it as begun. Returns false if its caller has gone.
    fn begin(&self, transactions: &Transactions) -> bool;
    /// Whether it may share a transaction: dry runs are rolled back.
    fn may_share(&self) -> bool;
    /// Runs it in a shared transaction. Returns false if that must be rolled back.
    fn run_in<'a>(&'a mut self, transaction: &'a DatabaseTransaction) -> BoxFuture<'a, bool>;
    /// Runs it in a transaction of its own.
    fn run_alone<'a>(&'a mut self, transactions: &'a Transactions) -> BoxFuture<'a, ()>;
    /// Sends the outcome of the write, or the error of its shared transaction.
    fn respond(self: Box<Self>, committed: Result<(), StoreError>);
}

struct QueuedWrite<O: Operation> {
    pending: Pending<O>,
    /// Names the call in the log.
    log_span: Span,
    queued: Instant,
    state: Arc<AtomicU8>,
    outcome: Option<Result<WriteOutcome<O::Answer>, StoreError>>,
    response: oneshot::Sender<Result<WriteOutcome<O::Answer>, StoreError>>,
}

impl GroupCommit {
    /// Starts the task that runs the writes, until this is dropped.
    pub fn start(transactions: Transactions) -> Self {
        let (jobs, mut queue) = mpsc::unbounded_channel::<Box<dyn Job>>();
        tokio::spawn(async move {
            while let Some(first) = queue.recv().await {
                let mut group = vec![first];
                while group.len() < MAX_GROUP
                    && let Ok(job) = queue.try_recv()
                {
                    group.push(job);
                }
                group.retain(|job| job.begin(&transactions));
                run_group(group, &transactions).await;
            }
        });
        Self { jobs }
    }

    /// Waits until the write may begin, and runs it.
    pub(super) async fn run<O: Operation>(
        &self,
        pending: Pending<O>,
    ) -> Result<WriteOutcome<O::Answer>, StoreError> {
        let (response, mut responded) = oneshot::channel();
        let state = Arc::new(AtomicU8::new(WAITING));
        let job = QueuedWrite {
            pending,
            log_span: Span::current(),
            queued: Instant::now(),
            state: Arc::clone(&state),
            outcome: None,
            response,
        };
        let ended = || Error::Internal("the task that writes has ended".to_owned());
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        let in_time = timeout(MAX_WAIT, &mut responded).await;
        let outcome = match in_time {
            Ok(outcome) => outcome,
            Err(_) if leave(&state, GIVEN_UP) => {
                return Err(StoreError::Unavailable(Outage::Locked));
            }
            Err(_) => responded.await,
        };
        outcome.unwrap_or_else(|_| Err(ended().into()))
    }
}

/// Moves a waiting write to another state. Returns false if it waits no longer.
fn leave(state: &AtomicU8, next: u8) -> bool {
    let ordering = Ordering::AcqRel;
    state
        .compare_exchange(WAITING, next, ordering, Ordering::Acquire)
        .is_ok()
}

/// Runs writes in one transaction. If one of them needs a rollback, each runs alone.
async fn run_group(group: Vec<Box<dyn Job>>, transactions: &Transactions) {
    let (mut shared, mut alone): (Vec<_>, Vec<_>) =
        group.into_iter().partition(|job| job.may_share());
    match shared.len() {
        0 => {}
        1 => alone.append(&mut shared),
        _ => match run_shared(&mut shared, transactions).await {
            Some(mut committed) => {
                // The first write gets the error itself, the others a copy.
                for job in shared {
                    let for_others = committed.as_ref().map_err(StoreError::shared).copied();
                    job.respond(std::mem::replace(&mut committed, for_others));
                }
            }
            None => alone.append(&mut shared),
        },
    }
    for mut job in alone {
        job.run_alone(transactions).await;
        job.respond(Ok(()));
    }
}

/// Turns a panic of one write into its error, as it would otherwise end the task that writes.
async fn catch_panic<T>(
    write: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let panicked = || Error::Internal("a write panicked".to_owned());
    let outcome = AssertUnwindSafe(write).catch_unwind().await;
    outcome.unwrap_or_else(|_| Err(panicked().into()))
}

/// Returns the outcome of the BEGIN and the COMMIT; `None` if the transaction was rolled back.
async fn run_shared(
    jobs: &mut [Box<dyn Job>],
    transactions: &Transactions,
) -> Option<Result<(), StoreError>> {
    let transaction = match transactions.begin().await {
        Ok(transaction) => transaction,
        // Not retried: each BEGIN waits for seconds while another process locks the file.
        Err(error) => return Some(Err(error)),
    };
    for job in jobs {
        if !job.run_in(&transaction).await {
            // The driver repeats a failed rollback before it uses the connection again.
            let _ = transaction.rollback().await;
            return None;
        }
    }
    Some(transactions.commit(transaction).await)
}

impl<O: Operation> Job for QueuedWrite<O> {
    fn begin(&self, transactions: &Transactions) -> bool {
        transactions
            .metrics
            .record_write_wait(self.queued.elapsed());
        // A write whose deadline has passed runs, and fails with `CallOver`.
        !self.response.is_closed() && leave(&self.state, BEGUN)
    }

    fn may_share(&self) -> bool {
        self.pending.write.mode == WriteMode::Store
    }

    fn run_in<'a>(&'a mut self, transaction: &'a DatabaseTransaction) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let spans = self.pending.spans.clone();
            let run = catch_panic(self.pending.run_in(transaction));
            let outcome = spans.scope(run).instrument(self.log_span.clone()).await;
            // A write that is refused has written nothing.
            let may_commit = match &outcome {
                Ok(_) | Err(StoreError::NeedsLargeReadPermit(_)) => true,
                Err(StoreError::Domain(error)) => !matches!(error, Error::Internal(_)),
                Err(_) => false,
            };
            self.outcome = Some(outcome);
            may_commit
        })
    }

    fn run_alone<'a>(&'a mut self, transactions: &'a Transactions) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let spans = self.pending.spans.clone();
            let run = catch_panic(transactions.run(&self.pending));
            let outcome = spans.scope(run).instrument(self.log_span.clone()).await;
            self.outcome = Some(outcome);
        })
    }

    fn respond(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self {
            pending,
            outcome,
            response,
            ..
        } = *self;
        // What the call holds is released before its response is sent.
        drop(pending);
        let outcome = match committed {
            Ok(()) => outcome,
            Err(error) => Some(Err(error)),
        };
        if let Some(outcome) = outcome {
            // Sending fails if the caller has gone.
            let _ = response.send(outcome);
        }
    }
}
