//! Steps of a document and their order.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    Missing,
    changes::StepDeletion,
    external_id::ExternalId,
    ids::{ProductId, StepId, TaskId},
    import::{AbsentSteps, DocumentPath, DocumentStep, DocumentValue, Origin, TaskTree},
    nesting::limits_of_step,
    patch::Edit,
    step::{Step, StepPatch},
    violation::{Path, Reason},
};

use super::{PlannedStep, Planner, SubtaskReference};

impl<'a> Planner<'a> {
    /// Plans the steps of a task: their new order, and those to delete. `product` is
    /// that of the task, if it is valid.
    pub(super) fn plan_steps(
        &mut self,
        task: TaskId,
        product: Option<ProductId>,
        documents: &[DocumentStep],
        existing: Option<&'a TaskTree>,
    ) -> (Vec<PlannedStep<'a>>, Vec<StepDeletion>) {
        let stored: &'a [Step] = existing.map_or(&[], |tree| &tree.steps);
        let by_id: BTreeMap<StepId, &Step> = stored.iter().map(|step| (step.guid, step)).collect();
        let by_external_id = by_external_id(stored, documents);
        let mut listed = BTreeSet::new();
        let mut steps = Vec::with_capacity(documents.len());
        for document in documents {
            let mut before = None;
            if existing.is_some()
                && let Some(guid) = document.guid
            {
                before = by_id.get(&guid).copied();
                if before.is_none() {
                    let field = Path::root(&document.path).field("guid").to_string();
                    self.unknown_steps.push(Missing {
                        id: guid,
                        field: field.into(),
                    });
                    continue;
                }
                if !listed.insert(guid) {
                    self.violations.add(
                        &Path::root(&document.path).field("guid"),
                        Reason::FieldInvalid,
                        "is the id of another step of the list",
                    );
                }
            }
            if let Some(id) = &document.matched_id {
                before = by_external_id.get(id).copied();
            }
            steps.extend(self.plan_step(task, product, document, before, existing));
        }
        let mut unlinked: BTreeSet<TaskId> = steps
            .iter_mut()
            .flat_map(|step| std::mem::take(&mut step.unlinked))
            .collect();
        let mut steps = self.place_wiring_steps(steps, stored);
        let deleted = self.plan_absent_steps(stored, &mut steps, &mut unlinked);
        for step in &mut steps {
            if step.after.link.is_none_or(|task| !unlinked.contains(&task)) {
                continue;
            }
            step.after.link = None;
            if let Some(reference) = &step.reference
                && reference.is_cleared
            {
                let path = Path::root(&reference.path);
                self.violations.add(
                    &path.field("subtask_id"),
                    Reason::FieldRequired,
                    "is required",
                );
            }
        }
        for tree in unlinked
            .iter()
            .filter_map(|task| existing?.managed.get(task))
        {
            self.put_task(Some(tree), Some(tree.task.clone().unmanaged()));
        }
        (steps, deleted)
    }

    /// Refuses, keeps or deletes the stored steps that are not among the planned ones.
    fn plan_absent_steps(
        &mut self,
        stored: &'a [Step],
        steps: &mut Vec<PlannedStep<'a>>,
        unlinked: &mut BTreeSet<TaskId>,
    ) -> Vec<StepDeletion> {
        let planned: BTreeSet<StepId> = steps
            .iter()
            .filter_map(|step| Some(step.before.as_ref()?.guid))
            .collect();
        let absent = stored.iter().filter(|step| !planned.contains(&step.guid));
        let mut deleted = Vec::new();
        match self.absent_steps {
            AbsentSteps::Refuse => self.refused_steps.extend(absent.map(|step| step.guid)),
            AbsentSteps::Keep => steps.extend(absent.map(PlannedStep::unchanged)),
            AbsentSteps::Delete => {
                for step in absent {
                    unlinked.extend(step.managed_tasks());
                    deleted.push(StepDeletion::of(step));
                }
            }
        }
        deleted
    }

    /// Plans a step and the tasks that it manages.
    fn plan_step(
        &mut self,
        task: TaskId,
        product: Option<ProductId>,
        document: &DocumentStep,
        before: Option<&'a Step>,
        existing: Option<&'a TaskTree>,
    ) -> Option<PlannedStep<'a>> {
        let DocumentStep {
            path,
            guid,
            matched_id: _,
            task: sent_task,
            link,
            title,
            patch,
            values,
        } = document;
        if existing.is_some() {
            self.ignore_difference(*sent_task, task, path, "task");
        }
        let planned = match before {
            Some(before) => {
                let step_type = before.kind.step_type();
                self.ignore_difference(patch.step_type.sent(), Some(&step_type), path, "type");
                let sent_product = patch.product.sent();
                self.ignore_difference(sent_product, Some(&before.product), path, "product_id");
                let patch = StepPatch::clone(patch);
                Some(self.changed_step(before, patch, title.as_ref(), path))
            }
            None => self.new_step(task, document),
        };
        let has_question = planned.is_some() && matches!(patch.feedback, Edit::Set(_));
        let values: &[DocumentValue] = if has_question { values } else { &[] };
        if !has_question {
            self.check_documents(&document.values);
        }
        let mut step = planned?;
        step.document_link = *link;
        for limit in limits_of_step(&step.after.content, &Path::root(path)) {
            self.limit_depth(limit);
        }
        let product = product.unwrap_or(step.after.product);
        step.managed =
            self.plan_managed_tasks(task, product, &mut step.after, values, existing, path);
        let origin = Origin {
            guid: *guid,
            path: DocumentPath::Listed(path.clone()),
        };
        self.origins.steps.insert(step.after.guid, origin);
        Some(step)
    }

    fn changed_step(
        &mut self,
        before: &'a Step,
        mut patch: StepPatch,
        title: Option<&String>,
        path: &str,
    ) -> PlannedStep<'a> {
        // References are resolved when every task of the document is known.
        let at = Path::root(path);
        let reference = before.kind.subtask().map(|subtask| {
            let id = std::mem::take(&mut patch.subtask_id).honored(&mut self.violations);
            let is_cleared = matches!(id, Edit::Clear);
            let task = match id {
                // A wiring step refers to its managed task, whatever was sent.
                Edit::Clear if before.link.is_some() => None,
                id => id.required(true, &at.field("subtask_id"), &mut self.violations),
            };
            let product = std::mem::take(&mut patch.subtask_pid).honored(&mut self.violations);
            SubtaskReference {
                task: task.unwrap_or(subtask.task),
                // Without one it follows the task.
                product: product.value(),
                title: title.cloned(),
                is_cleared,
                path: path.to_owned(),
            }
        });
        let (step, merged) = before.merge_at(patch, &at, &mut self.violations);
        self.ignore_of_type(reference.as_ref(), merged.ignored, path);
        let mut step = PlannedStep::new(Some(before), step, reference);
        step.unlinked = merged.links.unlinked;
        step
    }

    fn new_step(&mut self, task: TaskId, document: &DocumentStep) -> Option<PlannedStep<'a>> {
        let (new, ignored) = document.to_create(task, &mut self.violations);
        let new = new?;
        let reference = new.kind.subtask().map(|subtask| SubtaskReference {
            task: subtask.task,
            product: Some(subtask.product),
            title: document.title.clone(),
            is_cleared: false,
            path: document.path.clone(),
        });
        // The title of a subtask step is set when references are resolved.
        self.ignore_of_type(reference.as_ref(), ignored, &document.path);
        let after = Step::create(new, self.write);
        Some(PlannedStep::new(None, after, reference))
    }

    /// Lists the fields that the type of a step does not have. A subtask step ignores fields only
    /// if they differ from the task that it refers to, which is known when references are resolved.
    fn ignore_of_type(
        &mut self,
        reference: Option<&SubtaskReference>,
        ignored: Vec<&'static str>,
        path: &str,
    ) {
        if reference.is_none() {
            for field in ignored {
                self.ignore(path, field);
            }
        }
    }
}

/// The stored steps with external ids that the documents do not list by their ids.
fn by_external_id<'a>(
    stored: &'a [Step],
    documents: &[DocumentStep],
) -> BTreeMap<&'a ExternalId, &'a Step> {
    let listed: BTreeSet<StepId> = documents.iter().filter_map(|step| step.guid).collect();
    let unlisted = stored.iter().filter(|step| !listed.contains(&step.guid));
    let with_id = unlisted.filter_map(|step| Some((step.content.external_id.as_ref()?, step)));
    with_id.collect()
}
