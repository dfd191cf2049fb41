//! The one place where a write begins and ends.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use futures_util::future::BoxFuture;
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult, QueryResult,
    SqliteTransactionMode, Statement, TransactionOptions, Value, prelude::async_trait,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use tracing::Instrument;

use super::{Account, Mode, Writers, backend, database::Database, fault::Fault, meter::Meter};
use crate::{
    call_context::CallContext,
    domain::{Error, Outage, Result, ids::AccountId, time::Timestamp},
};

/// How often a transaction that loses against others is run again.
pub(super) const ATTEMPTS: u32 = 10;
/// How long a write may go on whose caller has gone; longer than a wait for a lock.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a write does.
pub(super) type Work<T> =
    Arc<dyn for<'t> Fn(&'t Tx) -> BoxFuture<'t, Result<T, Fault>> + Send + Sync>;

/// A piece of work on what was sent, which is kept as the work may be run again.
pub(super) fn work<S, T, F>(sent: &Arc<S>, run: F) -> Work<T>
where
    S: Send + Sync + 'static,
    F: for<'t> Fn(&'t Tx, Arc<S>) -> BoxFuture<'t, Result<T, Fault>> + Send + Sync + 'static,
{
    let sent = Arc::clone(sent);
    Arc::new(move |tx| run(tx, Arc::clone(&sent)))
}

/// Where the statements of a write go.
pub(super) enum Connection {
    /// Each statement is a transaction of its own.
    Alone(Database),
    /// All statements are of one transaction.
    Within(Arc<DatabaseTransaction>),
}

#[async_trait::async_trait]
impl ConnectionTrait for Connection {
    fn get_database_backend(&self) -> DbBackend {
        match self {
            Self::Alone(database) => database.get_database_backend(),
            Self::Within(transaction) => transaction.get_database_backend(),
        }
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        match self {
            Self::Alone(database) => database.execute_raw(statement).await,
            Self::Within(transaction) => transaction.execute_raw(statement).await,
        }
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        match self {
            Self::Alone(database) => database.execute_unprepared(sql).await,
            Self::Within(transaction) => transaction.execute_unprepared(sql).await,
        }
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        match self {
            Self::Alone(database) => database.query_one_raw(statement).await,
            Self::Within(transaction) => transaction.query_one_raw(statement).await,
        }
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        match self {
            Self::Alone(database) => database.query_all_raw(statement).await,
            Self::Within(transaction) => transaction.query_all_raw(statement).await,
        }
    }
}

/// A write at hand, under an account.
pub(super) struct Tx {
    /// Where statements go.
    pub db: Connection,
    /// Whose data it works on.
    pub account: AccountId,
    /// When it began: the time stamp of everything it writes.
    pub now: Timestamp,
    /// Most bytes of a message.
    pub max_message_bytes: usize,
}

impl Tx {
    /// A write of an account that begins now.
    pub fn of(account: &Account, db: Connection) -> Self {
        Self {
            db,
            account: account.id.clone(),
            now: now(),
            max_message_bytes: account.max_message_bytes(),
        }
    }

    /// Which of the two databases it works on.
    pub fn backend(&self) -> DbBackend {
        backend(&self.db)
    }

    /// The account id as it stands in the tables.
    pub fn account_id(&self) -> &str {
        self.account.as_str()
    }

    /// A statement whose placeholders `$1…` both databases understand. `$1` is
    /// the account id.
    pub fn statement(
        &self,
        sql: impl Into<String>,
        values: impl IntoIterator<Item = Value>,
    ) -> Statement {
        statement(backend(&self.db), &self.account, sql, values)
    }
}

/// A statement whose placeholders `$1…` both databases understand. `$1` is the
/// account id.
pub(super) fn statement(
    backend: DbBackend,
    account: &AccountId,
    sql: impl Into<String>,
    values: impl IntoIterator<Item = Value>,
) -> Statement {
    let account = Value::from(account.as_str());
    Statement::from_sql_and_values(backend, sql, std::iter::once(account).chain(values))
}

/// Whose turn it is to write.
///
/// *Invariant:* a write waits here, in the future of its caller, and not for a
/// connection: a caller who goes away or whose deadline passes takes the write
/// along, and it never begins.
pub(super) struct Turns {
    seats: Arc<Semaphore>,
    patience: Duration,
}

impl Turns {
    /// So many writes at once; one that waits longer than `patience` is refused.
    pub fn new(seats: usize, patience: Duration) -> Self {
        Self {
            seats: Arc::new(Semaphore::new(seats)),
            patience,
        }
    }

    async fn take(&self) -> Result<OwnedSemaphorePermit> {
        let seat = Arc::clone(&self.seats).acquire_owned();
        match timeout(self.patience, seat).await {
            Ok(Ok(seat)) => Ok(seat),
            Ok(Err(_)) | Err(_) => Err(Fault::Out(Outage::Busy).into()),
        }
    }
}

/// Whether anybody still waits for the answer of a write, and what the call holds
/// until the write has ended.
pub(super) struct Caller {
    waits: watch::Receiver<()>,
    call: Option<CallContext>,
}

impl Caller {
    /// The caller of the call at hand. It has gone when the sender is dropped.
    pub fn here() -> (watch::Sender<()>, Self) {
        let (waiting, waits) = watch::channel(());
        let call = CallContext::current();
        (waiting, Self { waits, call })
    }

    pub fn is_gone(&self) -> bool {
        let over = self.call.as_ref().is_some_and(CallContext::is_over);
        over || self.waits.has_changed().is_err()
    }

    /// Ready when nobody has waited for [`FAREWELL`].
    async fn long_gone(&self) {
        while self.waits.clone().changed().await.is_ok() {}
        sleep(FAREWELL).await;
    }
}

/// A write, as it is run again when it loses against another.
pub(super) struct Write<T> {
    pub mode: Mode,
    /// What may do all of it with one statement that writes, or with none. When it
    /// returns `None` or an error of the domain, it has done nothing.
    pub quick: Option<Work<Option<T>>>,
    /// What does it in a transaction, with the locks that it needs.
    pub whole: Work<T>,
}

impl Account {
    /// Runs one write as one transaction.
    ///
    /// It runs in a task of its own, or in that of the [`Queue`](super::Queue), so
    /// that a caller who goes away leaves all of it or nothing, and a `begin()` is
    /// never cancelled half-way. SQLite takes the write lock at BEGIN; on PostgreSQL
    /// `op` locks the rows it is about to change, tasks by GUID before steps by GUID.
    /// A transaction that loses against another all the same is run again from its
    /// beginning. One whose caller has gone is not begun, and on PostgreSQL, where it
    /// shares its COMMIT with nobody, rolled back up to the last moment.
    pub(super) async fn write<T, F>(&self, mode: Mode, op: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t Tx) -> BoxFuture<'t, Result<T, Fault>> + Send + Sync + 'static,
    {
        let whole = Arc::new(op);
        let quick = None;
        self.run(Write { mode, quick, whole }).await
    }

    /// Runs one write as [`Account::write`] does, and quickly where that will do.
    pub(super) async fn run<T: Send + 'static>(&self, write: Write<T>) -> Result<T> {
        self.meter().write(self.run_in_turn(write)).await
    }

    async fn run_in_turn<T: Send + 'static>(&self, write: Write<T>) -> Result<T> {
        let turns = match self.writers() {
            Writers::Turns(turns) => turns,
            Writers::Queue(queue) => return queue.run(self, write).await,
        };
        let asked = Instant::now();
        let turn = turns.take().await;
        self.meter().turn(asked.elapsed());
        let turn = turn?;
        // Dropped with this future, it tells the task that nobody waits.
        let (waiting, caller) = Caller::here();
        let account = self.clone();
        let task = async move {
            let outcome = account.attempts(&write, &caller).await;
            drop(turn);
            outcome
        };
        let outcome = tokio::spawn(task.in_current_span())
            .await
            .unwrap_or_else(|_| Err(Error::Internal("a write panicked".to_owned())));
        drop(waiting);
        outcome
    }

    async fn attempts<T: Send>(&self, write: &Write<T>, caller: &Caller) -> Result<T> {
        match self.attempt_quickly(write, caller).await {
            Ok(Some(outcome)) => return Ok(outcome),
            // What stands in the way is waited for, or seen, by the whole write.
            Ok(None) | Err(Fault::Lost | Fault::Out(Outage::ReadOnly)) => {}
            Err(fault) => return Err(fault.into()),
        }
        for attempt in 0..ATTEMPTS {
            match self.attempt(write, caller).await {
                Err(Fault::Lost) if !caller.is_gone() => back_off(self.meter(), attempt).await,
                // Another connection may lead to a server that takes writes.
                Err(Fault::Out(Outage::ReadOnly)) if self.freshness().expire() => {}
                outcome => return outcome.map_err(Error::from),
            }
        }
        Err(Error::WriteConflict)
    }

    async fn attempt_quickly<T: Send>(
        &self,
        write: &Write<T>,
        caller: &Caller,
    ) -> Result<Option<T>, Fault> {
        let Some(quick) = &write.quick else {
            return Ok(None);
        };
        if caller.is_gone() {
            return Err(Fault::Lost);
        }
        let tx = Tx::of(self, Connection::Alone(self.writer().clone()));
        tokio::select! {
            outcome = quick(&tx) => outcome,
            () = caller.long_gone() => Err(Fault::Lost),
        }
    }

    async fn attempt<T: Send>(&self, write: &Write<T>, caller: &Caller) -> Result<T, Fault> {
        // Nobody hears of what is lost for want of a caller.
        if caller.is_gone() {
            return Err(Fault::Lost);
        }
        let transaction = Arc::new(self.writer().begin(immediate()).await?);
        let outcome = {
            let tx = Tx::of(self, Connection::Within(Arc::clone(&transaction)));
            tokio::select! {
                outcome = (write.whole)(&tx) => outcome,
                // A database that fell silent must not hold the connection for ever.
                () = caller.long_gone() => return Err(Fault::Lost),
            }
        };
        match (&outcome, write.mode) {
            (Ok(_), Mode::Store) if caller.is_gone() => {
                roll_back(transaction).await?;
                return Err(Fault::Lost);
            }
            (Ok(_), Mode::Store) => commit(self.writer(), transaction).await?,
            (Ok(_), Mode::ValidateOnly) => roll_back(transaction).await?,
            // What went wrong first says more than that it cannot be rolled back,
            // as after some errors SQLite has done it by itself. No connection is
            // used again inside a transaction.
            (Err(_), _) => drop(roll_back(transaction).await),
        }
        outcome
    }
}

/// Has SQLite take the write lock at BEGIN.
pub(super) fn immediate() -> TransactionOptions {
    TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    }
}

/// Ends a transaction that nothing else holds any more, and makes it durable.
pub(super) async fn commit(
    writer: &Database,
    transaction: Arc<DatabaseTransaction>,
) -> Result<(), Fault> {
    let transaction = Arc::try_unwrap(transaction);
    let transaction = transaction.map_err(|_| Fault::Corrupt("a write goes on"))?;
    let committed = writer.committing(transaction.commit()).await;
    committed.map_err(Fault::of_commit)
}

/// Ends a transaction that nothing else holds any more, and takes it back.
pub(super) async fn roll_back(transaction: Arc<DatabaseTransaction>) -> Result<(), Fault> {
    let transaction = Arc::try_unwrap(transaction);
    let transaction = transaction.map_err(|_| Fault::Corrupt("a write goes on"))?;
    Ok(transaction.rollback().await?)
}

/// Waits a little longer each time, so that two that collide part.
pub(super) async fn back_off(meter: &Meter, attempt: u32) {
    meter.lost();
    sleep(Duration::from_millis(1 << attempt.min(6))).await;
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
#[path = "transaction_tests.rs"]
mod tests;
