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
            let by_id = document.guid.and_then(|guid| by_id.get(&guid));
            let matched = document.matched_id.as_ref();
            let matched = matched.and_then(|id| by_external_id.get(id));
            if let Some(guid) = document.guid.filter(|_| existing.is_some()) {
                let path = Path::root(&document.path);
                let field = path.field("guid");
                if by_id.is_none() && document.kept.is_none() {
                    let field = field.to_string().into();
                    self.problems
                        .unknown_steps
                        .push(Missing { id: guid, field });
                    continue;
                }
                if !listed.insert(guid) {
                    let description = "is the id of another step of the list";
                    let violations = &mut self.problems.violations;
                    violations.add(&field, Reason::FieldInvalid, description);
                }
            }
            let before = matched.or(by_id).copied();
            steps.extend(self.plan_step(task, product, document, before, existing));
        }
        let mut steps = self.place_wiring_steps(steps, stored);
        let planned: BTreeSet<StepId> = steps
            .iter()
            .filter_map(|step| Some(step.before?.guid))
            .collect();
        let absent = stored.iter().filter(|step| !planned.contains(&step.guid));
        let absent: Vec<&Step> = absent.collect();
        let mut deleted = Vec::new();
        let mut refused = Vec::new();
        match self.context.absent_steps {
            AbsentSteps::Refuse => refused = absent,
            AbsentSteps::Delete => deleted = absent.into_iter().map(StepDeletion::of).collect(),
            AbsentSteps::Keep => {
                let kept = absent
                    .into_iter()
                    .map(|step| self.keep_step(step, existing));
                steps.extend(kept);
            }
        }
        self.unlink_tasks(&mut steps, &refused, existing);
        let refused = refused.iter().map(|step| step.guid);
        self.problems.absent_steps.extend(refused);
        (steps, deleted)
    }

    /// Unlinks the tasks that no step manages any longer, and their wiring steps.
    fn unlink_tasks(
        &mut self,
        steps: &mut [PlannedStep<'a>],
        refused: &[&Step],
        existing: Option<&'a TaskTree>,
    ) {
        let listed = steps.iter().map(|step| step.after.as_ref());
        let all = listed.chain(refused.iter().copied());
        let managed: BTreeSet<TaskId> = all.flat_map(Step::managed_tasks).collect();
        for step in steps {
            if step.after.link.is_none_or(|task| managed.contains(&task)) {
                continue;
            }
            step.after.link = None;
            if let Some(reference) = &step.reference
                && reference.is_cleared
            {
                let field = Path::root(&reference.path);
                let field = field.field("subtask_id");
                let violations = &mut self.problems.violations;
                violations.add(&field, Reason::FieldRequired, "is required");
            }
        }
        let stored = existing.into_iter().flat_map(|tree| &tree.managed);
        let unlinked = stored.filter(|(task, _)| !managed.contains(task));
        self.unlinked.extend(unlinked.map(|(_, tree)| tree));
    }

    /// Plans a stored step that the document does not list, and the tasks that it manages.
    pub(super) fn keep_step(
        &mut self,
        step: &'a Step,
        existing: Option<&'a TaskTree>,
    ) -> PlannedStep<'a> {
        self.keep_managed_tasks(step, existing);
        PlannedStep::unchanged(step)
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
        let DocumentStep { path, patch, .. } = document;
        if existing.is_some() {
            self.ignore_difference(document.task, task, path, "task");
        }
        let planned = match (&document.kept, before) {
            (Some(kept), _) => Some(restored_step(kept, before, path)),
            (None, Some(before)) => Some(self.changed_step(before, document)),
            (None, None) => self.new_step(task, document),
        };
        let has_question = document.kept.is_some() || matches!(patch.feedback, Edit::Set(_));
        let values: &[DocumentValue] = if planned.is_some() && has_question {
            &document.values
        } else {
            self.check_documents(&document.values);
            &[]
        };
        let mut step = planned?;
        step.document_link = document.link;
        for limit in limits_of_step(&step.after.content, &Path::root(path)) {
            self.limit_depth(limit);
        }
        let product = product.unwrap_or(step.after.product);
        step.managed =
            self.plan_managed_tasks(task, product, &mut step.after, values, existing, path);
        step.origin = Origin {
            guid: document.guid,
            path: DocumentPath::Listed(path.clone()),
        };
        Some(step)
    }

    fn changed_step(&mut self, before: &'a Step, document: &DocumentStep) -> PlannedStep<'a> {
        let path = &document.path;
        let mut patch = StepPatch::clone(&document.patch);
        let step_type = before.kind.step_type();
        self.ignore_difference(patch.step_type.sent(), Some(&step_type), path, "type");
        let sent_product = patch.product.sent();
        self.ignore_difference(sent_product, Some(&before.product), path, "product_id");
        // References are resolved when every task of the document is known.
        let at = Path::root(path);
        let violations = &mut self.problems.violations;
        let reference = before.kind.subtask().map(|subtask| {
            let id = std::mem::take(&mut patch.subtask_id).honored(violations);
            let is_cleared = matches!(id, Edit::Clear);
            let task = match id {
                // A wiring step refers to its managed task, whatever was sent.
                Edit::Clear if before.link.is_some() => None,
                id => id.required(true, &at.field("subtask_id"), violations),
            };
            let product = std::mem::take(&mut patch.subtask_pid).honored(violations);
            SubtaskReference {
                task: task.unwrap_or(subtask.task),
                // Without one it follows the task.
                product: product.value(),
                title: document.title.clone(),
                is_cleared,
                path: path.clone(),
            }
        });
        let (step, merged) = before.merge_at(patch, &at, violations);
        self.ignore_of_type(reference.as_ref(), merged.ignored, path);
        PlannedStep::new(Some(before), step, reference)
    }

    fn new_step(&mut self, task: TaskId, document: &DocumentStep) -> Option<PlannedStep<'a>> {
        let (new, ignored) = document.to_create(task, &mut self.problems.violations);
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
        let after = Step::create(new, self.context.write);
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

fn restored_step<'a>(kept: &Step, before: Option<&'a Step>, path: &str) -> PlannedStep<'a> {
    let reference = kept.kind.subtask().map(|subtask| SubtaskReference {
        path: path.to_owned(),
        ..SubtaskReference::to(subtask.task)
    });
    PlannedStep::new(before, kept.clone(), reference)
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
