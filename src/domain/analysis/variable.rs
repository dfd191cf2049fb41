//! Variables of a guide: who sets them, and which values they can have.

use std::sync::Arc;

use crate::domain::ids::{StepId, TaskId};

use super::{
    guide::{GuideStep, GuideTask, StepPosition},
    value::VariableValue,
    value_index::ValueIndex,
};

/// A variable of a guide: its index in [`Guide::variables`](super::Guide::variables).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub usize);

/// A variable that a guide reads or sets.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its full name.
    pub name: String,
    /// The index of the task whose observations have this as their own name, which is only
    /// valid within the task. `None`: the name is account-wide.
    pub task: Option<usize>,
    /// The observations of the guide that set it, unpublished ones included, in the order
    /// of [`Guide::tasks`](super::Guide::tasks) and of steps.
    pub setters: Vec<StepPosition>,
    /// Observations outside the guide that set it.
    pub outside: Arc<OutsideSetters>,
    /// Whether its name is an alias of a loop of the guide, or begins with one and a dot.
    pub is_loop: bool,
    /// Whether the caller declares it.
    pub is_declared: bool,
    /// Whether a condition of the guide reads it.
    pub is_read: bool,
    /// The values that it can have.
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

/// An observation outside a guide.
#[derive(Clone, Debug, PartialEq)]
pub struct OutsideSetter {
    /// Its task.
    pub task: TaskId,
    /// The observation.
    pub step: StepId,
    /// Its title.
    pub title: String,
    /// The keys of its answers.
    pub keys: Vec<String>,
}

/// The values that a variable can have. It can always be unanswered, too.
#[derive(Clone, Debug, PartialEq)]
pub enum PossibleValues {
    /// One of these keys.
    Keys(ValueIndex),
    /// Any text, number or bool.
    Anything,
}

impl Default for OutsideSetters {
    /// There are none.
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

impl OutsideSetters {
    /// The observations that were read.
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

    /// How many keys all observations have that set it, equal ones included.
    pub(super) fn key_count(&self, tasks: &[GuideTask]) -> usize {
        let steps = self.setters.iter().filter_map(|setter| {
            let task = tasks.get(setter.task)?;
            task.steps.as_ref()?.get(setter.step)
        });
        let inside: usize = steps.map(|step| step.answer_keys().len()).sum();
        let outside = self.outside.list().iter();
        inside + outside.map(|setter| setter.keys.len()).sum::<usize>()
    }

    /// The keys of all observations that set it. A variable of a loop, a declared and an
    /// unknown one can have any value, and so can one with too many setters to read.
    pub(super) fn possible_values(&self, tasks: &[GuideTask]) -> PossibleValues {
        let complete = match self.outside.as_ref() {
            OutsideSetters::All(_) => true,
            OutsideSetters::TooMany(_) => false,
        };
        if !complete || self.is_loop || self.is_declared || self.is_unknown() {
            return PossibleValues::Anything;
        }
        let steps = self.setters.iter().filter_map(|setter| {
            let task = tasks.get(setter.task)?;
            task.steps.as_ref()?.get(setter.step)
        });
        let inside = steps.flat_map(GuideStep::answer_keys);
        let outside = self.outside.list().iter();
        let outside = outside.flat_map(|setter| setter.keys.iter().map(String::as_str));
        let keys = inside.chain(outside).map(str::to_owned);
        PossibleValues::Keys(ValueIndex::new(keys.map(VariableValue::Text).collect()))
    }
}

impl PossibleValues {
    /// Whether a variable can have the value.
    pub fn may_be(&self, value: &VariableValue) -> bool {
        match self {
            Self::Keys(keys) => *value == VariableValue::Unanswered || keys.has(value),
            Self::Anything => true,
        }
    }
}
