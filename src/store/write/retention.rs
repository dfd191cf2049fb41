//! Deletes the history of tasks, and steps, that were deleted long ago.

use std::time::Duration;

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use tokio::time::sleep;
use tracing::warn;
use uuid::Uuid;

use super::{Operation, Tx, tx::now};
use crate::{
    domain::{
        Result,
        changes::Changes,
        history::HistoryEdit,
        ids::{AccountId, TaskId},
        time::Timestamp,
    },
    store::{
        Account, Store, WriteMode,
        entity::{
            AccountEntity, deleted_step,
            task_history::{Column, Entity},
        },
        error::StoreError,
    },
};

/// The number of searches per retention period.
const SEARCHES_PER_RETENTION: u32 = 24;
const MIN_INTERVAL: Duration = Duration::from_secs(1);
const MAX_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The maximum time from the start of a server to its first search.
const MAX_FIRST_DELAY: Duration = Duration::from_secs(60);
/// The maximum number of tasks of an account that one statement finds.
const MAX_TASKS: u64 = 100;
/// The maximum number of steps that one transaction removes.
const MAX_STEPS: u64 = 500;

impl Store {
    /// Deletes histories whose retention has passed, at intervals, until it is dropped. Several
    /// servers may do so concurrently.
    pub async fn enforce_retention(self) {
        let retention = self.inner.options.history.deleted_task_retention;
        let interval = if retention.is_zero() {
            MAX_INTERVAL
        } else {
            (retention / SEARCHES_PER_RETENTION).clamp(MIN_INTERVAL, MAX_INTERVAL)
        };
        sleep(interval.min(MAX_FIRST_DELAY)).await;
        loop {
            let retention = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
            let before = Timestamp(now().0.saturating_sub(retention));
            // After an error, the next search tries again.
            if let Err(error) = self.delete_histories(before).await {
                warn!(%error, "the histories of deleted tasks were not deleted");
            }
            if let Err(error) = self.delete_old_steps(before).await {
                warn!(%error, "steps that were deleted long ago were not removed");
            }
            sleep(interval).await;
        }
    }

    /// Deletes the histories of tasks that were deleted before a time, each in its own transaction.
    async fn delete_histories(&self, before: Timestamp) -> Result<()> {
        let mut last = String::new();
        while let Some(account) = self
            .find_next_account::<Entity>(Column::DeletedTs, &last, before)
            .await?
        {
            let handle = self.account(&account);
            if let Err(error) = handle.delete_histories(before).await {
                // The next search tries again, and other accounts must not wait for this one.
                warn!(%error, "the history of a deleted task was not deleted");
            }
            last = account.into_string();
        }
        Ok(())
    }

    /// Removes steps that were deleted before a time.
    async fn delete_old_steps(&self, before: Timestamp) -> Result<()> {
        use deleted_step::{Column, Entity};
        let mut last = String::new();
        while let Some(account) = self
            .find_next_account::<Entity>(Column::DeletedTs, &last, before)
            .await?
        {
            let handle = self.account(&account);
            loop {
                let delete = DeleteOldSteps { before };
                match handle.write(delete, WriteMode::Store).await {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => {
                        // The next search tries again.
                        warn!(%error, "old deleted steps were not removed");
                        break;
                    }
                }
            }
            last = account.into_string();
        }
        Ok(())
    }

    /// The next account with a history of a task, or a step, that was deleted before a time. This
    /// is the only statement of a server that reads across accounts. It reads only an index.
    #[allow(clippy::disallowed_methods)]
    async fn find_next_account<E: AccountEntity>(
        &self,
        deleted_ts: E::Column,
        after: &str,
        before: Timestamp,
    ) -> Result<Option<AccountId>, StoreError> {
        let found: Vec<String> = E::find()
            .select_only()
            .column(E::ACCOUNT)
            .filter(E::ACCOUNT.gt(after))
            .filter(deleted_ts.lt(before.0))
            .order_by_asc(E::ACCOUNT)
            .limit(1)
            .into_tuple()
            .all(&self.inner.connections.pools.reader)
            .await?;
        let account = |id: &String| AccountId::parse(id).ok_or(StoreError::Corrupt("account_id"));
        found.first().map(account).transpose()
    }
}

impl Account {
    /// Deletes the histories of the account's tasks that were deleted before a time.
    async fn delete_histories(&self, before: Timestamp) -> Result<()> {
        loop {
            let tasks = self.find_expired_histories(before).await?;
            if tasks.is_empty() {
                return Ok(());
            }
            for task in tasks {
                let delete = DeleteHistory { task, before };
                self.write(delete, WriteMode::Store).await?;
            }
        }
    }

    /// Tasks that were deleted before a time and have a history.
    async fn find_expired_histories(&self, before: Timestamp) -> Result<Vec<TaskId>, StoreError> {
        let scope = self.reader();
        let tasks: Vec<Uuid> = scope
            .find::<Entity>()
            .select_only()
            .column(Column::Task)
            .filter(Column::DeletedTs.lt(before.0))
            .order_by_asc(Column::DeletedTs)
            .limit(MAX_TASKS)
            .into_tuple()
            .all(scope.db)
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
    type Answer = ();

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, ()), StoreError> {
        let history = tx
            .find::<Entity>()
            .filter(Column::Task.eq(self.task.0))
            .filter(Column::DeletedTs.lt(self.before.0));
        let found = tx.locked(history, Column::Task).all(tx.db()).await?;
        let mut changes = Changes::default();
        // The task may have come back.
        if !found.is_empty() {
            changes.edit_history(self.task, vec![HistoryEdit::Purge]);
        }
        Ok((changes, ()))
    }
}

/// Removes some of an account's steps that were deleted before a time, and returns how many.
struct DeleteOldSteps {
    before: Timestamp,
}

impl Operation for DeleteOldSteps {
    type Answer = u64;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, u64), StoreError> {
        use deleted_step::{Column, Entity};
        let old = tx
            .find::<Entity>()
            .select_only()
            .column(Column::Guid)
            .filter(Column::DeletedTs.lt(self.before.0))
            .order_by_asc(Column::DeletedTs)
            .limit(MAX_STEPS);
        let delete = tx.scope().delete::<Entity>();
        let delete = delete.filter(Column::Guid.in_subquery(old.into_query()));
        let deleted = delete.exec(tx.db()).await?;
        Ok((Changes::default(), deleted.rows_affected))
    }
}
