//! Locks rows and reads them under their locks: first tasks by id, then steps by id.
//!
//! The steps that refer to renamed tasks are locked in a second pass, where two renames can deadlock.
//! PostgreSQL aborts one of them, and that write is retried.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};
use uuid::Uuid;

use super::tx::Tx;
use crate::{
    domain::{
        ids::{StepId, TaskId},
        order::{Neighbors, Place},
        task::{LockedTask, Task},
        time::Timestamp,
    },
    store::{
        entity::{step, task},
        error::StoreError,
        read::{MAX_IDS_PER_STATEMENT, Texts, tasks},
        rows::LockedTaskRow,
    },
};

impl Tx<'_> {
    /// Locks tasks in the order of their ids and returns those that exist, in that order.
    pub async fn lock_tasks(&self, guids: &[TaskId]) -> Result<Vec<LockedTask>, StoreError> {
        let mut guids = guids.to_vec();
        guids.sort_unstable();
        guids.dedup();
        let mut locked = Vec::with_capacity(guids.len());
        for guids in guids.chunks(MAX_IDS_PER_STATEMENT) {
            let tasks = self.find::<task::Entity>();
            let tasks = tasks.filter(task::Column::Guid.is_in(guids.iter().map(|guid| guid.0)));
            let rows = self
                .locked(tasks, task::Column::Guid)
                .into_partial_model::<LockedTaskRow>()
                .all(self.db())
                .await?;
            let rows = rows.into_iter().map(LockedTaskRow::read);
            locked.extend(rows.collect::<Result<Vec<_>, _>>()?);
        }
        locked.sort_by_key(|locked_task: &LockedTask| locked_task.guid);
        Ok(locked)
    }

    /// The tasks of these steps. A step never changes its task, so they can be looked up before
    /// anything is locked.
    pub async fn tasks_of_steps(&self, steps: &[Uuid]) -> Result<Vec<TaskId>, StoreError> {
        let tasks: Vec<Uuid> = self
            .find::<step::Entity>()
            .select_only()
            .column(step::Column::Task)
            .distinct()
            .filter(step::Column::Guid.is_in(steps.iter().copied()))
            .into_tuple()
            .all(self.db())
            .await?;
        Ok(tasks.into_iter().map(TaskId).collect())
    }

    /// Locks steps in the order of their ids, and returns those ids.
    pub async fn lock_steps(&self, filter: Expr) -> Result<Vec<StepId>, StoreError> {
        let steps = self.find::<step::Entity>().filter(filter);
        let steps = steps.select_only().column(step::Column::Guid);
        let mut locked: Vec<Uuid> = self
            .locked(steps, step::Column::Guid)
            .into_tuple()
            .all(self.db())
            .await?;
        locked.sort_unstable();
        Ok(locked.into_iter().map(StepId).collect())
    }

    /// Locks all steps of locked tasks, and returns their ids.
    pub async fn lock_steps_of(&self, tasks: &[TaskId]) -> Result<Vec<StepId>, StoreError> {
        self.lock_steps_by(step::Column::Task, tasks).await
    }

    /// Locks the subtask steps that refer to locked tasks, and returns their ids.
    pub async fn lock_referring_steps(&self, tasks: &[TaskId]) -> Result<Vec<StepId>, StoreError> {
        self.lock_steps_by(step::Column::SubtaskId, tasks).await
    }

    async fn lock_steps_by(
        &self,
        column: step::Column,
        tasks: &[TaskId],
    ) -> Result<Vec<StepId>, StoreError> {
        let mut locked = Vec::new();
        for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
            let ids = tasks.iter().map(|task| task.0);
            locked.extend(self.lock_steps(column.is_in(ids)).await?);
        }
        Ok(locked)
    }

    /// Locks steps in the order of their ids, and returns those ids with their versions and the times of
    /// their last change.
    pub async fn lock_step_versions(
        &self,
        ids: impl IntoIterator<Item = Uuid>,
    ) -> Result<Vec<(StepId, i64, Timestamp)>, StoreError> {
        use step::Column;
        let steps = self.find::<step::Entity>();
        let steps = steps.filter(Column::Guid.is_in(ids)).select_only();
        let steps = steps.columns([Column::Guid, Column::Version, Column::ModifiedTs]);
        let rows: Vec<(Uuid, i64, i64)> = self
            .locked(steps, Column::Guid)
            .into_tuple()
            .all(self.db())
            .await?;
        let rows = rows.into_iter();
        let versions =
            rows.map(|(guid, version, modified)| (StepId(guid), version, Timestamp(modified)));
        Ok(versions.collect())
    }

    /// A locked task. Fails with [`StoreError::NeedsLargeReadPermit`] if it is large and
    /// the write has no permit for that.
    pub async fn read_task(&self, guid: TaskId) -> Result<Option<Task>, StoreError> {
        tasks::find(self.scope(), guid, self.texts()).await
    }

    /// Locked tasks, in no order. Fails like [`Self::read_task`] if they are large together.
    pub async fn read_tasks(&self, guids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        tasks::find_all(self.scope(), guids, self.texts()).await
    }

    /// Which rows the write may read.
    pub fn texts(&self) -> Texts {
        match self.large_read_permit {
            None => Texts::Small,
            Some(_) => Texts::All,
        }
    }

    /// The places of a step of a locked task and of the one after it; `None` if the step does not belong
    /// to the task.
    pub async fn neighbors(
        &self,
        task: TaskId,
        step: StepId,
    ) -> Result<Option<Neighbors>, StoreError> {
        use step::Column;
        let positions = || {
            let steps = self.find::<step::Entity>();
            let steps = steps.select_only().column(Column::Position);
            steps.filter(Column::Task.eq(task.0))
        };
        let before = positions().filter(Column::Guid.eq(step.0));
        let before: Vec<i64> = before.into_tuple().all(self.db()).await?;
        let Some(before) = before.first().copied() else {
            return Ok(None);
        };
        let after: Option<i64> = positions()
            .filter(Column::Position.gt(before))
            .order_by_asc(Column::Position)
            .limit(1)
            .into_tuple()
            .one(self.db())
            .await?;
        Ok(Some(Neighbors {
            before: Place(before),
            after: after.map(Place),
        }))
    }

    /// The steps of a task in their order.
    pub async fn step_order(&self, task: TaskId) -> Result<Vec<StepId>, StoreError> {
        let steps: Vec<Uuid> = self
            .find::<step::Entity>()
            .select_only()
            .column(step::Column::Guid)
            .filter(step::Column::Task.eq(task.0))
            .order_by_asc(step::Column::Position)
            .into_tuple()
            .all(self.db())
            .await?;
        Ok(steps.into_iter().map(StepId).collect())
    }
}
