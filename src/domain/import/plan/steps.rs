//! Steps of a document and their order.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    Missing,
    changes::StepDeletion,
    external_id::ExternalId,
    ids::{ProductId, StepId, TaskId},
    import::{AbsentFields, AbsentSteps, DocumentPath, DocumentStep, Fields, Origin, TaskTree},
    nesting::limits_of_step,
    step::{NewStep, Step},
    violation::{Path, Reason},
};

use super::{PlannedStep, Planner};

impl<'a> Planner<'a> {
    /// Plans the steps of a task: their new order, and those to delete. `product` is
    /// that of the task, if it is valid.
    pub(super) fn plan_steps(
        &mut self,
        task: TaskId,
        product: Option<ProductId>,
        documents: &'a [DocumentStep],
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
                if by_id.is_none() && document.fields.sent().is_some() {
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
            // Only a wiring step may leave its task out when absent fields are reset.
            if let Some(document) = step.document
                && document.fields.sent().is_some()
                && document.subtask_id.is_none()
                && self.context.absent_fields == AbsentFields::Reset
            {
                let field = Path::root(&document.path);
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

    /// Plans a step and the tasks that it manages. An invalid one stays as it is stored.
    fn plan_step(
        &mut self,
        task: TaskId,
        product: Option<ProductId>,
        document: &'a DocumentStep,
        before: Option<&'a Step>,
        existing: Option<&'a TaskTree>,
    ) -> Option<PlannedStep<'a>> {
        let path = &document.path;
        if existing.is_some() {
            self.ignore_difference(document.task, task, path, "task");
        }
        let Some(mut after) = self.step_after(task, document, before) else {
            self.check_documents(&document.values);
            return before.map(|step| self.keep_step(step, existing));
        };
        if let Some(fields) = document.fields.sent() {
            for field in fields.ignored(&after) {
                self.ignore(path, field);
            }
        }
        for limit in limits_of_step(&after.content, &Path::root(path)) {
            self.limit_depth(limit);
        }
        let product = product.unwrap_or(after.product);
        let values = &document.values;
        let managed = self.plan_managed_tasks(task, product, &mut after, values, existing, path);
        Some(PlannedStep {
            before,
            after,
            document: Some(document),
            origin: Origin {
                guid: document.guid,
                path: DocumentPath::Listed(path.clone()),
            },
            managed,
        })
    }

    /// The step after the import, if it is valid.
    fn step_after(
        &mut self,
        task: TaskId,
        document: &DocumentStep,
        before: Option<&Step>,
    ) -> Option<Box<Step>> {
        let new = match &document.fields {
            Fields::Missing => return None,
            Fields::Kept(step) => return Some(step.clone()),
            Fields::Sent(fields) => self.accept(fields.decode(before))?,
        };
        let after = match before {
            Some(before) => {
                let resets = self.context.absent_fields == AbsentFields::Reset;
                let (after, _) = before.edited(new, resets || !document.values.is_empty());
                after
            }
            None => Step::create(NewStep { task, ..new }, self.context.write),
        };
        Some(Box::new(after))
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
