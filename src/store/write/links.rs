//! Steps with the tasks that they manage, as they are read and locked for a write.

use sea_orm::{ColumnTrait, FromQueryResult, QueryFilter, QuerySelect, sea_query::ExprTrait};

use super::tx::Tx;
use crate::{
    domain::{
        decide::{ManagedTasks, StepSnapshot},
        ids::{StepId, TaskId},
    },
    store::{
        entity::step::{self, Column, Entity},
        error::StoreError,
        read::{
            LARGE_BYTES,
            steps::{self, Bodies},
            tasks,
        },
        rows::{StepRows, read_step},
    },
};

#[derive(FromQueryResult)]
struct StepWithKeptTs {
    #[sea_orm(nested)]
    step: step::Model,
    kept_ts: Option<i64>,
}

/// A step without the tasks that it manages.
fn unmanaged(rows: StepRows) -> Result<StepSnapshot, StoreError> {
    let (step, place) = read_step(rows)?;
    Ok(StepSnapshot {
        step,
        place,
        managed: ManagedTasks::default(),
    })
}

impl Tx<'_> {
    /// Locks and reads a step that is not large; `managed` stays empty. `None` if it is large or missing.
    pub async fn lock_small_step(&self, guid: StepId) -> Result<Option<StepSnapshot>, StoreError> {
        let small = self
            .find::<Entity>()
            .filter(Column::Guid.eq(guid.0))
            .filter(steps::step_bytes().lte(LARGE_BYTES));
        let small = self.locked(self.select_step_kept_ts(small), Column::Guid);
        let rows: Vec<StepWithKeptTs> = small.into_model().all(self.db()).await?;
        let rows = rows.into_iter().map(|row| {
            self.note_kept_ts(TaskId(row.step.task), row.kept_ts);
            row.step
        });
        let rows = Vec::from_iter(rows);
        let rows = steps::with_translations(self.scope(), rows, Bodies::Read).await?;
        rows.into_iter().next().map(unmanaged).transpose()
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

    /// Locks a step, and the wiring steps of the tasks that it manages. Returns these, each with the task
    /// that it leads to. Nothing else is read of them, as there may be a thousand.
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
        let rows = Vec::from_iter(row);
        let rows = steps::with_translations(self.scope(), rows, bodies).await?;
        rows.into_iter().next().map(unmanaged).transpose()
    }
}
