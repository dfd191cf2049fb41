//! The one place where a write begins and ends.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::future::BoxFuture;
use sea_orm::{
    DatabaseTransaction, DbBackend, SqliteTransactionMode, Statement, TransactionOptions, Value,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use tracing::Instrument;

use super::{Account, Mode, backend, fault::Fault};
use crate::{
    domain::{Error, Outage, Result, ids::AccountId, time::Timestamp},
    ongoing::Ongoing,
};

/// How often a transaction that loses against others is run again.
const ATTEMPTS: u32 = 10;
/// How long a write may go on whose caller has gone; longer than a wait for a lock.
const FAREWELL: Duration = Duration::from_secs(5);

/// A transaction that writes, under an account.
pub(super) struct Tx {
    /// Where statements go.
    pub db: DatabaseTransaction,
    /// Whose data it works on.
    pub account: AccountId,
    /// When it began: the time stamp of everything it writes.
    pub now: Timestamp,
    /// Most bytes of a message.
    pub max_message_bytes: usize,
}

impl Tx {
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
struct Caller {
    waits: watch::Receiver<()>,
    call: Option<Ongoing>,
}

impl Caller {
    fn is_gone(&self) -> bool {
        let over = self.call.as_ref().is_some_and(Ongoing::is_over);
        over || self.waits.has_changed().is_err()
    }

    /// Ready when nobody has waited for [`FAREWELL`].
    async fn long_gone(&self) {
        while self.waits.clone().changed().await.is_ok() {}
        sleep(FAREWELL).await;
    }
}

impl Account {
    /// Runs one write as one transaction.
    ///
    /// It runs in a task of its own, so that a caller who goes away leaves all
    /// of it or nothing, and a `begin()` is never cancelled half-way. SQLite
    /// takes the write lock at BEGIN; on PostgreSQL `op` locks the rows it is
    /// about to change, tasks by GUID before steps by GUID. A transaction that
    /// loses against another all the same is run again from its beginning; one
    /// whose caller has gone before its COMMIT is rolled back.
    pub(super) async fn write<T, F>(&self, mode: Mode, op: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t Tx) -> BoxFuture<'t, Result<T, Fault>> + Send + Sync + 'static,
    {
        let turn = self.turns().take().await?;
        // Dropped with this future, it tells the task that nobody waits.
        let (waiting, caller) = watch::channel(());
        let account = self.clone();
        let caller = Caller {
            waits: caller,
            call: Ongoing::current(),
        };
        let task = async move {
            let outcome = account.attempts(mode, &op, &caller).await;
            drop(turn);
            outcome
        };
        let outcome = tokio::spawn(task.in_current_span())
            .await
            .unwrap_or_else(|_| Err(Error::Internal("a write panicked".to_owned())));
        drop(waiting);
        outcome
    }

    async fn attempts<T, F>(&self, mode: Mode, op: &F, caller: &Caller) -> Result<T>
    where
        T: Send,
        F: for<'t> Fn(&'t Tx) -> BoxFuture<'t, Result<T, Fault>> + Sync,
    {
        for attempt in 0..ATTEMPTS {
            match self.attempt(mode, op, caller).await {
                Err(Fault::Lost) if !caller.is_gone() => back_off(attempt).await,
                // Another connection may lead to a server that takes writes.
                Err(Fault::Out(Outage::ReadOnly)) if self.freshness().expire() => {}
                outcome => return outcome.map_err(Error::from),
            }
        }
        Err(Error::WriteConflict)
    }

    async fn attempt<T, F>(&self, mode: Mode, op: &F, caller: &Caller) -> Result<T, Fault>
    where
        T: Send,
        F: for<'t> Fn(&'t Tx) -> BoxFuture<'t, Result<T, Fault>> + Sync,
    {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let tx = Tx {
            db: self.writer().begin(options).await?,
            account: self.id.clone(),
            now: now(),
            max_message_bytes: self.max_message_bytes(),
        };
        // Nobody hears of what is lost for want of a caller.
        if caller.is_gone() {
            tx.db.rollback().await?;
            return Err(Fault::Lost);
        }
        let outcome = tokio::select! {
            outcome = op(&tx) => outcome,
            // A database that fell silent must not hold the connection for ever.
            () = caller.long_gone() => return Err(Fault::Lost),
        };
        match (&outcome, mode) {
            (Ok(_), Mode::Store) if caller.is_gone() => {
                tx.db.rollback().await?;
                return Err(Fault::Lost);
            }
            (Ok(_), Mode::Store) => tx.db.commit().await.map_err(Fault::of_commit)?,
            (Ok(_), Mode::ValidateOnly) => tx.db.rollback().await?,
            // What went wrong first says more than that it cannot be rolled back,
            // as after some errors SQLite has done it by itself. No connection is
            // used again inside a transaction.
            (Err(_), _) => drop(tx.db.rollback().await),
        }
        outcome
    }
}

/// Waits a little longer each time, so that two that collide part.
async fn back_off(attempt: u32) {
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
