//! Planned tasks and steps.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::domain::{
    Result,
    changes::{Changes, StepDeletion},
    decide::WriteContext,
    external_id::{ClaimedId, ExternalId, TakenId, new_id},
    ids::{StepId, TaskId},
    import::{DocumentPath, DocumentStep, Origin, Origins, TaskTree},
    order::{Place, arrange},
    row_version::RowVersion,
    step::{Step, StepContent},
    task::Task,
    translation_work::ResourceId,
    violation::Path,
};

/// A planned task with all its steps.
pub(super) struct PlannedTask<'a> {
    /// The task as it is stored; `None` if it is created.
    pub existing: Option<&'a TaskTree>,
    /// The task after the import; `None` if the request is invalid.
    pub after: Option<Task>,
    pub origin: Origin<TaskId>,
    pub steps: Vec<PlannedStep<'a>>,
    pub deleted: Vec<StepDeletion>,
    /// The places of its steps, once the task is completed.
    pub places: Vec<Place>,
}

pub(super) struct PlannedStep<'a> {
    /// The step as it is stored; `None` if it is created.
    pub before: Option<&'a Step>,
    /// The step after the import. A subtask step refers to the document's id of its task until
    /// references are resolved.
    pub after: Box<Step>,
    pub document: Option<&'a DocumentStep>,
    pub origin: Origin<StepId>,
    pub managed: Vec<ManagedTask>,
}

/// A task that a value of a planned step manages.
pub(super) struct ManagedTask {
    pub id: TaskId,
    /// The ids that the document has for it.
    pub in_document: Vec<TaskId>,
    /// The path of the value that manages it, or of its step if the value is not in the document.
    pub value_path: String,
}

impl<'a> PlannedStep<'a> {
    /// A step that the document does not list.
    pub fn unlisted(before: Option<&'a Step>, after: impl Into<Box<Step>>) -> Self {
        Self {
            before,
            after: after.into(),
            document: None,
            origin: Origin::unlisted(),
            managed: Vec::new(),
        }
    }

    /// A step that stays as it is.
    pub fn unchanged(step: &'a Step) -> Self {
        Self::unlisted(Some(step), step.clone())
    }

    /// A wiring step whose fields have their defaults.
    pub fn without_fields(step: &'a Step) -> Self {
        let mut planned = Self::unchanged(step);
        planned.after.content = StepContent::default();
        planned.after.kind.set_feedback(None);
        planned
    }
}

impl PlannedTask<'_> {
    /// Sets the list of steps, their places, and the versions of the task and its steps.
    pub fn complete(&mut self, context: &WriteContext) {
        let Some(after) = &mut self.after else {
            return;
        };
        after.steps = self.steps.iter().map(|step| step.after.guid).collect();
        let place = |step: &StepId| self.existing?.places.get(step).copied();
        let stored: Vec<Option<Place>> = after.steps.iter().map(place).collect();
        (self.places, after.numbering) = arrange(&stored, after.numbering);
        if let Some(tree) = self.existing {
            after.revise(&tree.task, context);
        }
        for step in &mut self.steps {
            if let Some(before) = step.before {
                step.after.revise(before, context);
            }
        }
    }

    /// The versions of the completed task and its steps.
    pub fn row_versions(&self) -> impl Iterator<Item = (Uuid, &RowVersion)> {
        let task = self.after.iter();
        let task = task.map(|task| (task.guid.0, &task.row_version));
        let steps = self.steps.iter().map(|step| &step.after);
        task.chain(steps.map(|step| (step.guid.0, &step.row_version)))
    }

    /// The tree of the completed task. Takes the trees of the tasks that it manages from `managed`.
    pub fn tree(
        &self,
        managed: &mut BTreeMap<TaskId, BTreeMap<TaskId, TaskTree>>,
    ) -> Option<TaskTree> {
        let task = self.after.clone()?;
        let steps = self.steps.iter().map(|step| Step::clone(&step.after));
        Some(TaskTree {
            steps: steps.collect(),
            places: BTreeMap::new(),
            managed: managed.remove(&task.guid).unwrap_or_default(),
            task,
        })
    }

    /// Finds a step that would get the external id of another one.
    pub fn taken_step_id(&self) -> Option<TakenId> {
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
                field: external_id_at(&step.origin.path).into(),
            })
        })
    }

    /// Adds the completed task and its steps to the changes where they differ from the stored ones.
    /// Returns the task after the import.
    pub fn add_to(
        self,
        changes: &mut Changes,
        origins: &mut Origins,
        context: &WriteContext,
    ) -> Result<Option<Task>> {
        let Some(after) = self.after else {
            return Ok(None);
        };
        let before = self.existing.map(|tree| tree.task.clone());
        let claimed = external_id_at(&self.origin.path);
        let claimed = ClaimedId::of_task(before.as_ref(), &after, claimed);
        changes.claimed_ids.extend(claimed);
        changes.put_task(before, after.clone(), context)?;
        origins.tasks.insert(after.guid, self.origin);
        changes.deleted_steps.extend(self.deleted);
        let stored_place = |step: StepId| self.existing?.places.get(&step);
        for (step, place) in self.steps.into_iter().zip(self.places) {
            let guid = step.after.guid;
            if step.before != Some(step.after.as_ref()) {
                changes.put_step(step.before.cloned(), step.after, place, context)?;
            } else if stored_place(guid) != Some(&place) {
                changes.moved.push((guid, place));
            }
            origins.steps.insert(guid, step.origin);
        }
        Ok(Some(after))
    }
}

/// Where the request has the external id of a task or step; if it does not list that, the document.
fn external_id_at(path: &DocumentPath) -> String {
    match path {
        DocumentPath::Unlisted => "document".to_owned(),
        path => Path::root(path.as_str()).field("external_id").to_string(),
    }
}
