//! Creating, updating and deleting steps.

use std::sync::Arc;

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use serde_json::Map;
use uuid::Uuid;

use super::{
    Account, Mode, Outcome, Retry,
    entity::{step, task},
    fault::Fault,
    link,
    place::{self, Behind},
    retry::once,
    row,
    step_quick::{self, Spot},
    step_write,
    task::Locked,
    task_write,
    transaction::{Tx, Write, work},
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
        let sent = Arc::new((new, retry));
        let quick = (mode == Mode::Store).then(|| {
            work(&sent, move |tx, sent| {
                Box::pin(async move {
                    let (new, retry) = &*sent;
                    let created = insert(tx, new, prevstep, retry.as_ref()).await?;
                    Ok(created.map(Outcome::Done))
                })
            })
        });
        let whole = work(&sent, move |tx, sent| {
            Box::pin(async move {
                let (new, retry) = &*sent;
                once(tx, retry.as_ref(), mode, create(tx, new, prevstep)).await
            })
        });
        self.run(Write { mode, quick, whole }).await
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
        let sent = Arc::new((expected, patch));
        let quick = (mode == Mode::Store).then(|| {
            work(&sent, move |tx, sent| {
                Box::pin(async move { amend(tx, guid, &sent.0, sent.1.clone()).await })
            })
        });
        let whole = work(&sent, move |tx, sent| {
            Box::pin(async move { update(tx, guid, &sent.0, sent.1.clone()).await })
        });
        self.run(Write { mode, quick, whole }).await
    }

    /// Deletes a step.
    pub async fn delete_step(&self, guid: StepId, expected: Expected) -> Result<()> {
        let expected = Arc::new(expected);
        self.run(Write {
            mode: Mode::Store,
            quick: Some(work(&expected, move |tx, expected| {
                Box::pin(async move { remove(tx, guid, &expected).await })
            })),
            whole: work(&expected, move |tx, expected| {
                Box::pin(async move { delete(tx, guid, &expected).await })
            }),
        })
        .await
    }
}

async fn create(
    tx: &Tx,
    new: &NewStep,
    prevstep: Option<StepId>,
) -> Result<(Step, Placement), Fault> {
    let NewStep { task, kind, .. } = new;
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
    let found = place::find(tx, *task, prevstep).await?;
    let step = made(tx, new, title);
    let parent = task::Model {
        step_count: find(*task)?.row.step_count + 1,
        ..find(*task)?.row.clone()
    };
    task_write::check_size(tx, &parent)?;
    step_write::insert(tx, &step, found.place.clone()).await?;
    tx.touch_task(*task, 1, Some(&found)).await?;
    Ok((step, found.placement))
}

/// The step that is made of a new one.
fn made(tx: &Tx, new: &NewStep, title: String) -> Step {
    let NewStep {
        task,
        product,
        kind,
        content,
    } = new.clone();
    Step {
        guid: StepId(Uuid::now_v7()),
        account: tx.account.clone(),
        task,
        product,
        kind,
        title,
        content,
        link: None,
        r_data: Map::new(),
        dirty: true,
        version: 1,
        created: tx.now,
        modified: tx.now,
    }
}

/// Creates a step with a look for its place, if it has one among the others, and one
/// script. Nothing is done when more is to be looked at, as the task of a subtask,
/// when the task has changed meanwhile or is not there.
async fn insert(
    tx: &Tx,
    new: &NewStep,
    prevstep: Option<StepId>,
    retry: Option<&Retry<(Step, Placement)>>,
) -> Result<Option<(Step, Placement)>, Fault> {
    let Some(title) = new.kind.title() else {
        return Ok(None);
    };
    let (spot, placement) = match prevstep {
        None => (Spot::End, Placement::Appended),
        Some(prevstep) => match place::behind(tx, new.task, prevstep).await? {
            Behind::Nothing => (Spot::End, Placement::AppendedPrevstepUnknown),
            Behind::Found(place, version) => {
                (Spot::Found(place, version), Placement::AfterPrevstep)
            }
            Behind::NoRoom => return Ok(None),
        },
    };
    let created = (made(tx, new, title.as_str().to_owned()), placement);
    let outcome = retry.map(|retry| (retry, &created));
    let inserted = step_quick::insert(tx, &created.0, spot, outcome).await?;
    Ok(inserted.then_some(created))
}

/// Updates what is in a step's own rows with one read and one script. Nothing is
/// done when the update touches tasks, when it is to be refused, or when the step
/// changes meanwhile.
async fn amend(
    tx: &Tx,
    guid: StepId,
    expected: &Expected,
    patch: StepPatch,
) -> Result<Option<(Step, Vec<&'static str>)>, Fault> {
    if patch.new_subtask().is_some() || !patch.faults.is_empty() {
        return Ok(None);
    }
    let before = match tx.read_step(guid).await {
        Err(Fault::Domain(_)) => return Ok(None),
        read => read?,
    };
    let etag = Etag::of(guid.0, before.version, before.modified);
    if !expected.matches(&etag) {
        return Ok(None);
    }
    let Ok(merged) = before.merge(patch, None) else {
        return Ok(None);
    };
    let Merged {
        step: mut after,
        ignored,
        links,
        missing: _,
    } = merged;
    if after == before {
        return Ok(Some((after, ignored)));
    }
    if !links.is_empty() {
        return Ok(None);
    }
    after.version += 1;
    after.dirty = true;
    after.modified = tx.now;
    let amended = step_quick::amend(tx, &before, &after).await?;
    Ok(amended.then_some((after, ignored)))
}

/// Deletes a step of no links with one read and one script. Nothing is done when it is
/// to be refused or when the step changes meanwhile.
async fn remove(tx: &Tx, guid: StepId, expected: &Expected) -> Result<Option<()>, Fault> {
    let step = match tx.read_step(guid).await {
        Err(Fault::Domain(_)) => return Ok(None),
        read => read?,
    };
    let etag = Etag::of(guid.0, step.version, step.modified);
    let linked = step.link.is_some() || !links_of(&step).is_empty();
    if linked || !expected.matches(&etag) {
        return Ok(None);
    }
    let deleted = step_quick::delete(tx, &step).await?;
    Ok(deleted.then_some(()))
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
    tx.touch_task(task, -1, None).await
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
