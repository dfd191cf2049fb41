//! Deletes the history of tasks that were deleted long ago.

use std::time::Duration;

use sea_orm::{ColumnTrait, ConnectionTrait, QueryFilter, QueryOrder, QuerySelect, Statement};
use tokio::time::sleep;
use tracing::warn;
use uuid::Uuid;

use super::{
    Operation,
    transaction::{Tx, now},
};
use crate::{
    domain::{
        Result,
        changes::Changes,
        decide::WriteContext,
        history::HistoryEdit,
        ids::{AccountId, TaskId},
        time::Timestamp,
    },
    store::{
        Account, Store, WriteMode, backend,
        error::StoreError,
        row_reader::RowReader,
        schema::entity::task_history::{Column, Entity},
    },
};

/// How many searches there are in one retention.
const SEARCHES_PER_RETENTION: u32 = 24;
const MIN_INTERVAL: Duration = Duration::from_secs(1);
const MAX_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long after its start a server begins, at most.
const FIRST_DELAY: Duration = Duration::from_secs(60);
/// The most tasks of an account that one statement finds.
const MAX_TASKS: u64 = 100;

/// The next account with a history of a task that was deleted before a time. This is the only
/// statement that looks across accounts, and it reads nothing but the index.
const NEXT_ACCOUNT: &str = "SELECT account_id FROM task_histories \
    WHERE account_id > $1 AND deleted_ts < $2 ORDER BY account_id LIMIT 1";

impl Store {
    /// Deletes histories whose retention has passed, at intervals, until it is dropped. Several
    /// servers may do so at the same time.
    pub async fn enforce_retention(self) {
        let retention = self.inner.history.deleted_task_retention;
        let interval = match retention.is_zero() {
            true => MAX_INTERVAL,
            false => (retention / SEARCHES_PER_RETENTION).clamp(MIN_INTERVAL, MAX_INTERVAL),
        };
        sleep(interval.min(FIRST_DELAY)).await;
        loop {
            let retention = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
            let before = Timestamp(now().0.saturating_sub(retention));
            if let Err(error) = self.delete_histories(before).await {
                // The next search tries again.
                warn!(%error, "the histories of deleted tasks were not deleted");
            }
            sleep(interval).await;
        }
    }

    /// Deletes the histories of tasks that were deleted before a time, each in a transaction of
    /// its own.
    async fn delete_histories(&self, before: Timestamp) -> Result<()> {
        let mut last = String::new();
        while let Some(account) = self.next_account(&last, before).await? {
            let handle = self.account(&account);
            if let Err(error) = handle.delete_histories(before).await {
                // The next search tries again, and other accounts must not wait for this one.
                warn!(%error, "the history of a deleted task was not deleted");
            }
            last = account.into_string();
        }
        Ok(())
    }

    async fn next_account(
        &self,
        after: &str,
        before: Timestamp,
    ) -> Result<Option<AccountId>, StoreError> {
        let db = &self.inner.connections.reader;
        let values = [after.into(), before.0.into()];
        let statement = Statement::from_sql_and_values(backend(db), NEXT_ACCOUNT, values);
        let Some(row) = db.query_one_raw(statement).await? else {
            return Ok(None);
        };
        let account: String = RowReader::new(&row).take()?;
        let account = AccountId::parse(&account).ok_or(StoreError::Corrupt("account_id"))?;
        Ok(Some(account))
    }
}

impl Account {
    /// Deletes the histories of the account's tasks that were deleted before a time.
    async fn delete_histories(&self, before: Timestamp) -> Result<()> {
        loop {
            let tasks = self.expired_histories(before).await?;
            if tasks.is_empty() {
                return Ok(());
            }
            for task in tasks {
                let delete = DeleteHistory { task, before };
                self.write(delete, WriteMode::Store).await?;
            }
        }
    }

    /// Tasks that were deleted before a time.
    async fn expired_histories(&self, before: Timestamp) -> Result<Vec<TaskId>, StoreError> {
        let tasks: Vec<Uuid> = self
            .select::<Entity>()
            .select_only()
            .column(Column::Task)
            .filter(Column::DeletedTs.lt(before.0))
            .order_by_asc(Column::DeletedTs)
            .limit(MAX_TASKS)
            .into_tuple()
            .all(self.reader())
            .await?;
        Ok(tasks.into_iter().map(TaskId).collect())
    }
}

/// The deletion of the history of a task that was deleted before a time.
struct DeleteHistory {
    task: TaskId,
    before: Timestamp,
}

impl Operation for DeleteHistory {
    /// Whether the task is still deleted.
    type Snapshot = bool;
    type Answer = ();

    async fn read_locked(&self, tx: &Tx) -> Result<bool, StoreError> {
        let history: Option<Uuid> = tx
            .select::<Entity>()
            .select_only()
            .column(Column::Task)
            .filter(Column::Task.eq(self.task.0))
            .filter(Column::DeletedTs.lt(self.before.0))
            .lock_exclusive()
            .into_tuple()
            .one(&tx.db)
            .await?;
        Ok(history.is_some())
    }

    fn decide(&self, is_deleted: bool, _: &WriteContext) -> Result<(Changes, ())> {
        let mut changes = Changes::default();
        if is_deleted {
            changes.edit_history(self.task, vec![HistoryEdit::Purge]);
        }
        Ok((changes, ()))
    }
}
