//! Tasks of a document.

use std::mem::{replace, take};

use crate::domain::{
    ids::{ProductId, TaskId},
    import::{Document, DocumentPath, DocumentStep, DocumentTask, Fields, Origin, TaskTree},
    task::{MAX_TASK_STEPS, ManagedBy, NewTask, Task, TaskContent},
    text::Name,
    violation::{Path, Reason},
};

use super::{Planner, planned::PlannedTask};

/// The fields that a managed task takes from its value and its parent.
pub(super) struct InheritedFields {
    pub managed: ManagedBy,
    pub name: Name,
    pub product: ProductId,
}

impl InheritedFields {
    /// Sets all inherited fields except the product, which never changes.
    pub fn apply(self, task: &mut Task) {
        task.name = self.name;
        task.managed = Some(self.managed);
        task.content.external_id = None;
    }
}

impl<'a> Planner<'a> {
    /// Plans a task with its steps. `inherited` is what a managed task takes from its
    /// value.
    pub(super) fn plan_task(
        &mut self,
        document: &'a Document,
        existing: Option<&'a TaskTree>,
        inherited: Option<InheritedFields>,
    ) -> TaskId {
        let Document { path, task, steps } = document;
        let before = existing.map(|tree| &tree.task);
        let after = self.task_after(task, before, inherited);
        if let (Some(fields), Some(after)) = (task.fields.sent(), &after) {
            for field in fields.ignored(after) {
                self.ignore(task.path.as_str(), field);
            }
        }
        let origin = Origin {
            guid: task.guid,
            path: task.path.clone(),
        };
        self.plan_task_with_steps(after, origin, path, steps, existing)
    }

    /// Plans the task of a value that has no document: a task without steps, whose fields have their
    /// defaults.
    pub(super) fn plan_blank_task(
        &mut self,
        existing: Option<&'a TaskTree>,
        inherited: InheritedFields,
        value_path: &str,
    ) -> TaskId {
        let content = TaskContent::default();
        let mut task = match existing {
            Some(tree) => Task {
                content,
                ..tree.task.clone()
            },
            None => {
                let (name, product) = (inherited.name.clone(), inherited.product);
                let new = NewTask {
                    name,
                    product,
                    content,
                };
                Task::create(new, None, self.context.write)
            }
        };
        inherited.apply(&mut task);
        let origin = Origin {
            guid: None,
            path: DocumentPath::OfValue(value_path.to_owned()),
        };
        self.plan_task_with_steps(Some(task), origin, value_path, &[], existing)
    }

    /// The task after the import; `None` if it is new and invalid. An invalid stored one stays as it
    /// is.
    fn task_after(
        &mut self,
        document: &DocumentTask,
        before: Option<&Task>,
        inherited: Option<InheritedFields>,
    ) -> Option<Task> {
        let mut task = match (&document.fields, before) {
            (Fields::Missing, _) => before?.clone(),
            (Fields::Kept(kept), _) => Task::clone(kept),
            (Fields::Sent(fields), Some(before)) => {
                match self.accept(fields.decode(Some(before))) {
                    Some(new) => before.edited(new),
                    None => before.clone(),
                }
            }
            (Fields::Sent(fields), None) => {
                let new = self.accept(fields.decode(None))?;
                let product = inherited.as_ref().map_or(new.product, |it| it.product);
                Task::create(NewTask { product, ..new }, None, self.context.write)
            }
        };
        if let Some(inherited) = inherited {
            inherited.apply(&mut task);
        }
        Some(task)
    }

    fn plan_task_with_steps(
        &mut self,
        after: Option<Task>,
        origin: Origin<TaskId>,
        path: &str,
        steps: &'a [DocumentStep],
        existing: Option<&'a TaskTree>,
    ) -> TaskId {
        // An invalid task gets an id too, so that references to it are resolved.
        let id = after
            .as_ref()
            .map_or_else(|| TaskId((self.context.write.new_id)()), |task| task.guid);
        self.task_ids.extend(origin.guid.map(|sent| (sent, id)));
        let product = after.as_ref().map(|task| task.product);
        let index = self.add_task(existing, after, origin);
        let outer = take(&mut self.managed_tasks);
        self.depth += 1;
        let (steps, deleted) = self.plan_steps(id, product, steps, existing);
        self.depth -= 1;
        let managed_tasks = replace(&mut self.managed_tasks, outer);
        if managed_tasks.max(steps.len()) > MAX_TASK_STEPS {
            let description = format!("would give the task more than {MAX_TASK_STEPS} steps");
            let at = Path::root(path);
            let violations = &mut self.problems.violations;
            violations.add(&at.field("steps"), Reason::TooManyElements, description);
        }
        if let Some(planned) = self.tasks.get_mut(index) {
            planned.steps = steps;
            planned.deleted = deleted;
        }
        id
    }

    /// Plans a stored task that the document does not list: it keeps its own fields and its steps.
    pub(super) fn keep_task(&mut self, tree: &'a TaskTree, inherited: Option<InheritedFields>) {
        let mut after = tree.task.clone();
        if let Some(inherited) = inherited {
            inherited.apply(&mut after);
        }
        let index = self.add_task(Some(tree), Some(after), Origin::unlisted());
        let steps = tree
            .steps
            .iter()
            .map(|step| self.keep_step(step, Some(tree)));
        let steps = steps.collect();
        if let Some(planned) = self.tasks.get_mut(index) {
            planned.steps = steps;
        }
    }

    /// Adds a task to the plan, without its steps, and returns its index.
    fn add_task(
        &mut self,
        existing: Option<&'a TaskTree>,
        after: Option<Task>,
        origin: Origin<TaskId>,
    ) -> usize {
        self.tasks.push(PlannedTask {
            existing,
            after,
            origin,
            steps: Vec::new(),
            deleted: Vec::new(),
            places: Vec::new(),
        });
        self.tasks.len() - 1
    }
}
