//! What there is before an import, and what it is to make of that.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    changes::Changes,
    decide::WriteContext,
    ids::{StepId, TaskId},
    order::Place,
    step::{ReferencedTask, Step},
    task::Task,
};

use super::AbsentSteps;

/// An existing task with its steps in order and the tasks that its observations
/// manage.
#[derive(Clone, Debug)]
pub struct TaskTree {
    /// The task.
    pub task: Task,
    /// Its steps in order.
    pub steps: Vec<Step>,
    /// Where each of them stands.
    pub places: BTreeMap<StepId, Place>,
    /// The managed tasks, by id.
    pub managed: BTreeMap<TaskId, TaskTree>,
}

/// What the plan needs to know beside the document.
pub struct ImportContext<'a> {
    /// What every write needs.
    pub write: &'a WriteContext,
    /// The task to bring to the document's state; `None` makes one.
    pub existing: Option<&'a TaskTree>,
    /// Tasks of the account that subtask steps of the document name.
    pub referenced: &'a BTreeMap<TaskId, ReferencedTask>,
    /// What becomes of steps that are left out.
    pub absent: AbsentSteps,
}

/// What an import makes.
#[derive(Debug)]
pub struct ImportPlan {
    /// All that changes.
    pub changes: Changes,
    /// The imported task as it is to be.
    pub task: Task,
    /// What was sent and not honored, as paths below `document`.
    pub ignored: BTreeSet<String>,
}
