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

/// A variable that a guide reads or sets.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    /// The index of the task whose observations have this as their own name, which is only
    /// valid within the task. `None`: the name is account-wide.
    pub task: Option<usize>,
    /// The observations of the guide that set it, unpublished ones included, in the order
    /// of [`Guide::tasks`](super::Guide::tasks) and of steps.
    pub setters: Vec<StepPosition>,
    pub outside: Arc<OutsideSetters>,
    /// Whether its name is an alias of a loop of the guide, or begins with one and a dot.
    pub is_loop: bool,
    pub is_declared: bool,
    pub is_read: bool,
    pub possible: PossibleValues,
}

/// The observations outside a guide that set a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum OutsideSetters {
    /// All of them, by id.
    All(Vec<OutsideSetter>),
    /// There are more than are read; these were read.
    TooMany(Vec<OutsideSetter>),
}

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
    /// One of these keys.
    Keys(ValueSet),
    /// Any text, number or bool.
    Anything,
}

impl Default for OutsideSetters {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

impl OutsideSetters {
    pub fn list(&self) -> &[OutsideSetter] {
        match self {
            Self::All(list) | Self::TooMany(list) => list,
        }
    }

    /// Whether an observation outside the guide may set the variable. If there are more than
    /// are read, it is not known.
    pub fn may_exist(&self) -> bool {
        match self {
            Self::All(list) => !list.is_empty(),
            Self::TooMany(_) => true,
        }
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
        let outside = self.outside.list().iter().flat_map(|setter| &setter.keys);
        let inside = self.setters.iter().filter_map(step);
        let inside = inside.flat_map(GuideStep::answer_keys);
        inside.chain(outside.map(String::as_str))
    }

    /// A variable of a loop, a declared and an unknown one can have any value, and so can one with
    /// too many setters to read. Others have a key of the observations that set them.
    pub(super) fn possible_values(&self, tasks: &[GuideTask]) -> PossibleValues {
        let is_complete = matches!(*self.outside, OutsideSetters::All(_));
        if !is_complete || self.is_loop || self.is_declared || self.is_unknown() {
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
    /// Whether a variable can have the value.
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
