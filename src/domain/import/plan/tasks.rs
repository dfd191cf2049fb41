//! Tasks of a document: new ones, changed ones, and those that follow a value.

use std::collections::BTreeMap;

use crate::domain::import::{Document, DocumentTask, TaskTree};
use crate::domain::{
    ids::TaskId,
    task::{NewTask, Task},
    violation::Path,
};

use super::{Manager, Planner, TaskDraft};

impl Planner<'_> {
    pub(super) fn task(
        &mut self,
        document: Document,
        existing: Option<&TaskTree>,
        by: Option<Manager>,
    ) -> TaskId {
        let Document { path, task, steps } = document;
        let alias = task.guid;
        let task_path = format!("{path}.task");
        let after = match existing {
            Some(tree) => Some(self.changed_task(tree, task, by, &task_path)),
            None => self.new_task(task, by, &task_path),
        };
        // A task that cannot be made has an id all the same, for what names it.
        let id = after.as_ref().map(|task| task.guid);
        let id = id.unwrap_or_else(|| TaskId((self.write.new_id)()));
        if let Some(alias) = alias {
            self.aliases.insert(alias, id);
        }
        let product = after.as_ref().map(|task| task.product);
        // Parents stand before the tasks that they manage.
        let slot = self.tasks.len();
        self.tasks.push(TaskDraft {
            before: existing.map(|tree| tree.task.clone()),
            after,
            steps: Vec::new(),
            places: existing.map(|tree| tree.places.clone()).unwrap_or_default(),
            deleted: Vec::new(),
        });
        let (steps, deleted) = self.steps(id, product, steps, existing);
        if let Some(draft) = self.tasks.get_mut(slot) {
            draft.steps = steps;
            draft.deleted = deleted;
        }
        id
    }

    fn new_task(&mut self, said: DocumentTask, by: Option<Manager>, path: &str) -> Option<Task> {
        if let Some(by) = &by {
            self.note_followed(&said, by, path);
        }
        let new = match said.says.new {
            Ok(new) => new,
            Err(violations) => {
                self.violations.append(violations);
                return None;
            }
        };
        Some(match by {
            None => Task::create(new, None, self.write),
            Some(Manager {
                managed,
                name,
                product,
            }) => {
                let new = NewTask {
                    name,
                    product,
                    ..new
                };
                Task::create(new, Some(managed), self.write)
            }
        })
    }

    fn changed_task(
        &mut self,
        tree: &TaskTree,
        said: DocumentTask,
        by: Option<Manager>,
        path: &str,
    ) -> Task {
        if let Some(by) = &by {
            self.note_followed(&said, by, path);
        } else if said
            .product
            .is_some_and(|product| product != tree.task.product)
        {
            self.ignore(path, "product_id");
        }
        let named = said.name;
        let at = Path::root(path);
        let (mut task, ignored) = tree
            .task
            .merge_at(said.says.patch, &at, &mut self.violations);
        match by {
            Some(by) => {
                task.name = by.name;
                task.managed = Some(by.managed);
            }
            // A managed task that is imported by itself keeps its name.
            None if !ignored.is_empty() && named.as_deref() != Some(task.name.as_str()) => {
                self.ignore(path, "name");
            }
            None => {}
        }
        task
    }

    /// Lists what a managed task's document says that follows the value.
    fn note_followed(&mut self, said: &DocumentTask, by: &Manager, path: &str) {
        if said
            .name
            .as_deref()
            .is_some_and(|name| name != by.name.as_str())
        {
            self.ignore(path, "name");
        }
        if said.product.is_some_and(|product| product != by.product) {
            self.ignore(path, "product_id");
        }
    }

    /// A managed task that the document says nothing of but what its value
    /// shows.
    pub(super) fn follow(&mut self, tree: &TaskTree, by: Manager) -> TaskId {
        let mut after = tree.task.clone();
        after.name = by.name;
        after.managed = Some(by.managed);
        self.keep_steps(tree, after);
        tree.task.guid
    }

    /// A task that no value manages any longer.
    pub(super) fn unlink(&mut self, tree: &TaskTree) {
        self.keep_steps(tree, tree.task.clone().unmanaged());
    }

    /// Changes a task and none of its steps.
    fn keep_steps(&mut self, tree: &TaskTree, after: Task) {
        self.tasks.push(TaskDraft {
            before: Some(tree.task.clone()),
            after: Some(after),
            steps: Vec::new(),
            places: BTreeMap::new(),
            deleted: Vec::new(),
        });
    }
}
