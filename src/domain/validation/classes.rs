//! The values of a variable, divided into classes that no condition can tell apart.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::analysis::{CompiledCondition, PossibleValues, ValueIndex, VariableValue};

/// The classes of a variable's values. The first contains the unanswered value.
#[derive(Clone, Debug)]
pub struct ValueClasses {
    values: ValueIndex,
    /// The class of each value.
    class_of: Vec<usize>,
    count: usize,
}

/// The classes for which a condition holds.
#[derive(Debug)]
pub struct HoldingClasses {
    /// The classes that the condition tells apart from the unanswered value, in order.
    pub classes: Vec<usize>,
    /// Whether it holds for these classes. For all others it has the opposite outcome.
    pub holds: bool,
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
        let mut classes = Self {
            class_of: vec![Self::UNANSWERED; values.count()],
            values,
            count: 1,
        };
        // How many values each class has. The first has the unanswered value, too.
        let mut sizes = vec![1 + classes.values.count()];
        for condition in conditions {
            classes.split(condition, &mut sizes);
        }
        classes.renumber();
        classes
    }

    /// Moves the values that a condition tells apart from others of their class into new
    /// classes.
    fn split(&mut self, condition: &CompiledCondition, sizes: &mut Vec<usize>) {
        let holding = self.values.holding(condition.operator, &condition.targets);
        let (values, _) = holding.told_apart();
        let mut moved: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for value in values {
            let class = self.class_of.get(*value).copied().unwrap_or_default();
            moved.entry(class).or_default().push(*value);
        }
        for (class, values) in moved {
            let Some(size) = sizes.get_mut(class).filter(|size| **size > values.len()) else {
                continue;
            };
            *size -= values.len();
            let new = sizes.len();
            sizes.push(values.len());
            for value in values {
                if let Some(class) = self.class_of.get_mut(value) {
                    *class = new;
                }
            }
        }
        self.count = sizes.len();
    }

    /// Numbers the classes in the order of their first values.
    fn renumber(&mut self) {
        let mut numbers = vec![None; self.count];
        if let Some(unanswered) = numbers.first_mut() {
            *unanswered = Some(Self::UNANSWERED);
        }
        let mut next = 1;
        for class in &mut self.class_of {
            if let Some(number) = numbers.get_mut(*class) {
                *class = *number.get_or_insert_with(|| {
                    next += 1;
                    next - 1
                });
            }
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
    pub fn holding(&self, condition: &CompiledCondition) -> HoldingClasses {
        let holding = self.values.holding(condition.operator, &condition.targets);
        let (values, holds) = holding.told_apart();
        let classes = values.iter().map(|value| self.class_of_value(Some(*value)));
        let mut classes: Vec<usize> = classes.collect();
        classes.sort_unstable();
        classes.dedup();
        HoldingClasses { classes, holds }
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
