//! Values of variables, and the sets of values and targets that conditions compare.

use std::{collections::HashSet, sync::Arc};

use crate::domain::dependency::{Comparison, ConditionTarget};

/// The value of a variable. Two are equal if type and value are; 0 and -0 are equal.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    Unanswered,
    /// An answer is the text of its key.
    Text(String),
    /// It is finite.
    Number(f64),
    Bool(bool),
}

/// A comparable form of a value or target. A value and a target are equal if one form matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    Text(Arc<str>),
    /// The bits of a number, or of the number that a text value spells.
    Number(u64),
    /// The bits of a number, or of the number that a text target spells. It differs from
    /// [`Self::Number`], as two spellings of a number are different texts.
    SpelledNumber(u64),
    Bool(bool),
}

impl Form {
    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(bits) | Self::SpelledNumber(bits) => Some(f64::from_bits(*bits)),
            Self::Text(_) | Self::Bool(_) => None,
        }
    }
}

impl VariableValue {
    /// The number that `>` and `<` compare: a number, or a numeric text.
    pub fn numeric(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => numeric_text(text),
            Self::Unanswered | Self::Bool(_) => None,
        }
    }

    /// Its forms. The first one is the value itself.
    fn forms(&self) -> Vec<Form> {
        match self {
            Self::Unanswered => Vec::new(),
            Self::Text(text) => [Form::Text(text.as_str().into())]
                .into_iter()
                .chain(numeric_text(text).map(|number| Form::Number(bits(number))))
                .chain(bool_of_text(text).map(Form::Bool))
                .collect(),
            Self::Number(number) => vec![
                Form::Number(bits(*number)),
                Form::SpelledNumber(bits(*number)),
            ],
            Self::Bool(value) => vec![Form::Bool(*value), Form::Text(bool_text(*value).into())],
        }
    }
}

fn target_forms(target: &ConditionTarget) -> Vec<Form> {
    match target {
        ConditionTarget::Text(text) => [Form::Text(text.as_str().into())]
            .into_iter()
            .chain(numeric_text(text).map(|number| Form::SpelledNumber(bits(number))))
            .collect(),
        ConditionTarget::Number(number) => vec![Form::Number(bits(*number))],
        ConditionTarget::Bool(value) => vec![Form::Bool(*value)],
    }
}

/// The bits of a number. Adding 0.0 turns -0 into 0.
fn bits(number: f64) -> u64 {
    (number + 0.0).to_bits()
}

/// The targets of one or more conditions.
#[derive(Clone, Debug, Default)]
pub struct TargetSet {
    /// Sorted, each once.
    forms: Vec<Form>,
    /// The least and the greatest target that is a number or numeric.
    bounds: Option<(f64, f64)>,
}

impl TargetSet {
    pub fn new<'a>(targets: impl IntoIterator<Item = &'a ConditionTarget>) -> Self {
        Self::from_forms(targets.into_iter().flat_map(target_forms).collect())
    }

    /// All targets of several sets.
    pub fn union<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        let forms = sets.into_iter().flat_map(|set| set.forms.iter().cloned());
        Self::from_forms(forms.collect())
    }

    fn from_forms(mut forms: Vec<Form>) -> Self {
        forms.sort_unstable();
        forms.dedup();
        let bounds = forms
            .iter()
            .filter_map(Form::number)
            .fold(None, |bounds, number| {
                let (least, greatest) = bounds.unwrap_or((number, number));
                Some((f64::min(least, number), f64::max(greatest, number)))
            });
        Self { forms, bounds }
    }

    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.forms.iter().filter_map(|form| match form {
            Form::Text(text) => Some(text.as_ref()),
            Form::Number(_) | Form::SpelledNumber(_) | Form::Bool(_) => None,
        })
    }

    /// The targets that are numbers or numeric.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        self.forms.iter().filter_map(Form::number)
    }

    /// How many targets there are; a numeric text counts twice.
    pub fn count(&self) -> usize {
        self.forms.len()
    }

    /// Whether a value equals one of the targets.
    pub fn contains(&self, value: &VariableValue) -> bool {
        let mut forms = value.forms().into_iter();
        forms.any(|form| self.forms.binary_search(&form).is_ok())
    }

    pub fn least(&self) -> Option<f64> {
        self.bounds.map(|(least, _)| least)
    }

    pub fn greatest(&self) -> Option<f64> {
        self.bounds.map(|(_, greatest)| greatest)
    }

    /// Whether a condition with these targets holds for a value. `=`, `>` and `<` need one
    /// target for which they hold; `!=` needs all.
    pub fn satisfied_by(&self, operator: Comparison, value: &VariableValue) -> bool {
        let number = || value.numeric();
        match operator {
            Comparison::Equal => self.contains(value),
            Comparison::NotEqual => !self.contains(value),
            Comparison::Greater => self.least().zip(number()).is_some_and(|(it, n)| n > it),
            Comparison::Less => self.greatest().zip(number()).is_some_and(|(it, n)| n < it),
        }
    }
}

/// Answered values, each listed once and known by its index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueSet {
    count: usize,
    /// The values that are texts, in the order in which they were given.
    texts: Vec<Arc<str>>,
    /// The forms of the values, sorted, each with the index of its value.
    forms: Vec<(Form, usize)>,
    /// The numeric values by their numbers, with their indexes.
    numbers: Vec<(f64, usize)>,
}

impl ValueSet {
    pub fn new(values: impl IntoIterator<Item = VariableValue>) -> Self {
        let mut set = Self::default();
        let mut known: HashSet<Form> = HashSet::new();
        for value in values {
            let forms = value.forms();
            let Some(first) = forms.first().filter(|first| known.insert((*first).clone())) else {
                continue;
            };
            if let Form::Text(text) = first {
                set.texts.push(Arc::clone(text));
            }
            let index = set.count;
            set.count += 1;
            set.forms
                .extend(forms.into_iter().map(|form| (form, index)));
            set.numbers
                .extend(value.numeric().map(|number| (number, index)));
        }
        set.forms.sort_unstable();
        set.numbers
            .sort_by(|(one, _), (other, _)| one.total_cmp(other));
        set
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The values that are texts, in the order in which they were given.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(AsRef::as_ref)
    }

    pub fn index_of_text(&self, text: &str) -> Option<usize> {
        self.with_form(&Form::Text(text.into()))
            .first()
            .map(|(_, index)| *index)
    }

    /// Whether one of the values is a number or a numeric text.
    pub fn has_numeric(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Whether one of the values equals a target.
    pub fn has_equal(&self, target: &ConditionTarget) -> bool {
        let mut forms = target_forms(target).into_iter();
        forms.any(|form| !self.with_form(&form).is_empty())
    }

    /// The values for which a condition has another outcome than for no answer: for which `=`, `>`
    /// or `<` holds, or `!=` does not. Their indexes are sorted.
    pub fn distinguished_from_unanswered(
        &self,
        operator: Comparison,
        targets: &TargetSet,
    ) -> Vec<usize> {
        let numbers = || self.numbers.iter();
        let mut indexes: Vec<usize> = match operator {
            Comparison::Equal | Comparison::NotEqual => {
                let forms = targets.forms.iter().flat_map(|form| self.with_form(form));
                forms.map(|(_, index)| *index).collect()
            }
            Comparison::Greater => {
                let is_greater = |number: f64| targets.least().is_some_and(|it| number > it);
                let greater = numbers()
                    .rev()
                    .take_while(|(number, _)| is_greater(*number));
                greater.map(|(_, index)| *index).collect()
            }
            Comparison::Less => {
                let is_less = |number: f64| targets.greatest().is_some_and(|it| number < it);
                let less = numbers().take_while(|(number, _)| is_less(*number));
                less.map(|(_, index)| *index).collect()
            }
        };
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    }

    /// The forms that equal a form, each with the index of its value.
    fn with_form(&self, form: &Form) -> &[(Form, usize)] {
        let first = self.forms.partition_point(|(one, _)| one < form);
        let after = self.forms.partition_point(|(one, _)| one <= form);
        self.forms.get(first..after).unwrap_or_default()
    }
}

/// The number of a text that consists of one finite JSON number.
pub fn numeric_text(text: &str) -> Option<f64> {
    // The JSON parser accepts white space around a number.
    let begins = |c: char| c == '-' || c.is_ascii_digit();
    if !text.starts_with(begins) || !text.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number: f64 = serde_json::from_str(text).ok()?;
    number.is_finite().then_some(number)
}

fn bool_text(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn bool_of_text(text: &str) -> Option<bool> {
    [true, false]
        .into_iter()
        .find(|value| text == bool_text(*value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn equals(value: &VariableValue, target: &ConditionTarget) -> bool {
        TargetSet::new([target]).contains(value)
    }

    #[test]
    fn a_text_is_numeric_when_all_of_it_is_a_finite_json_number() {
        for (text, number) in [
            ("0", 0.0),
            ("-0", 0.0),
            ("12.5", 12.5),
            ("1e3", 1000.0),
            ("1E+3", 1000.0),
            ("-2.5e-1", -0.25),
            ("9007199254740993", 9_007_199_254_740_992.0),
        ] {
            assert_eq!(numeric_text(text), Some(number), "{text}");
        }
        for text in [
            "", " 1", "1 ", "+1", "01", ".5", "5.", "1e", "0x10", "1e999", "NaN", "Infinity", "１",
            "1,5", "- 1",
        ] {
            assert_eq!(numeric_text(text), None, "{text}");
        }
    }

    #[test]
    fn values_equal_targets_across_types_only_as_number_text_and_bool_text() {
        let text = |text: &str| VariableValue::Text(text.to_owned());
        let target = |text: &str| ConditionTarget::Text(text.to_owned());
        assert!(equals(&text("5.0"), &ConditionTarget::Number(5.0)));
        assert!(equals(&VariableValue::Number(5.0), &target("5.0")));
        assert!(!equals(&text("5.0"), &target("5")));
        assert!(equals(
            &VariableValue::Number(0.0),
            &ConditionTarget::Number(-0.0)
        ));
        assert!(equals(&VariableValue::Bool(true), &target("true")));
        assert!(!equals(&VariableValue::Bool(true), &target("True")));
        assert!(equals(&text("false"), &ConditionTarget::Bool(false)));
        assert!(!equals(
            &VariableValue::Number(1.0),
            &ConditionTarget::Bool(true)
        ));
        assert!(!equals(&VariableValue::Unanswered, &target("")));
    }

    #[test]
    fn of_several_bounds_one_suffices() {
        let text = |text: &str| ConditionTarget::Text(text.to_owned());
        let bounds = TargetSet::new(&[text("10"), ConditionTarget::Number(20.0), text("x")]);
        let value = VariableValue::Number(15.0);
        assert!(bounds.satisfied_by(Comparison::Greater, &value));
        assert!(bounds.satisfied_by(Comparison::Less, &value));
        assert!(!bounds.satisfied_by(Comparison::Greater, &VariableValue::Number(10.0)));
        assert!(!bounds.satisfied_by(Comparison::Less, &VariableValue::Bool(true)));
    }

    #[test]
    fn an_unanswered_variable_satisfies_not_equal_alone() {
        let targets = [ConditionTarget::Number(0.0)];
        for operator in Comparison::ALL {
            let holds = TargetSet::new(&targets).satisfied_by(operator, &VariableValue::Unanswered);
            assert_eq!(holds, operator == Comparison::NotEqual, "{operator:?}");
        }
    }

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
        fn a_set_finds_the_values_that_each_comparison_tells_apart(
            given in proptest::collection::vec(values(), 0..8),
            targets in targets(),
        ) {
            let mut values: Vec<VariableValue> = Vec::new();
            for value in &given {
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
            let set = ValueSet::new(given);
            prop_assert_eq!(set.count(), values.len());
            let compared = TargetSet::new(&targets);
            for operator in Comparison::ALL {
                let holds = |value: &VariableValue| compared.satisfied_by(operator, value);
                let unanswered = holds(&VariableValue::Unanswered);
                let expected = values.iter().enumerate();
                let expected = expected.filter(|(_, value)| holds(value) != unanswered);
                let expected: Vec<usize> = expected.map(|(index, _)| index).collect();
                let found = set.distinguished_from_unanswered(operator, &compared);
                prop_assert_eq!(found, expected, "{:?} {:?}", operator, targets);
            }
            for target in &targets {
                let equal = values.iter().any(|value| equals(value, target));
                prop_assert_eq!(set.has_equal(target), equal);
            }
        }
    }
}
