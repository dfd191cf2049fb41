//! Links between the values of an observation and the tasks that they manage.
//!
//! An update matches values by key: a value whose key existed before keeps its task, and
//! its text becomes the task's name.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    feedback::{Feedback, FeedbackValue},
    ids::TaskId,
    text::{Label, Name},
};

/// The fields that a managed task takes from its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedTaskUpdate {
    pub task: TaskId,
    pub name: Name,
    pub idx: i32,
}

/// How an update of a question changes its managed tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkChanges {
    /// Tasks that stay managed, with their new fields.
    pub still_managed: Vec<ManagedTaskUpdate>,
    pub unlinked: Vec<TaskId>,
    /// Indexes of linked values without a task.
    pub unmatched: Vec<usize>,
}

/// Copies the links of a question to its new form, by key.
pub fn copy_links(before: &Feedback, after: &mut Feedback) -> LinkChanges {
    let former = links_by_key(before);
    let mut changes = LinkChanges::default();
    for (index, value) in after.values.iter_mut().enumerate() {
        value.link = None;
        if !after.linked {
            continue;
        }
        value.link = former.get(&value.key).copied();
        match value
            .link
            .and_then(|task| managed_task_update(task, value, index))
        {
            Some(update) => changes.still_managed.push(update),
            None => changes.unmatched.push(index),
        }
    }
    let kept: BTreeSet<TaskId> = linked_tasks(after).collect();
    changes.unlinked = linked_tasks(before)
        .filter(|task| !kept.contains(task))
        .collect();
    changes
}

/// The tasks that a question manages, by the keys of its values.
pub fn links_by_key(feedback: &Feedback) -> BTreeMap<&Label, TaskId> {
    let links = feedback.values.iter();
    links
        .filter_map(|value| Some((&value.key, value.link?)))
        .collect()
}

pub fn linked_tasks(feedback: &Feedback) -> impl Iterator<Item = TaskId> {
    feedback.values.iter().filter_map(|value| value.link)
}

/// `None` if the value's text is not a valid task name. That of a linked value always is.
fn managed_task_update(
    task: TaskId,
    value: &FeedbackValue,
    index: usize,
) -> Option<ManagedTaskUpdate> {
    Some(ManagedTaskUpdate {
        task,
        name: Name::parse(value.value.as_str().to_owned()).ok()?,
        idx: i32::try_from(index).ok()?,
    })
}
