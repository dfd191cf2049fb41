//! External ids: no two tasks of an account have the same one, and no two steps of a task.
//!
//! Unique indexes guarantee that. A write looks for the owner of an id first, so that its error can name
//! the owner; if another write takes the id meanwhile, the index rejects the row, and the write is
//! retried.

use std::collections::BTreeSet;

use sea_orm::{ColumnTrait, QueryFilter};

use super::tx::Tx;
use crate::{
    domain::{
        Error,
        changes::{Changes, StepChange},
        external_id::{ClaimedBy, ClaimedId, ExternalId, TakenId, new_id},
        ids::{StepId, TaskId},
        translation_work::ResourceId,
    },
    store::{
        entity::{step, task},
        error::StoreError,
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

    async fn find_step_of(
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
                ClaimedBy::StepOf(task) => {
                    self.find_step_of(*task, id).await?.map(ResourceId::Step)
                }
            };
            if let Some(owner) = owner {
                let field = field.clone();
                return Err(Error::ExternalIdTaken(TakenId { owner, field }).into());
            }
        }
        Ok(())
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
