//! Locks and reads steps with the tasks that they manage, for writes.

use sea_orm::{
    ColumnTrait, DbBackend, EntityName, FromQueryResult, JoinType, QueryFilter, QuerySelect,
    RelationTrait, Select,
    sea_query::{Expr, ExprTrait, LockType},
};

use super::tx::Tx;
use crate::{
    domain::{
        decide::{ManagedTasks, StepSnapshot},
        ids::{StepId, TaskId},
    },
    store::{
        entity::{
            step::{self, Column, Entity, Relation},
            task,
        },
        error::StoreError,
        read::{
            LARGE_BYTES,
            steps::{self, Bodies},
            tasks,
        },
        rows::read_step,
    },
};

#[derive(FromQueryResult)]
struct StepWithKeptTs {
    #[sea_orm(nested)]
    step: step::Model,
    kept_ts: Option<i64>,
}

fn manages_none() -> Expr {
    Column::ManagesTasks.eq(false)
}

impl Tx<'_> {
    /// Locks and reads a step that is not large and manages no tasks. `None` if the step is large, manages
    /// tasks, or does not exist.
    pub async fn lock_simple_step(&self, guid: StepId) -> Result<Option<StepSnapshot>, StoreError> {
        let step = self.small_step(guid).filter(manages_none());
        let step = self.select_step_kept_ts(step);
        let step = self.locked(step, Column::Guid);
        self.read_locked_step(step, Bodies::Read).await
    }

    /// Locks and reads a step that is not large and may manage tasks; `managed` stays empty.
    pub async fn lock_small_step(&self, guid: StepId) -> Result<Option<StepSnapshot>, StoreError> {
        let step = self.select_step_kept_ts(self.small_step(guid));
        let step = self.locked(step, Column::Guid);
        self.read_locked_step(step, Bodies::Read).await
    }

    /// Locks the task of a step, then the step, and reads the step without bodies. `None` if it is large,
    /// manages tasks, or does not exist.
    pub async fn lock_task_and_simple_step(
        &self,
        guid: StepId,
    ) -> Result<Option<StepSnapshot>, StoreError> {
        let step = self.small_step(guid).filter(manages_none());
        let step = Bodies::Skip.select(step, Column::Body);
        let step = step.join(JoinType::InnerJoin, Relation::Task.def());
        let mut step = self.select_joined_kept_ts(step);
        if self.backend() == DbBackend::Postgres {
            // PostgreSQL locks the rows of the tables in this order.
            let tables = [task::Entity.table_ref(), Entity.table_ref()];
            QuerySelect::query(&mut step).lock_with_tables(LockType::Update, tables);
        }
        self.read_locked_step(step, Bodies::Skip).await
    }

    fn small_step(&self, guid: StepId) -> Select<Entity> {
        self.find::<Entity>()
            .filter(Column::Guid.eq(guid.0))
            .filter(steps::step_bytes().lte(LARGE_BYTES))
    }

    /// Runs a statement that locks a step and selects when its guide was last known to be kept.
    async fn read_locked_step(
        &self,
        step: Select<Entity>,
        bodies: Bodies,
    ) -> Result<Option<StepSnapshot>, StoreError> {
        let rows: Vec<StepWithKeptTs> = step.into_model().all(self.db()).await?;
        let row = rows.into_iter().next().map(|row| {
            self.note_kept_ts(TaskId(row.step.task), row.kept_ts);
            row.step
        });
        self.read_unmanaged(row, bodies).await
    }

    /// Reads the step of a row with its translations, without the tasks that it manages.
    async fn read_unmanaged(
        &self,
        row: Option<step::Model>,
        bodies: Bodies,
    ) -> Result<Option<StepSnapshot>, StoreError> {
        let scope = self.scope();
        let mut rows = steps::with_translations(scope, Vec::from_iter(row), bodies).await?;
        let Some(rows) = rows.next() else {
            return Ok(None);
        };
        let (step, place) = read_step(scope.account, rows)?;
        Ok(Some(StepSnapshot {
            step,
            place,
            managed: ManagedTasks::default(),
        }))
    }

    /// Locks a step with the wiring steps of the tasks that it manages, and reads it. Pass
    /// the ids of its managed tasks, already locked, to load them. Fails with
    /// [`StoreError::NeedsLargeReadPermit`] if the step is large and the write has no permit for that.
    pub async fn lock_step(
        &self,
        guid: StepId,
        managed_ids: Option<&[TaskId]>,
        bodies: Bodies,
    ) -> Result<Option<StepSnapshot>, StoreError> {
        let wiring = self.lock_step_and_wiring(guid, managed_ids.unwrap_or_default());
        let wiring = wiring.await?;
        let mut stored = self.find_step(guid, bodies).await?;
        if let (Some(stored), Some(managed_ids)) = (&mut stored, managed_ids) {
            if stored.step.managed_tasks() != managed_ids {
                // An import has changed the links since they were looked up.
                return Err(StoreError::Conflict);
            }
            let tasks = tasks::find_all(self.scope(), managed_ids, self.max_bytes).await?;
            stored.managed = ManagedTasks { tasks, wiring };
        }
        Ok(stored)
    }

    /// Locks a step, and the wiring steps of the tasks that it manages. Returns the wiring steps,
    /// each with the task that it leads to. Their other columns are not read, because there may be
    /// a thousand of them.
    async fn lock_step_and_wiring(
        &self,
        guid: StepId,
        managed: &[TaskId],
    ) -> Result<Vec<(StepId, TaskId)>, StoreError> {
        let mut filter = Column::Guid.eq(guid.0);
        if !managed.is_empty() {
            let leads_to_managed = Column::SubtaskId.is_in(managed.iter().map(|task| task.0));
            filter = filter.or(leads_to_managed.and(Column::IsLink.eq(true)));
        }
        let steps = self.find::<Entity>().filter(filter).select_only();
        let steps = steps.columns([Column::Guid, Column::SubtaskId]);
        let locked: Vec<(StepId, Option<TaskId>)> = self
            .locked(steps, Column::Guid)
            .into_tuple()
            .all(self.db())
            .await?;
        let wiring = locked.into_iter().filter(|(step, _)| *step != guid);
        Ok(wiring
            .filter_map(|(step, task)| Some((step, task?)))
            .collect())
    }

    /// Reads a step; `managed` stays empty. Fails like [`Self::lock_step`].
    pub async fn find_step(
        &self,
        guid: StepId,
        bodies: Bodies,
    ) -> Result<Option<StepSnapshot>, StoreError> {
        let row = steps::find_row(self.scope(), guid, bodies, self.max_bytes).await?;
        self.read_unmanaged(row, bodies).await
    }
}
