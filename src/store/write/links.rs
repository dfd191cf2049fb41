//! Steps with the tasks that they manage, as they are read and locked for a write.

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect, sea_query::ExprTrait};
use uuid::Uuid;

use super::tx::Tx;
use crate::{
    domain::{
        decide::{ManagedTasks, StepSnapshot},
        ids::{StepId, TaskId},
        task::LockedTask,
    },
    store::{
        entity::step::{Column, Entity},
        error::StoreError,
        read::{
            LARGE_BYTES,
            steps::{self, Bodies},
        },
        rows::{StepRows, read_step},
    },
};

/// Whether the tasks that a step manages are locked with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithManaged {
    Load,
    Skip,
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
        let rows = self.locked(small, Column::Guid).all(self.db()).await?;
        let rows = steps::with_translations(self.scope(), rows, Bodies::Read).await?;
        rows.into_iter().next().map(unmanaged).transpose()
    }

    /// Locks a step with the tasks that it manages and their wiring steps, and reads them. `tasks` are
    /// locked, too, before any step; all locked tasks are returned. Fails with
    /// [`StoreError::NeedsLargeReadPermit`] if the step is large and the write has no permit for that.
    pub async fn lock_step(
        &self,
        guid: StepId,
        tasks: &[TaskId],
        with_managed: WithManaged,
        bodies: Bodies,
    ) -> Result<(Option<StepSnapshot>, Vec<LockedTask>), StoreError> {
        let managed = match with_managed {
            WithManaged::Load => self.find_step(guid, Bodies::Skip).await?,
            WithManaged::Skip => None,
        };
        let managed = managed.map_or_else(Vec::new, |stored| stored.step.managed_tasks());
        let locked_tasks = self
            .lock_tasks(&[managed.as_slice(), tasks].concat())
            .await?;
        let wiring = self.lock_step_and_wiring(guid, &managed).await?;
        let mut stored = self.find_step(guid, bodies).await?;
        if let Some(stored) = &mut stored
            && with_managed == WithManaged::Load
        {
            if stored.step.managed_tasks() != managed {
                // An import has changed the links since they were looked up.
                return Err(StoreError::Conflict);
            }
            if !managed.is_empty() {
                let tasks = self.read_tasks(&managed).await?;
                stored.managed = ManagedTasks { tasks, wiring };
            }
        }
        Ok((stored, locked_tasks))
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
        let steps = self.find::<Entity>().filter(filter);
        let steps = steps.select_only();
        let steps = steps.columns([Column::Guid, Column::SubtaskId, Column::IsLink]);
        let locked: Vec<(StepId, Option<Uuid>, bool)> = self
            .locked(steps, Column::Guid)
            .into_tuple()
            .all(self.db())
            .await?;
        let wiring = locked.into_iter().filter_map(|(step, task, is_link)| {
            let leads_to = task.filter(|_| is_link && step != guid);
            leads_to.map(|task| (step, TaskId(task)))
        });
        Ok(wiring.collect())
    }

    /// Reads a step; `managed` stays empty. Without bodies, its translations are not read either.
    async fn find_step(
        &self,
        guid: StepId,
        bodies: Bodies,
    ) -> Result<Option<StepSnapshot>, StoreError> {
        let scope = self.scope();
        let row = steps::find_row(scope, guid, bodies, self.max_bytes()).await?;
        let rows = match (row, bodies) {
            (Some(row), Bodies::Read) => steps::with_translations(scope, vec![row], bodies)
                .await?
                .pop(),
            (row, _) => row.map(|row| (row, Vec::new())),
        };
        rows.map(unmanaged).transpose()
    }
}
