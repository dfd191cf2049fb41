//! The document of an export.

use std::collections::BTreeMap;

use super::{step, task};
use crate::{
    domain::{ids::TaskId, import::TaskTree},
    proto::v1,
};

/// A task with its steps; linked observations hold the managed tasks.
pub fn document(tree: TaskTree) -> v1::TaskDocument {
    let TaskTree {
        task: root,
        steps,
        places: _,
        mut managed,
    } = tree;
    v1::TaskDocument {
        task: Some(task(root)),
        steps: steps
            .into_iter()
            .map(|full| with_documents(step(full), &mut managed))
            .collect(),
    }
}

/// Puts managed tasks into the values that manage them.
fn with_documents(mut step: v1::Step, managed: &mut BTreeMap<TaskId, TaskTree>) -> v1::Step {
    let values = step
        .feedback_config
        .iter_mut()
        .flat_map(|config| &mut config.values);
    for value in values {
        value.task_json = TaskId::parse(&value.link)
            .and_then(|task| managed.remove(&task))
            .map(|managed| Box::new(document(managed)));
    }
    step
}
