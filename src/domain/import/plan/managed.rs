//! Managed tasks of a document: one for each value of a linked question.

use crate::domain::{
    feedback::Feedback,
    ids::{ProductId, TaskId},
    import::{AbsentFields, Document, DocumentValue, TaskTree},
    link::linked_tasks,
    nesting::DepthLimit,
    step::Step,
    task::{MAX_TASK_STEPS, ManagedBy, Task},
    text::Name,
    violation::Path,
};

use super::{ManagedTaskIds, Planner};

/// The fields that a managed task takes from its value and its parent.
pub(super) struct InheritedFields {
    pub managed: ManagedBy,
    pub name: Name,
    pub product: ProductId,
}

impl InheritedFields {
    /// Sets the fields of an existing task, whose product never changes.
    pub fn apply(self, task: &mut Task) {
        let Self {
            managed,
            name,
            product: _,
        } = self;
        task.name = name;
        task.managed = Some(managed);
    }
}

impl<'a> Planner<'a> {
    /// Plans the tasks that a step of `parent` manages, and returns their ids in value
    /// order.
    pub(super) fn plan_managed_tasks(
        &mut self,
        parent: TaskId,
        product: ProductId,
        step: &mut Step,
        values: &[DocumentValue],
        existing: Option<&'a TaskTree>,
        path: &str,
    ) -> Vec<ManagedTaskIds> {
        if let Some(feedback) = step.kind.observation_feedback_mut()
            && feedback.linked
        {
            return self.plan_values(parent, product, feedback, values, existing, path);
        }
        if values.iter().any(|value| value.document.is_some()) {
            self.ignore(path, "feedback_config.values.task_json");
        }
        Vec::new()
    }

    fn plan_values(
        &mut self,
        parent: TaskId,
        product: ProductId,
        feedback: &mut Feedback,
        values: &[DocumentValue],
        existing: Option<&'a TaskTree>,
        path: &str,
    ) -> Vec<ManagedTaskIds> {
        if values.is_empty() {
            // The update keeps the question, and so its managed tasks.
            let kept = linked_tasks(feedback).map(|task| ManagedTaskIds {
                stored: task,
                in_document: vec![task],
                value_path: path.to_owned(),
            });
            return kept.collect();
        }
        let mut values = values.iter();
        let mut managed = Vec::with_capacity(feedback.values.len());
        for (index, value) in feedback.values.iter_mut().enumerate() {
            let value_in_document = values.next();
            self.managed_tasks += 1;
            if self.managed_tasks > MAX_TASK_STEPS {
                self.check_documents(value_in_document);
                continue;
            }
            let document = value_in_document.and_then(|value| value.document.as_deref());
            let mut ids = value_in_document.map_or_else(Vec::new, |value| value.ids.clone());
            let (Ok(name), Ok(idx)) = (
                Name::parse(value.value.as_str().to_owned()),
                i32::try_from(index),
            ) else {
                continue;
            };
            let stored = value
                .link
                .and_then(|task| existing.and_then(|tree| tree.managed.get(&task)));
            let value_path = format!("{path}.feedback_config[0].values[{index}]");
            if stored.is_none() {
                let at = document.map_or(&value_path, |document| &document.path);
                self.limit_depth(DepthLimit::of_managing_task(&Path::root(at)));
            }
            let inherited = InheritedFields {
                managed: ManagedBy { parent, idx },
                name,
                product,
            };
            let task = self.plan_managed_task(document, stored, inherited, value_path.clone());
            value.link = Some(task);
            self.task_ids.extend(ids.iter().map(|sent| (*sent, task)));
            ids.push(task);
            managed.push(ManagedTaskIds {
                stored: task,
                in_document: ids,
                value_path,
            });
        }
        managed
    }

    fn plan_managed_task(
        &mut self,
        document: Option<&Document>,
        stored: Option<&'a TaskTree>,
        inherited: InheritedFields,
        value_path: String,
    ) -> TaskId {
        if let (None, Some(tree), AbsentFields::Keep) = (document, stored, self.absent_fields) {
            let mut after = tree.task.clone();
            inherited.apply(&mut after);
            self.put_task(stored, Some(after));
            return tree.task.guid;
        }
        let without_document;
        let document = match document {
            Some(document) => document,
            None => {
                without_document = Document::for_value(value_path);
                &without_document
            }
        };
        self.plan_task(document, stored, Some(inherited))
    }

    /// Adds the violations of documents that are not imported because their step is
    /// invalid or their parent would get too many steps.
    pub(super) fn check_documents<'d>(
        &mut self,
        values: impl IntoIterator<Item = &'d DocumentValue>,
    ) {
        let documents = values
            .into_iter()
            .filter_map(|value| value.document.as_ref());
        for document in documents {
            document.add_violations(self.reimport, &mut self.violations);
        }
    }
}
