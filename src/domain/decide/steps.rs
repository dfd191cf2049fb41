//! Creating, updating and deleting steps.

use crate::domain::{
    Error, Precondition, Result,
    changes::{Changes, StepDeletion, StepListChange},
    etag::ExpectedEtag,
    ids::{StepId, TaskId},
    order::{Insertion, OrderChange, Place},
    step::{MergedStep, NewStep, Placement, ReferencedTask, Step, StepPatch},
    task::Task,
    violation::{Path, Violations},
};

use super::{WriteContext, tasks::missing};

/// A new step.
#[derive(Clone, Debug)]
pub struct CreateStep {
    /// The step.
    pub new: NewStep,
    /// The step that it is to stand behind.
    pub prevstep: Option<StepId>,
}

/// What a new step needs to know.
#[derive(Debug)]
pub struct NewStepSnapshot {
    /// Where it goes.
    pub insertion: Insertion,
    /// For a subtask step the task that it refers to.
    pub target: Option<ReferencedTask>,
}

impl CreateStep {
    /// Decides the creation.
    pub fn decide(
        self,
        stored: NewStepSnapshot,
        context: &WriteContext,
    ) -> Result<(Changes, (Step, Placement))> {
        let NewStepSnapshot { insertion, target } = stored;
        let kind = &self.new.kind;
        let title = match (kind.title(), kind.subtask(), target) {
            (Some(title), _, _) => title.as_str().to_owned(),
            (None, Some(subtask), Some(target)) => {
                let mut violations = Violations::new();
                target.check_product(subtask.product, &Path::root("step"), &mut violations);
                if !violations.is_empty() {
                    return Err(Error::Invalid(violations));
                }
                target.name.into_string()
            }
            (None, Some(subtask), None) => return Err(Error::TaskNotFound(subtask.task)),
            (None, None, _) => return Err(Error::Internal("a step without a title".to_owned())),
        };
        let step = Step::create(self.new, title, context);
        let Insertion {
            placement,
            place,
            change,
            moved,
            task_version,
        } = insertion;
        let mut changes = Changes {
            moved,
            ..Changes::default()
        };
        changes.orders.push(StepListChange {
            task: step.task,
            change,
            task_version,
        });
        changes.put_step(None, step.clone(), place, context)?;
        Ok((changes, (step, placement)))
    }
}

/// A step, and what a write of it may reach.
#[derive(Debug)]
pub struct StepSnapshot {
    /// The step.
    pub step: Step,
    /// Where it stands.
    pub place: Place,
    /// What it manages.
    pub manages: ManagedTasks,
}

/// What an observation manages: tasks, and the steps that wire them in.
#[derive(Debug, Default)]
pub struct ManagedTasks {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The wiring steps and their places.
    pub wiring: Vec<(Step, Place)>,
}

impl ManagedTasks {
    /// Makes managed tasks ordinary ones, and their wiring steps ordinary subtask steps.
    fn unlink(
        &self,
        unlinked: &[TaskId],
        changes: &mut Changes,
        context: &WriteContext,
    ) -> Result<()> {
        for task in &self.tasks {
            if unlinked.contains(&task.guid) {
                changes.put_task(Some(task.clone()), task.clone().unmanaged(), context)?;
            }
        }
        for (step, place) in &self.wiring {
            if step.link.is_some_and(|task| unlinked.contains(&task)) {
                let after = Step {
                    link: None,
                    ..step.clone()
                };
                changes.put_step(Some(step.clone()), after, Some(place.clone()), context)?;
            }
        }
        Ok(())
    }
}

/// An update of a step.
#[derive(Clone, Debug)]
pub struct UpdateStep {
    /// The step.
    pub guid: StepId,
    /// The state it must be in.
    pub expected: ExpectedEtag,
    /// What changes.
    pub patch: StepPatch,
}

impl UpdateStep {
    /// Decides the update. `target` is the task that the update names for a subtask
    /// step. The answer is the step, and the fields that were not honored.
    pub fn decide(
        self,
        stored: Option<StepSnapshot>,
        target: Option<ReferencedTask>,
        context: &WriteContext,
    ) -> Result<(Changes, (Step, Vec<&'static str>))> {
        let Self {
            guid,
            expected,
            patch,
        } = self;
        // What is wrong with the request comes before what it names.
        let Some(stored) = stored else {
            return Err(missing(patch.violations, Error::StepNotFound(guid)));
        };
        let StepSnapshot {
            step: before,
            place,
            manages,
        } = stored;
        if patch.violations.is_empty() {
            expected.check(&before.etag())?;
        }
        let MergedStep {
            step: mut after,
            ignored,
            links,
            missing: _,
        } = before.merge(patch, target)?;
        let mut changes = Changes::default();
        if !after.revise(&before, context) {
            return Ok((changes, (after, ignored)));
        }
        for update in links.still_managed {
            let task = manages.tasks.iter().find(|task| task.guid == update.task);
            let task = task.ok_or_else(|| Error::Internal("a link to no task".to_owned()))?;
            let renamed = task.clone().apply_value(update);
            changes.put_task(Some(task.clone()), renamed, context)?;
        }
        manages.unlink(&links.unlinked, &mut changes, context)?;
        changes.put_step(Some(before), after.clone(), Some(place), context)?;
        Ok((changes, (after, ignored)))
    }
}

/// The deletion of a step.
#[derive(Clone, Debug)]
pub struct DeleteStep {
    /// The step.
    pub guid: StepId,
    /// The state it must be in.
    pub expected: ExpectedEtag,
}

impl DeleteStep {
    /// Decides the deletion. Tasks that the step manages become ordinary ones.
    pub fn decide(
        self,
        stored: Option<StepSnapshot>,
        context: &WriteContext,
    ) -> Result<(Changes, ())> {
        let Self { guid, expected } = self;
        let StepSnapshot { step, manages, .. } = stored.ok_or(Error::StepNotFound(guid))?;
        expected.check(&step.etag())?;
        if step.link.is_some() {
            return Err(Precondition::StepManaged { step: guid }.into());
        }
        let mut changes = Changes::default();
        manages.unlink(&step.managed_tasks(), &mut changes, context)?;
        changes.orders.push(StepListChange {
            task: step.task,
            change: OrderChange::Remove,
            task_version: None,
        });
        changes.deleted_steps.push(StepDeletion {
            step: guid,
            revision: step.revision,
        });
        Ok((changes, ()))
    }
}
