//! Creating, updating and deleting steps.

use crate::domain::{
    Error, Precondition, Result,
    changes::{Changes, KeptStep, StepDeletion, StepListChange},
    etag::ExpectedEtag,
    history::TranslatedFrom,
    ids::{StepId, TaskId},
    nesting::step_depth_limits,
    order::{Insertion, Place},
    size::{check_step_list, stored_count},
    step::{NewStep, Placement, ReferencedTask, SentSubtask, Step},
    task::{LockedTask, MAX_TASK_STEPS, ManagedBy, Task},
    text::Name,
    translation_work::ResourceId,
    violation::{Path, Reason, Violations},
};

use super::{SentFields, Updated, WriteContext, check_sent_fields};

const STEP: Path<'static> = Path::root("step");

#[derive(Clone, Debug)]
pub struct CreateStep {
    pub new: NewStep,
    /// The task of a subtask step.
    pub subtask: SentSubtask,
    /// The step that it follows, if one is requested.
    pub prevstep: Option<StepId>,
}

/// Where a new or restored step goes.
#[derive(Debug)]
pub struct StepSlot {
    pub parent: LockedTask,
    pub insertion: Insertion,
    /// The task that a subtask step refers to.
    pub target: Option<ReferencedTask>,
}

impl CreateStep {
    pub fn into_changes(
        self,
        slot: StepSlot,
        context: &WriteContext,
    ) -> Result<(Changes, (Step, Placement))> {
        let mut step = Step::create(self.new, context);
        match (step.kind.subtask(), &slot.target) {
            (Some(_), Some(target)) => {
                let mut violations = Violations::new();
                self.subtask.check(target, &STEP, &mut violations);
                violations.into_result()?;
                step.refer_to(target.clone());
            }
            (Some(_), None) => return Err(self.subtask.not_found(&STEP)),
            (None, _) => {}
        }
        slot.add(step, &STEP.field("task"), "step.external_id", context)
    }
}

impl StepSlot {
    /// `task_field` and `external_id_field` are the fields of the request that stand for the task and
    /// for the external id of the step.
    fn add(
        self,
        step: Step,
        task_field: &Path<'_>,
        external_id_field: &'static str,
        context: &WriteContext,
    ) -> Result<(Changes, (Step, Placement))> {
        let (parent, insertion) = (self.parent, self.insertion);
        if parent.step_count >= stored_count(MAX_TASK_STEPS) {
            return Err(Error::invalid(
                task_field,
                Reason::TooManyElements,
                format!("has {MAX_TASK_STEPS} steps, and a task may have no more"),
            ));
        }
        check_step_list(&parent, parent.step_count + 1, context.max_message_bytes)?;
        let mut changes = Changes {
            moved: insertion.moved,
            ..Changes::default()
        };
        let numbering = insertion.numbering;
        changes.step_lists.push(StepListChange {
            task: step.task,
            added: 1,
            numbering: (numbering != parent.numbering).then_some(numbering),
        });
        changes.limit_depth(step.task, step_depth_limits(&step.content, &STEP));
        changes.put_step(None, step.clone(), insertion.place, context)?;
        for claimed in &mut changes.claimed_ids {
            claimed.field = external_id_field.into();
        }
        Ok((changes, (step, insertion.placement)))
    }
}

#[derive(Clone, Debug)]
pub struct RestoreStep {
    pub guid: StepId,
}

/// What the restore of a deleted step reads.
#[derive(Debug)]
pub struct StepToRestore {
    pub step: Step,
    /// What its translations were made from.
    pub translated_from: TranslatedFrom,
    pub slot: StepSlot,
}

impl RestoreStep {
    /// Violations name this field, because the request has no other.
    const FIELD: &'static str = "guid";

    pub fn not_found(&self) -> Error {
        Error::step_not_found(self.guid, Self::FIELD)
    }

    pub fn changes(
        &self,
        stored: StepToRestore,
        context: &WriteContext,
    ) -> Result<(Changes, (Step, Placement))> {
        let mut step = stored.step.restored(context);
        match (step.kind.subtask(), &stored.slot.target) {
            (Some(_), Some(target)) => step.refer_to(target.clone()),
            (Some(subtask), None) => {
                let (step, task) = (step.guid, subtask.task);
                return Err(Precondition::MissingSubtask { step, task }.into());
            }
            (None, _) => {}
        }
        let field = Path::root(Self::FIELD);
        let (mut changes, answer) = stored.slot.add(step, &field, Self::FIELD, context)?;
        changes.translated_from = stored.translated_from;
        for (_, limit) in &mut changes.depth_limits {
            let violation = &mut limit.violation;
            violation.description = format!("{} {}", violation.path, violation.description);
            violation.path = Self::FIELD.to_owned();
        }
        Ok((changes, answer))
    }
}

#[derive(Debug)]
pub struct StepSnapshot {
    pub step: Step,
    pub place: Place,
    /// The tasks that it manages, if the update may change them.
    pub managed: ManagedTasks,
}

/// The tasks that an observation manages, and their wiring steps.
#[derive(Debug, Default)]
pub struct ManagedTasks {
    pub tasks: Vec<Task>,
    /// The wiring steps, each with the task that it leads to.
    pub wiring: Vec<(StepId, TaskId)>,
}

impl ManagedTasks {
    /// Makes managed tasks unmanaged, and their wiring steps ordinary subtask steps.
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
        let wiring = self.wiring.iter();
        let wiring = wiring.filter(|(_, task)| unlinked.contains(task));
        changes.unlinked.extend(wiring.map(|(step, _)| *step));
        Ok(())
    }
}

pub struct UpdateStep {
    pub guid: StepId,
    pub expected: ExpectedEtag,
    /// The task that the update sets for a subtask step, if any.
    pub subtask: SentSubtask,
    /// Whether the update may set or clear the question.
    pub edits_question: bool,
    pub fields: SentFields<Step, NewStep>,
}

impl UpdateStep {
    /// Decides the update. `target` is the task that the update sets for a subtask step, if the
    /// account has it.
    pub fn changes(
        &self,
        stored: Option<StepSnapshot>,
        target: Option<ReferencedTask>,
        context: &WriteContext,
    ) -> Result<(Changes, Updated<Step>)> {
        let fields = &self.fields;
        // Violations that need no stored step come before the error of a missing one.
        let Some(stored) = stored else {
            check_sent_fields(fields)?;
            return Err(Error::step_not_found(self.guid, "step.guid"));
        };
        let StepSnapshot {
            step: before,
            place,
            managed,
        } = stored;
        let resource = ResourceId::Step(before.guid);
        if let Err(mismatch) = self.expected.check(&before.etag(), resource)
            && check_sent_fields(fields).is_ok()
        {
            return Err(mismatch);
        }
        let mut violations = Violations::new();
        let decoded = fields(Some(&before), &mut violations);
        let honors_subtask = before.honors_subtask();
        let target = target.filter(|_| honors_subtask);
        let names_task = honors_subtask && self.subtask.names_task();
        let former = before
            .referenced_task()
            .filter(|_| honors_subtask && !names_task);
        if let Some(task) = target.as_ref().or(former.as_ref()) {
            self.subtask.check(task, &STEP, &mut violations);
        }
        let Some((new, ignored)) = decoded.filter(|_| violations.is_empty()) else {
            return Err(violations.into());
        };
        if names_task && target.is_none() {
            return Err(self.subtask.not_found(&STEP));
        }
        let (mut after, links) = before.edited(new, self.edits_question);
        if let Some(target) = target {
            after.refer_to(target);
        }
        if !links.unmatched.is_empty() {
            let before = before.kind.observation_feedback();
            return Err(match before.is_some_and(|before| before.linked) {
                true => new_linked_values(&links.unmatched),
                false => linked_import_only(),
            });
        }
        let mut changes = Changes::default();
        if !after.revise(&before, context) {
            return Ok((changes, (after, ignored)));
        }
        let question = after.kind.observation_feedback();
        for (value, idx) in question.into_iter().flat_map(|it| &it.values).zip(0..) {
            let task = managed.tasks.iter().find(|it| Some(it.guid) == value.link);
            let name = Name::parse(value.value.as_str().to_owned());
            if let (Some(task), Ok(name)) = (task, name) {
                let parent = after.task;
                let updated = task.clone().managed(ManagedBy { parent, idx }, name);
                changes.put_task(Some(task.clone()), updated, context)?;
            }
        }
        managed.unlink(&links.unlinked, &mut changes, context)?;
        changes.limit_depth(after.task, step_depth_limits(&after.content, &STEP));
        changes.put_step(Some(before), after.clone(), place, context)?;
        Ok((changes, (after, ignored)))
    }
}

#[derive(Clone, Debug)]
pub struct DeleteStep {
    pub guid: StepId,
    pub expected: ExpectedEtag,
}

impl DeleteStep {
    /// Decides the deletion. Tasks that the step manages become unmanaged. Its texts are not needed.
    pub fn into_changes(
        self,
        stored: Option<StepSnapshot>,
        context: &WriteContext,
    ) -> Result<(Changes, ())> {
        let guid = self.guid;
        let stored = stored.ok_or_else(|| Error::step_not_found(guid, "guid"))?;
        let step = stored.step;
        self.expected.check(&step.etag(), ResourceId::Step(guid))?;
        if let Some(task) = step.link {
            return Err(Precondition::StepManaged { step: guid, task }.into());
        }
        let mut changes = Changes::default();
        let managed = step.managed_tasks();
        stored.managed.unlink(&managed, &mut changes, context)?;
        changes.step_lists.push(StepListChange {
            task: step.task,
            added: -1,
            numbering: None,
        });
        let kept = context.keeps_deleted_tasks.then_some(KeptStep {
            place: stored.place,
            is_translated: !step.content.translations.is_empty(),
        });
        changes.deleted_steps.push(StepDeletion {
            kept,
            ..StepDeletion::new(&step)
        });
        Ok((changes, ()))
    }
}

pub fn linked_import_only() -> Error {
    let question = STEP.field("feedback_config");
    let question = question.index(0);
    let path = question.field("linked").to_string();
    Precondition::LinkedImportOnly { path }.into()
}

/// The error of values that are added to a linked question outside of an import.
fn new_linked_values(indexes: &[usize]) -> Error {
    let question = STEP.field("feedback_config");
    let question = question.index(0);
    let values = question.field("values");
    let keys = indexes
        .iter()
        .map(|index| values.index(*index).field("key").to_string());
    let paths = keys.collect();
    Precondition::NewLinkedValues { paths }.into()
}
