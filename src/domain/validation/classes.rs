//! The values of a variable, divided into classes that no condition can tell apart.

use std::collections::{BTreeSet, HashMap};

use crate::domain::analysis::{
    CompiledCondition, Holding, PossibleValues, ValueIndex, VariableValue,
};

/// The classes of a variable's values. The first contains the unanswered value.
#[derive(Clone, Debug)]
pub struct ValueClasses {
    values: ValueIndex,
    /// The class of each value.
    class_of: Vec<usize>,
    count: usize,
}

impl ValueClasses {
    /// The class of the unanswered value.
    pub const UNANSWERED: usize = 0;

    /// The classes of a variable that these conditions read. `keys` are the answers of the
    /// guide's observations that set it.
    pub fn new<'a>(
        possible: &PossibleValues,
        keys: impl Iterator<Item = &'a str>,
        conditions: &[&CompiledCondition],
    ) -> Self {
        let values = match possible {
            PossibleValues::Keys(keys) => keys.clone(),
            PossibleValues::Anything => {
                let keys = keys.map(|key| VariableValue::Text(key.to_owned()));
                ValueIndex::new(distinguishable_values(conditions).chain(keys).collect())
            }
        };
        let mut class_of = vec![Self::UNANSWERED; values.count()];
        let mut count = 1;
        for condition in conditions {
            let holding = values.holding(condition.operator, &condition.targets);
            // The listed values of one class become a new one.
            let mut new: HashMap<usize, usize> = HashMap::new();
            for value in holding.listed {
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
        Self {
            values,
            class_of,
            count: numbers.len(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The class of an answer of the guide's observations.
    pub fn of_key(&self, key: &str) -> usize {
        self.class_of_value(self.values.of_text(key))
    }

    /// The classes for which one of the conditions holds.
    pub fn holding(&self, condition: &CompiledCondition) -> Holding {
        let mut holding = self.values.holding(condition.operator, &condition.targets);
        for listed in &mut holding.listed {
            *listed = self.class_of_value(Some(*listed));
        }
        holding.listed.sort_unstable();
        holding.listed.dedup();
        holding
    }

    /// How many steps it takes to find [`Self::holding`].
    pub fn cost(&self, condition: &CompiledCondition) -> usize {
        self.values.cost(condition.operator, &condition.targets)
    }

    fn class_of_value(&self, value: Option<usize>) -> usize {
        let class = value.and_then(|value| self.class_of.get(value));
        class.copied().unwrap_or(Self::UNANSWERED)
    }
}

/// About this many values are tried per target, for a variable that can have any value.
pub const VALUES_PER_TARGET: usize = 8;

/// Values of every kind that the conditions could tell apart.
fn distinguishable_values(
    conditions: &[&CompiledCondition],
) -> impl Iterator<Item = VariableValue> {
    let targets = || conditions.iter().map(|one| &one.targets);
    let texts: BTreeSet<&str> = targets()
        .flat_map(|targets| targets.texts())
        .map(String::as_str)
        .collect();
    // Numbers by their bits, as doubles have no total order. Adding 0.0 turns -0 into 0.
    let numbers: BTreeSet<u64> = targets()
        .flat_map(|targets| targets.numbers().chain(targets.text_numbers()))
        .chain([0.0])
        .flat_map(|number| [number.next_down(), number, number.next_up()])
        .filter(|number| number.is_finite())
        .map(|number| (number + 0.0).to_bits())
        .collect();
    let other_text = unlike(&texts, |fillers| "x".repeat(fillers));
    // For each number, a text of it that no condition names.
    let spelled: Vec<String> = numbers
        .iter()
        .map(|bits| spelled_unlike(&texts, f64::from_bits(*bits)))
        .collect();
    let named = texts.into_iter().map(str::to_owned);
    let named = named.map(VariableValue::Text);
    let numbers = numbers
        .into_iter()
        .map(|bits| VariableValue::Number(f64::from_bits(bits)));
    [true, false]
        .map(VariableValue::Bool)
        .into_iter()
        .chain(["true", "false"].map(|text| VariableValue::Text(text.to_owned())))
        .chain(named)
        .chain([VariableValue::Text(other_text)])
        .chain(spelled.into_iter().map(VariableValue::Text))
        .chain(numbers)
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
    let mut fillers = 1;
    loop {
        let text = text(fillers);
        if !others.contains(text.as_str()) {
            return text;
        }
        fillers += 1;
    }
}
