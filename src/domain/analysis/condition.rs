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
    pub operator: LogicalOperator,
    pub nodes: Vec<CompiledNode>,
}

#[derive(Clone, Debug)]
pub enum CompiledNode {
    Condition(CompiledCondition),
    Group(CompiledGroup),
}

#[derive(Clone, Debug)]
pub struct CompiledCondition {
    pub variable: VariableId,
    pub operator: Comparison,
    pub targets: TargetSet,
    pub truth_if_unknown: Truth,
}

/// What groups are evaluated to: truths, or literals of a formula.
pub trait Logic {
    type Value: Copy;

    fn condition(&mut self, condition: &CompiledCondition) -> Self::Value;
    fn all(&mut self, values: impl IntoIterator<Item = Self::Value>) -> Self::Value;
    fn not(&mut self, value: Self::Value) -> Self::Value;

    fn any(&mut self, values: impl IntoIterator<Item = Self::Value>) -> Self::Value {
        let negated: Vec<Self::Value> = values.into_iter().map(|value| self.not(value)).collect();
        let none = self.all(negated);
        self.not(none)
    }

    /// Whether dependencies hold. Without dependencies they do.
    fn holds(&mut self, dependencies: Option<&CompiledGroup>) -> Self::Value {
        match dependencies {
            None => self.all([]),
            Some(group) => group.evaluate(self),
        }
    }
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
                    let variable = variables.get(condition.variable.0);
                    condition.truth_if_unknown =
                        condition.truth_of(variable.map(|variable| &variable.possible));
                }
            }
        }
    }

    pub fn evaluate<L: Logic + ?Sized>(&self, logic: &mut L) -> L::Value {
        let nodes = self.nodes.iter().map(|node| match node {
            CompiledNode::Group(group) => group.evaluate(logic),
            CompiledNode::Condition(condition) => logic.condition(condition),
        });
        let nodes: Vec<L::Value> = nodes.collect();
        match self.operator {
            LogicalOperator::And => logic.all(nodes),
            LogicalOperator::Or => logic.any(nodes),
        }
    }

    /// The conditions in order, each with the one in `source` that it was compiled from.
    pub fn with_sources<'a>(
        &'a self,
        source: &'a Group,
    ) -> impl Iterator<Item = (PlacedCondition<'a>, &'a CompiledCondition)> {
        source
            .placed_conditions()
            .into_iter()
            .zip(self.conditions())
    }

    /// The conditions, those of nested groups included, in order.
    pub fn conditions(&self) -> Vec<&CompiledCondition> {
        let conditions = self.nodes.iter().flat_map(|node| match node {
            CompiledNode::Group(group) => group.conditions(),
            CompiledNode::Condition(condition) => vec![condition],
        });
        conditions.collect()
    }
}

impl CompiledCondition {
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

    /// The truth for a variable that may have these values, or be unanswered. If it may have any,
    /// `=` and `!=` hold for some of them; `>` and `<` hold for none without a numeric target, or
    /// beyond the last finite number.
    fn truth_of(&self, possible: Option<&PossibleValues>) -> Truth {
        let is_distinguished = match (possible, self.operator) {
            (Some(PossibleValues::Keys(keys)), operator) => !keys
                .distinguished_from_unanswered(operator, &self.targets)
                .is_empty(),
            (_, Comparison::Equal | Comparison::NotEqual) => true,
            (_, Comparison::Greater) => self.targets.least().is_some_and(|it| it < f64::MAX),
            (_, Comparison::Less) => self.targets.greatest().is_some_and(|it| it > f64::MIN),
        };
        match is_distinguished {
            true => Truth::Unknown,
            false => self.holds(&VariableValue::Unanswered).into(),
        }
    }
}
