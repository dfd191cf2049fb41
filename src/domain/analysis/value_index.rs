//! An index of values, which finds those for which a condition holds without comparing each.

use std::collections::HashSet;

use crate::domain::dependency::{Comparison, ConditionTarget};

use super::value::{TargetSet, VariableValue, bool_text, numeric_text};

/// Values, each listed once. [`VariableValue::Unanswered`] is not among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueIndex {
    values: Vec<VariableValue>,
    /// The indexes of the texts, in the order of texts.
    texts: Vec<usize>,
    /// The numbers in order, with their indexes.
    numbers: Vec<(f64, usize)>,
    /// The numbers of the numeric texts, likewise.
    text_numbers: Vec<(f64, usize)>,
    /// The indexes of false and true.
    bools: [Option<usize>; 2],
}

/// What a condition holds for, as the indexes of values, or of classes of values.
#[derive(Debug, PartialEq, Eq)]
pub struct Holding {
    /// What the condition tells apart from [`VariableValue::Unanswered`], in order.
    pub listed: Vec<usize>,
    /// Whether it holds for what is listed. For all others it has the opposite outcome.
    pub holds: bool,
}

impl ValueIndex {
    /// An index of these values. Those that are equal in type and value are listed once.
    pub fn new(mut values: Vec<VariableValue>) -> Self {
        let mut known = HashSet::new();
        let is_new = values.iter().map(|value| match value {
            VariableValue::Unanswered => false,
            VariableValue::Text(text) => known.insert((text.as_str(), None)),
            // Adding 0.0 turns -0 into 0.
            VariableValue::Number(number) => known.insert(("", Some((number + 0.0).to_bits()))),
            VariableValue::Bool(value) => known.insert((bool_text(*value), Some(0))),
        });
        let is_new: Vec<bool> = is_new.collect();
        let mut is_new = is_new.into_iter();
        values.retain(|_| is_new.next().unwrap_or_default());
        let mut index = Self::default();
        for (at, value) in values.iter().enumerate() {
            match value {
                VariableValue::Unanswered => {}
                VariableValue::Text(text) => {
                    index.texts.push(at);
                    let number = numeric_text(text).map(|number| (number + 0.0, at));
                    index.text_numbers.extend(number);
                }
                VariableValue::Number(number) => index.numbers.push((number + 0.0, at)),
                VariableValue::Bool(value) => {
                    let [no, yes] = &mut index.bools;
                    *if *value { yes } else { no } = Some(at);
                }
            }
        }
        index.texts.sort_unstable_by_key(|at| text_at(&values, *at));
        for numbers in [&mut index.numbers, &mut index.text_numbers] {
            numbers.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
        }
        Self { values, ..index }
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The values that are texts, in the order in which they were given.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.values.iter().filter_map(|value| match value {
            VariableValue::Text(text) => Some(text.as_str()),
            VariableValue::Unanswered | VariableValue::Number(_) | VariableValue::Bool(_) => None,
        })
    }

    /// The index of a text.
    pub fn of_text(&self, text: &str) -> Option<usize> {
        let texts = &self.texts;
        let found = texts.binary_search_by_key(&text, |at| text_at(&self.values, *at));
        texts.get(found.ok()?).copied()
    }

    /// Whether one of the values is a number or a numeric text.
    pub fn has_numeric(&self) -> bool {
        !self.numbers.is_empty() || !self.text_numbers.is_empty()
    }

    /// Whether one of the values equals a value.
    pub fn has(&self, value: &VariableValue) -> bool {
        match value {
            VariableValue::Unanswered => false,
            VariableValue::Text(text) => self.has_equal(&ConditionTarget::Text(text.clone())),
            VariableValue::Number(number) => self.has_equal(&ConditionTarget::Number(*number)),
            VariableValue::Bool(value) => self.has_equal(&ConditionTarget::Bool(*value)),
        }
    }

    /// Whether one of the values equals a target.
    pub fn has_equal(&self, target: &ConditionTarget) -> bool {
        self.equal(&TargetSet::new([target])).next().is_some()
    }

    /// Whether a condition with this operator and these targets has another outcome for one of
    /// the values than for [`VariableValue::Unanswered`].
    pub fn is_told_apart(&self, operator: Comparison, targets: &TargetSet) -> bool {
        match operator {
            Comparison::Equal | Comparison::NotEqual => self.equal(targets).next().is_some(),
            Comparison::Greater => self.greater(targets).next().is_some(),
            Comparison::Less => self.less(targets).next().is_some(),
        }
    }

    /// The values for which a condition with this operator and these targets holds.
    pub fn holding(&self, operator: Comparison, targets: &TargetSet) -> Holding {
        let mut listed: Vec<usize> = match operator {
            Comparison::Equal | Comparison::NotEqual => self.equal(targets).collect(),
            Comparison::Greater => self.greater(targets).collect(),
            Comparison::Less => self.less(targets).collect(),
        };
        listed.sort_unstable();
        listed.dedup();
        let holds = match operator {
            Comparison::Equal | Comparison::Greater | Comparison::Less => true,
            Comparison::NotEqual => false,
        };
        Holding { listed, holds }
    }

    /// How many steps it takes to find [`Self::holding`].
    pub fn cost(&self, operator: Comparison, targets: &TargetSet) -> usize {
        match operator {
            Comparison::Equal | Comparison::NotEqual => {
                let spellings = targets.numbers().next().map(|_| self.text_numbers.len());
                targets.count() + spellings.unwrap_or_default()
            }
            Comparison::Greater | Comparison::Less => {
                1 + self.numbers.len() + self.text_numbers.len()
            }
        }
    }

    /// The values that equal a target, some of them twice.
    fn equal(&self, targets: &TargetSet) -> impl Iterator<Item = usize> {
        let texts = targets.texts().iter();
        let texts = texts.flat_map(|text| {
            self.of_text(text)
                .into_iter()
                .chain(self.of_bool_text(text))
        });
        let bools = targets.bools().iter();
        let bools = bools.flat_map(|value| {
            let text = self.of_text(bool_text(*value));
            self.of_bool(*value).into_iter().chain(text)
        });
        // A number equals texts of it, but one text no other text of its number.
        let numbers = targets.numbers();
        let numbers = numbers.flat_map(|number| {
            equal_to(&self.numbers, number).chain(equal_to(&self.text_numbers, number))
        });
        let text_numbers = targets.text_numbers();
        let text_numbers = text_numbers.flat_map(|number| equal_to(&self.numbers, number));
        texts.chain(bools).chain(numbers).chain(text_numbers)
    }

    /// The values that are greater than a target.
    fn greater(&self, targets: &TargetSet) -> impl Iterator<Item = usize> {
        let least = targets.least();
        let both = [&self.numbers, &self.text_numbers].into_iter();
        both.flat_map(move |numbers| {
            let holds = move |number: f64| least.is_some_and(|least| number > least);
            let holding = numbers
                .iter()
                .rev()
                .take_while(move |(number, _)| holds(*number));
            holding.map(|(_, index)| *index)
        })
    }

    /// The values that are less than a target.
    fn less(&self, targets: &TargetSet) -> impl Iterator<Item = usize> {
        let greatest = targets.greatest();
        let both = [&self.numbers, &self.text_numbers].into_iter();
        both.flat_map(move |numbers| {
            let holds = move |number: f64| greatest.is_some_and(|greatest| number < greatest);
            let holding = numbers.iter().take_while(move |(number, _)| holds(*number));
            holding.map(|(_, index)| *index)
        })
    }

    fn of_bool(&self, value: bool) -> Option<usize> {
        let [no, yes] = self.bools;
        if value { yes } else { no }
    }

    fn of_bool_text(&self, text: &str) -> Option<usize> {
        let value = [true, false]
            .into_iter()
            .find(|value| bool_text(*value) == text);
        self.of_bool(value?)
    }
}

fn text_at(values: &[VariableValue], index: usize) -> &str {
    match values.get(index) {
        Some(VariableValue::Text(text)) => text,
        Some(VariableValue::Unanswered | VariableValue::Number(_) | VariableValue::Bool(_))
        | None => "",
    }
}

fn equal_to(numbers: &[(f64, usize)], number: f64) -> impl Iterator<Item = usize> {
    let first = numbers.partition_point(|(one, _)| *one < number);
    let rest = numbers.iter().skip(first);
    let equal = rest.take_while(move |(one, _)| *one == number);
    equal.map(|(_, index)| *index)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts() -> impl Strategy<Value = String> {
        const TEXTS: [&str; 11] = [
            "", "a", "1", "1.0", "10e-1", "-0", "0", "2", "true", "false", "x y",
        ];
        proptest::sample::select(&TEXTS[..]).prop_map(str::to_owned)
    }

    fn numbers() -> impl Strategy<Value = f64> {
        proptest::sample::select(&[-0.0, 0.0, 1.0, 2.0, f64::MAX, f64::MIN][..])
    }

    fn values() -> impl Strategy<Value = VariableValue> {
        prop_oneof![
            texts().prop_map(VariableValue::Text),
            numbers().prop_map(VariableValue::Number),
            any::<bool>().prop_map(VariableValue::Bool),
        ]
    }

    fn targets() -> impl Strategy<Value = Vec<ConditionTarget>> {
        let target = prop_oneof![
            texts().prop_map(ConditionTarget::Text),
            numbers().prop_map(ConditionTarget::Number),
            any::<bool>().prop_map(ConditionTarget::Bool),
        ];
        proptest::collection::vec(target, 1..5)
    }

    proptest! {
        #[test]
        fn the_index_finds_the_values_for_which_each_comparison_holds(
            values in proptest::collection::vec(values(), 0..8),
            targets in targets(),
        ) {
            let index = ValueIndex::new(values);
            let set = TargetSet::new(&targets);
            for operator in Comparison::ALL {
                let holds = |value: &VariableValue| set.satisfied_by(operator, value);
                let Holding { listed, holds: unlike_unanswered } = index.holding(operator, &set);
                let found = (0..index.count())
                    .filter(|value| listed.contains(value) == unlike_unanswered);
                let found: Vec<usize> = found.collect();
                let expected = index.values.iter().enumerate();
                let expected = expected.filter(|(_, value)| holds(value));
                let expected: Vec<usize> = expected.map(|(index, _)| index).collect();
                prop_assert_eq!(found, expected, "{:?} {:?}", operator, targets);
                let unanswered = !unlike_unanswered;
                prop_assert_eq!(unanswered, holds(&VariableValue::Unanswered));
                let differ = index.values.iter().any(|value| holds(value) != unanswered);
                prop_assert_eq!(index.is_told_apart(operator, &set), differ);
            }
            for target in &targets {
                let equal = index.values.iter().any(|value| value.equals(target));
                prop_assert_eq!(index.has_equal(target), equal);
            }
        }
    }
}
