//! Creating, updating and deleting steps.

use crate::domain::{
    Error, Precondition, Result,
    changes::{Changes, StepDeletion, StepListChange},
    etag::ExpectedEtag,
    external_id::ClaimedId,
    ids::{StepId, TaskId},
    nesting::limits_of_step,
    order::{Insertion, Place},
    size::{check_step_list, stored_count},
    step::{NewStep, Placement, ReferencedTask, Step, check_subtask_product},
    task::{LockedTask, MAX_TASK_STEPS, Task},
    translation_work::ResourceId,
    violation::{Path, Reason, Violations},
};

use super::{SentFields, WriteContext, tasks::violations_or};

const STEP: Path<'static> = Path::root("step");
const EXTERNAL_ID: &str = "step.external_id";

#[derive(Clone, Debug)]
pub struct CreateStep {
    pub new: NewStep,
    /// The step that it follows, if one is requested.
    pub prevstep: Option<StepId>,
}

/// What the creation of a step reads.
#[derive(Debug)]
pub struct NewStepSnapshot {
    pub parent: LockedTask,
    pub insertion: Insertion,
    pub target: Option<ReferencedTask>,
}

impl CreateStep {
    pub fn into_changes(
        self,
        stored: NewStepSnapshot,
        context: &WriteContext,
    ) -> Result<(Changes, (Step, Placement))> {
        let NewStepSnapshot {
            parent,
            insertion,
            target,
        } = stored;
        if parent.step_count >= stored_count(MAX_TASK_STEPS) {
            return Err(Error::invalid(
                &STEP.field("task"),
                Reason::TooManyElements,
                format!("has {MAX_TASK_STEPS} steps, and a task may have no more"),
            ));
        }
        let mut step = Step::create(self.new, context);
        match (step.kind.subtask(), target) {
            (Some(sent), Some(target)) => {
                let mut violations = Violations::new();
                check_subtask_product(sent.product, target.product, &STEP, &mut violations);
                violations.into_result()?;
                step.refer_to(target);
            }
            (Some(sent), None) => {
                return Err(Error::task_not_found(sent.task, "step.subtask_id"));
            }
            (None, _) => {}
        }
        check_step_list(&parent, parent.step_count + 1, context.max_message_bytes)?;
        let Insertion {
            placement,
            place,
            numbering,
            moved,
        } = insertion;
        let mut changes = Changes {
            moved,
            ..Changes::default()
        };
        changes.step_lists.push(StepListChange {
            task: step.task,
            added: 1,
            numbering: (numbering != parent.numbering).then_some(numbering),
        });
        changes.limit_depth(step.task, limits_of_step(&step.content, &STEP));
        let claimed = ClaimedId::of_step(None, &step, EXTERNAL_ID);
        changes.claimed_ids.extend(claimed);
        changes.put_step(None, step.clone(), place, context)?;
        Ok((changes, (step, placement)))
    }
}

/// A step, and what an update of it may change.
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

#[derive(Debug)]
pub struct UpdateStep {
    pub guid: StepId,
    pub expected: ExpectedEtag,
    /// The task that the update sets for a subtask step, if any.
    pub new_subtask: Option<TaskId>,
    /// Whether the update may set or clear the question.
    pub edits_question: bool,
    pub fields: Box<dyn SentFields<Step, NewStep>>,
}

impl UpdateStep {
    /// Decides the update. `target` is the task that the update sets for a subtask step, if the
    /// account has it.
    pub fn changes(
        &self,
        stored: Option<StepSnapshot>,
        target: Option<ReferencedTask>,
        context: &WriteContext,
    ) -> Result<(Changes, Step)> {
        let Self {
            guid,
            expected,
            new_subtask,
            edits_question,
            fields,
        } = self;
        // Violations that need no stored step come before the error of a missing one.
        let Some(stored) = stored else {
            let missing = Error::step_not_found(*guid, "step.guid");
            return Err(violations_or(fields.violations(), missing));
        };
        let StepSnapshot {
            step: before,
            place,
            managed,
        } = stored;
        if let Err(mismatch) = expected.check(&before.etag(), ResourceId::Step(before.guid))
            && fields.violations().is_empty()
        {
            return Err(mismatch);
        }
        let honors_subtask = before.kind.subtask().is_some() && before.link.is_none();
        let target = target.filter(|_| honors_subtask);
        let new = fields.decode(Some(&before), target.as_ref())?;
        if let Some(task) = *new_subtask
            && honors_subtask
            && target.is_none()
        {
            return Err(Error::task_not_found(task, "step.subtask_id"));
        }
        let (mut after, links) = before.edited(new, *edits_question);
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
            return Ok((changes, after));
        }
        for update in links.still_managed {
            let task = managed.tasks.iter().find(|task| task.guid == update.task);
            let task = task.ok_or_else(|| Error::Internal("a link to no task".to_owned()))?;
            let updated = task.clone().apply_value(update);
            changes.put_task(Some(task.clone()), updated, context)?;
        }
        managed.unlink(&links.unlinked, &mut changes, context)?;
        changes.limit_depth(after.task, limits_of_step(&after.content, &STEP));
        let claimed = ClaimedId::of_step(Some(&before), &after, EXTERNAL_ID);
        changes.claimed_ids.extend(claimed);
        changes.put_step(Some(before), after.clone(), place, context)?;
        Ok((changes, after))
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
        let Self { guid, expected } = self;
        let StepSnapshot { step, managed, .. } =
            stored.ok_or_else(|| Error::step_not_found(guid, "guid"))?;
        expected.check(&step.etag(), ResourceId::Step(guid))?;
        if let Some(task) = step.link {
            return Err(Precondition::StepManaged { step: guid, task }.into());
        }
        let mut changes = Changes::default();
        managed.unlink(&step.managed_tasks(), &mut changes, context)?;
        changes.step_lists.push(StepListChange {
            task: step.task,
            added: -1,
            numbering: None,
        });
        changes.deleted_steps.push(StepDeletion::of(&step));
        Ok((changes, ()))
    }
}

/// The error of a question that is linked outside of an import.
pub fn linked_import_only() -> Error {
    let question = STEP.field("feedback_config");
    let question = question.index(0);
    Precondition::LinkedImportOnly {
        paths: vec![question.field("linked").to_string()],
        new_values: false,
    }
    .into()
}

/// The error of values that are added to a linked question outside of an import.
fn new_linked_values(indexes: &[usize]) -> Error {
    let question = STEP.field("feedback_config");
    let question = question.index(0);
    let values = question.field("values");
    let keys = indexes
        .iter()
        .map(|index| values.index(*index).field("key").to_string());
    Precondition::LinkedImportOnly {
        paths: keys.collect(),
        new_values: true,
    }
    .into()
}
