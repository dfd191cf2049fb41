//! The changes of a write. Every decision returns them, and the store turns them into
//! statements.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    decide::{Translatable, WriteContext},
    error::Result,
    external_id::{ClaimedBy, ClaimedId, ExternalId, new_id},
    history::{HistoryChange, HistoryEdit, TranslatedFrom},
    ids::{StepId, TaskId},
    nesting::DepthLimit,
    order::{Numbering, Place},
    size::{self, StepSize},
    step::Step,
    task::{Published, Task},
    translation::{StepTranslation, TaskTranslation},
};

/// The changes of a write.
///
/// *Invariant:* it names every task and step that is created, changed or deleted. A move changes
/// the step's task, not the step.
#[derive(Debug, Default)]
pub struct Changes {
    /// Changed tasks. Parents come before the tasks that they manage.
    pub tasks: Vec<TaskChange>,
    /// Changed step lists of tasks that are not in [`Changes::tasks`].
    pub step_lists: Vec<StepListChange>,
    pub steps: Vec<StepChange>,
    pub deleted_steps: Vec<StepDeletion>,
    /// Steps that only change their place. Their versions stay the same.
    pub moved: Vec<(StepId, Place)>,
    /// Locked wiring steps that become ordinary subtask steps. Only their link and version change.
    pub unlinked: Vec<StepId>,
    /// Subtask steps that change only because the name or external id of their task changes, each with
    /// the fields that change, separated by commas. The store adds and locks them after the decision.
    pub following: BTreeMap<StepId, &'static str>,
    pub translated_tasks: Vec<Translatable<TaskTranslation>>,
    pub translated_steps: Vec<Translatable<StepTranslation>>,
    /// What translations of changed tasks and steps were made from, if that differs from the text
    /// of the task or step after the write.
    pub translated_from: TranslatedFrom,
    pub history: Option<HistoryChange>,
    /// The task that an import or a restore changes. A revision of this task has the guide as it was before.
    pub replaced: Option<TaskId>,
    /// The tasks of a guide that the write publishes. A revision stores it in its state after the write.
    pub guide_to_keep: Vec<TaskId>,
    /// External ids that the write assigns. It fails if another task or step has one of them. The
    /// import planner has already checked that no two of its steps share an id.
    pub claimed_ids: Vec<ClaimedId>,
    /// Limits on the depth of stored tasks. The write fails if a task is deeper.
    pub depth_limits: Vec<(TaskId, DepthLimit)>,
}

/// The maximum number of steps that are written together. Their rows take twice the memory of the
/// steps.
const MAX_STEPS_AT_ONCE: usize = 5_000;

impl Changes {
    /// The changes in parts of a bounded number of steps, to be written in this order in one
    /// transaction. Only writes that neither update steps nor delete tasks are split, because their
    /// parts refer only to earlier parts.
    pub fn into_parts(self) -> impl Iterator<Item = Self> {
        let is_deletion = |change: &TaskChange| matches!(change, TaskChange::Delete { .. });
        let can_split = self.translated_from.is_empty()
            && self.steps.iter().all(|step| step.before.is_none())
            && !self.tasks.iter().any(is_deletion);
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let changes = rest.as_mut()?;
            if !can_split || changes.steps.len() <= MAX_STEPS_AT_ONCE {
                return rest.take();
            }
            let later = changes.steps.split_off(MAX_STEPS_AT_ONCE);
            let steps = std::mem::replace(&mut changes.steps, later);
            // The first part has the changes of tasks and the deleted steps.
            let part = Self {
                tasks: std::mem::take(&mut changes.tasks),
                deleted_steps: std::mem::take(&mut changes.deleted_steps),
                steps,
                ..Self::default()
            };
            Some(part)
        })
    }
}

#[derive(Debug)]
pub enum TaskChange {
    Create(Box<Task>),
    Update {
        before: Box<Task>,
        after: Box<Task>,
    },
    /// The task is deleted with its steps.
    Delete {
        task: TaskId,
        steps: Vec<StepId>,
    },
}

#[derive(Debug)]
pub struct StepChange {
    /// The stored step; `None` if it is created.
    pub before: Option<Box<Step>>,
    pub after: Box<Step>,
    pub place: Place,
}

#[derive(Debug)]
pub struct StepDeletion {
    pub step: StepId,
    pub task: TaskId,
    /// Set if the step is kept so that it can be restored.
    pub kept: Option<KeptStep>,
}

#[derive(Debug)]
pub struct KeptStep {
    pub place: Place,
    pub is_translated: bool,
}

impl StepDeletion {
    pub fn new(step: &Step) -> Self {
        Self {
            step: step.guid,
            task: step.task,
            kept: None,
        }
    }
}

#[derive(Debug)]
pub struct StepListChange {
    pub task: TaskId,
    /// The number of added steps: 1, or −1 for a deletion.
    pub added: i64,
    /// The numbering after the change; `None` if it stays as it is.
    pub numbering: Option<Numbering>,
}

impl Changes {
    pub fn edit_history(&mut self, task: TaskId, edits: Vec<HistoryEdit>) {
        if !edits.is_empty() {
            self.history = Some(HistoryChange { task, edits });
        }
    }

    pub fn limit_depth(&mut self, task: TaskId, limits: Vec<DepthLimit>) {
        let limits = limits.into_iter().map(|limit| (task, limit));
        self.depth_limits.extend(limits);
    }

    /// Adds a created task, or an updated one if it differs from `before`.
    pub fn put_task(
        &mut self,
        before: Option<Task>,
        mut after: Task,
        context: &WriteContext,
    ) -> Result<()> {
        let former = before.as_ref().map(|task| &task.content.external_id);
        let claimed = ClaimedBy::Task(after.guid);
        self.claim_id(
            former,
            &after.content.external_id,
            claimed,
            "task.external_id",
        );
        let change = match before {
            None => {
                size::check_task(&after, context.max_message_bytes)?;
                TaskChange::Create(Box::new(after))
            }
            Some(before) => {
                let is_revised = after.row_version != before.row_version;
                if !is_revised && !after.revise(&before, context) {
                    return Ok(());
                }
                size::check_task(&after, context.max_message_bytes)?;
                TaskChange::Update {
                    before: Box::new(before),
                    after: Box::new(after),
                }
            }
        };
        self.tasks.push(change);
        Ok(())
    }

    /// Adds a created step, or an updated one if it differs from `before`. `place` is
    /// its place after the write.
    pub fn put_step(
        &mut self,
        before: Option<Step>,
        after: impl Into<Box<Step>>,
        place: Place,
        context: &WriteContext,
    ) -> Result<()> {
        let mut after = after.into();
        if let Some(before) = &before {
            let is_revised = after.row_version != before.row_version;
            if !is_revised && !after.revise(before, context) {
                return Ok(());
            }
        }
        StepSize::for_step(&after).check(context.max_message_bytes)?;
        let former = before.as_ref().map(|step| &step.content.external_id);
        let claimed = ClaimedBy::StepOf(after.task);
        self.claim_id(
            former,
            &after.content.external_id,
            claimed,
            "step.external_id",
        );
        self.steps.push(StepChange {
            before: before.map(Box::new),
            after,
            place,
        });
        Ok(())
    }

    fn claim_id(
        &mut self,
        before: Option<&Option<ExternalId>>,
        after: &Option<ExternalId>,
        owner: ClaimedBy,
        field: &'static str,
    ) {
        let before = before.and_then(Option::as_ref);
        if let Some(id) = new_id(before, after.as_ref()) {
            self.claimed_ids.push(ClaimedId {
                id: id.clone(),
                owner,
                field: field.into(),
            });
        }
    }

    /// Whether `published` of a task changes to 1, the default.
    pub fn publishes(&self) -> bool {
        let is_default = |task: &Task| task.content.published == Published::default();
        self.tasks.iter().any(|change| match change {
            TaskChange::Update { before, after } => !is_default(before) && is_default(after),
            TaskChange::Create(_) | TaskChange::Delete { .. } => false,
        })
    }

    /// The tasks whose name or external id changes, each with the fields of its subtask steps that change
    /// with it.
    pub fn renamed_tasks(&self) -> BTreeMap<TaskId, &'static str> {
        let renamed = self.tasks.iter().filter_map(|change| match change {
            TaskChange::Update { before, after } => {
                let same_id = before.content.external_id == after.content.external_id;
                let fields = match (before.name == after.name, same_id) {
                    (true, true) => return None,
                    (false, true) => "title",
                    (true, false) => "subtask_external_id",
                    (false, false) => "subtask_external_id,title",
                };
                Some((after.guid, fields))
            }
            TaskChange::Create(_) | TaskChange::Delete { .. } => None,
        });
        renamed.collect()
    }

    /// Sets [`Self::following`], given the subtask steps that refer to the renamed tasks. Steps
    /// that are changed or deleted anyway are left out.
    pub fn follow(
        &mut self,
        steps: Vec<(StepId, TaskId)>,
        renamed: &BTreeMap<TaskId, &'static str>,
    ) {
        let changed = self.steps.iter().map(|step| step.after.guid);
        let deleted = self.deleted_steps.iter().map(|deleted| deleted.step);
        let named: BTreeSet<StepId> = changed.chain(deleted).collect();
        let following = steps.into_iter();
        let following = following.filter(|(step, _)| !named.contains(step));
        self.following = following
            .filter_map(|(step, task)| Some((step, *renamed.get(&task)?)))
            .collect();
    }

    /// Created tasks that were deleted before. Their first version differs from that of new tasks.
    pub fn undeleted_tasks(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.iter().filter_map(|change| match change {
            TaskChange::Create(task) => (task.row_version.version > 1).then_some(task.guid),
            TaskChange::Update { .. } | TaskChange::Delete { .. } => None,
        })
    }

    /// The same for steps.
    pub fn undeleted_steps(&self) -> impl Iterator<Item = StepId> {
        let created = self.steps.iter().filter(|step| step.before.is_none());
        let undeleted = created.filter(|step| step.after.row_version.version > 1);
        undeleted.map(|step| step.after.guid)
    }

    /// Whether nothing changes. Depth limits are not changes.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
            && self.step_lists.is_empty()
            && self.steps.is_empty()
            && self.deleted_steps.is_empty()
            && self.moved.is_empty()
            && self.unlinked.is_empty()
            && self.following.is_empty()
            && self.translated_tasks.is_empty()
            && self.translated_steps.is_empty()
            && self.history.is_none()
    }
}
