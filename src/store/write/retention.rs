//! Deletes the history of tasks, and steps, that were deleted long ago.

use std::time::Duration;

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use tokio::time::sleep;
use tracing::warn;

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
        Store, WriteMode,
        entity::{AccountEntity, deleted_step, task_history},
        error::StoreError,
    },
};

/// The number of searches per retention period.
const SEARCHES_PER_RETENTION: u32 = 24;
const MIN_INTERVAL: Duration = Duration::from_secs(1);
const MAX_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The maximum time from the start of a server to its first search.
const MAX_FIRST_DELAY: Duration = Duration::from_secs(60);
/// The maximum number of steps that one transaction removes.
const MAX_STEPS: u64 = 500;

impl Store {
    /// Deletes histories and deleted steps whose retention has passed, at intervals, until it is
    /// dropped. Several servers may do so concurrently.
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
            let histories = self
                .delete_expired::<task_history::Entity>(task_history::Column::DeletedTs, before);
            if let Err(error) = histories.await {
                warn!(%error, "the histories of deleted tasks were not deleted");
            }
            let steps = self
                .delete_expired::<deleted_step::Entity>(deleted_step::Column::DeletedTs, before);
            if let Err(error) = steps.await {
                warn!(%error, "steps that were deleted long ago were not removed");
            }
            sleep(interval).await;
        }
    }

    /// Deletes the expired histories and steps of each account that has expired rows in the table of `E`.
    async fn delete_expired<E: AccountEntity>(
        &self,
        deleted_ts: E::Column,
        before: Timestamp,
    ) -> Result<()> {
        let mut last = String::new();
        while let Some(account) = self
            .find_next_account::<E>(deleted_ts, &last, before)
            .await?
        {
            let handle = self.account(&account);
            loop {
                match handle
                    .write(DeleteExpired { before }, WriteMode::Store)
                    .await
                {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => {
                        // The next search tries again, and other accounts must not wait for this one.
                        warn!(%error, "expired histories and steps of an account were not deleted");
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

/// Deletes the oldest expired history and up to [`MAX_STEPS`] expired steps of an account. Returns their
/// number.
struct DeleteExpired {
    before: Timestamp,
}

impl Operation for DeleteExpired {
    type Answer = u64;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, u64), StoreError> {
        use deleted_step::{Column, Entity};
        let expired = || {
            let histories = tx.find::<task_history::Entity>();
            histories.filter(task_history::Column::DeletedTs.lt(self.before.0))
        };
        let oldest = expired().order_by_asc(task_history::Column::DeletedTs);
        let oldest = tx.read_column(oldest.limit(1), task_history::Column::Task);
        let oldest: Vec<TaskId> = oldest.await?;
        let mut changes = Changes::default();
        for task in &oldest {
            let history = expired().filter(task_history::Column::Task.eq(task.0));
            let history = tx.locked(history, task_history::Column::Task);
            // The task may have come back.
            if history.one(tx.db()).await?.is_some() {
                changes.edit_history(*task, vec![HistoryEdit::Purge]);
            }
        }
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
        Ok((changes, deleted.rows_affected + oldest.len() as u64))
    }
}
