//! Tasks and steps in the making.

use std::collections::BTreeMap;

use crate::domain::{
    Result,
    changes::{Changes, StepDeletion},
    decide::WriteContext,
    ids::{ProductId, StepId, TaskId},
    order::{Place, arrange},
    step::Step,
    task::Task,
};

/// A step in the making.
#[derive(Debug)]
pub(in crate::domain::import) struct Draft {
    /// The step before, if it existed.
    pub before: Option<Step>,
    /// The step after, but for what `reference` says.
    pub after: Step,
    /// The task it refers to, to be resolved.
    pub reference: Option<Reference>,
    /// The task that the document says it wires.
    pub wires: Option<TaskId>,
}

/// A reference of a subtask step as the document writes it.
#[derive(Debug, Clone)]
pub(in crate::domain::import) struct Reference {
    /// The document's id of the task.
    pub task: TaskId,
    /// The product that the document gives it.
    pub product: Option<ProductId>,
    /// The title that the document gives the step.
    pub title: Option<String>,
    /// Where the step stands in the request.
    pub path: String,
}

/// A task in the making.
pub(super) struct TaskDraft {
    pub before: Option<Task>,
    /// `None` when something is wrong with it.
    pub after: Option<Task>,
    /// Its steps in order; empty when none is touched.
    pub steps: Vec<Draft>,
    /// Where the steps stand that there are.
    pub places: BTreeMap<StepId, Place>,
    pub deleted: Vec<StepDeletion>,
}

impl Draft {
    /// A step that stays as it is.
    pub fn standing(step: Step) -> Self {
        Self {
            before: Some(step.clone()),
            reference: step
                .kind
                .subtask()
                .map(|subtask| Reference::to(subtask.task)),
            after: step,
            wires: None,
        }
    }
}

impl Reference {
    /// A reference that the document does not write.
    pub fn to(task: TaskId) -> Self {
        Self {
            task,
            product: None,
            title: None,
            path: String::new(),
        }
    }
}

impl TaskDraft {
    /// Adds the task and its steps to the changes, where they differ from before, and
    /// returns the task as it is to be.
    pub(super) fn settle(
        self,
        changes: &mut Changes,
        context: &WriteContext,
    ) -> Result<Option<Task>> {
        let Self {
            before,
            after,
            steps,
            places: known,
            deleted,
        } = self;
        let Some(mut after) = after else {
            return Ok(None);
        };
        let mut places = Vec::new();
        if !steps.is_empty() || !deleted.is_empty() {
            after.steps = steps.iter().map(|step| step.after.guid).collect();
            let standing: Vec<Option<&Place>> =
                after.steps.iter().map(|step| known.get(step)).collect();
            (places, after.numbering) = arrange(&standing, after.numbering);
        }
        if let Some(before) = &before {
            after.revise(before, context);
        }
        changes.put_task(before, after.clone(), context)?;
        changes.deleted_steps.extend(deleted);
        for (step, place) in steps.into_iter().zip(places) {
            let Draft { before, after, .. } = step;
            let unchanged = before.as_ref() == Some(&after);
            if !unchanged {
                changes.put_step(before, after, Some(place), context)?;
            } else if known.get(&after.guid) != Some(&place) {
                changes.moved.push((after.guid, place));
            }
        }
        Ok(Some(after))
    }
}
