//! Runs writes in transactions, as many concurrently as the database allows.
//!
//! SQLite has one writer. Writes that wait for it share a transaction and its COMMIT, whose sync to disk
//! takes longer than everything else.

use std::{
    collections::VecDeque,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use opentelemetry::context::FutureExt as _;
use sea_orm::{DatabaseTransaction, DbBackend};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};
use tracing::{Instrument, Span};

use super::{
    AnyWrite, Tx, lock,
    transactions::{MAX_TRANSACTION_TIME, Transactions},
};
use crate::{
    call_context::CallContext,
    domain::{Error, Outage},
    store::{
        Account, WriteMode, connect::Connections, error::StoreError, metrics::StoreMetrics,
        read::MaxBytes,
    },
};

/// How long a write waits for its turn on PostgreSQL.
const POSTGRES_MAX_WAIT: Duration = Duration::from_secs(2);
/// How long a write waits for its turn on SQLite.
const SQLITE_MAX_WAIT: Duration = Duration::from_secs(15);
/// The maximum number of writes that share a transaction on SQLite.
const SQLITE_MAX_GROUP: usize = 64;

/// The queue of writes.
///
/// *Invariant:* a queued write holds no connection. If the caller goes away or its deadline passes
/// meanwhile, the write never starts. A write that has begun runs to its end even if its caller
/// goes away, so BEGIN is never canceled.
pub struct Writers {
    queue: Arc<Queue>,
    max_wait: Duration,
    /// The error of a write that waited for `max_wait`.
    timeout_error: Outage,
}

struct Queue {
    waiting: Mutex<VecDeque<Job>>,
    /// A slot for each transaction that may run.
    slots: Arc<Semaphore>,
    /// The maximum number of writes that share a transaction.
    max_group: usize,
    transactions: Transactions,
}

pub(super) struct Job {
    account: Account,
    write: Arc<dyn AnyWrite>,
    max_bytes: MaxBytes,
    large_read_permit: Option<OwnedSemaphorePermit>,
    /// Keeps the call's resources reserved until the write has ended.
    call: Option<Arc<CallContext>>,
    /// The trace of the call.
    trace: opentelemetry::Context,
    /// Names the call in the log.
    log_span: Span,
    queued: Instant,
    /// Set by whichever comes first: the queue that begins the write, or the caller that gives up.
    is_claimed: Arc<AtomicBool>,
    response: oneshot::Sender<Result<(), StoreError>>,
}

impl Writers {
    pub fn new(connections: &Connections, metrics: &Arc<StoreMetrics>) -> Self {
        let (max_wait, timeout_error, max_group) =
            match connections.pools.writer.get_database_backend() {
                DbBackend::Sqlite => (SQLITE_MAX_WAIT, Outage::Locked, SQLITE_MAX_GROUP),
                _ => (POSTGRES_MAX_WAIT, Outage::NoConnection, 1),
            };
        Self {
            queue: Arc::new(Queue {
                waiting: Mutex::default(),
                slots: Arc::new(Semaphore::new(connections.pools.max_writes)),
                max_group,
                transactions: Transactions::new(connections, metrics),
            }),
            max_wait,
            timeout_error,
        }
    }

    /// Waits until the write may begin, and runs it. The write may read up to `max_bytes`; above 1 MiB
    /// it needs `large_read_permit`.
    pub(super) async fn run(
        &self,
        account: &Account,
        write: Arc<dyn AnyWrite>,
        max_bytes: MaxBytes,
        large_read_permit: Option<OwnedSemaphorePermit>,
    ) -> Result<(), StoreError> {
        let (response, mut responded) = oneshot::channel();
        let is_claimed = Arc::new(AtomicBool::new(false));
        let job = Job {
            account: account.clone(),
            write,
            max_bytes,
            large_read_permit,
            call: CallContext::current(),
            trace: opentelemetry::Context::current(),
            log_span: Span::current(),
            queued: Instant::now(),
            is_claimed: Arc::clone(&is_claimed),
            response,
        };
        let ended = || Error::Internal("the task that writes has ended".to_owned());
        self.queue.add(job);
        let outcome = match timeout(self.max_wait, &mut responded).await {
            Ok(outcome) => outcome,
            Err(_) if is_claimed.swap(true, Ordering::AcqRel) => responded.await,
            Err(_) => return Err(StoreError::Unavailable(self.timeout_error)),
        };
        outcome.unwrap_or_else(|_| Err(ended().into()))
    }
}

impl Queue {
    /// Queues a write. Starts a task for it if another transaction may run.
    fn add(self: &Arc<Self>, job: Job) {
        let mut waiting = lock(&self.waiting);
        waiting.push_back(job);
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            tokio::spawn(Arc::clone(self).run_waiting(slot));
        }
    }

    /// Runs writes until none waits.
    async fn run_waiting(self: Arc<Self>, slot: OwnedSemaphorePermit) {
        let mut slot = Some(slot);
        while let Some(mut group) = self.next_group(&mut slot) {
            group.retain(|job| job.claim(&self.transactions.metrics));
            self.transactions.run_group(group).await;
        }
    }

    /// The next writes that share a transaction. If there are none, frees the slot, under the lock so that
    /// the next write finds it free.
    fn next_group(&self, slot: &mut Option<OwnedSemaphorePermit>) -> Option<Vec<Job>> {
        let mut waiting = lock(&self.waiting);
        if waiting.is_empty() {
            slot.take();
            return None;
        }
        let count = waiting.len().min(self.max_group);
        Some(waiting.drain(..count).collect())
    }
}

impl Job {
    /// Claims the job for the queue. Returns false if its caller has gone or given up.
    fn claim(&self, metrics: &StoreMetrics) -> bool {
        metrics.record_write_wait(self.queued.elapsed());
        // A write whose deadline has passed is claimed, and then fails with `CallOver`.
        !self.response.is_closed() && !self.is_claimed.swap(true, Ordering::AcqRel)
    }

    pub fn mode(&self) -> WriteMode {
        self.write.mode()
    }

    /// Fails if the response no longer has a receiver.
    pub fn check_caller(&self) -> Result<(), StoreError> {
        match &self.call {
            Some(call) if call.is_over() => Err(Error::CallOver.into()),
            _ => Ok(()),
        }
    }

    /// Runs the write in a transaction, which other writes may share.
    pub async fn run_in(&self, transaction: &DatabaseTransaction) -> Result<(), StoreError> {
        // BEGIN may have waited for another process.
        self.check_caller()?;
        let tx = Tx::new(
            &self.account,
            transaction,
            self.write.mode(),
            self.max_bytes,
        );
        let run = self.write.run(&tx).with_context(self.trace.clone());
        let run = run.instrument(self.log_span.clone());
        let run = async {
            match &self.call {
                Some(call) => call.in_turns(pin!(run)).await,
                None => run.await,
            }
        };
        // A panic must not affect the writes that share the transaction.
        let run = AssertUnwindSafe(run).catch_unwind();
        match timeout(MAX_TRANSACTION_TIME, run).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Error::Internal("a write panicked".to_owned()).into()),
            Err(_) => Err(StoreError::Unavailable(Outage::Unreachable)),
        }
    }

    pub fn respond(self, outcome: Result<(), StoreError>) {
        // Released before the response is sent, so that the caller's next call finds it free.
        drop((self.call, self.large_read_permit));
        // Sending fails if the caller has gone.
        let _ = self.response.send(outcome);
    }
}
