//! Tasks and steps in the making.

use crate::domain::import::{PlannedStep, PlannedTask};
use crate::domain::{
    ids::{ProductId, StepId, TaskId},
    step::Step,
    task::Task,
    time::Timestamp,
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
    pub steps: Vec<Draft>,
    pub deleted: Vec<StepId>,
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
    /// The task with its new order and, where something changed, its new
    /// version.
    pub(super) fn settle(self, now: Timestamp) -> Option<PlannedTask> {
        let Self {
            before,
            after,
            steps,
            deleted,
        } = self;
        let mut after = after?;
        let restated = !steps.is_empty() || !deleted.is_empty();
        let steps: Vec<PlannedStep> = steps.into_iter().map(|draft| draft.settle(now)).collect();
        if restated {
            after.steps = steps.iter().map(|step| step.after.guid).collect();
        }
        if before.as_ref().is_some_and(|before| *before != after) {
            after.version += 1;
            after.dirty = true;
            after.modified = now;
        }
        Some(PlannedTask {
            before,
            after,
            steps,
            deleted,
        })
    }
}

impl Draft {
    pub(super) fn settle(self, now: Timestamp) -> PlannedStep {
        let Self {
            before, mut after, ..
        } = self;
        if before.as_ref().is_some_and(|before| *before != after) {
            after.version += 1;
            after.dirty = true;
            after.modified = now;
        }
        PlannedStep { before, after }
    }
}
