//! The values of a variable, divided into classes that no condition can tell apart.

use std::collections::{BTreeSet, HashMap};

use crate::domain::{
    analysis::{CompiledCondition, PossibleValues, ValueSet, VariableValue},
    dependency::Comparison,
};

use super::budget::{Budget, Work};

/// About this many values are tried per target, for a variable that can have any value.
const VALUES_PER_TARGET: usize = 8;

/// The classes of a variable's values. The first contains the unanswered value.
#[derive(Clone, Debug)]
pub struct ValueClasses {
    values: ValueSet,
    class_of: Vec<usize>,
    count: usize,
}

impl ValueClasses {
    /// The class of the unanswered value.
    pub const UNANSWERED: usize = 0;

    /// The classes of a variable that these conditions read; `None` if to find them takes too much
    /// work. `keys` are the answers of the guide's observations that set it.
    pub fn new<'a>(
        possible: &PossibleValues,
        keys: impl Iterator<Item = &'a str>,
        conditions: &[&CompiledCondition],
        budget: &Budget<'_>,
    ) -> Option<Self> {
        if !budget.spend(Work::Lookups, lookups(possible, conditions)) {
            return None;
        }
        let values = match possible {
            PossibleValues::Keys(keys) => keys.clone(),
            PossibleValues::Anything => {
                let keys = keys.map(|key| VariableValue::Text(key.to_owned()));
                ValueSet::new(distinguishable_values(conditions).chain(keys))
            }
        };
        let mut class_of = vec![Self::UNANSWERED; values.count()];
        let mut count = 1;
        for condition in conditions {
            // The values of one class that the condition tells apart become a new class.
            let mut new: HashMap<usize, usize> = HashMap::new();
            for value in
                values.distinguished_from_unanswered(condition.operator, &condition.targets)
            {
                if let Some(class) = class_of.get_mut(value) {
                    let next = count + new.len();
                    *class = *new.entry(*class).or_insert(next);
                }
            }
            count += new.len();
        }
        // Classes without values are dropped, but for the first one, which has the unanswered value.
        // The others are numbered in the order of their first values.
        let mut numbers = HashMap::from([(Self::UNANSWERED, Self::UNANSWERED)]);
        for class in &mut class_of {
            let next = numbers.len();
            *class = *numbers.entry(*class).or_insert(next);
        }
        Some(Self {
            values,
            class_of,
            count: numbers.len(),
        })
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The class of an answer of the guide's observations.
    pub fn of_key(&self, key: &str) -> usize {
        let value = self.values.index_of_text(key);
        value.map_or(Self::UNANSWERED, |value| self.of_value(value))
    }

    /// The classes for which a condition has another outcome than for [`Self::UNANSWERED`].
    pub fn distinguished_from_unanswered(&self, condition: &CompiledCondition) -> BTreeSet<usize> {
        let values = self
            .values
            .distinguished_from_unanswered(condition.operator, &condition.targets);
        values
            .into_iter()
            .map(|value| self.of_value(value))
            .collect()
    }

    fn of_value(&self, value: usize) -> usize {
        self.class_of
            .get(value)
            .copied()
            .unwrap_or(Self::UNANSWERED)
    }
}

/// About how many values and targets are looked up to find the classes of a variable and the
/// conditions that hold for them. A condition is looked up at each step of a walk that reads it.
fn lookups(possible: &PossibleValues, conditions: &[&CompiledCondition]) -> usize {
    let targets: usize = conditions.iter().map(|one| one.targets.count()).sum();
    let bounds = conditions.iter().filter(|one| match one.operator {
        Comparison::Equal | Comparison::NotEqual => false,
        Comparison::Greater | Comparison::Less => true,
    });
    let values = match possible {
        PossibleValues::Keys(keys) => keys.count(),
        PossibleValues::Anything => VALUES_PER_TARGET * targets,
    };
    // A bound may hold for every value.
    values
        .saturating_mul(1 + bounds.count())
        .saturating_add(2 * targets)
}

/// Values of every kind that the conditions could tell apart.
fn distinguishable_values(
    conditions: &[&CompiledCondition],
) -> impl Iterator<Item = VariableValue> {
    let targets = || conditions.iter().map(|one| &one.targets);
    let texts: BTreeSet<&str> = targets().flat_map(|targets| targets.texts()).collect();
    // Numbers by their bits, as doubles have no total order. Adding 0.0 turns -0 into 0.
    let numbers: BTreeSet<u64> = targets()
        .flat_map(|targets| targets.numbers())
        .chain([0.0])
        .flat_map(|number| [number.next_down(), number, number.next_up()])
        .filter(|number| number.is_finite())
        .map(|number| (number + 0.0).to_bits())
        .collect();
    let numbers: Vec<f64> = numbers.into_iter().map(f64::from_bits).collect();
    let other_text = unlike(&texts, |fillers| "x".repeat(fillers));
    // For each number, a text of it that no condition names.
    let spelled = numbers.iter().map(|number| spelled_unlike(&texts, *number));
    let spelled: Vec<String> = spelled.collect();
    let named = texts.into_iter().map(str::to_owned);
    let bool_texts = ["true", "false"].map(str::to_owned);
    let texts = named.chain(bool_texts).chain([other_text]).chain(spelled);
    let bools = [true, false].map(VariableValue::Bool);
    texts
        .map(VariableValue::Text)
        .chain(bools)
        .chain(numbers.into_iter().map(VariableValue::Number))
}

/// A text of the number that differs from the others: its exponent begins with zeros.
fn spelled_unlike(others: &BTreeSet<&str>, number: f64) -> String {
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = exponent.trim_start_matches('-');
    let sign = if digits == exponent { "" } else { "-" };
    unlike(others, |fillers| {
        format!("{mantissa}e{sign}{}{digits}", "0".repeat(fillers))
    })
}

/// The text with the fewest fillers that differs from all others.
fn unlike(others: &BTreeSet<&str>, text: impl Fn(usize) -> String) -> String {
    let texts = (1..).map(text);
    let mut unlike = texts.filter(|text| !others.contains(text.as_str()));
    unlike.next().unwrap_or_default()
}
