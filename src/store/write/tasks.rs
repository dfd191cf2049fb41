//! Creating, updating and deleting tasks.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::{Operation, transaction::Tx};
use crate::{
    domain::{
        Error, Precondition, Result,
        changes::Changes,
        decide::{DeleteTask, TaskToDelete, UpdateTask, WriteContext, create_task},
        etag::ExpectedEtag,
        ids::{StepId, TaskId},
        link::linked_tasks,
        patch::Edit,
        task::{NewTask, Task, TaskPatch},
    },
    store::{
        Account, RetryKey, WriteMode, WriteOutcome,
        error::StoreError,
        json_columns,
        schema::entity::{step, task},
    },
};

impl Account {
    /// Creates a task.
    pub async fn create_task(
        &self,
        new: NewTask,
        retry: Option<RetryKey<Task>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<Task>> {
        self.write_idempotent(CreateTask(new), mode, retry).await
    }

    /// Updates a task. Returns it, and the fields of the update that were not honored.
    pub async fn update_task(
        &self,
        guid: TaskId,
        expected: ExpectedEtag,
        patch: TaskPatch,
        mode: WriteMode,
    ) -> Result<(Task, Vec<&'static str>)> {
        let update = UpdateTask {
            guid,
            expected,
            patch,
        };
        self.write(update, mode).await
    }

    /// Deletes a task, with `force` together with its steps.
    pub async fn delete_task(
        &self,
        guid: TaskId,
        expected: ExpectedEtag,
        force: bool,
    ) -> Result<()> {
        let delete = DeleteTask {
            guid,
            expected,
            force,
        };
        self.write(delete, WriteMode::Store).await
    }
}

struct CreateTask(NewTask);

impl Operation for CreateTask {
    type Snapshot = ();
    type Answer = Task;

    async fn read(&self, _: &Tx) -> Result<Option<()>, StoreError> {
        Ok(Some(()))
    }

    async fn read_locked(&self, _: &Tx) -> Result<(), StoreError> {
        Ok(())
    }

    fn decide(&self, (): (), context: &WriteContext) -> Result<(Changes, Task)> {
        create_task(self.0.clone(), context)
    }
}

impl Operation for UpdateTask {
    type Snapshot = Option<Task>;
    type Answer = (Task, Vec<&'static str>);

    async fn read(&self, tx: &Tx) -> Result<Option<Option<Task>>, StoreError> {
        // A rename also changes titles of subtask steps.
        if matches!(self.patch.name, Edit::Set(_)) {
            return Ok(None);
        }
        tx.read_task(self.guid).await.map(Some)
    }

    async fn read_locked(&self, tx: &Tx) -> Result<Option<Task>, StoreError> {
        match tx.lock_task(self.guid).await? {
            Some(_) => tx.read_task(self.guid).await,
            None => Ok(None),
        }
    }

    fn decide(
        &self,
        stored: Option<Task>,
        context: &WriteContext,
    ) -> Result<(Changes, (Task, Vec<&'static str>))> {
        self.clone().into_changes(stored, context)
    }
}

impl Operation for DeleteTask {
    type Snapshot = TaskToDelete;
    type Answer = ();

    async fn read_locked(&self, tx: &Tx) -> Result<TaskToDelete, StoreError> {
        let guid = self.guid;
        // The tasks that it manages are locked with it, in the order of ids.
        let managed = managed_by_task(tx, guid).await?;
        let all: Vec<TaskId> = managed.iter().copied().chain([guid]).collect();
        let heads = tx.lock_tasks(&all).await?;
        let task = heads.into_iter().find(|head| head.guid == guid);
        let task = task.ok_or(Error::task_not_found(guid, "guid"))?;
        if managed_by_task(tx, guid).await? != managed {
            return Err(StoreError::Conflict);
        }
        let managed_by = match task.managed {
            true => managing_step(tx, guid).await?,
            false => None,
        };
        let referenced_by = first_referring_steps(tx, guid).await?;
        let steps = match self.force && task.step_count > 0 {
            true => tx.lock_steps_of(&[guid]).await?,
            false => Vec::new(),
        };
        Ok(TaskToDelete {
            task,
            steps,
            managed: tx.read_tasks(&managed).await?,
            referenced_by,
            managed_by,
        })
    }

    fn decide(&self, stored: TaskToDelete, context: &WriteContext) -> Result<(Changes, ())> {
        self.clone().into_changes(stored, context)
    }
}

/// The tasks that the observations of a task manage.
async fn managed_by_task(tx: &Tx, parent: TaskId) -> Result<Vec<TaskId>, StoreError> {
    let tasks: Vec<Uuid> = tx
        .select::<task::Entity>()
        .select_only()
        .column(task::Column::Guid)
        .filter(task::Column::ParentGuid.eq(parent.0))
        .order_by_asc(task::Column::Guid)
        .into_tuple()
        .all(&tx.db)
        .await?;
    Ok(tasks.into_iter().map(TaskId).collect())
}

/// The observation that manages a task.
async fn managing_step(tx: &Tx, guid: TaskId) -> Result<Option<StepId>, StoreError> {
    let managed = tx
        .select::<task::Entity>()
        .select_only()
        .column(task::Column::ParentGuid)
        .filter(task::Column::Guid.eq(guid.0))
        .into_tuple::<Option<Uuid>>();
    let Some(parent) = managed.one(&tx.db).await?.flatten() else {
        return Ok(None);
    };
    let observations: Vec<(Uuid, Option<String>)> = tx
        .select::<step::Entity>()
        .select_only()
        .column(step::Column::Guid)
        .column(step::Column::FeedbackConfig)
        .filter(step::Column::Task.eq(parent))
        // A text cannot look like this: its quotes are escaped.
        .filter(step::Column::FeedbackConfig.contains(format!("\"link\":\"{guid}\"")))
        .order_by_asc(step::Column::Guid)
        .into_tuple()
        .all(&tx.db)
        .await?;
    for (step, feedback) in observations {
        let feedback = json_columns::read_feedback(feedback.as_deref())?;
        if feedback.iter().flat_map(linked_tasks).any(|it| it == guid) {
            return Ok(Some(StepId(step)));
        }
    }
    Ok(None)
}

/// The first subtask steps of other tasks that refer to a task.
async fn first_referring_steps(tx: &Tx, guid: TaskId) -> Result<Vec<StepId>, StoreError> {
    let steps: Vec<Uuid> = tx
        .select::<step::Entity>()
        .select_only()
        .column(step::Column::Guid)
        .filter(step::Column::SubtaskId.eq(guid.0))
        .filter(step::Column::Task.ne(guid.0))
        .order_by_asc(step::Column::Guid)
        .limit(Precondition::MAX_LISTED_STEPS as u64)
        .into_tuple()
        .all(&tx.db)
        .await?;
    Ok(steps.into_iter().map(StepId).collect())
}
