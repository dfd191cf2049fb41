//! SQLite's one writer: writes that wait for each other share a transaction, and
//! so its COMMIT, which is what a write costs on a disk.
//!
//! *Invariants:* nobody is answered before the COMMIT; what one write does wrong is
//! taken back without touching its neighbours; a write that nobody else waits with
//! waits for nobody.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::BoxFuture};
use sea_orm::{ConnectionTrait, DatabaseTransaction};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tracing::{Instrument, Span};

use super::{
    Account, Mode,
    database::Database,
    fault::Fault,
    transaction::{
        ATTEMPTS, Caller, Connection, Tx, Write, back_off, commit, immediate, roll_back,
    },
};
use crate::domain::{Error, Outage, Result};

/// How long writes are added to a transaction. A COMMIT takes about as long, and
/// those behind it wait for both.
const GATHER: Duration = Duration::from_millis(4);

/// Writes in the order of their arrival.
pub(super) struct Queue {
    jobs: mpsc::UnboundedSender<Box<dyn Job>>,
    patience: Duration,
}

/// A write in the queue, whatever it returns.
trait Job: Send {
    /// Runs the write in a transaction; `apart`, so that it can be taken back
    /// without what is in the transaction already.
    fn run<'a>(
        &'a mut self,
        transaction: &'a Arc<DatabaseTransaction>,
        apart: bool,
    ) -> BoxFuture<'a, Ran>;

    /// Tells the caller how the write went, or that it was not stored.
    fn end(self: Box<Self>, stored: Result<(), Fault>);
}

/// What a write has left in the transaction.
#[derive(Debug, PartialEq, Eq)]
enum Ran {
    /// What it did; or nothing, as it was taken back or never begun.
    Well,
    /// The transaction must not be committed.
    Badly,
}

impl Queue {
    /// A queue that is worked on as long as it is there. A write that waits longer
    /// than `patience` for its turn is refused.
    pub fn on(writer: Database, patience: Duration) -> Self {
        let (jobs, queue) = mpsc::unbounded_channel();
        tokio::spawn(work(writer, queue));
        Self { jobs, patience }
    }

    /// Runs a write; again when it loses against another process.
    pub async fn run<T: Send + 'static>(&self, account: &Account, write: Write<T>) -> Result<T> {
        let write = Arc::new(write);
        // Dropped with this future, it tells the queue that nobody waits.
        let (_waiting, caller) = Caller::here();
        let caller = Arc::new(caller);
        for attempt in 0..ATTEMPTS {
            match self.queue(account, &write, &caller).await {
                Err(Fault::Lost) if !caller.is_gone() => back_off(account.meter(), attempt).await,
                outcome => return outcome.map_err(Error::from),
            }
        }
        Err(Error::WriteConflict)
    }

    async fn queue<T: Send + 'static>(
        &self,
        account: &Account,
        write: &Arc<Write<T>>,
        caller: &Arc<Caller>,
    ) -> Result<T, Fault> {
        let (begins, begun) = oneshot::channel();
        let (answers, answer) = oneshot::channel();
        let decided = Arc::new(AtomicBool::new(false));
        let entry = Entry {
            account: account.clone(),
            write: Arc::clone(write),
            caller: Arc::clone(caller),
            span: Span::current(),
            decided: Arc::clone(&decided),
            begins: Some(begins),
            given_up: false,
            outcome: None,
            answers,
        };
        let closed = || Fault::Out(Outage::Away);
        self.jobs.send(Box::new(entry)).map_err(|_| closed())?;
        let asked = Instant::now();
        let turn = timeout(self.patience, begun).await;
        account.meter().turn(asked.elapsed());
        // Either it is begun or it is given up, never both.
        if turn.is_err() && !decided.swap(true, Ordering::SeqCst) {
            return Err(Fault::Out(Outage::Busy));
        }
        answer.await.map_err(|_| closed())?
    }
}

async fn work(writer: Database, mut queue: mpsc::UnboundedReceiver<Box<dyn Job>>) {
    while let Some(job) = queue.recv().await {
        for job in together(&writer, job, Some(&mut queue)).await {
            together(&writer, job, None).await;
        }
    }
}

/// Runs a write and those that arrive meanwhile in one transaction. When that must
/// not be committed, none of them has been answered and all are to be run again,
/// each alone.
async fn together(
    writer: &Database,
    first: Box<dyn Job>,
    mut queue: Option<&mut mpsc::UnboundedReceiver<Box<dyn Job>>>,
) -> Vec<Box<dyn Job>> {
    let transaction = match writer.begin(immediate()).await {
        Ok(transaction) => Arc::new(transaction),
        Err(err) => {
            first.end(Err(err.into()));
            return Vec::new();
        }
    };
    let begun = Instant::now();
    let mut jobs: Vec<Box<dyn Job>> = Vec::new();
    let mut next = Some(first);
    while let Some(mut job) = next.take() {
        let ran = job.run(&transaction, !jobs.is_empty()).await;
        jobs.push(job);
        if ran == Ran::Badly {
            // What went wrong first says more than that it cannot be rolled back,
            // as after some errors SQLite has done it by itself.
            let _ = roll_back(transaction).await;
            if jobs.len() > 1 {
                return jobs;
            }
            jobs.into_iter().for_each(|job| job.end(Ok(())));
            return Vec::new();
        }
        if begun.elapsed() < GATHER {
            next = queue.as_mut().and_then(|queue| queue.try_recv().ok());
        }
    }
    let mut stored = commit(writer, transaction).await;
    for job in jobs {
        let others = stored.as_ref().map_err(Fault::likewise).copied();
        job.end(std::mem::replace(&mut stored, others));
    }
    Vec::new()
}

struct Entry<T> {
    account: Account,
    write: Arc<Write<T>>,
    caller: Arc<Caller>,
    span: Span,
    /// Set by whoever is first: the queue that begins the write, or the caller who
    /// gives it up.
    decided: Arc<AtomicBool>,
    /// Tells the caller that the write has begun.
    begins: Option<oneshot::Sender<()>>,
    given_up: bool,
    outcome: Option<Result<T, Fault>>,
    answers: oneshot::Sender<Result<T, Fault>>,
}

impl<T: Send + 'static> Job for Entry<T> {
    fn run<'a>(
        &'a mut self,
        transaction: &'a Arc<DatabaseTransaction>,
        apart: bool,
    ) -> BoxFuture<'a, Ran> {
        let span = self.span.clone();
        Box::pin(self.run_in(transaction, apart).instrument(span))
    }

    fn end(self: Box<Self>, stored: Result<(), Fault>) {
        let outcome = match (stored, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(Fault::Lost),
            (Err(fault), _) => Err(fault),
        };
        // Nobody hears it when the caller has gone.
        let _ = self.answers.send(outcome);
    }
}

impl<T: Send + 'static> Entry<T> {
    async fn run_in(&mut self, transaction: &Arc<DatabaseTransaction>, apart: bool) -> Ran {
        self.outcome = None;
        if let Some(begins) = self.begins.take() {
            self.given_up = self.decided.swap(true, Ordering::SeqCst);
            let _ = begins.send(());
        }
        if self.given_up || self.caller.is_gone() {
            return Ran::Well;
        }
        let tx = Tx::of(&self.account, Connection::Within(Arc::clone(transaction)));
        let run = AssertUnwindSafe(run(&self.write, &tx, apart)).catch_unwind();
        let (outcome, ran) = run.await.unwrap_or_else(|_| {
            let panic = Error::Internal("a write panicked".to_owned());
            (Err(panic.into()), Ran::Badly)
        });
        self.outcome = Some(outcome);
        ran
    }
}

async fn run<T>(write: &Write<T>, tx: &Tx, apart: bool) -> (Result<T, Fault>, Ran) {
    if let Some(quick) = &write.quick {
        match quick(tx).await {
            Ok(Some(outcome)) => return (Ok(outcome), Ran::Well),
            Ok(None) => {}
            Err(fault @ Fault::Domain(_)) => return (Err(fault), Ran::Well),
            Err(fault) => return (Err(fault), Ran::Badly),
        }
    }
    if apart && let Err(err) = tx.db.execute_unprepared("SAVEPOINT apart").await {
        return (Err(err.into()), Ran::Badly);
    }
    let outcome = (write.whole)(tx).await;
    let stays = outcome.is_ok() && write.mode == Mode::Store;
    let harmless = matches!(outcome, Ok(_) | Err(Fault::Domain(_)));
    let ran = match (stays, apart) {
        (true, false) => Ran::Well,
        (true, true) => then(tx, "RELEASE apart").await,
        (false, true) if harmless => then(tx, "ROLLBACK TO apart; RELEASE apart").await,
        (false, _) => Ran::Badly,
    };
    (outcome, ran)
}

async fn then(tx: &Tx, sql: &str) -> Ran {
    match tx.db.execute_unprepared(sql).await {
        Ok(_) => Ran::Well,
        Err(_) => Ran::Badly,
    }
}
