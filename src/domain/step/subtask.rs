//! The task that a subtask step refers to.

use crate::domain::{
    ids::{ProductId, TaskId},
    task::Task,
    text::Name,
    violation::{Path, Reason, Violations},
};

/// A task that a subtask step refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedTask {
    /// The task.
    pub task: TaskId,
    /// Its product.
    pub product: ProductId,
    /// Its name.
    pub name: Name,
}

impl ReferencedTask {
    /// The reference to a task.
    pub fn to(task: &Task) -> Self {
        Self {
            task: task.guid,
            product: task.product,
            name: task.name.clone(),
        }
    }
}

/// Adds a violation if the product that was sent for a subtask step is not that of the task
/// to which the step refers.
pub fn check_subtask_product(
    sent: ProductId,
    task_product: ProductId,
    step: &Path<'_>,
    violations: &mut Violations,
) {
    if sent != task_product {
        violations.add(
            &step.field("subtask_pid"),
            Reason::FieldInvalid,
            "is not the product of the task that `subtask_id` names",
        );
    }
}
