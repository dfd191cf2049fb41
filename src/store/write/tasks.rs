//! Creating, updating and deleting tasks.

use std::sync::Arc;

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect};

use super::{CheckpointsOf, Operation, tx::Tx};
use crate::{
    domain::{
        Error, Precondition, Result,
        change_feed::WriteRpc,
        changes::Changes,
        decide::{DeleteTask, TaskToDelete, UpdateTask, Updated, create_task},
        ids::{StepId, TaskId},
        task::{NewTask, Published, Task},
    },
    store::{
        Account, RetryKey, WriteMode, WriteOutcome,
        entity::{step, task},
        error::StoreError,
        read::{references::managing_observations, tasks},
    },
};

impl Account {
    pub async fn create_task(
        &self,
        new: NewTask,
        retry: Option<RetryKey<Task>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<Task>> {
        self.write_idempotent(CreateTask(new), mode, retry).await
    }

    pub async fn update_task(
        &self,
        update: Arc<UpdateTask>,
        mode: WriteMode,
    ) -> Result<Updated<Task>> {
        self.write(update, mode).await
    }

    /// Deletes a task. Returns the number of the revision that keeps its guide; 0 if there is
    /// none.
    pub async fn delete_task(&self, delete: DeleteTask) -> Result<i64> {
        self.write(delete, WriteMode::Store).await
    }
}

struct CreateTask(NewTask);

impl Operation for CreateTask {
    type Answer = Task;
    const RPC: Option<WriteRpc> = Some(WriteRpc::CreateTask);

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Task), StoreError> {
        tx.begin_ids_after_newest_task().await?;
        Ok(create_task(self.0.clone(), &tx.context)?)
    }
}

impl Operation for Arc<UpdateTask> {
    type Answer = Updated<Task>;
    const RPC: Option<WriteRpc> = Some(WriteRpc::UpdateTask);
    const CHECKPOINTS: CheckpointsOf = CheckpointsOf::ChangedGuides;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Self::Answer), StoreError> {
        let guid = self.guid;
        let keeps_guides = tx.mode == WriteMode::Store && tx.context.automatic_revisions > 0;
        let guide = match keeps_guides && self.published == Some(Published::default()) {
            // The tasks that it manages are also locked, because a published guide is kept.
            true => Some(tx.lock_guides(&[guid], []).await?),
            false => None,
        };
        let exists = match &guide {
            Some(guide) => guide.tasks.contains_key(&guid),
            None => !tx.lock_tasks([guid]).await?.is_empty(),
        };
        let task = match exists {
            true => tasks::find(tx.scope(), guid, tx.max_bytes).await?,
            false => None,
        };
        let (mut changes, updated) = self.changes(task, &tx.context)?;
        if let Some(guide) = guide.filter(|_| changes.publishes()) {
            changes.guide_to_keep = tx.lock_published(guid, guide).await?;
        }
        Ok((changes, updated))
    }
}

impl Operation for DeleteTask {
    type Answer = i64;
    const RPC: Option<WriteRpc> = Some(WriteRpc::DeleteTask);

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, i64), StoreError> {
        let guid = self.guid;
        // The tasks that are managed below it are also locked, in the order of their ids.
        let guides = tx.lock_guides(&[guid], []).await?;
        let task = guides.tasks.get(&guid).cloned();
        let task = task.ok_or_else(|| Error::task_not_found(guid, "guid"))?;
        let managed = managed_by_task(tx, guid).await?;
        let mut stored = TaskToDelete {
            managed: tasks::find_all(tx.scope(), &managed, tx.max_bytes).await?,
            managed_by: if task.managed {
                managing_step(tx, guid).await?
            } else {
                None
            },
            referenced_by: first_referring_steps(tx, guid).await?,
            steps: if self.force && task.step_count > 0 {
                tx.lock_steps(guid).await?
            } else {
                Vec::new()
            },
            history: tx.lock_history(guid).await?,
            guide: None,
            task,
        };
        // Checked first, so that a refused deletion reads no guide.
        self.check(&stored)?;
        // The newest revision may already hold this state.
        let may_have_revision =
            stored.history.newest.is_some() || tx.context.automatic_revisions > 0;
        if may_have_revision && tx.context.keeps_deleted_tasks && !self.purge_history {
            stored.guide = tx.read_exportable_guide(&guides).await?;
        }
        Ok(self.clone().into_changes(stored, &tx.context)?)
    }
}

/// The tasks that the observations of a task manage.
async fn managed_by_task(tx: &Tx<'_>, parent: TaskId) -> Result<Vec<TaskId>, StoreError> {
    use task::{Column, Entity};
    let tasks = tx.find::<Entity>();
    let tasks = tasks.filter(Column::ParentGuid.eq(parent.0));
    tx.read_column(tasks, Column::Guid).await
}

/// The observation that manages a task.
async fn managing_step(tx: &Tx<'_>, guid: TaskId) -> Result<Option<StepId>, StoreError> {
    use task::{Column, Entity};
    let task = tx.find::<Entity>().filter(Column::Guid.eq(guid.0));
    let parent: Vec<Option<TaskId>> = tx.read_column(task, Column::ParentGuid).await?;
    let Some(Some(parent)) = parent.first().copied() else {
        return Ok(None);
    };
    let managing = managing_observations(tx.scope(), parent, guid).await?;
    Ok(managing.into_iter().next().map(|(step, ..)| step))
}

/// The first subtask steps of other tasks that refer to a task.
async fn first_referring_steps(tx: &Tx<'_>, guid: TaskId) -> Result<Vec<StepId>, StoreError> {
    use step::{Column, Entity};
    let steps = tx
        .find::<Entity>()
        .filter(Column::SubtaskId.eq(guid.0))
        .filter(Column::Task.ne(guid.0))
        .order_by_asc(Column::Guid)
        .limit(Precondition::MAX_LISTED_STEPS as u64);
    tx.read_column(steps, Column::Guid).await
}
