//! Planned tasks and steps.

use std::{borrow::Cow, collections::BTreeMap};

use crate::domain::{
    Result,
    changes::{Changes, StepDeletion},
    decide::WriteContext,
    external_id::{ClaimedId, ExternalId, TakenId, new_id},
    ids::{ProductId, StepId, TaskId},
    import::TaskTree,
    order::{Place, arrange},
    step::{Step, StepContent},
    task::Task,
    translation_work::ResourceId,
};

/// A planned task.
pub(super) struct PlannedTask<'a> {
    /// The task as it is stored; `None` if it is created.
    pub existing: Option<&'a TaskTree>,
    /// The task after the import; `None` if the request is invalid.
    pub after: Option<Task>,
    /// Its steps in order; empty if none of them changes.
    pub steps: Vec<PlannedStep<'a>>,
    pub deleted: Vec<StepDeletion>,
    /// The places of its steps, once the task is completed.
    pub places: Vec<Place>,
}

/// A planned step.
pub(super) struct PlannedStep<'a> {
    /// The step as it is stored; `None` if it is created.
    pub before: Option<&'a Step>,
    /// The step after the import. What follows from [`Self::reference`] is set when that is
    /// resolved.
    pub after: Box<Step>,
    /// The task that a subtask step refers to; `None` once it is resolved.
    pub reference: Option<SubtaskReference>,
    /// The document's id of the task whose wiring step it is.
    pub document_link: Option<TaskId>,
    /// The tasks that it manages, in value order.
    pub managed: Vec<ManagedTaskIds>,
    /// The tasks that it no longer manages.
    pub unlinked: Vec<TaskId>,
}

/// A task that a subtask step refers to, as the document has it.
pub(super) struct SubtaskReference {
    /// The document's id of the task.
    pub task: TaskId,
    /// The product that was sent.
    pub product: Option<ProductId>,
    /// The title that was sent.
    pub title: Option<String>,
    /// Whether a reset would clear the reference, which only a wiring step may leave out.
    pub is_cleared: bool,
    /// The path of the step in the request; empty if the document does not list it.
    pub path: String,
}

/// The ids of a managed task.
pub(super) struct ManagedTaskIds {
    pub stored: TaskId,
    /// The document's ids; the stored one is among them.
    pub in_document: Vec<TaskId>,
    /// The path of the value that manages it, or of its step if the value is not in the document.
    pub value_path: String,
}

impl<'a> PlannedStep<'a> {
    pub fn new(
        before: Option<&'a Step>,
        after: impl Into<Box<Step>>,
        reference: Option<SubtaskReference>,
    ) -> Self {
        Self {
            before,
            after: after.into(),
            reference,
            document_link: None,
            managed: Vec::new(),
            unlinked: Vec::new(),
        }
    }

    /// A step that stays as it is.
    pub fn unchanged(step: &'a Step) -> Self {
        let subtask = step.kind.subtask();
        let reference = subtask.map(|subtask| SubtaskReference::to(subtask.task));
        Self::new(Some(step), step.clone(), reference)
    }

    /// A wiring step whose fields have their defaults.
    pub fn without_fields(step: &'a Step) -> Self {
        let mut planned = Self::unchanged(step);
        planned.after.content = StepContent::default();
        planned.after.kind.set_feedback(None);
        planned
    }
}

impl SubtaskReference {
    /// A reference that is not in the document.
    pub fn to(task: TaskId) -> Self {
        Self {
            task,
            product: None,
            title: None,
            is_cleared: false,
            path: String::new(),
        }
    }
}

impl PlannedTask<'_> {
    /// Whether it keeps all its steps as they are.
    pub fn keeps_steps(&self) -> bool {
        self.steps.is_empty() && self.deleted.is_empty()
    }

    /// Sets the list of steps, their places, and the revisions of the task and its steps.
    pub fn complete(&mut self, context: &WriteContext) {
        let keeps_steps = self.keeps_steps();
        let existing = self.existing;
        let Some(after) = &mut self.after else {
            return;
        };
        if !keeps_steps {
            after.steps = self.steps.iter().map(|step| step.after.guid).collect();
            let stored = after.steps.iter();
            let stored = stored.map(|step| existing?.places.get(step).copied());
            let stored: Vec<Option<Place>> = stored.collect();
            (self.places, after.numbering) = arrange(&stored, after.numbering);
        }
        if let Some(tree) = existing {
            after.revise(&tree.task, context);
        }
        for step in &mut self.steps {
            if let Some(before) = step.before {
                step.after.revise(before, context);
            }
        }
    }

    /// The external id that the task gets. `field` is where the request has it.
    pub fn claimed_id(&self, field: impl Into<Cow<'static, str>>) -> Option<ClaimedId> {
        let before = self.existing.map(|tree| &tree.task);
        ClaimedId::of_task(before, self.after.as_ref()?, field)
    }

    /// Finds a step that would get the external id of another one. `field` is where the request
    /// has that of a step.
    pub fn taken_step_id(&self, field: impl Fn(StepId) -> String) -> Option<TakenId> {
        fn id(step: &Step) -> Option<&ExternalId> {
            step.content.external_id.as_ref()
        }
        let keeps =
            |step: &&PlannedStep<'_>| new_id(step.before.and_then(id), id(&step.after)).is_none();
        let (kept, changed): (Vec<_>, Vec<_>) = self.steps.iter().partition(keeps);
        let kept = kept.iter();
        let owners = kept.filter_map(|step| Some((id(&step.after)?, step.after.guid)));
        let owners: BTreeMap<&ExternalId, StepId> = owners.collect();
        changed.iter().find_map(|step| {
            let owner = owners.get(id(&step.after)?)?;
            Some(TakenId {
                owner: ResourceId::Step(*owner),
                field: field(step.after.guid).into(),
            })
        })
    }

    /// Adds the completed task and its steps to the changes where they differ from the stored ones.
    /// Returns the task after the import.
    pub fn add_to(self, changes: &mut Changes, context: &WriteContext) -> Result<Option<Task>> {
        let Self {
            existing,
            after,
            steps,
            deleted,
            places,
        } = self;
        let Some(after) = after else {
            return Ok(None);
        };
        let stored_place = |step: StepId| existing.and_then(|tree| tree.places.get(&step));
        let before = existing.map(|tree| tree.task.clone());
        changes.put_task(before, after.clone(), context)?;
        changes.deleted_steps.extend(deleted);
        for (step, place) in steps.into_iter().zip(places) {
            let PlannedStep { before, after, .. } = step;
            if before != Some(after.as_ref()) {
                changes.put_step(before.cloned(), after, place, context)?;
            } else if stored_place(after.guid) != Some(&place) {
                changes.moved.push((after.guid, place));
            }
        }
        Ok(Some(after))
    }
}
