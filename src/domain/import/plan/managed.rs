//! Managed tasks of a document: one for each value of a linked question.

use crate::domain::{
    feedback::Feedback,
    ids::{ProductId, TaskId},
    import::{AbsentFields, Document, DocumentValue, TaskTree},
    link::linked_tasks,
    nesting::DepthLimit,
    step::Step,
    task::{MAX_TASK_STEPS, ManagedBy},
    text::Name,
    violation::Path,
};

use super::{ManagedTask, Planner, tasks::InheritedFields};

impl<'a> Planner<'a> {
    /// Plans the tasks that a step of `parent` manages, and returns them in value order.
    pub(super) fn plan_managed_tasks(
        &mut self,
        parent: TaskId,
        product: ProductId,
        step: &mut Step,
        values: &'a [DocumentValue],
        existing: Option<&'a TaskTree>,
        path: &str,
    ) -> Vec<ManagedTask> {
        match step.kind.observation_feedback_mut() {
            // The update keeps the question, and so its managed tasks.
            Some(feedback) if feedback.linked && values.is_empty() => {
                let kept = linked_tasks(feedback).map(|task| ManagedTask {
                    id: task,
                    in_document: vec![task],
                    value_path: path.to_owned(),
                });
                let kept = kept.collect();
                self.keep_managed_tasks(step, existing);
                kept
            }
            Some(feedback) if feedback.linked => {
                self.plan_values(parent, product, feedback, values, existing, path)
            }
            _ => Vec::new(),
        }
    }

    /// Plans the tasks that a step manages as they are stored.
    pub(super) fn keep_managed_tasks(&mut self, step: &Step, existing: Option<&'a TaskTree>) {
        let trees = step.managed_tasks().into_iter();
        for tree in trees.filter_map(|task| existing?.managed.get(&task)) {
            self.keep_task(tree, None);
        }
    }

    fn plan_values(
        &mut self,
        parent: TaskId,
        product: ProductId,
        feedback: &mut Feedback,
        values: &'a [DocumentValue],
        existing: Option<&'a TaskTree>,
        path: &str,
    ) -> Vec<ManagedTask> {
        let mut values = values.iter();
        let mut managed = Vec::with_capacity(feedback.values.len());
        for (index, value) in feedback.values.iter_mut().enumerate() {
            let in_document = values.next();
            self.managed_tasks += 1;
            if self.managed_tasks > MAX_TASK_STEPS {
                self.check_documents(in_document);
                continue;
            }
            let (Ok(name), Ok(idx)) = (
                Name::parse(value.value.as_str().to_owned()),
                i32::try_from(index),
            ) else {
                continue;
            };
            let document = in_document.and_then(|value| value.document.as_deref());
            let value_path = format!("{path}.feedback_config[0].values[{index}]");
            let stored = value.link.and_then(|task| existing?.managed.get(&task));
            if stored.is_none() {
                let at = document.map_or(&value_path, |document| &document.path);
                self.limit_depth(DepthLimit::of_managing_task(&Path::root(at)));
            }
            // A restore manages tasks again that were unlinked.
            let unlinked = value.link.and_then(|task| self.context.unlinked.get(&task));
            let inherited = InheritedFields {
                managed: ManagedBy { parent, idx },
                name,
                product,
            };
            let stored = stored.or(unlinked.copied());
            let id = self.plan_managed_task(document, stored, inherited, &value_path);
            value.link = Some(id);
            let mut ids = in_document.map_or_else(Vec::new, |value| value.ids.clone());
            self.task_ids.extend(ids.iter().map(|sent| (*sent, id)));
            ids.push(id);
            managed.push(ManagedTask {
                id,
                in_document: ids,
                value_path,
            });
        }
        managed
    }

    fn plan_managed_task(
        &mut self,
        document: Option<&'a Document>,
        stored: Option<&'a TaskTree>,
        inherited: InheritedFields,
        value_path: &str,
    ) -> TaskId {
        match (document, stored) {
            (None, Some(tree)) if self.context.absent_fields == AbsentFields::Keep => {
                self.keep_task(tree, Some(inherited));
                tree.task.guid
            }
            (Some(document), _) => self.plan_task(document, stored, Some(inherited)),
            (None, _) => self.plan_blank_task(stored, inherited, value_path),
        }
    }

    /// Adds the violations of documents that are not imported because their step is
    /// invalid or their parent would get too many steps.
    pub(super) fn check_documents<'d>(
        &mut self,
        values: impl IntoIterator<Item = &'d DocumentValue>,
    ) {
        let reimport = self.context.existing.is_some();
        let values = values.into_iter();
        for document in values.filter_map(|value| value.document.as_ref()) {
            document.add_violations(reimport, &mut self.problems.violations);
        }
    }
}
