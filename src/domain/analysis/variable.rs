//! Variables of a guide: what sets them, and which values they can have.

use std::sync::Arc;

use crate::domain::ids::{StepId, TaskId};

use super::{
    guide::{GuideStep, GuideTask, StepPosition},
    value::{KeySet, VariableValue},
};

/// A variable of a guide: its index in [`Guide::variables`](super::Guide::variables).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub usize);

#[derive(Clone, Debug, Default)]
pub struct Variable {
    pub name: String,
    /// The index of the task whose observations have this as their own name, which is valid only
    /// within the task; `None` if the name is account-wide.
    pub task: Option<usize>,
    /// The observations of the guide that set it, including unpublished ones, in the order of
    /// [`Guide::tasks`](super::Guide::tasks) and of steps.
    pub setters: Vec<StepPosition>,
    pub outside: Arc<Outside<OutsideSetter>>,
    /// Whether a loop of the guide defines it, or the caller declares it.
    pub is_declared: bool,
    pub is_read: bool,
    /// The keys that it can have; `None` if it can have any text, number or bool. It can always be
    /// unanswered.
    pub keys: Option<KeySet>,
}

/// What uses a variable outside a guide, in the order of their ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Outside<T> {
    pub list: Vec<T>,
    /// If not, there are more than were read.
    pub is_complete: bool,
}

/// An observation outside a guide that sets a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct OutsideSetter {
    pub task: TaskId,
    pub step: StepId,
    pub title: String,
    pub keys: Vec<String>,
}

impl<T> Default for Outside<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            is_complete: true,
        }
    }
}

impl<T> Outside<T> {
    /// Whether there may be one. That is unknown if there are more than were read.
    pub fn may_exist(&self) -> bool {
        !self.is_complete || !self.list.is_empty()
    }
}

impl Variable {
    /// Whether no observation of the account sets it, no loop defines it, and the caller does not
    /// declare it.
    pub fn is_unknown(&self) -> bool {
        self.setters.is_empty() && !self.outside.may_exist() && !self.is_declared
    }

    /// Whether it can have any value. Other variables have a key of the observations that set them.
    pub(super) fn may_be_anything(&self) -> bool {
        self.is_declared || self.is_unknown() || !self.outside.is_complete
    }

    /// The keys of all observations that set it, including duplicates.
    pub(super) fn setter_keys<'a>(
        &'a self,
        tasks: &'a [GuideTask],
    ) -> impl Iterator<Item = &'a str> {
        let step = |at: &StepPosition| tasks.get(at.task)?.steps.as_ref()?.get(at.step);
        let outside = self.outside.list.iter().flat_map(|setter| &setter.keys);
        let inside = self.setters.iter().filter_map(step);
        let inside = inside.flat_map(GuideStep::answer_keys);
        inside.chain(outside.map(String::as_str))
    }

    /// Whether only observations of the guide give it a value.
    pub fn is_set_in_guide_only(&self) -> bool {
        self.keys.is_some() && !self.setters.is_empty() && !self.outside.may_exist()
    }

    pub fn may_be(&self, value: &VariableValue) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.has(value))
    }
}
