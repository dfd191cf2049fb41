//! Compiled conditions: they name variables by index, and store their truth for an unknown
//! value.

use crate::domain::dependency::{Comparison, Group, LogicalOperator, Node, PlacedCondition};

use super::{
    names::full_name,
    truth::Truth,
    value::{TargetSet, VariableValue},
    variable::{PossibleValues, Variable, VariableId},
};

/// Why a condition is TRUE, FALSE or UNKNOWN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceReason {
    /// It holds for the value, or for each possible value.
    Matched,
    /// It does not hold for the value, or holds for no possible value.
    NotMatched,
    /// The variable is known to be not answered.
    Unanswered,
    /// It is `>` or `<`, and the value is neither a number nor a numeric text, or no target
    /// is one.
    NotComparable,
    /// The value is not known, and the condition holds for some possible values only.
    UnknownValue,
}

/// A compiled group. Its nodes are in the order of the group that it was compiled from.
#[derive(Clone, Debug)]
pub struct CompiledGroup {
    /// How its nodes combine.
    pub operator: LogicalOperator,
    /// Its nodes.
    pub nodes: Vec<CompiledNode>,
}

/// A node of a compiled group.
#[derive(Clone, Debug)]
pub enum CompiledNode {
    /// A comparison.
    Condition(CompiledCondition),
    /// A nested group.
    Group(CompiledGroup),
}

/// A compiled comparison.
#[derive(Clone, Debug)]
pub struct CompiledCondition {
    /// The variable that it reads.
    pub variable: VariableId,
    /// How it is compared.
    pub operator: Comparison,
    /// The values that it is compared with.
    pub targets: TargetSet,
    /// Its truth when the value is not known.
    pub truth_if_unknown: Truth,
}

impl CompiledGroup {
    /// Compiles a group. `variable` returns the variable of a name, and adds it if needed.
    pub(super) fn compile(group: &Group, variable: &mut impl FnMut(String) -> VariableId) -> Self {
        let nodes = group.nodes.iter().map(|node| match node {
            Node::Group(inner) => CompiledNode::Group(Self::compile(inner, variable)),
            Node::Condition(condition) => CompiledNode::Condition(CompiledCondition {
                variable: variable(full_name(condition)),
                operator: condition.operator,
                targets: TargetSet::new(&condition.targets),
                // Computed when the possible values are known.
                truth_if_unknown: Truth::Unknown,
            }),
        });
        Self {
            operator: group.operator,
            nodes: nodes.collect(),
        }
    }

    /// Computes the truth of each condition for a value that is not known.
    pub(super) fn compute_truth_of_unknown_values(&mut self, variables: &[Variable]) {
        for node in &mut self.nodes {
            match node {
                CompiledNode::Group(group) => group.compute_truth_of_unknown_values(variables),
                CompiledNode::Condition(condition) => {
                    condition.compute_truth_of_unknown_values(variables)
                }
            }
        }
    }

    /// The truth of the group, where `truth` is that of each condition.
    pub fn truth(&self, truth: &mut impl FnMut(&CompiledCondition) -> Truth) -> Truth {
        let nodes = self.nodes.iter().map(|node| match node {
            CompiledNode::Group(group) => group.truth(truth),
            CompiledNode::Condition(condition) => truth(condition),
        });
        Truth::of_group(self.operator, nodes)
    }

    /// The conditions in order, each with the one in `source` that it was compiled from.
    pub fn with_sources<'a>(
        &'a self,
        source: &'a Group,
    ) -> impl Iterator<Item = (PlacedCondition<'a>, &'a CompiledCondition)> {
        let mut compiled = Vec::new();
        self.for_each(&mut |condition| compiled.push(condition));
        source.placed_conditions().into_iter().zip(compiled)
    }

    /// Calls `visit` with each condition, in order.
    pub fn for_each<'a>(&'a self, visit: &mut impl FnMut(&'a CompiledCondition)) {
        for node in &self.nodes {
            match node {
                CompiledNode::Group(group) => group.for_each(visit),
                CompiledNode::Condition(condition) => visit(condition),
            }
        }
    }
}

impl CompiledCondition {
    /// Whether it holds for a value.
    pub fn holds(&self, value: &VariableValue) -> bool {
        self.targets.satisfied_by(self.operator, value)
    }

    /// Its truth for a value; `None` is a value that is not known.
    pub fn truth(&self, value: Option<&VariableValue>) -> Truth {
        value.map_or(self.truth_if_unknown, |value| self.holds(value).into())
    }

    /// The reason of [`Self::truth`] for a value; `None` is a value that is not known.
    pub fn trace_reason(&self, value: Option<&VariableValue>) -> TraceReason {
        let comparable = match self.operator {
            Comparison::Equal | Comparison::NotEqual => true,
            Comparison::Greater | Comparison::Less => {
                self.targets.least().is_some()
                    && value.is_none_or(|value| value.numeric().is_some())
            }
        };
        match (self.truth(value), value) {
            (_, Some(VariableValue::Unanswered)) => TraceReason::Unanswered,
            (Truth::Unknown, _) => TraceReason::UnknownValue,
            (Truth::True, _) => TraceReason::Matched,
            (Truth::False, _) if !comparable => TraceReason::NotComparable,
            (Truth::False, _) => TraceReason::NotMatched,
        }
    }

    fn compute_truth_of_unknown_values(&mut self, variables: &[Variable]) {
        let variable = variables.get(self.variable.0);
        self.truth_if_unknown = match variable.map(|variable| &variable.possible) {
            Some(PossibleValues::Keys(keys)) => {
                match (
                    keys.is_told_apart(self.operator, &self.targets),
                    self.operator,
                ) {
                    (true, _) => Truth::Unknown,
                    (false, Comparison::NotEqual) => Truth::True,
                    (false, Comparison::Equal | Comparison::Greater | Comparison::Less) => {
                        Truth::False
                    }
                }
            }
            Some(PossibleValues::Anything) | None => self.truth_of_any_value(),
        };
    }

    /// The truth when the variable may have any value. Each operator holds for some values only.
    /// `>` and `<` hold for none without a numeric target, or beyond the last finite number.
    fn truth_of_any_value(&self) -> Truth {
        let can_hold = match self.operator {
            Comparison::Equal | Comparison::NotEqual => true,
            Comparison::Greater => self.targets.least().is_some_and(|least| least < f64::MAX),
            Comparison::Less => {
                let greatest = self.targets.greatest();
                greatest.is_some_and(|greatest| greatest > f64::MIN)
            }
        };
        if can_hold {
            Truth::Unknown
        } else {
            Truth::False
        }
    }
}
