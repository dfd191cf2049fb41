//! Steps with the tasks that they manage, as they are read and locked for a write.

use sea_orm::{
    ColumnTrait, ConnectionTrait, QueryFilter, QuerySelect, QueryTrait, sea_query::ExprTrait,
};
use uuid::Uuid;

use super::{sql::MAX_IDS_PER_STATEMENT, transaction::Tx};
use crate::{
    domain::{
        decide::{ManagedTasks, StepSnapshot, StepToDelete},
        ids::{StepId, TaskId},
        link::linked_tasks,
        order::Place,
        step::Step,
        task::LockedTask,
    },
    store::{
        error::StoreError,
        json_columns,
        read::{large_step, steps},
        row_reader::RowReader,
        schema::entity::step,
        step_row::read_link,
    },
};

/// Whether the tasks that a step manages are locked with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithManaged {
    /// They are.
    Load,
    /// They are not.
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
    wiring: Vec<Uuid>,
}

/// A step without the tasks that it manages.
fn unmanaged((step, place): (Step, Place)) -> StepSnapshot {
    StepSnapshot {
        step,
        place,
        managed: ManagedTasks::default(),
    }
}

impl Tx {
    /// Reads a step without locking it; `managed` stays empty. Fails with
    /// [`StoreError::NeedsLargeReadPermit`] if it is large and the write has no permit for that.
    pub async fn read_step(&self, guid: StepId) -> Result<Option<StepSnapshot>, StoreError> {
        let found = match &self.large_read_permit {
            None => {
                let expected = &self.expected_translations;
                steps::find_small(&self.db, expected, self.account(), guid).await?
            }
            Some(_) => large_step::find_whole(&self.db, self.account(), guid).await?,
        };
        Ok(found.map(unmanaged))
    }

    /// Locks and reads a step by one statement; `managed` stays empty. `None` if that takes
    /// several, as for a step with translations.
    pub async fn lock_and_read_step(
        &self,
        guid: StepId,
    ) -> Result<Option<StepSnapshot>, StoreError> {
        if self.expected_translations.of(self.account()) {
            return Ok(None);
        }
        let found = steps::lock_plain(&self.db, self.account(), guid).await?;
        Ok(found.map(unmanaged))
    }

    /// Reads what a deletion needs of a step; `managed` stays empty.
    pub async fn read_step_to_delete(
        &self,
        guid: StepId,
    ) -> Result<Option<StepToDelete>, StoreError> {
        use step::Column;
        let step = self.select::<step::Entity>().select_only().columns([
            Column::Task,
            Column::IsLink,
            Column::SubtaskId,
            Column::FeedbackConfig,
            Column::Version,
            Column::DirtyRecord,
            Column::CreatedTs,
            Column::ModifiedTs,
        ]);
        let statement = step.filter(Column::Guid.eq(guid.0)).build(self.backend());
        let Some(row) = self.db.query_one_raw(statement).await? else {
            return Ok(None);
        };
        let mut row = RowReader::new(&row);
        let task = TaskId(row.take()?);
        let is_link = row.take()?;
        let link = read_link(is_link, row.take::<Option<Uuid>>()?.map(TaskId))?;
        let feedback = json_columns::read_feedback(row.take()?)?;
        Ok(Some(StepToDelete {
            task,
            link,
            row_version: row.take_row_version()?,
            managed_ids: feedback.iter().flat_map(linked_tasks).collect(),
            managed: ManagedTasks::default(),
        }))
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
        locked.retain(|step| *step != guid.0);
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
        let feedback: Option<Option<String>> = self
            .select::<step::Entity>()
            .select_only()
            .column(step::Column::FeedbackConfig)
            .filter(step::Column::Guid.eq(guid.0))
            .into_tuple()
            .one(&self.db)
            .await?;
        let feedback = json_columns::read_feedback(feedback.flatten().as_deref())?;
        Ok(feedback.iter().flat_map(linked_tasks).collect())
    }

    /// Wiring steps, each with the task that it leads to. Nothing else is read of them, as there
    /// may be a thousand.
    async fn read_links(&self, wiring: &[Uuid]) -> Result<Vec<(StepId, TaskId)>, StoreError> {
        let mut links = Vec::with_capacity(wiring.len());
        for steps in wiring.chunks(MAX_IDS_PER_STATEMENT) {
            let found: Vec<(Uuid, Uuid)> = self
                .select::<step::Entity>()
                .select_only()
                .column(step::Column::Guid)
                .column(step::Column::SubtaskId)
                .filter(step::Column::Guid.is_in(steps.iter().copied()))
                .filter(step::Column::IsLink.eq(true))
                .into_tuple()
                .all(&self.db)
                .await?;
            let found = found.into_iter();
            links.extend(found.map(|(step, link)| (StepId(step), TaskId(link))));
        }
        Ok(links)
    }
}
