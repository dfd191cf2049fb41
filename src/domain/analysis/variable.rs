//! Variables of a guide: who sets them, and which values they can have.

use std::sync::Arc;

use crate::domain::{
    dependency::ConditionTarget,
    ids::{StepId, TaskId},
};

use super::{
    guide::{GuideStep, GuideTask, StepPosition},
    value::{ValueSet, VariableValue},
};

/// A variable of a guide: its index in [`Guide::variables`](super::Guide::variables).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub usize);

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    /// The index of the task whose observations have this as their own name, which is only
    /// valid within the task. `None`: the name is account-wide.
    pub task: Option<usize>,
    /// The observations of the guide that set it, unpublished ones included, in the order
    /// of [`Guide::tasks`](super::Guide::tasks) and of steps.
    pub setters: Vec<StepPosition>,
    pub outside: Arc<Outside<OutsideSetter>>,
    /// Whether its name is an alias of a loop of the guide, or begins with one and a dot.
    pub is_loop: bool,
    pub is_declared: bool,
    pub is_read: bool,
    pub possible: PossibleValues,
}

/// What uses a variable outside a guide, in the order of their ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Outside<T> {
    pub list: Vec<T>,
    /// If not, there are more than are read.
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

/// The values that a variable can have. It can always be unanswered, too.
#[derive(Clone, Debug, PartialEq)]
pub enum PossibleValues {
    Keys(ValueSet),
    /// Any text, number or bool.
    Anything,
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
    /// Whether there may be one. If there are more than are read, it is not known.
    pub fn may_exist(&self) -> bool {
        !self.is_complete || !self.list.is_empty()
    }
}

impl Variable {
    /// Whether no observation of the account sets it, no loop has it and the caller does
    /// not declare it.
    pub fn is_unknown(&self) -> bool {
        self.setters.is_empty() && !self.outside.may_exist() && !self.is_loop && !self.is_declared
    }

    /// The keys of all observations that set it, equal ones included.
    pub(super) fn keys<'a>(&'a self, tasks: &'a [GuideTask]) -> impl Iterator<Item = &'a str> {
        let step = |at: &StepPosition| tasks.get(at.task)?.steps.as_ref()?.get(at.step);
        let outside = self.outside.list.iter().flat_map(|setter| &setter.keys);
        let inside = self.setters.iter().filter_map(step);
        let inside = inside.flat_map(GuideStep::answer_keys);
        inside.chain(outside.map(String::as_str))
    }

    /// A variable of a loop, a declared and an unknown one can have any value, and so can one with
    /// too many setters to read. Others have a key of the observations that set them.
    pub(super) fn possible_values(&self, tasks: &[GuideTask]) -> PossibleValues {
        if !self.outside.is_complete || self.is_loop || self.is_declared || self.is_unknown() {
            return PossibleValues::Anything;
        }
        PossibleValues::Keys(ValueSet::from_keys(self.keys(tasks)))
    }

    /// Whether only observations of the guide give it a value.
    pub fn is_set_in_guide_only(&self) -> bool {
        let is_key = matches!(self.possible, PossibleValues::Keys(_));
        is_key && !self.setters.is_empty() && !self.outside.may_exist()
    }
}

impl PossibleValues {
    pub fn may_be(&self, value: &VariableValue) -> bool {
        let target = match value {
            VariableValue::Unanswered => return true,
            VariableValue::Text(text) => ConditionTarget::Text(text.clone()),
            VariableValue::Number(number) => ConditionTarget::Number(*number),
            VariableValue::Bool(value) => ConditionTarget::Bool(*value),
        };
        match self {
            Self::Keys(keys) => keys.has_equal(&target),
            Self::Anything => true,
        }
    }
}
