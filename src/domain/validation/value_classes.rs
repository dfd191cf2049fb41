//! The values of a variable, divided into classes that no condition can tell apart.

use std::collections::{BTreeSet, HashMap};

use crate::domain::{
    analysis::{Budget, CompiledCondition, PossibleValues, ValueSet},
    dependency::Comparison,
};

/// About this many values are tried per target, for a variable that can have any value.
const VALUES_PER_TARGET: usize = 8;
/// The work to look up a value or a target.
const LOOKUP_WORK: usize = 25;

/// The classes of a variable's values. The first contains the unanswered value.
#[derive(Clone, Debug)]
pub struct ValueClasses {
    values: ValueSet,
    /// By value.
    class_of: Vec<usize>,
    count: usize,
}

impl ValueClasses {
    pub const UNANSWERED: usize = 0;

    /// The classes of a variable that these conditions read; `None` if to find them takes too much
    /// work. `keys` are the answers of the guide's observations that set it.
    pub fn new<'a>(
        possible: &PossibleValues,
        keys: impl Iterator<Item = &'a str>,
        conditions: &[&'a CompiledCondition],
        budget: &Budget<'_>,
    ) -> Option<Self> {
        let targets: usize = conditions.iter().map(|one| one.targets.count()).sum();
        let bounds = conditions.iter();
        let bounds =
            bounds.filter(|it| matches!(it.operator, Comparison::Greater | Comparison::Less));
        let values = match possible {
            PossibleValues::Keys(keys) => keys.count(),
            PossibleValues::Anything => VALUES_PER_TARGET * targets,
        };
        // A bound may hold for every value. A condition is looked up again where a walk reads it.
        let lookups = values * (1 + bounds.count()) + 2 * targets;
        if !budget.work.spend(LOOKUP_WORK * lookups) {
            return None;
        }
        let values = match possible {
            PossibleValues::Keys(keys) => keys.clone(),
            PossibleValues::Anything => {
                ValueSet::told_apart_by(conditions.iter().map(|one| &one.targets), keys)
            }
        };
        // For each value, the conditions that tell it from the unanswered one.
        let mut told_by = vec![Vec::new(); values.count()];
        for (index, condition) in conditions.iter().enumerate() {
            for value in values.told_apart(condition.operator, &condition.targets) {
                if let Some(told_by) = told_by.get_mut(value)
                    && told_by.last() != Some(&index)
                {
                    told_by.push(index);
                }
            }
        }
        let mut classes = HashMap::from([(Vec::new(), Self::UNANSWERED)]);
        let class_of = told_by.into_iter().map(|told_by| {
            let next = classes.len();
            *classes.entry(told_by).or_insert(next)
        });
        let class_of = class_of.collect();
        Some(Self {
            values,
            class_of,
            count: classes.len(),
        })
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The class of an answer of the guide's observations.
    pub fn of_key(&self, key: &str) -> usize {
        let value = self.values.index_of_key(key);
        value.map_or(Self::UNANSWERED, |value| self.of_value(value))
    }

    /// The classes for which a condition has another outcome than for [`Self::UNANSWERED`].
    pub fn told_apart(&self, condition: &CompiledCondition) -> BTreeSet<usize> {
        let values = (self.values).told_apart(condition.operator, &condition.targets);
        values.map(|value| self.of_value(value)).collect()
    }

    /// Whether a condition holds, for each class.
    pub fn outcomes(&self, condition: &CompiledCondition) -> Vec<bool> {
        let is_negated = condition.operator == Comparison::NotEqual;
        let mut outcomes = vec![is_negated; self.count];
        for class in self.told_apart(condition) {
            if let Some(outcome) = outcomes.get_mut(class) {
                *outcome = !is_negated;
            }
        }
        outcomes
    }

    fn of_value(&self, value: usize) -> usize {
        let class = self.class_of.get(value).copied();
        class.unwrap_or(Self::UNANSWERED)
    }
}
