//! Creating, updating and deleting steps.

use std::sync::Arc;

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use serde_json::Map;
use uuid::Uuid;

use super::{
    Account, Mode, Outcome, Retry,
    entity::{step, task},
    fault::Fault,
    link, place,
    retry::once,
    row, step_write,
    task::Locked,
    task_write,
    transaction::Tx,
};
use crate::domain::{
    Error, Precondition, Result,
    etag::{Etag, Expected},
    ids::{StepId, TaskId},
    link::linked_tasks,
    patch::Edit,
    step::{Merged, NewStep, Placement, Referenced, Step, StepPatch},
    text::Name,
    time::Timestamp,
    violation::{Path, Violations},
};

impl Account {
    /// Creates a step right after `prevstep`, or at the end.
    pub async fn create_step(
        &self,
        new: NewStep,
        prevstep: Option<StepId>,
        retry: Option<Retry<(Step, Placement)>>,
        mode: Mode,
    ) -> Result<Outcome<(Step, Placement)>> {
        let new = Arc::new(new);
        let retry = Arc::new(retry);
        self.write(mode, move |tx| {
            let (new, retry) = (Arc::clone(&new), Arc::clone(&retry));
            Box::pin(async move {
                let work = create(tx, &new, prevstep);
                once(tx, retry.as_ref().as_ref(), mode, work).await
            })
        })
        .await
    }

    /// Updates a step. The fields of the update that were not honored come with
    /// it.
    pub async fn update_step(
        &self,
        guid: StepId,
        expected: Expected,
        patch: StepPatch,
        mode: Mode,
    ) -> Result<(Step, Vec<&'static str>)> {
        self.write(mode, move |tx| {
            let (expected, patch) = (expected.clone(), patch.clone());
            Box::pin(async move { update(tx, guid, &expected, patch).await })
        })
        .await
    }

    /// Deletes a step.
    pub async fn delete_step(&self, guid: StepId, expected: Expected) -> Result<()> {
        self.write(Mode::Store, move |tx| {
            let expected = expected.clone();
            Box::pin(async move { delete(tx, guid, &expected).await })
        })
        .await
    }
}

async fn create(
    tx: &Tx,
    new: &NewStep,
    prevstep: Option<StepId>,
) -> Result<(Step, Placement), Fault> {
    let NewStep {
        task,
        product,
        kind,
        content,
    } = new;
    let subtask = kind.subtask();
    let named: Vec<TaskId> = subtask
        .map(|subtask| subtask.task)
        .into_iter()
        .chain([*task])
        .collect();
    let locked = tx.lock_tasks(&named).await?;
    let find = |guid: TaskId| {
        let found = locked.iter().find(|locked| locked.guid == guid);
        found.ok_or(Error::TaskNotFound(guid))
    };
    find(*task)?;
    let title = match (kind.title(), subtask) {
        (Some(title), _) => title.as_str().to_owned(),
        (None, Some(subtask)) => {
            let target = referenced(&find(subtask.task)?.row)?;
            let mut faults = Violations::new();
            target.check_product(subtask.product, &Path::root("step"), &mut faults);
            if !faults.is_empty() {
                return Err(Error::Invalid(faults).into());
            }
            target.name.into_string()
        }
        (None, None) => return Err(Fault::Corrupt("a step without a title")),
    };
    let place::Found {
        place,
        placement,
        renumbered,
    } = place::find(tx, *task, prevstep).await?;
    let step = Step {
        guid: StepId(Uuid::now_v7()),
        account: tx.account.clone(),
        task: *task,
        product: *product,
        kind: kind.clone(),
        title,
        content: content.clone(),
        link: None,
        r_data: Map::new(),
        dirty: true,
        version: 1,
        created: tx.now,
        modified: tx.now,
    };
    let parent = task::Model {
        step_count: find(*task)?.row.step_count + 1,
        ..find(*task)?.row.clone()
    };
    task_write::check_size(tx, &parent)?;
    step_write::insert(tx, &step, place).await?;
    tx.touch_task(*task, 1, renumbered).await?;
    Ok((step, placement))
}

async fn update(
    tx: &Tx,
    guid: StepId,
    expected: &Expected,
    patch: StepPatch,
) -> Result<(Step, Vec<&'static str>), Fault> {
    let target = patch.new_subtask();
    let linked = match &patch.feedback {
        Edit::Keep => Vec::new(),
        Edit::Clear | Edit::Set(_) => linked_by(tx, guid).await?,
    };
    // Tasks are locked before steps; a rename of the target waits until this
    // step's title is written, and then reaches it.
    let named: Vec<TaskId> = linked.iter().copied().chain(target).collect();
    let locked = if named.is_empty() {
        Vec::new()
    } else {
        tx.lock_tasks(&named).await?
    };
    let etag = match lock_step(tx, guid).await {
        // What is wrong with the request comes before what it names.
        Err(Fault::Domain(Error::StepNotFound(_))) if !patch.faults.is_empty() => {
            return Err(Error::Invalid(patch.faults).into());
        }
        found => found?,
    };
    if patch.faults.is_empty() && !expected.matches(&etag) {
        return Err(Error::EtagMismatch.into());
    }
    let before = tx.read_step(guid).await?;
    if !matches!(patch.feedback, Edit::Keep) && links_of(&before) != linked {
        // An import has changed the links since they were looked up.
        return Err(Fault::Lost);
    }
    let target = locked
        .iter()
        .find(|locked| Some(locked.guid) == target)
        .map(|Locked { row, .. }| referenced(row))
        .transpose()?;
    let Merged {
        step: mut after,
        ignored,
        links,
        missing: _,
    } = before.merge(patch, target)?;
    if after == before {
        return Ok((after, ignored));
    }
    after.version += 1;
    after.dirty = true;
    after.modified = tx.now;
    step_write::update(tx, &before, &after).await?;
    link::apply(tx, &links).await?;
    Ok((after, ignored))
}

/// The tasks that a step manages, looked up before it is locked.
async fn linked_by(tx: &Tx, guid: StepId) -> Result<Vec<TaskId>, Fault> {
    let feedback: Option<Option<String>> =
        step::Entity::find_by_id((tx.account_id().to_owned(), guid.0))
            .select_only()
            .column(step::Column::FeedbackConfig)
            .into_tuple()
            .one(&tx.db)
            .await?;
    let feedback = row::read_feedback(feedback.flatten())?;
    Ok(feedback.iter().flat_map(linked_tasks).collect())
}

/// The tasks that a step manages.
fn links_of(step: &Step) -> Vec<TaskId> {
    let feedback = step.kind.feedback();
    feedback.into_iter().flat_map(linked_tasks).collect()
}

async fn delete(tx: &Tx, guid: StepId, expected: &Expected) -> Result<(), Fault> {
    let key = (tx.account_id().to_owned(), guid.0);
    // A step never changes its task, so the task can be looked up before it is
    // locked.
    let task: Option<Uuid> = step::Entity::find_by_id(key.clone())
        .select_only()
        .column(step::Column::Task)
        .into_tuple()
        .one(&tx.db)
        .await?;
    let task = TaskId(task.ok_or(Error::StepNotFound(guid))?);
    let linked = linked_by(tx, guid).await?;
    let named: Vec<TaskId> = linked.iter().copied().chain([task]).collect();
    tx.lock_tasks(&named).await?;
    let etag = lock_step(tx, guid).await?;
    if !expected.matches(&etag) {
        return Err(Error::EtagMismatch.into());
    }
    let step = tx.read_step(guid).await?;
    if links_of(&step) != linked {
        return Err(Fault::Lost);
    }
    if step.link.is_some() {
        return Err(Precondition::StepManaged { step: guid }.into());
    }
    link::unlink(tx, &linked).await?;
    step::Entity::delete_by_id(key).exec(&tx.db).await?;
    tx.touch_task(task, -1, false).await
}

/// Locks a step and returns the state it is in.
async fn lock_step(tx: &Tx, guid: StepId) -> Result<Etag, Fault> {
    let found: Option<(i64, i64)> = step::Entity::find()
        .select_only()
        .column(step::Column::Version)
        .column(step::Column::ModifiedTs)
        .filter(step::Column::AccountId.eq(tx.account_id()))
        .filter(step::Column::Guid.eq(guid.0))
        .lock_exclusive()
        .into_tuple()
        .one(&tx.db)
        .await?;
    let (version, modified) = found.ok_or(Error::StepNotFound(guid))?;
    Ok(Etag::of(guid.0, version, Timestamp(modified)))
}

/// A task as a reference sees it.
pub(super) fn referenced(row: &task::Model) -> Result<Referenced, Fault> {
    Ok(Referenced {
        task: TaskId(row.guid),
        product: row::product(row.product_id)?,
        name: row::text(Name::parse(row.name.clone()), "name")?,
    })
}
