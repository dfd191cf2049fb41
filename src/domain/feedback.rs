//! The question of a step and its possible answers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ids::TaskId, text::Label};

pub const MAX_FEEDBACK_VALUES: usize = 1_000;
/// The type of every question: one of its values is chosen.
pub const TYPE_ENUM: &str = "enum";

/// A question with its possible answers. It is stored with its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "enum")]
pub struct Feedback {
    /// The variable that holds the answer.
    pub name: Label,
    /// Whether each value manages its own task.
    pub linked: bool,
    /// The answers in order: 1 to [`MAX_FEEDBACK_VALUES`], their keys unique.
    pub values: Vec<FeedbackValue>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedbackValue {
    pub key: Label,
    pub value: Label,
    /// The task that it manages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<TaskId>,
}

/// How an update of a question changes its managed tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkChanges {
    pub unlinked: Vec<TaskId>,
    /// Indexes of linked values without a task.
    pub unmatched: Vec<usize>,
}

impl Feedback {
    /// The tasks that its values manage.
    pub fn linked_tasks(&self) -> impl Iterator<Item = TaskId> {
        self.values.iter().filter_map(|value| value.link)
    }

    /// Takes over the links of the question's former state: a value keeps its task if its key
    /// existed before.
    pub fn take_links(&mut self, before: &Self) -> LinkChanges {
        let linked = before.values.iter();
        let linked = linked.filter_map(|value| Some((&value.key, value.link?)));
        let by_key: BTreeMap<&Label, TaskId> = linked.collect();
        let mut changes = LinkChanges::default();
        for (index, value) in self.values.iter_mut().enumerate() {
            let former = by_key.get(&value.key).copied();
            value.link = former.filter(|_| self.linked);
            if self.linked && value.link.is_none() {
                changes.unmatched.push(index);
            }
        }
        let kept: BTreeSet<TaskId> = self.linked_tasks().collect();
        let unlinked = before.linked_tasks().filter(|task| !kept.contains(task));
        changes.unlinked = unlinked.collect();
        changes
    }
}
