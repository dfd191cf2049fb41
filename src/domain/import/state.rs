//! What there is before an import, and what is to be after it.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::domain::{
    ids::{AccountId, StepId, TaskId},
    step::{Referenced, Step},
    task::Task,
    time::Timestamp,
};

use super::AbsentSteps;

/// An existing task with its steps in order and the tasks that its observations
/// manage.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The task.
    pub task: Task,
    /// Its steps in order.
    pub steps: Vec<Step>,
    /// The managed tasks, by id.
    pub managed: BTreeMap<TaskId, Tree>,
}

/// What the plan needs to know beside the document.
pub struct Context<'a> {
    /// Whose import it is.
    pub account: &'a AccountId,
    /// The time stamp of everything it makes.
    pub now: Timestamp,
    /// Makes ids.
    pub new_id: &'a mut (dyn FnMut() -> Uuid + Send),
    /// The task to bring to the document's state; `None` makes one.
    pub existing: Option<&'a Tree>,
    /// Tasks of the account that subtask steps of the document name.
    pub referenced: &'a BTreeMap<TaskId, Referenced>,
    /// What becomes of steps that are left out.
    pub absent: AbsentSteps,
}

/// Every task and step as it is to be.
#[derive(Debug, Default)]
pub struct Plan {
    /// The tasks; the imported one first, managed ones after their parents.
    pub tasks: Vec<PlannedTask>,
    /// What was sent and not honored, as paths below `document`.
    pub ignored: BTreeSet<String>,
}

/// A task as it is to be.
#[derive(Debug)]
pub struct PlannedTask {
    /// The task before, if it existed.
    pub before: Option<Task>,
    /// The task after; its `steps` are the new order.
    pub after: Task,
    /// Its steps, in order; empty when none is touched.
    pub steps: Vec<PlannedStep>,
    /// Steps that go.
    pub deleted: Vec<StepId>,
}

/// A step as it is to be.
#[derive(Debug)]
pub struct PlannedStep {
    /// The step before, if it existed.
    pub before: Option<Step>,
    /// The step after.
    pub after: Step,
}

impl PlannedTask {
    /// Whether the order of the steps that stay, or their number, changes.
    pub fn order_changes(&self) -> bool {
        self.before
            .as_ref()
            .is_none_or(|before| before.steps != self.after.steps)
    }
}
