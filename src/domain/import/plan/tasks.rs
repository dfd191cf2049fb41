//! Tasks of a document.

use std::mem::{replace, take};

use crate::domain::{
    ids::TaskId,
    import::{Document, DocumentTask, Origin, TaskTree},
    patch::Edit,
    task::{MAX_TASK_STEPS, NewTask, Task},
    violation::{Path, Reason},
};

use super::{Planner, managed::InheritedFields, planned::PlannedTask};

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
        let document_id = &task.guid;
        let task_path = task.path.as_str();
        let after = match existing {
            Some(tree) => Some(self.changed_task(&tree.task, task, inherited, task_path)),
            None => self.new_task(task, inherited, task_path),
        };
        // An invalid task gets an id too, so that references to it are resolved.
        let id = after
            .as_ref()
            .map_or_else(|| TaskId((self.write.new_id)()), |task| task.guid);
        self.task_ids.extend(document_id.map(|sent| (sent, id)));
        let origin = Origin {
            guid: *document_id,
            path: task.path.clone(),
        };
        self.origins.tasks.insert(id, origin);
        let product = after.as_ref().map(|task| task.product);
        let index = self.tasks.len();
        self.put_task(existing, after);
        let outer = take(&mut self.managed_tasks);
        self.depth += 1;
        let (steps, deleted) = self.plan_steps(id, product, steps, existing);
        self.depth -= 1;
        let managed_tasks = replace(&mut self.managed_tasks, outer);
        if managed_tasks.max(steps.len()) > MAX_TASK_STEPS {
            let description = format!("would give the task more than {MAX_TASK_STEPS} steps");
            self.violations.add(
                &Path::root(path).field("steps"),
                Reason::TooManyElements,
                description,
            );
        }
        if let Some(planned) = self.tasks.get_mut(index) {
            planned.steps = steps;
            planned.deleted = deleted;
        }
        id
    }

    /// Adds a task to the plan, without changes of its steps.
    pub(super) fn put_task(&mut self, existing: Option<&'a TaskTree>, after: Option<Task>) {
        self.tasks.push(PlannedTask {
            existing,
            after,
            steps: Vec::new(),
            deleted: Vec::new(),
            places: Vec::new(),
        });
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
            take(&mut patch.product).honored(&mut self.violations);
            patch.product = Edit::Set(Ok(inherited.product));
        }
        let new = NewTask::from_patch(patch, &Path::root(path), &mut self.violations)?;
        let managed = inherited.map(|inherited| inherited.managed);
        Some(Task::create(new, managed, self.write))
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
        let at = Path::root(path);
        let patch = document.patch.clone();
        let mut task = before.merge_at(patch, &at, &mut self.violations);
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
