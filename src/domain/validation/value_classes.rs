//! The values of a variable, divided into classes that no condition can tell apart.

use std::collections::{BTreeSet, HashMap};

use crate::domain::{
    analysis::{Budget, Criterion, ValueSet},
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

    /// The classes of a variable that conditions with these criteria read; `None` if to find them
    /// takes too much work. The variable can have the values `possible`, or any value. `keys` are
    /// the answers of the guide's observations that set it.
    pub fn new<'a>(
        possible: Option<&ValueSet>,
        keys: impl Iterator<Item = &'a str>,
        criteria: &[&'a Criterion],
        budget: &Budget<'_>,
    ) -> Option<Self> {
        let targets: usize = criteria.iter().map(|one| one.target_count()).sum();
        let bounds = criteria.iter().filter(|one| one.bound().is_some());
        let values = possible.map_or(VALUES_PER_TARGET * targets, ValueSet::count);
        // A bound may hold for every value. A condition is looked up again where a walk reads it.
        let lookups = values * (1 + bounds.count()) + 2 * targets;
        if !budget.work.spend(LOOKUP_WORK * lookups) {
            return None;
        }
        let values = match possible {
            Some(possible) => possible.clone(),
            None => ValueSet::told_apart_by(criteria.iter().copied(), keys),
        };
        // For each value, the criteria that tell it from the unanswered one.
        let mut told_by = vec![Vec::new(); values.count()];
        for (index, criterion) in criteria.iter().enumerate() {
            for value in values.told_apart(criterion) {
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
        Some(Self {
            class_of: class_of.collect(),
            count: classes.len(),
            values,
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

    /// The classes that a criterion tells apart from [`Self::UNANSWERED`].
    pub fn told_apart(&self, criterion: &Criterion) -> BTreeSet<usize> {
        let values = self.values.told_apart(criterion);
        values.map(|value| self.of_value(value)).collect()
    }

    /// Whether a criterion holds, for each class.
    pub fn outcomes(&self, criterion: &Criterion) -> Vec<bool> {
        let told_apart = self.told_apart(criterion);
        let is_negated = criterion.operator == Comparison::NotEqual;
        let classes = 0..self.count;
        classes
            .map(|class| told_apart.contains(&class) != is_negated)
            .collect()
    }

    fn of_value(&self, value: usize) -> usize {
        let class = self.class_of.get(value).copied();
        class.unwrap_or(Self::UNANSWERED)
    }
}
