//! Creating, updating and deleting tasks.

use crate::domain::{
    Error, Precondition, Result,
    changes::{Changes, TaskChange},
    etag::ExpectedEtag,
    ids::{StepId, TaskId},
    task::{NewTask, Task, TaskHead, TaskPatch},
    translation_work::ResourceId,
    violation::Violations,
};

use super::WriteContext;

/// Creates a task without steps.
pub fn create_task(new: NewTask, context: &WriteContext) -> Result<(Changes, Task)> {
    let task = Task::create(new, None, context);
    let mut changes = Changes::default();
    changes.put_task(None, task.clone(), context)?;
    Ok((changes, task))
}

/// An update of a task.
#[derive(Clone, Debug)]
pub struct UpdateTask {
    /// The task.
    pub guid: TaskId,
    /// The etag that it must have.
    pub expected: ExpectedEtag,
    /// What changes.
    pub patch: TaskPatch,
}

impl UpdateTask {
    /// Decides the update. Returns the task, and the fields that were not honored.
    pub fn into_changes(
        self,
        before: Option<Task>,
        context: &WriteContext,
    ) -> Result<(Changes, (Task, Vec<&'static str>))> {
        let Self {
            guid,
            expected,
            patch,
        } = self;
        // Violations that need no stored task come before the error of a missing one.
        let Some(before) = before else {
            let missing = Error::task_not_found(guid, "task.guid");
            return Err(violations_or(patch.violations, missing));
        };
        if patch.violations.is_empty() {
            expected.check(&before.etag(), ResourceId::Task(guid))?;
        }
        let (mut after, ignored) = before.merge(patch)?;
        let mut changes = Changes::default();
        if after.revise(&before, context) {
            changes.put_task(Some(before), after.clone(), context)?;
        }
        Ok((changes, (after, ignored)))
    }
}

/// The violations of a request, or another error if there are none.
pub(super) fn violations_or(violations: Violations, error: Error) -> Error {
    if violations.is_empty() {
        error
    } else {
        Error::Invalid(violations)
    }
}

/// The deletion of a task.
#[derive(Clone, Debug)]
pub struct DeleteTask {
    /// The task.
    pub guid: TaskId,
    /// The etag that it must have.
    pub expected: ExpectedEtag,
    /// Whether its steps are deleted with it.
    pub force: bool,
}

/// What the deletion of a task reads.
#[derive(Debug)]
pub struct TaskToDelete {
    /// The task.
    pub task: TaskHead,
    /// Its steps, if they are deleted with it.
    pub steps: Vec<StepId>,
    /// The tasks that its observations manage.
    pub managed: Vec<Task>,
    /// The first subtask steps of other tasks that refer to it, at most
    /// [`Precondition::MAX_LISTED_STEPS`].
    pub referenced_by: Vec<StepId>,
    /// The observation that manages it.
    pub managed_by: Option<StepId>,
}

impl DeleteTask {
    /// Decides the deletion. Tasks that it manages become unmanaged.
    pub fn into_changes(
        self,
        stored: TaskToDelete,
        context: &WriteContext,
    ) -> Result<(Changes, ())> {
        let Self {
            guid,
            expected,
            force,
        } = self;
        let TaskToDelete {
            task,
            steps,
            managed,
            referenced_by,
            managed_by,
        } = stored;
        expected.check(&task.etag(), ResourceId::Task(guid))?;
        if task.managed {
            return Err(Precondition::TaskManaged {
                task: guid,
                by: managed_by,
            }
            .into());
        }
        if !referenced_by.is_empty() {
            let by = referenced_by;
            return Err(Precondition::TaskReferenced { task: guid, by }.into());
        }
        if task.step_count > 0 && !force {
            return Err(Precondition::TaskHasSteps { task: guid }.into());
        }
        let mut changes = Changes::default();
        for task in managed {
            changes.put_task(Some(task.clone()), task.unmanaged(), context)?;
        }
        changes.tasks.push(TaskChange::Delete { task: guid, steps });
        Ok((changes, ()))
    }
}
