//! Transactions that write: where their statements go, how they begin and how they end.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Select, Statement,
    prelude::async_trait,
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use uuid::Uuid;

use super::{
    LargeReadPermit,
    statements::{IfUnchanged, LockedStatement},
};
use crate::{
    call_context::CallContext,
    domain::{
        Error, Outage, Result, SizedResource, decide::WriteContext, history::GuideCodec,
        ids::AccountId, time::Timestamp,
    },
    store::{
        Account, backend,
        connection::{Database, Transaction},
        error::StoreError,
        metrics::StoreMetrics,
        read::ExpectedTranslations,
        schema::entity::OfAccount,
        statement,
    },
    turns::{FairPermit, FairSemaphore, share_of_account},
};

/// Locked attempts of a write before it fails with `WRITE_CONFLICT`.
pub const MAX_LOCKED_ATTEMPTS: u32 = 10;
/// How long a write may go on after its caller has gone; longer than a wait for a lock.
const ABANDONED_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the statements of a write go.
pub enum WriteConnection {
    /// Each statement is a transaction of its own.
    Autocommit(Database),
    /// All statements are of one transaction.
    Transaction(Arc<Transaction>),
}

#[async_trait::async_trait]
impl ConnectionTrait for WriteConnection {
    fn get_database_backend(&self) -> DbBackend {
        match self {
            Self::Autocommit(database) => database.get_database_backend(),
            Self::Transaction(transaction) => transaction.get_database_backend(),
        }
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        match self {
            Self::Autocommit(database) => database.execute_raw(statement).await,
            Self::Transaction(transaction) => transaction.execute_raw(statement).await,
        }
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        match self {
            Self::Autocommit(database) => database.execute_unprepared(sql).await,
            Self::Transaction(transaction) => transaction.execute_unprepared(sql).await,
        }
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        match self {
            Self::Autocommit(database) => database.query_one_raw(statement).await,
            Self::Transaction(transaction) => transaction.query_one_raw(statement).await,
        }
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        match self {
            Self::Autocommit(database) => database.query_all_raw(statement).await,
            Self::Transaction(transaction) => transaction.query_all_raw(statement).await,
        }
    }
}

/// A write in progress, under an account.
pub struct Tx {
    /// Where statements go.
    pub db: WriteConnection,
    /// Whose write it is, and when it began.
    pub context: WriteContext,
    /// Without it, a read of a large step fails with [`StoreError::NeedsLargeReadPermit`].
    pub large_read_permit: Option<LargeReadPermit>,
    /// Encodes guides of revisions.
    pub guide_codec: GuideCodec,
    /// Whether steps of accounts are expected to have translations.
    pub expected_translations: Arc<ExpectedTranslations>,
}

impl Account {
    /// What the decision of a write that begins now needs.
    pub(in crate::store) fn write_context(&self) -> WriteContext {
        WriteContext {
            account: self.id.clone(),
            subject: self.subject.clone(),
            now: now(),
            new_id: Uuid::now_v7,
            max_message_bytes: self.max_message_bytes(),
            automatic_revisions: self.history().automatic_revisions,
            keeps_deleted_tasks: !self.history().deleted_task_retention.is_zero(),
        }
    }
}

impl Tx {
    /// A write of an account that begins now.
    pub fn of(
        account: &Account,
        db: WriteConnection,
        large_read_permit: Option<LargeReadPermit>,
    ) -> Self {
        Self {
            db,
            large_read_permit,
            guide_codec: account.history().codec,
            expected_translations: Arc::clone(account.expected_translations()),
            context: account.write_context(),
        }
    }

    /// The account.
    pub fn account(&self) -> &AccountId {
        &self.context.account
    }

    /// The account's rows of a table.
    pub fn select<E: OfAccount>(&self) -> Select<E> {
        E::select(self.account())
    }

    /// Which of the two databases it works on.
    pub fn backend(&self) -> DbBackend {
        backend(&self.db)
    }

    /// A statement with its values; `$1` is the account.
    pub fn statement(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = sea_orm::Value>,
    ) -> Statement {
        statement(self.backend(), self.account(), sql, values)
    }

    /// Runs a script: the guard's row, or `None` if it changed none.
    pub async fn run_script(&self, script: Statement) -> Result<Option<QueryResult>, StoreError> {
        let rows = self.db.query_all_raw(script).await;
        let rows = rows.map_err(|err| match &self.db {
            // An error of the statement may be an error of its COMMIT.
            WriteConnection::Autocommit(_) => StoreError::from_commit(err),
            WriteConnection::Transaction(_) => StoreError::from(err),
        })?;
        Ok(rows.into_iter().next())
    }

    /// Runs statements one after the other, under the locks that they need.
    pub async fn run_statements(&self, statements: Vec<LockedStatement>) -> Result<(), StoreError> {
        for statement in statements {
            let if_unchanged = statement.if_unchanged;
            let statement = statement.statement(self.backend(), self.account());
            let changed = self.db.execute_raw(statement).await?.rows_affected();
            if changed == 0 && if_unchanged == IfUnchanged::RefuseAsTooLarge {
                let too_large = Error::TooLarge {
                    resource: SizedResource::Task,
                    limit: self.context.max_message_bytes,
                };
                return Err(too_large.into());
            }
        }
        Ok(())
    }
}

/// Bounds how many writes run at once on PostgreSQL. Accounts take turns.
///
/// *Invariant:* a write waits here, in the future of its caller, and not for a
/// connection. If the caller goes away or its deadline passes meanwhile, the write never
/// starts.
pub struct WriteSlots {
    slots: Arc<FairSemaphore>,
    wait_timeout: Duration,
}

impl WriteSlots {
    /// Lets writes run on all but one of these connections at once, and those of an account on all but
    /// one of the connections that it may have, so that reads go on while writes wait for locks. A write
    /// that waits longer than `wait_timeout` is refused.
    pub fn of_connections(connections: usize, wait_timeout: Duration) -> Self {
        let but_one = |count: usize| count.saturating_sub(1).max(1);
        let of_account = but_one(share_of_account(connections));
        Self {
            slots: FairSemaphore::with_most(but_one(connections), of_account),
            wait_timeout,
        }
    }

    /// Waits for a slot, which is free again when the permit is dropped.
    pub async fn acquire(&self, account: &AccountId) -> Result<FairPermit> {
        let slot = timeout(self.wait_timeout, self.slots.acquire(account)).await;
        slot.map_err(|_| StoreError::Unavailable(Outage::NoConnection).into())
    }
}

/// Whether the caller of a write still waits for the answer. Keeps the call's permits and
/// memory until the write has ended.
pub struct CallerLiveness {
    waiting: watch::Receiver<()>,
    call: Option<CallContext>,
}

impl CallerLiveness {
    /// The caller of the current call. Dropping the sender marks it as gone.
    pub fn of_current_call() -> (watch::Sender<()>, Self) {
        let (sender, waiting) = watch::channel(());
        let call = CallContext::current();
        (sender, Self { waiting, call })
    }

    /// Whether the caller has gone or its deadline has passed.
    pub fn is_gone(&self) -> bool {
        let over = self.call.as_ref().is_some_and(CallContext::is_over);
        over || self.waiting.has_changed().is_err()
    }

    /// Ready when the caller has been gone for [`ABANDONED_WRITE_TIMEOUT`].
    pub async fn abandoned(&self) {
        while self.waiting.clone().changed().await.is_ok() {}
        sleep(ABANDONED_WRITE_TIMEOUT).await;
    }
}

/// Commits a transaction that nothing else holds any more.
pub async fn commit(writer: &Database, transaction: Arc<Transaction>) -> Result<(), StoreError> {
    let transaction = owned(transaction)?;
    let committed = writer.metrics.measure_commit(transaction.commit()).await;
    committed.map_err(StoreError::from_commit)
}

/// Rolls back a transaction that nothing else holds any more.
pub async fn roll_back(transaction: Arc<Transaction>) -> Result<(), StoreError> {
    Ok(owned(transaction)?.rollback().await?)
}

fn owned(transaction: Arc<Transaction>) -> Result<Transaction, StoreError> {
    let in_use = || Error::Internal("the transaction is still in use".to_owned());
    Arc::try_unwrap(transaction).map_err(|_| in_use().into())
}

/// Exponential back-off before a retry.
pub async fn back_off(metrics: &StoreMetrics, attempt: u32) {
    metrics.count_write_conflict();
    sleep(Duration::from_millis(1 << attempt.min(6))).await;
}

/// The time.
pub fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
