//! Creating, updating and deleting tasks.

use crate::domain::{
    Error, Precondition, Result,
    changes::{Changes, TaskChange},
    etag::ExpectedEtag,
    history::{HistoryEdit, HistoryState, KeptGuide},
    ids::{StepId, TaskId},
    task::{LockedTask, NewTask, Published, Task},
    translation_work::ResourceId,
    violation::Violations,
};

use super::{SentFields, Updated, WriteContext, check_sent_fields};

pub fn create_task(new: NewTask, context: &WriteContext) -> Result<(Changes, Task)> {
    let task = Task::create(new, None, context);
    let mut changes = Changes::default();
    changes.put_task(None, task.clone(), context)?;
    Ok((changes, task))
}

pub struct UpdateTask {
    pub guid: TaskId,
    pub expected: ExpectedEtag,
    /// The new value of `published`, if the update sets it.
    pub published: Option<Published>,
    pub fields: SentFields<Task, NewTask>,
}

impl UpdateTask {
    pub fn changes(
        &self,
        stored: Option<Task>,
        context: &WriteContext,
    ) -> Result<(Changes, Updated<Task>)> {
        let fields = &self.fields;
        // Violations that need no stored task come before the error of a missing one.
        let Some(before) = stored else {
            check_sent_fields(fields)?;
            return Err(Error::task_not_found(self.guid, "task.guid"));
        };
        let resource = ResourceId::Task(self.guid);
        if let Err(mismatch) = self.expected.check(&before.etag(), resource)
            && check_sent_fields(fields).is_ok()
        {
            return Err(mismatch);
        }
        let mut violations = Violations::new();
        let decoded = fields(Some(&before), &mut violations);
        let Some((new, ignored)) = decoded.filter(|_| violations.is_empty()) else {
            return Err(violations.into());
        };
        let mut after = before.edited(new);
        let mut changes = Changes::default();
        if after.revise(&before, context) {
            changes.put_task(Some(before), after.clone(), context)?;
        }
        Ok((changes, (after, ignored)))
    }
}

#[derive(Clone, Debug)]
pub struct DeleteTask {
    pub guid: TaskId,
    pub expected: ExpectedEtag,
    pub force: bool,
    pub purge_history: bool,
}

#[derive(Debug)]
pub struct TaskToDelete {
    pub task: LockedTask,
    pub steps: Vec<StepId>,
    /// The tasks that its observations manage.
    pub managed: Vec<Task>,
    /// The first subtask steps of other tasks that refer to it, at most
    /// [`Precondition::MAX_LISTED_STEPS`].
    pub referenced_by: Vec<StepId>,
    pub managed_by: Option<StepId>,
    pub history: HistoryState,
    /// Its guide; `None` if no revision must keep it, or if it is too large to be exported.
    pub guide: Option<KeptGuide>,
}

impl DeleteTask {
    pub fn check(&self, stored: &TaskToDelete) -> Result<()> {
        let guid = self.guid;
        self.expected
            .check(&stored.task.etag(), ResourceId::Task(guid))?;
        if stored.task.managed {
            let by = stored.managed_by;
            return Err(Precondition::TaskManaged { task: guid, by }.into());
        }
        if !stored.referenced_by.is_empty() {
            let by = stored.referenced_by.clone();
            return Err(Precondition::TaskReferenced { task: guid, by }.into());
        }
        if stored.task.step_count > 0 && !self.force {
            return Err(Precondition::TaskHasSteps { task: guid }.into());
        }
        Ok(())
    }

    /// Decides a deletion that was checked. Tasks that the task manages become unmanaged. Returns
    /// the number of the revision that keeps the guide; 0 if there is none.
    pub fn into_changes(
        self,
        stored: TaskToDelete,
        context: &WriteContext,
    ) -> Result<(Changes, i64)> {
        let guid = self.guid;
        let mut changes = Changes::default();
        for task in stored.managed {
            changes.put_task(Some(task.clone()), task.unmanaged(), context)?;
        }
        changes.tasks.push(TaskChange::Delete {
            task: guid,
            steps: stored.steps,
        });
        let (revision, edits) = if self.purge_history {
            (0, vec![HistoryEdit::Purge])
        } else {
            stored.history.delete_task(stored.guide, context)
        };
        changes.edit_history(guid, edits);
        Ok((changes, revision))
    }
}
