//! The values of a variable, divided into classes that no condition can tell apart.

use std::collections::{BTreeSet, HashMap};

use crate::domain::analysis::{CompiledCondition, PossibleValues, VariableValue};

/// The classes of a variable's values. The first contains the unanswered value.
#[derive(Clone, Debug)]
pub struct ValueClasses {
    /// A value of each class.
    representatives: Vec<VariableValue>,
    /// The class of each possible key.
    by_key: HashMap<String, usize>,
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
        let mut classes = Self {
            representatives: Vec::new(),
            by_key: HashMap::new(),
        };
        let mut known = HashMap::new();
        let mut add = |value: VariableValue| {
            let outcomes: Vec<bool> = conditions.iter().map(|one| one.holds(&value)).collect();
            let next = classes.representatives.len();
            let class = *known.entry(outcomes).or_insert(next);
            if class == next {
                classes.representatives.push(value);
            }
            class
        };
        add(VariableValue::Unanswered);
        let keys: Vec<String> = match possible {
            PossibleValues::Keys(keys) => keys.clone(),
            PossibleValues::Anything => {
                distinguishable_values(conditions).for_each(|value| {
                    add(value);
                });
                keys.map(str::to_owned).collect()
            }
        };
        let by_key = keys.into_iter().map(|key| {
            let class = add(VariableValue::Text(key.clone()));
            (key, class)
        });
        let by_key = by_key.collect();
        Self { by_key, ..classes }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.representatives.len()
    }

    /// The class of an answer of the guide's observations.
    pub fn of_key(&self, key: &str) -> usize {
        let class = self.by_key.get(key).copied();
        class.unwrap_or(Self::UNANSWERED)
    }

    /// Whether a condition holds for each class, in order.
    pub fn outcomes(&self, condition: &CompiledCondition) -> impl Iterator<Item = bool> {
        let representatives = self.representatives.iter();
        representatives.map(|value| condition.holds(value))
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
        .flat_map(|targets| targets.numbers())
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
