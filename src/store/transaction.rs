//! The one place where a write begins and ends.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use sea_orm::{
    DatabaseTransaction, DbBackend, SqliteTransactionMode, Statement, TransactionOptions,
    TransactionTrait, Value,
};
use tracing::Instrument;

use super::{Account, Mode, backend, fault::Fault};
use crate::domain::{Error, Result, ids::AccountId, time::Timestamp};

/// How often a transaction that loses against others is run again.
const ATTEMPTS: u32 = 10;

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

impl Account {
    /// Runs one write as one transaction.
    ///
    /// It runs in a task of its own, so that a caller who goes away leaves all
    /// of it or nothing, and a `begin()` is never cancelled half-way. SQLite
    /// takes the write lock at BEGIN; on PostgreSQL `op` locks the rows it is
    /// about to change, tasks by GUID before steps by GUID. A transaction that
    /// loses against another all the same is run again from its beginning.
    pub(super) async fn write<T, F>(&self, mode: Mode, op: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t Tx) -> BoxFuture<'t, Result<T, Fault>> + Send + Sync + 'static,
    {
        let account = self.clone();
        let task = async move {
            for attempt in 0..ATTEMPTS {
                match account.attempt(mode, &op).await {
                    Err(Fault::Lost) => back_off(attempt).await,
                    outcome => return outcome.map_err(Error::from),
                }
            }
            Err(Error::WriteConflict)
        };
        tokio::spawn(task.in_current_span())
            .await
            .unwrap_or_else(|_| Err(Error::Internal("a write panicked".to_owned())))
    }

    async fn attempt<T, F>(&self, mode: Mode, op: &F) -> Result<T, Fault>
    where
        T: Send,
        F: for<'t> Fn(&'t Tx) -> BoxFuture<'t, Result<T, Fault>> + Sync,
    {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let tx = Tx {
            db: self.writer().begin_with_options(options).await?,
            account: self.id.clone(),
            now: now(),
            max_message_bytes: self.max_message_bytes(),
        };
        let outcome = op(&tx).await;
        match (&outcome, mode) {
            (Ok(_), Mode::Store) => tx.db.commit().await?,
            (Ok(_), Mode::ValidateOnly) | (Err(_), _) => tx.db.rollback().await?,
        }
        outcome
    }
}

/// Waits a little longer each time, so that two that collide part.
async fn back_off(attempt: u32) {
    tokio::time::sleep(Duration::from_millis(1 << attempt.min(6))).await;
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
