//! Locks rows and reads them under their locks: first tasks by id, then steps by id.
//!
//! The steps that refer to renamed tasks are locked in a second pass, where two renames can deadlock.
//! PostgreSQL aborts one of them, and that write is retried.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{
    ColumnTrait, PartialModelTrait, QueryFilter, QueryOrder, QuerySelect, Select, TryGetableMany,
};
use uuid::Uuid;

use super::tx::Tx;
use crate::{
    domain::{
        ids::{StepId, TaskId},
        order::{Neighbors, Place},
        task::LockedTask,
    },
    store::{
        entity::{
            AccountEntity,
            step::{self, Column},
            task,
        },
        error::StoreError,
        read::MAX_IDS_PER_STATEMENT,
        rows::LockedTaskRow,
    },
};

impl Tx<'_> {
    /// Locks tasks in the order of their ids, and returns those that exist.
    pub async fn lock_tasks(
        &self,
        guids: impl IntoIterator<Item = TaskId>,
    ) -> Result<BTreeMap<TaskId, LockedTask>, StoreError> {
        let guids = BTreeSet::from_iter(guids);
        let guids = Vec::from_iter(guids.into_iter().map(|guid| guid.0));
        let mut locked = BTreeMap::new();
        for guids in guids.chunks(MAX_IDS_PER_STATEMENT) {
            let tasks = self.find::<task::Entity>();
            let tasks = tasks.filter(task::Column::Guid.is_in(guids.iter().copied()));
            let tasks = LockedTaskRow::select_cols(tasks.select_only());
            let tasks = self.locked(tasks, task::Column::Guid).into_model();
            let rows: Vec<LockedTaskRow> = tasks.all(self.db()).await?;
            for row in rows {
                let kept_ts = row.kept_ts();
                let locked_task = row.read()?;
                self.note_kept_ts(locked_task.guid, kept_ts);
                locked.insert(locked_task.guid, locked_task);
            }
        }
        Ok(locked)
    }

    /// Locks the selected rows that have one of these ids in a column, and reads their selected
    /// columns. Rows are ordered by `guid` within each chunk only.
    pub async fn lock_by_ids<E: AccountEntity, T: TryGetableMany + Send>(
        &self,
        rows: Select<E>,
        guid: E::Column,
        column: E::Column,
        ids: impl IntoIterator<Item = Uuid>,
    ) -> Result<Vec<T>, StoreError> {
        let ids = Vec::from_iter(ids);
        let mut locked = Vec::new();
        for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
            let rows = rows.clone().filter(column.is_in(ids.iter().copied()));
            let rows = self.locked(rows, guid).into_tuple();
            locked.append(&mut rows.all(self.db()).await?);
        }
        Ok(locked)
    }

    /// The tasks of these steps. A step never changes its task, so they can be looked up before
    /// anything is locked.
    pub async fn find_step_tasks(&self, steps: &[Uuid]) -> Result<Vec<TaskId>, StoreError> {
        let steps = Column::Guid.is_in(steps.iter().copied());
        let steps = self.find::<step::Entity>().filter(steps).distinct();
        self.read_column(steps, Column::Task).await
    }

    /// Locks all steps of a locked task, and returns their ids.
    pub async fn lock_steps(&self, task: TaskId) -> Result<Vec<StepId>, StoreError> {
        let steps = self.find::<step::Entity>().select_only();
        let steps = steps.column(Column::Guid);
        self.lock_by_ids(steps, Column::Guid, Column::Task, [task.0])
            .await
    }

    /// Locks the subtask steps that refer to locked tasks, and returns each with its task.
    pub async fn lock_referring_steps(
        &self,
        tasks: impl IntoIterator<Item = &TaskId>,
    ) -> Result<Vec<(StepId, TaskId)>, StoreError> {
        let steps = self.find::<step::Entity>().select_only();
        let steps = steps.columns([Column::Guid, Column::SubtaskId]);
        let tasks = tasks.into_iter().map(|task| task.0);
        self.lock_by_ids(steps, Column::Guid, Column::SubtaskId, tasks)
            .await
    }

    /// The places of a step of a locked task and of the one after it; `None` if the step does not belong
    /// to the task.
    pub async fn neighbors(
        &self,
        task: TaskId,
        step: StepId,
    ) -> Result<Option<Neighbors>, StoreError> {
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

    /// The place of the first step of a task.
    pub async fn first_place(&self, task: TaskId) -> Result<Option<Place>, StoreError> {
        let first = self
            .find::<step::Entity>()
            .filter(Column::Task.eq(task.0))
            .order_by_asc(Column::Position)
            .limit(1);
        let first: Vec<i64> = self.read_column(first, Column::Position).await?;
        Ok(first.first().copied().map(Place))
    }

    /// The steps of a task in their order.
    pub async fn step_order(&self, task: TaskId) -> Result<Vec<StepId>, StoreError> {
        let steps = self.find::<step::Entity>();
        let steps = steps.filter(Column::Task.eq(task.0));
        let steps = steps.order_by_asc(Column::Position);
        self.read_column(steps, Column::Guid).await
    }
}
