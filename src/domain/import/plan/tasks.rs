//! Tasks of a document.

use std::mem::{replace, take};

use crate::domain::{
    ids::{ProductId, TaskId},
    import::{Document, DocumentTask, Origin, TaskTree},
    patch::Edit,
    task::{MAX_TASK_STEPS, ManagedBy, NewTask, Task},
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
    /// Sets the fields of an existing task, whose product never changes.
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
        document: &Document,
        existing: Option<&'a TaskTree>,
        inherited: Option<InheritedFields>,
    ) -> TaskId {
        let Document { path, task, steps } = document;
        let task_path = task.path.as_str();
        let after = match (&task.kept, existing) {
            (Some(kept), _) => {
                let mut task = Task::clone(kept);
                if let Some(inherited) = inherited {
                    inherited.apply(&mut task);
                }
                Some(task)
            }
            (None, Some(tree)) => Some(self.changed_task(&tree.task, task, inherited, task_path)),
            (None, None) => self.new_task(task, inherited, task_path),
        };
        // An invalid task gets an id too, so that references to it are resolved.
        let id = after
            .as_ref()
            .map_or_else(|| TaskId((self.context.write.new_id)()), |task| task.guid);
        self.task_ids.extend(task.guid.map(|sent| (sent, id)));
        let product = after.as_ref().map(|task| task.product);
        let origin = Origin {
            guid: task.guid,
            path: task.path.clone(),
        };
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

    fn new_task(
        &mut self,
        document: &DocumentTask,
        inherited: Option<InheritedFields>,
        path: &str,
    ) -> Option<Task> {
        let mut patch = document.patch.clone();
        if let Some(inherited) = &inherited {
            self.ignore_inherited(document, inherited, path);
            patch.external_id = Edit::Keep;
            patch.name = Edit::Set(Ok(inherited.name.clone()));
            // An invalid product is refused all the same.
            take(&mut patch.product).honored(&mut self.problems.violations);
            patch.product = Edit::Set(Ok(inherited.product));
        }
        let violations = &mut self.problems.violations;
        let new = NewTask::from_patch(patch, &Path::root(path), violations)?;
        let managed = inherited.map(|inherited| inherited.managed);
        Some(Task::create(new, managed, self.context.write))
    }

    fn changed_task(
        &mut self,
        before: &Task,
        document: &DocumentTask,
        inherited: Option<InheritedFields>,
        path: &str,
    ) -> Task {
        match &inherited {
            Some(inherited) => self.ignore_inherited(document, inherited, path),
            None => {
                let product = Some(before.product);
                self.ignore_difference(document.product, product, path, "product_id");
            }
        }
        let (patch, at) = (document.patch.clone(), Path::root(path));
        let mut task = before.merge_at(patch, &at, &mut self.problems.violations);
        match inherited {
            Some(inherited) => inherited.apply(&mut task),
            // A managed task that is imported on its own keeps its name.
            None if before.managed.is_some() => {
                self.ignore_difference(document.name.as_deref(), task.name.as_str(), path, "name");
                self.ignore_external_id(document, path);
            }
            None => {}
        }
        task
    }

    /// Lists fields of a managed task that differ from the inherited ones.
    fn ignore_inherited(
        &mut self,
        document: &DocumentTask,
        inherited: &InheritedFields,
        path: &str,
    ) {
        let name = document.name.as_deref();
        self.ignore_difference(name, inherited.name.as_str(), path, "name");
        let product = Some(inherited.product);
        self.ignore_difference(document.product, product, path, "product_id");
        self.ignore_external_id(document, path);
    }

    /// Lists the external id of a managed task, which has none, if one was sent.
    fn ignore_external_id(&mut self, document: &DocumentTask, path: &str) {
        if document.patch.external_id.sent().is_some() {
            self.ignore(path, "external_id");
        }
    }
}
