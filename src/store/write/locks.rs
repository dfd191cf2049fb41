//! Locks rows and reads them under their locks: first tasks by id, then steps by id.
//!
//! The steps that refer to renamed tasks are locked in a second pass, where two renames can deadlock.
//! PostgreSQL aborts one of them, and that write is retried.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::tx::Tx;
use crate::{
    domain::{
        ids::{StepId, TaskId},
        order::{Neighbors, Place},
        task::{LockedTask, Task},
    },
    store::{
        entity::{step, task},
        error::StoreError,
        read::{MAX_IDS_PER_STATEMENT, MaxBytes, tasks},
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
        let steps = step::Column::Guid.is_in(steps.iter().copied());
        let steps = self.find::<step::Entity>().filter(steps).distinct();
        self.read_column(steps, step::Column::Task).await
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
        let mut locked: Vec<StepId> = Vec::new();
        for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
            let steps = column.is_in(tasks.iter().map(|task| task.0));
            let steps = self.find::<step::Entity>().filter(steps);
            let steps = self.locked(steps, step::Column::Guid);
            locked.append(&mut self.read_column(steps, step::Column::Guid).await?);
        }
        locked.sort_unstable();
        Ok(locked)
    }

    /// A locked task. Fails with [`StoreError::NeedsLargeReadPermit`] if it is large and
    /// the write has no permit for that.
    pub async fn read_task(&self, guid: TaskId) -> Result<Option<Task>, StoreError> {
        tasks::find(self.scope(), guid, self.max_bytes()).await
    }

    /// Locked tasks, in no order. Fails like [`Self::read_task`] if they are large together.
    pub async fn read_tasks(&self, guids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        tasks::find_all(self.scope(), guids, self.max_bytes()).await
    }

    /// How many bytes of rows the write may read.
    pub fn max_bytes(&self) -> MaxBytes {
        let permit = self.large_read_permit.as_ref();
        permit.map_or(MaxBytes::SMALL, |permit| MaxBytes::permitted(permit.bytes))
    }

    /// The places of a step of a locked task and of the one after it; `None` if the step does not belong
    /// to the task.
    pub async fn neighbors(
        &self,
        task: TaskId,
        step: StepId,
    ) -> Result<Option<Neighbors>, StoreError> {
        use step::Column;
        let steps = || self.find::<step::Entity>().filter(Column::Task.eq(task.0));
        let found = steps().filter(Column::Guid.eq(step.0));
        let found: Vec<i64> = self.read_column(found, Column::Position).await?;
        let Some(before) = found.first().copied() else {
            return Ok(None);
        };
        let after = steps().filter(Column::Position.gt(before));
        let after = after.order_by_asc(Column::Position).limit(1);
        let after: Vec<i64> = self.read_column(after, Column::Position).await?;
        Ok(Some(Neighbors {
            before: Place(before),
            after: after.first().copied().map(Place),
        }))
    }

    /// The steps of a task in their order.
    pub async fn step_order(&self, task: TaskId) -> Result<Vec<StepId>, StoreError> {
        let steps = self.find::<step::Entity>();
        let steps = steps.filter(step::Column::Task.eq(task.0));
        let steps = steps.order_by_asc(step::Column::Position);
        self.read_column(steps, step::Column::Guid).await
    }
}
