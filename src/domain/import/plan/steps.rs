//! Steps of a document and their order.

use std::collections::BTreeSet;

use crate::domain::{
    Error, Missing,
    ids::{StepId, TaskId},
    import::{AbsentFields, AbsentSteps, DocumentStep, Origin, StepFields},
    nesting::step_depth_limits,
    step::{NewStep, Step},
    violation::{Path, Reason},
};

use super::{Parent, Planner, wiring::ManagedTask};

/// A step after the import. A subtask step refers to the document's id of its task until references
/// are resolved.
pub(super) struct PlannedStep<'a> {
    pub step: Step,
    /// `None` if the document does not list it.
    pub document: Option<&'a DocumentStep>,
    /// The tasks that it manages, in value order.
    pub managed: Vec<ManagedTask>,
}

impl PlannedStep<'_> {
    pub fn unlisted(step: Step) -> Self {
        Self {
            step,
            document: None,
            managed: Vec::new(),
        }
    }
}

impl Parent<'_> {
    /// Keeps the tasks that a step manages as they are stored.
    pub fn keep_managed_tasks(&mut self, step: &Step) {
        let managed = self.existing.map(|tree| &tree.managed);
        for task in step.managed_tasks() {
            if let Some(tree) = managed.and_then(|managed| managed.get(&task)) {
                self.managed.insert(task, tree.clone());
            }
        }
    }
}

impl<'a> Planner<'a> {
    /// Plans the steps of a task in their new order.
    pub(super) fn steps(
        &mut self,
        parent: &mut Parent<'a>,
        documents: &'a [DocumentStep],
    ) -> Vec<Step> {
        let stored: &'a [Step] = parent.existing.map_or(&[], |tree| &tree.steps);
        let mut planned = Vec::with_capacity(documents.len());
        for document in documents {
            match document.guid {
                Some(id)
                    if parent.existing.is_some()
                        && document.stored.is_none()
                        && self.restored.is_none() =>
                {
                    let field = Path::root(&document.path).field("guid").to_string();
                    let unknown = || Error::not_found(Missing::StepOfTask(id), field);
                    self.problems.unknown_step.get_or_insert_with(unknown);
                }
                _ => planned.extend(self.step(parent, document)),
            }
        }
        if self.restored.is_some() {
            for PlannedStep { step, document, .. } in &mut planned {
                let link = document.and_then(|document| document.link);
                step.link = link.map(|task| self.new_id(task));
            }
        }
        let mut planned = self.place_wiring_steps(parent, planned);
        let ids: BTreeSet<StepId> = planned.iter().map(|planned| planned.step.guid).collect();
        let absent = stored.iter().filter(|step| !ids.contains(&step.guid));
        let mut refused: Vec<&Step> = Vec::new();
        match self.absent.steps {
            AbsentSteps::Refuse => refused = absent.collect(),
            AbsentSteps::Delete => {}
            AbsentSteps::Keep => {
                for step in absent {
                    parent.keep_managed_tasks(step);
                    planned.push(PlannedStep::unlisted(step.clone()));
                }
            }
        }
        self.unlink_steps(&mut planned, &refused);
        let refused = refused.iter().map(|step| step.guid);
        self.problems.absent_steps.extend(refused);
        let mut steps = Vec::with_capacity(planned.len());
        for PlannedStep { step, document, .. } in planned {
            if let Some(document) = document {
                self.listed.insert(step.guid, document);
                let origin = Origin {
                    guid: document.guid,
                    path: document.path.clone(),
                    is_added_for_value: false,
                };
                self.origins.steps.insert(step.guid, origin);
            }
            steps.push(step);
        }
        steps
    }

    /// Unlinks wiring steps whose tasks no step manages any longer.
    fn unlink_steps(&mut self, planned: &mut [PlannedStep<'a>], refused: &[&Step]) {
        let steps = planned.iter().map(|planned| &planned.step);
        let steps = steps.chain(refused.iter().copied());
        let managed: BTreeSet<TaskId> = steps.flat_map(Step::managed_tasks).collect();
        for PlannedStep { step, document, .. } in planned {
            if step.link.is_none_or(|task| managed.contains(&task)) {
                continue;
            }
            step.link = None;
            // Only a wiring step may leave its task out when absent fields are reset. An invalid
            // observation may still manage the task.
            if let Some(document) = document
                && !document.subtask.names_task()
                && self.absent.fields == AbsentFields::Reset
                && self.problems.violations.is_empty()
            {
                let at = Path::root(&document.path);
                let at = at.field("subtask_id");
                self.problems
                    .violate(&at, Reason::FieldRequired, "is required");
            }
        }
    }

    /// Plans a step and the tasks that it manages.
    fn step(
        &mut self,
        parent: &mut Parent<'a>,
        document: &'a DocumentStep,
    ) -> Option<PlannedStep<'a>> {
        let former = document.guid.filter(|_| self.restored.is_some());
        let stored = document.stored.or(former);
        let before = stored.and_then(|id| self.stored.steps.get(&id).copied());
        let before = before.filter(|before| before.task == parent.id);
        let mut step = match &document.fields {
            StepFields::Refused => return None,
            // The decoder has found it among the steps of this task.
            StepFields::Kept => before?.clone(),
            StepFields::New(new) => self.written_step(parent, document, new, before),
        };
        let managed = self.managed_tasks(parent, &mut step, document);
        Some(PlannedStep {
            step,
            document: Some(document),
            managed,
        })
    }

    /// A step that is created or edited.
    fn written_step(
        &mut self,
        parent: &Parent<'a>,
        document: &DocumentStep,
        new: &NewStep,
        before: Option<&Step>,
    ) -> Step {
        let path = &document.path;
        let mut step = match before {
            Some(before) => {
                let (mut step, _) = before.edited(new.clone(), document.edits_question);
                let translations = &mut step.content.translations;
                let stored = &before.content.translations;
                self.keep_locked(stored, translations, path);
                step
            }
            None => {
                let task = parent.id;
                let new = new.clone();
                Step::create(NewStep { task, ..new }, self.context.write)
            }
        };
        if let Some(restored) = &mut self.restored {
            let kept = (document, new);
            restored.set_step(kept, parent.target, before, &mut step, self.context.write);
        }
        for limit in step_depth_limits(&step.content, &Path::root(path)) {
            self.limit_depth(limit);
        }
        step
    }
}
