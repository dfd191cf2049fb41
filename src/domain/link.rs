//! Links between the values of an observation and the tasks they manage.
//!
//! Values are matched by key: a value whose key was there before keeps its
//! task, and what it shows becomes the task's name.

use std::collections::BTreeSet;

use super::{
    feedback::{Feedback, FeedbackValue},
    ids::TaskId,
    text::{Label, Name},
};

/// What a managed task takes from its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedTaskUpdate {
    /// The task.
    pub task: TaskId,
    /// Its name: what the value shows.
    pub name: Name,
    /// The value's position, from 0.
    pub idx: i32,
}

/// What a change of a question means for the tasks it manages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkChanges {
    /// Tasks that stay managed, with what they take from their values now.
    pub still_managed: Vec<ManagedTaskUpdate>,
    /// Tasks that are managed no longer.
    pub unlinked: Vec<TaskId>,
    /// Values that are linked and have no task yet, by position.
    pub unmatched: Vec<usize>,
}

impl LinkChanges {
    /// Whether no task is concerned.
    pub fn is_empty(&self) -> bool {
        let Self {
            still_managed,
            unlinked,
            unmatched,
        } = self;
        still_managed.is_empty() && unlinked.is_empty() && unmatched.is_empty()
    }
}

/// Carries the links of a question over to its new form, by key.
pub fn keep_links(before: Option<&Feedback>, after: &mut Feedback) -> LinkChanges {
    let known = |key: &Label| {
        let value = before?.values.iter().find(|value| value.key == *key)?;
        value.link
    };
    let mut changes = LinkChanges::default();
    for (index, value) in after.values.iter_mut().enumerate() {
        value.link = if after.linked {
            known(&value.key)
        } else {
            None
        };
        if !after.linked {
            continue;
        }
        match value
            .link
            .and_then(|task| managed_task_update(task, value, index))
        {
            Some(update) => changes.still_managed.push(update),
            None => changes.unmatched.push(index),
        }
    }
    let kept: BTreeSet<TaskId> = linked_tasks(after).collect();
    changes.unlinked = before
        .into_iter()
        .flat_map(linked_tasks)
        .filter(|task| !kept.contains(task))
        .collect();
    changes
}

/// The tasks that a question manages.
pub fn linked_tasks(feedback: &Feedback) -> impl Iterator<Item = TaskId> {
    feedback.values.iter().filter_map(|value| value.link)
}

/// What a task takes from a value that manages it. `None` when the value's text
/// is no name, which a linked value's never is.
pub fn managed_task_update(
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
