//! External ids: no two tasks of an account have the same one, and no two steps of a task.
//!
//! Unique indexes guarantee that. A write looks for the owner of an id first, so that its error can name
//! the owner; if another write takes the id meanwhile, the index rejects the row, and the write is
//! retried.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{ColumnTrait, QueryFilter};

use super::tx::Tx;
use crate::{
    domain::{
        Error,
        changes::{Changes, StepChange},
        external_id::{ClaimedBy, ClaimedId, ExternalId, TakenId, new_id},
        ids::{StepId, TaskId},
        step::{ReferencedTask, SentSubtask},
        task::LockedTask,
        translation_work::ResourceId,
    },
    store::{
        entity::{step, task},
        error::StoreError,
        read::tasks::find_tasks_named,
    },
};

impl Tx<'_> {
    /// The task that has an external id, if any.
    pub async fn find_task(&self, id: &ExternalId) -> Result<Option<TaskId>, StoreError> {
        use task::{Column, Entity};
        let tasks = self.find::<Entity>();
        let tasks = tasks.filter(Column::ExternalId.eq(id.as_str()));
        Ok(self.read_column(tasks, Column::Guid).await?.pop())
    }

    /// Locks tasks and the task that a subtask step names. Returns the locked tasks, and the named one if it
    /// exists.
    pub async fn lock_with_subtask(
        &self,
        guids: impl IntoIterator<Item = TaskId>,
        subtask: &SentSubtask,
    ) -> Result<(BTreeMap<TaskId, LockedTask>, Option<ReferencedTask>), StoreError> {
        let named = BTreeSet::from_iter(&subtask.external_id);
        let found = find_tasks_named(self.scope(), &named).await?;
        let ids = guids.into_iter().chain(subtask.guid).chain(found.clone());
        let locked = self.lock_tasks(ids).await?;
        check_still_named(&found, &named, &locked)?;
        let mut tasks = locked.values().map(LockedTask::referenced);
        let target = tasks.find(|task| subtask.means(task.task, task.external_id.as_ref()));
        Ok((locked, target))
    }

    async fn find_step_by_external_id(
        &self,
        task: TaskId,
        id: &ExternalId,
    ) -> Result<Option<StepId>, StoreError> {
        use step::{Column, Entity};
        let steps = self.find::<Entity>().filter(Column::Task.eq(task.0));
        let steps = steps.filter(Column::ExternalId.eq(id.as_str()));
        Ok(self.read_column(steps, Column::Guid).await?.pop())
    }

    /// Fails if another task or step has an id that the write assigns. The import planner has already
    /// compared the ids of new steps with each other.
    pub async fn check_claimed_ids(&self, changes: &Changes) -> Result<(), StoreError> {
        for ClaimedId { id, owner, field } in &changes.claimed_ids {
            let owner = match owner {
                ClaimedBy::Task(_) => self.find_task(id).await?.map(ResourceId::Task),
                ClaimedBy::StepOf(task) => self
                    .find_step_by_external_id(*task, id)
                    .await?
                    .map(ResourceId::Step),
            };
            if let Some(owner) = owner {
                let (field, is_matchable) = (field.clone(), false);
                let taken = TakenId {
                    owner,
                    field,
                    is_matchable,
                };
                return Err(Error::ExternalIdTaken(taken).into());
            }
        }
        Ok(())
    }
}

/// Fails if a task has lost its external id between [`find_tasks_named`] and its lock.
pub fn check_still_named(
    found: &[TaskId],
    ids: &BTreeSet<&ExternalId>,
    locked: &BTreeMap<TaskId, LockedTask>,
) -> Result<(), StoreError> {
    let is_named = |task: &TaskId| {
        let id = locked.get(task).and_then(|task| task.external_id.as_ref());
        id.is_some_and(|id| ids.contains(id))
    };
    if found.iter().all(is_named) {
        Ok(())
    } else {
        Err(StoreError::Conflict)
    }
}

/// The steps whose external ids move to other steps in the same write. These ids are cleared first,
/// because the index is checked row by row.
pub fn reassigned(steps: &[StepChange]) -> Vec<StepId> {
    fn former(step: &StepChange) -> Option<&ExternalId> {
        step.before.as_ref()?.content.external_id.as_ref()
    }
    fn new(step: &StepChange) -> Option<&ExternalId> {
        new_id(former(step), step.after.content.external_id.as_ref())
    }
    let claimed = steps.iter();
    let claimed = claimed.filter_map(|step| Some((step.after.task, new(step)?)));
    let claimed: BTreeSet<(TaskId, &ExternalId)> = claimed.collect();
    let reassigned = steps.iter().filter(|step| {
        // If one of these kept its id, the write would have been refused.
        former(step).is_some_and(|id| claimed.contains(&(step.after.task, id)))
    });
    reassigned.map(|step| step.after.guid).collect()
}
