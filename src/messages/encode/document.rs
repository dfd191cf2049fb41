//! The document of an export.

use super::{step, task};
use crate::{
    domain::{ids::TaskId, import::TaskTree},
    messages::managed_documents::values_mut,
    proto::v1,
};

/// A task with its steps; linked observations hold the managed tasks.
pub fn document(tree: TaskTree) -> v1::TaskDocument {
    let mut managed = tree.managed;
    let steps = tree.steps.into_iter().map(|full| {
        let mut step = step(full);
        for value in values_mut(&mut step) {
            let tree = TaskId::parse(&value.link).and_then(|task| managed.remove(&task));
            value.task_json = tree.map(|tree| Box::new(document(tree)));
        }
        step
    });
    v1::TaskDocument {
        steps: steps.collect(),
        task: Some(task(tree.task)),
    }
}
