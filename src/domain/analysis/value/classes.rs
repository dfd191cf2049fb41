//! The values of a variable, divided into classes that no condition can tell apart.

use std::collections::{BTreeSet, HashMap};

use ordered_float::OrderedFloat;

use crate::domain::{analysis::budget::Budget, dependency::Comparison};

use super::{Criterion, Form, KeySet, VariableValue, is_beyond};

/// About how many values are tried per target, for a variable that can have any value.
const VALUES_PER_TARGET: usize = 8;
/// The work to look up a value or a target.
const LOOKUP_WORK: usize = 25;

/// The classes of a variable's values. The first contains the unanswered value.
#[derive(Clone, Debug)]
pub struct ValueClasses<'a> {
    by_key: HashMap<String, usize>,
    /// For each criterion, the classes that it tells apart from [`Self::UNANSWERED`], sorted.
    told_apart: HashMap<&'a Criterion, Vec<usize>>,
    count: usize,
}

impl<'a> ValueClasses<'a> {
    pub const UNANSWERED: usize = 0;

    /// The classes of a variable that conditions with these criteria read; `None` if finding them
    /// takes too much work. The variable can have the keys `possible`, or any value. `keys` are the
    /// answers of the guide's observations that set it.
    pub fn new<'k>(
        possible: Option<&KeySet>,
        keys: impl Iterator<Item = &'k str>,
        criteria: &BTreeSet<&'a Criterion>,
        budget: &Budget<'_>,
    ) -> Option<Self> {
        let mut equal: HashMap<&Form, Vec<usize>> = HashMap::new();
        let mut bounds = Vec::new();
        for (index, criterion) in criteria.iter().enumerate() {
            match (criterion.operator, criterion.bound()) {
                (Comparison::Equal | Comparison::NotEqual, _) => {
                    for form in &criterion.targets {
                        equal.entry(form).or_default().push(index);
                    }
                }
                (operator, bound) => bounds.extend(bound.map(|bound| (index, operator, bound))),
            }
        }
        let targets: usize = criteria.iter().map(|one| one.target_count()).sum();
        let count = possible.map_or(VALUES_PER_TARGET * targets, |keys| keys.iter().len());
        // A bound may hold for every value.
        let lookups = count * (1 + bounds.len()) + 2 * targets;
        if !budget.work.spend(LOOKUP_WORK * lookups) {
            return None;
        }
        let (keys, others): (Vec<&str>, _) = match possible {
            Some(possible) => (possible.iter().collect(), Vec::new()),
            None => {
                let targets = criteria.iter().flat_map(|one| &one.targets);
                (keys.collect(), values_told_apart(targets))
            }
        };
        let key_forms = |key: &&str| VariableValue::Text((*key).to_owned()).forms();
        let forms = keys.iter().map(key_forms).chain(others);
        // The classes, by the criteria that tell them apart from the unanswered value.
        let mut classes = HashMap::from([(BTreeSet::new(), Self::UNANSWERED)]);
        let assigned = forms.map(|forms| {
            let equal = forms.iter().filter_map(|form| equal.get(form)).flatten();
            let number = forms.iter().find_map(Form::number);
            let beyond = bounds.iter().filter(|(_, operator, bound)| {
                number.is_some_and(|number| is_beyond(number, *operator, *bound))
            });
            let told_by = equal.chain(beyond.map(|(index, ..)| index)).copied();
            let next = classes.len();
            *classes.entry(told_by.collect()).or_insert(next)
        });
        let assigned: Vec<usize> = assigned.collect();
        let mut told_apart = vec![Vec::new(); criteria.len()];
        for (told_by, class) in &classes {
            for index in told_by {
                if let Some(told) = told_apart.get_mut(*index) {
                    told.push(*class);
                }
            }
        }
        told_apart.iter_mut().for_each(|told| told.sort_unstable());
        Some(Self {
            by_key: keys.into_iter().map(str::to_owned).zip(assigned).collect(),
            told_apart: criteria.iter().copied().zip(told_apart).collect(),
            count: classes.len(),
        })
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The class of an answer of the guide's observations.
    pub fn key_class(&self, key: &str) -> usize {
        self.by_key.get(key).copied().unwrap_or(Self::UNANSWERED)
    }

    /// The classes that a criterion tells apart from [`Self::UNANSWERED`].
    pub fn told_apart(&self, criterion: &Criterion) -> &[usize] {
        self.told_apart.get(criterion).map_or(&[], Vec::as_slice)
    }

    /// Whether a criterion holds, for each class.
    pub fn outcomes(&self, criterion: &Criterion) -> Vec<bool> {
        let is_negated = criterion.operator == Comparison::NotEqual;
        let told_apart = self.told_apart(criterion);
        let classes = 0..self.count;
        classes
            .map(|class| told_apart.binary_search(&class).is_ok() != is_negated)
            .collect()
    }
}

/// The forms of values of every kind that conditions with these targets can tell apart. To these
/// conditions, any other value is equivalent to one of these, or to an unanswered variable.
fn values_told_apart<'a>(targets: impl Iterator<Item = &'a Form>) -> Vec<Vec<Form>> {
    let mut values = Vec::new();
    let mut numbers = BTreeSet::new();
    for form in targets.collect::<BTreeSet<&Form>>() {
        if let Form::Text(text) = form {
            values.push(VariableValue::Text(text.clone()).forms());
        }
        if let Some(number) = form.number() {
            let near = [number.next_down(), number, number.next_up()].into_iter();
            numbers.extend(near.filter(|it| it.is_finite()).map(OrderedFloat));
        }
    }
    for number in numbers {
        values.push(VariableValue::Number(number.0).forms());
        // A text that spells the number differently from all targets.
        values.push(vec![Form::Number(number)]);
    }
    values.extend([true, false].map(|value| VariableValue::Bool(value).forms()));
    values
}
