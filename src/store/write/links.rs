//! Steps with the tasks that they manage, as they are read and locked for a write.

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect, sea_query::ExprTrait};
use uuid::Uuid;

use super::tx::Tx;
use crate::{
    domain::{
        decide::{ManagedTasks, StepSnapshot, StepToDelete},
        ids::{StepId, TaskId},
        link::linked_tasks,
        order::Place,
        row_version::RowVersion,
        step::Step,
        task::LockedTask,
        time::Timestamp,
    },
    store::{
        entity::step,
        error::StoreError,
        json::Json,
        read::{
            LARGE_BYTES, MAX_IDS_PER_STATEMENT,
            steps::{self, Bodies},
        },
        rows::read_link,
    },
};

/// Whether the tasks that a step manages are locked with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithManaged {
    Load,
    Skip,
}

/// What [`Tx::lock_step`] has locked.
pub struct LockedStep {
    /// The given tasks and the managed ones, as far as they exist.
    pub locked_tasks: Vec<LockedTask>,
    with_managed: WithManaged,
    /// The tasks that the step managed when they were looked up.
    managed: Vec<TaskId>,
    /// Their wiring steps.
    wiring: Vec<StepId>,
}

/// The tasks that the question of a step manages.
fn managed_ids(row: &step::Model) -> Vec<TaskId> {
    let Json(fields) = &row.content;
    fields.question.iter().flat_map(linked_tasks).collect()
}

/// A step without the tasks that it manages.
fn unmanaged((step, place): (Step, Place)) -> StepSnapshot {
    StepSnapshot {
        step,
        place,
        managed: ManagedTasks::default(),
    }
}

impl Tx<'_> {
    /// Reads a locked step; `managed` stays empty. Fails with
    /// [`StoreError::NeedsLargeReadPermit`] if it is large and the write has no permit for that.
    pub async fn read_step(&self, guid: StepId) -> Result<Option<StepSnapshot>, StoreError> {
        let found = steps::find(self.scope(), guid, self.texts()).await?;
        Ok(found.map(unmanaged))
    }

    /// Locks and reads a step that is not large; `managed` stays empty. `None` if it is large or missing.
    pub async fn lock_and_read_step(
        &self,
        guid: StepId,
    ) -> Result<Option<StepSnapshot>, StoreError> {
        use step::Column;
        let small = self
            .find::<step::Entity>()
            .filter(Column::Guid.eq(guid.0))
            .filter(steps::step_bytes().lte(LARGE_BYTES));
        let rows = self.locked(small, Column::Guid).all(self.db()).await?;
        let steps = steps::with_translations(self.scope(), rows, Bodies::Read).await?;
        Ok(steps.into_iter().next().map(unmanaged))
    }

    /// Reads what a deletion needs of a step; `managed` stays empty.
    pub async fn read_step_to_delete(
        &self,
        guid: StepId,
    ) -> Result<Option<StepToDelete>, StoreError> {
        let Some(row) = self.find_step_without_body(guid).await? else {
            return Ok(None);
        };
        Ok(Some(StepToDelete {
            task: TaskId(row.task),
            link: read_link(row.is_link, row.subtask_id.map(TaskId))?,
            row_version: RowVersion {
                version: row.version,
                dirty: row.dirty_record,
                created: Timestamp(row.created_ts),
                modified: Timestamp(row.modified_ts),
            },
            managed_ids: managed_ids(&row),
            managed: ManagedTasks::default(),
        }))
    }

    /// Fails with [`StoreError::NeedsLargeReadPermit`] if the step is large without its body, and the
    /// write has no permit.
    async fn find_step_without_body(
        &self,
        guid: StepId,
    ) -> Result<Option<step::Model>, StoreError> {
        use step::Column;
        let steps = || {
            self.find::<step::Entity>()
                .filter(Column::Guid.eq(guid.0))
                .select_except([Column::Body])
        };
        if self.large_read_permit.is_some() {
            return Ok(steps().all(self.db()).await?.pop());
        }
        let small = steps().filter(Column::Size.lte(LARGE_BYTES));
        if let Some(row) = small.all(self.db()).await?.pop() {
            return Ok(Some(row));
        }
        let size = steps().select_only().column(Column::Size);
        let size: Vec<i64> = size.into_tuple().all(self.db()).await?;
        match size.first() {
            None => Ok(None),
            Some(bytes) => Err(StoreError::NeedsLargeReadPermit(
                usize::try_from(*bytes).unwrap_or(usize::MAX),
            )),
        }
    }

    /// Locks a step with the tasks that it manages and their wiring steps. `tasks` are locked
    /// too, before any step.
    pub async fn lock_step(
        &self,
        guid: StepId,
        tasks: &[TaskId],
        with_managed: WithManaged,
    ) -> Result<LockedStep, StoreError> {
        let managed = match with_managed {
            WithManaged::Load => self.managed_by_step(guid).await?,
            WithManaged::Skip => Vec::new(),
        };
        let all: Vec<TaskId> = managed.iter().chain(tasks).copied().collect();
        let locked_tasks = self.lock_tasks(&all).await?;
        let step = step::Column::Guid.eq(guid.0);
        let wiring = || {
            let leads_to_managed = step::Column::SubtaskId.is_in(managed.iter().map(|task| task.0));
            leads_to_managed.and(step::Column::IsLink.eq(true))
        };
        let mut locked = match managed.is_empty() {
            true => self.lock_steps(step).await?,
            false => self.lock_steps(step.or(wiring())).await?,
        };
        locked.retain(|step| *step != guid);
        Ok(LockedStep {
            locked_tasks,
            with_managed,
            managed,
            wiring: locked,
        })
    }

    /// Reads the tasks that a locked step manages, and their wiring steps. `current` are those that
    /// it manages now; fails with a conflict if others were locked.
    pub async fn read_managed(
        &self,
        locked: &LockedStep,
        current: &[TaskId],
    ) -> Result<ManagedTasks, StoreError> {
        let LockedStep {
            locked_tasks: _,
            with_managed,
            managed,
            wiring,
        } = locked;
        if *with_managed == WithManaged::Load && managed != current {
            // An import has changed the links since they were looked up.
            return Err(StoreError::Conflict);
        }
        if managed.is_empty() {
            return Ok(ManagedTasks::default());
        }
        Ok(ManagedTasks {
            tasks: self.read_tasks(managed).await?,
            wiring: self.read_links(wiring).await?,
        })
    }

    /// The tasks that a step manages, looked up before it is locked.
    async fn managed_by_step(&self, guid: StepId) -> Result<Vec<TaskId>, StoreError> {
        let row = self.find_step_without_body(guid).await?;
        Ok(row.as_ref().map(managed_ids).unwrap_or_default())
    }

    /// Wiring steps, each with the task that it leads to. Nothing else is read of them, as there
    /// may be a thousand.
    async fn read_links(&self, wiring: &[StepId]) -> Result<Vec<(StepId, TaskId)>, StoreError> {
        let mut links = Vec::with_capacity(wiring.len());
        for steps in wiring.chunks(MAX_IDS_PER_STATEMENT) {
            let found: Vec<(Uuid, Uuid)> = self
                .find::<step::Entity>()
                .select_only()
                .column(step::Column::Guid)
                .column(step::Column::SubtaskId)
                .filter(step::Column::Guid.is_in(steps.iter().map(|step| step.0)))
                .filter(step::Column::IsLink.eq(true))
                .into_tuple()
                .all(self.db())
                .await?;
            let found = found.into_iter();
            links.extend(found.map(|(step, link)| (StepId(step), TaskId(link))));
        }
        Ok(links)
    }
}
