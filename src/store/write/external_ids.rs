//! External ids: no two tasks of an account have the same one, and no two steps of a task.
//!
//! Unique indexes keep that. A write finds out first who has an id, so that it can say so; if
//! another write takes the id meanwhile, the index refuses the row, and the write is run again.

use std::collections::BTreeSet;

use sea_orm::ConnectionTrait;
use uuid::Uuid;

use super::{
    sql::{Script, Values},
    transaction::Tx,
};
use crate::{
    domain::{
        Error,
        changes::{Changes, StepChange},
        external_id::{ClaimedId, ExternalId, TakenId, new_id},
        ids::{StepId, TaskId},
        translation_work::ResourceId,
    },
    store::{error::StoreError, row_reader::RowReader},
};

/// SQL for the task or step that has an id.
fn owner(claimed: &ClaimedId, values: &mut Values) -> String {
    match claimed.within {
        None => task_with(&claimed.id, values),
        Some(task) => format!(
            "SELECT guid FROM steps WHERE account_id = $1 AND task = {} AND external_id = {}",
            values.bind(task.0),
            values.bind(claimed.id.as_str()),
        ),
    }
}

/// SQL for the task with an external id.
fn task_with(id: &ExternalId, values: &mut Values) -> String {
    let id = values.bind(id.as_str());
    format!("SELECT guid FROM tasks WHERE account_id = $1 AND external_id = {id}")
}

/// Adds to the guard of a script that nobody has these ids. If somebody has one, the write is run
/// under locks, and fails in [`Tx::check_claimed_ids`].
pub fn add_check(script: &mut Script, claimed: &[ClaimedId]) {
    for claimed in claimed {
        let owner = owner(claimed, &mut script.values);
        script.guard.push_str(&format!(" AND NOT EXISTS ({owner})"));
    }
}

impl Tx {
    /// The task that has an external id, if any.
    pub async fn find_task(&self, id: &ExternalId) -> Result<Option<TaskId>, StoreError> {
        let mut values = Values::new();
        let sql = task_with(id, &mut values);
        let statement = values.statement(sql, self.backend(), self.account());
        let row = self.db.query_one_raw(statement).await?;
        let guid = row.map(|row| RowReader::new(&row).take()).transpose()?;
        Ok(guid.map(TaskId))
    }

    /// Fails if another task or step has an id that the write assigns. Of the ids that an import
    /// assigns, the planner has checked those of steps against each other.
    pub async fn check_claimed_ids(&self, changes: &Changes) -> Result<(), StoreError> {
        for claimed in &changes.claimed_ids {
            let mut values = Values::new();
            let sql = owner(claimed, &mut values);
            let statement = values.statement(sql, self.backend(), self.account());
            let Some(row) = self.db.query_one_raw(statement).await? else {
                continue;
            };
            let owner: Uuid = RowReader::new(&row).take()?;
            let owner = match claimed.within {
                None => ResourceId::Task(TaskId(owner)),
                Some(_) => ResourceId::Step(StepId(owner)),
            };
            let field = claimed.field.clone();
            return Err(Error::ExternalIdTaken(TakenId { owner, field }).into());
        }
        Ok(())
    }
}

/// The steps whose external ids other steps of the same write get. They are cleared first, as the
/// index is checked row by row.
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
