//! Compiled conditions: they refer to variables by index, and store their truth for an unknown
//! value.

use crate::domain::dependency::{Comparison, Group, PlacedCondition};

use super::{
    names::full_name,
    truth::Truth,
    value::{Criterion, VariableValue},
    variable::{Variable, VariableId},
};

/// Why a condition is TRUE, FALSE or UNKNOWN, with the numbers of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceReason {
    /// It holds for the value, or for every possible value.
    Matched = 1,
    /// It does not hold for the value, or for any possible value.
    NotMatched = 2,
    /// The variable is known to be unanswered.
    Unanswered = 3,
    /// It is `>` or `<`, and neither a number nor a numeric text is the value, or among the
    /// targets.
    NotComparable = 4,
    /// The value is unknown, and the condition holds for only some possible values.
    UnknownValue = 5,
}

#[derive(Clone, Debug)]
pub struct CompiledCondition {
    pub variable: VariableId,
    pub criterion: Criterion,
    truth_if_unknown: Truth,
}

/// The dependencies of a task or step: a group, and its conditions in order, compiled.
#[derive(Clone, Copy, Debug)]
pub struct Dependencies<'a> {
    pub group: &'a Group,
    pub conditions: &'a [CompiledCondition],
}

impl<'a> Dependencies<'a> {
    /// The conditions, each with the one that it was compiled from.
    pub fn placed(self) -> impl Iterator<Item = (PlacedCondition<'a>, &'a CompiledCondition)> {
        let placed = self.group.placed_conditions().into_iter();
        placed.zip(self.conditions)
    }
}

/// Compiles the conditions of a group. `variable` returns the variable of a name, and adds it if
/// needed.
pub fn compile(
    group: &Group,
    variable: &mut impl FnMut(&str) -> VariableId,
) -> Vec<CompiledCondition> {
    let mut compiled = Vec::new();
    group.for_each_condition(&mut |condition| {
        compiled.push(CompiledCondition {
            variable: variable(&full_name(condition)),
            criterion: Criterion::new(condition),
            truth_if_unknown: Truth::Unknown,
        });
    });
    compiled
}

impl CompiledCondition {
    /// Its truth for a value; `None` is an unknown value.
    pub fn truth(&self, value: Option<&VariableValue>) -> Truth {
        value.map_or(self.truth_if_unknown, |value| {
            self.criterion.holds(value).into()
        })
    }

    /// The reason for [`Self::truth`]; `None` is an unknown value.
    pub fn trace_reason(&self, value: Option<&VariableValue>) -> TraceReason {
        let operator = self.criterion.operator;
        let comparable = matches!(operator, Comparison::Equal | Comparison::NotEqual)
            || self.criterion.bound().is_some()
                && value.is_none_or(|value| value.numeric().is_some());
        match (self.truth(value), value) {
            (_, Some(VariableValue::Unanswered)) => TraceReason::Unanswered,
            (Truth::Unknown, _) => TraceReason::UnknownValue,
            (Truth::True, _) => TraceReason::Matched,
            (Truth::False, _) if !comparable => TraceReason::NotComparable,
            (Truth::False, _) => TraceReason::NotMatched,
        }
    }

    /// Computes the truth for an unknown value, once the possible values are known. If any value is
    /// possible, `=` and `!=` hold for some values; `>` and `<` hold for no value if there is no
    /// numeric target, or beyond the last finite number.
    pub(super) fn set_truth_if_unknown(&mut self, variables: &[Variable]) {
        let keys = variables
            .get(self.variable.0)
            .and_then(|it| it.keys.as_ref());
        let bound = self.criterion.bound();
        let is_told_apart = match (keys, self.criterion.operator) {
            (Some(keys), _) => keys.is_told_apart(&self.criterion),
            (None, Comparison::Equal | Comparison::NotEqual) => true,
            (None, Comparison::Greater) => bound.is_some_and(|bound| bound < f64::MAX),
            (None, Comparison::Less) => bound.is_some_and(|bound| bound > f64::MIN),
        };
        if !is_told_apart {
            self.truth_if_unknown = self.truth(Some(&VariableValue::Unanswered));
        }
    }
}
