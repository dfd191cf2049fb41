//! Values of variables, and the criteria of conditions.

mod classes;

use std::collections::BTreeSet;

use ordered_float::OrderedFloat;

use crate::domain::dependency::{Comparison, Condition, ConditionTarget};

pub use classes::ValueClasses;

/// The value of a variable. Values are equal if their types and values are; 0 and -0 are equal.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    Unanswered,
    /// An answer is the text of its key.
    Text(String),
    /// A finite number.
    Number(f64),
    Bool(bool),
}

/// A comparable form of a value or target. A value and a target are equal if they share a form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    Text(String),
    /// A number, or the number that a text value spells.
    Number(OrderedFloat<f64>),
    /// A number, or the number that a text target spells. It differs from [`Self::Number`], because
    /// two spellings of a number are different texts.
    SpelledNumber(OrderedFloat<f64>),
    Bool(bool),
}

impl Form {
    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) | Self::SpelledNumber(number) => Some(number.0),
            Self::Text(_) | Self::Bool(_) => None,
        }
    }
}

impl VariableValue {
    /// The number that `>` and `<` compare: a number, or a numeric text.
    pub fn numeric(&self) -> Option<f64> {
        self.forms().iter().find_map(Form::number)
    }

    fn forms(&self) -> Vec<Form> {
        match self {
            Self::Unanswered => Vec::new(),
            Self::Text(text) => {
                let number = numeric_text(text).map(|number| Form::Number(number.into()));
                let bool = text.parse().ok().map(Form::Bool);
                let text = Some(Form::Text(text.clone()));
                [text, number, bool].into_iter().flatten().collect()
            }
            Self::Number(number) => {
                let number = OrderedFloat(*number);
                vec![Form::Number(number), Form::SpelledNumber(number)]
            }
            Self::Bool(value) => vec![Form::Bool(*value), Form::Text(value.to_string())],
        }
    }
}

fn target_forms(target: &ConditionTarget) -> Vec<Form> {
    match target {
        ConditionTarget::Text(text) => {
            let number = numeric_text(text).map(|number| Form::SpelledNumber(number.into()));
            let text = Some(Form::Text(text.clone()));
            [text, number].into_iter().flatten().collect()
        }
        ConditionTarget::Number(number) => vec![Form::Number(OrderedFloat(*number))],
        ConditionTarget::Bool(value) => vec![Form::Bool(*value)],
    }
}

/// What a condition requires of a value: an operator, and the forms of its targets, sorted and
/// without duplicates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Criterion {
    pub operator: Comparison,
    targets: Vec<Form>,
}

impl Criterion {
    pub fn new(condition: &Condition) -> Self {
        let targets = condition.targets.iter().flat_map(target_forms);
        Self::from_forms(condition.operator, targets)
    }

    /// A criterion that tells a value apart from no answer if one of the criteria with this
    /// operator does.
    pub fn merge(operator: Comparison, criteria: &[&Self]) -> Self {
        let merged = criteria.iter().filter(|one| one.operator == operator);
        Self::from_forms(operator, merged.flat_map(|one| one.targets.iter().cloned()))
    }

    fn from_forms(operator: Comparison, forms: impl Iterator<Item = Form>) -> Self {
        let mut targets: Vec<Form> = forms.collect();
        targets.sort_unstable();
        targets.dedup();
        Self { operator, targets }
    }

    /// The number of targets; a numeric text counts twice.
    pub fn target_count(&self) -> usize {
        self.targets.len()
    }

    /// The target that decides: the smallest for `>`, the largest for `<`. `None` for other
    /// operators, or if no target is numeric.
    pub fn bound(&self) -> Option<f64> {
        let numbers = self.targets.iter().filter_map(Form::number);
        match self.operator {
            Comparison::Equal | Comparison::NotEqual => None,
            Comparison::Greater => numbers.min_by(f64::total_cmp),
            Comparison::Less => numbers.max_by(f64::total_cmp),
        }
    }

    /// Whether it holds for a value. `=`, `>` and `<` must hold for one target; `!=` must hold for
    /// all.
    pub fn holds(&self, value: &VariableValue) -> bool {
        self.tells_apart(value) != (self.operator == Comparison::NotEqual)
    }

    /// Whether it holds for a value but not for no answer, or vice versa.
    pub fn tells_apart(&self, value: &VariableValue) -> bool {
        match self.operator {
            Comparison::Equal | Comparison::NotEqual => {
                let mut forms = value.forms().into_iter();
                forms.any(|form| self.targets.binary_search(&form).is_ok())
            }
            Comparison::Greater | Comparison::Less => {
                let number_and_bound = value.numeric().zip(self.bound());
                number_and_bound.is_some_and(|(number, it)| is_beyond(number, self.operator, it))
            }
        }
    }
}

/// Whether `>` or `<` holds for a number.
fn is_beyond(number: f64, operator: Comparison, bound: f64) -> bool {
    match operator {
        Comparison::Less => number < bound,
        _ => number > bound,
    }
}

/// The keys that a variable can have, each once, and all their forms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeySet {
    keys: Vec<String>,
    forms: BTreeSet<Form>,
}

impl KeySet {
    /// Keeps the order of the keys.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Self::default();
        for key in keys {
            if set.forms.insert(Form::Text(key.to_owned())) {
                let value = VariableValue::Text(key.to_owned());
                set.forms.extend(value.forms());
                set.keys.push(key.to_owned());
            }
        }
        set
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// The numbers that the keys spell, in their order.
    fn numbers(&self) -> impl DoubleEndedIterator<Item = f64> {
        let number = |number| Form::Number(OrderedFloat(number));
        let numbers = self.forms.range(number(f64::MIN)..=number(f64::MAX));
        numbers.filter_map(Form::number)
    }

    pub fn has_numeric(&self) -> bool {
        self.numbers().next().is_some()
    }

    /// Whether the value is one of the keys, in any form. Always true for an unanswered value.
    pub fn has(&self, value: &VariableValue) -> bool {
        // The first form is the value itself.
        let forms = value.forms();
        forms.first().is_none_or(|form| self.forms.contains(form))
    }

    /// Whether one of the keys equals a target.
    pub fn has_equal(&self, target: &ConditionTarget) -> bool {
        let mut forms = target_forms(target).into_iter();
        forms.any(|form| self.forms.contains(&form))
    }

    /// Whether a criterion [tells](Criterion::tells_apart) one of the keys apart from no answer.
    pub fn is_told_apart(&self, criterion: &Criterion) -> bool {
        let outermost = match criterion.operator {
            Comparison::Equal | Comparison::NotEqual => {
                let mut targets = criterion.targets.iter();
                return targets.any(|form| self.forms.contains(form));
            }
            Comparison::Greater => self.numbers().next_back(),
            Comparison::Less => self.numbers().next(),
        };
        let number_and_bound = outermost.zip(criterion.bound());
        number_and_bound.is_some_and(|(number, it)| is_beyond(number, criterion.operator, it))
    }
}

/// Whether `>` and `<` compare with a target.
pub fn is_numeric(target: &ConditionTarget) -> bool {
    let forms = target_forms(target);
    forms.iter().any(|form| form.number().is_some())
}

/// The number of a text that consists of one finite JSON number.
fn numeric_text(text: &str) -> Option<f64> {
    // The JSON parser accepts white space around a number.
    let begins = |c: char| c == '-' || c.is_ascii_digit();
    if !text.starts_with(begins) || !text.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number: f64 = serde_json::from_str(text).ok()?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::indexing_slicing)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::domain::analysis::{Budget, NEVER};

    fn criterion(operator: Comparison, targets: &[ConditionTarget]) -> Criterion {
        Criterion::from_forms(operator, targets.iter().flat_map(target_forms))
    }

    #[test]
    fn a_text_is_numeric_when_all_of_it_is_a_finite_json_number() {
        for (text, number) in [
            ("-0", 0.0),
            ("12.5", 12.5),
            ("1E+3", 1000.0),
            ("-2.5e-1", -0.25),
            ("9007199254740993", 9_007_199_254_740_992.0),
        ] {
            assert_eq!(numeric_text(text), Some(number), "{text}");
        }
        for text in [
            "", " 1", "1 ", "+1", "01", ".5", "5.", "1e", "0x10", "1e999", "NaN", "１", "1,5",
            "- 1",
        ] {
            assert_eq!(numeric_text(text), None, "{text}");
        }
    }

    #[test]
    fn values_equal_targets_across_types_only_as_number_text_and_bool_text() {
        use ConditionTarget as Target;
        use VariableValue::{Bool, Number, Text, Unanswered};
        for (value, target, equal) in [
            (Text("5.0".to_owned()), Target::Number(5.0), true),
            (Number(5.0), Target::Text("5.0".to_owned()), true),
            (Text("5.0".to_owned()), Target::Text("5".to_owned()), false),
            (Number(0.0), Target::Number(-0.0), true),
            (Bool(true), Target::Text("true".to_owned()), true),
            (Bool(true), Target::Text("True".to_owned()), false),
            (Text("false".to_owned()), Target::Bool(false), true),
            (Number(1.0), Target::Bool(true), false),
            (Unanswered, Target::Text(String::new()), false),
        ] {
            let equals = criterion(Comparison::Equal, std::slice::from_ref(&target));
            assert_eq!(equals.holds(&value), equal, "{value:?} {target:?}");
        }
    }

    const TEXTS: [&str; 11] = [
        "", "a", "1", "1.0", "10e-1", "-0", "0", "2", "true", "false", "x y",
    ];

    fn target() -> impl Strategy<Value = ConditionTarget> {
        let texts = TEXTS.map(|text| ConditionTarget::Text(text.to_owned()));
        let numbers = [-0.0, 0.0, 1.0, 1.5, 2.0, f64::MAX, f64::MIN].map(ConditionTarget::Number);
        let bools = [true, false].map(ConditionTarget::Bool);
        select([&texts[..], &numbers, &bools].concat())
    }

    fn value(target: ConditionTarget) -> VariableValue {
        match target {
            ConditionTarget::Text(text) => VariableValue::Text(text),
            ConditionTarget::Number(number) => VariableValue::Number(number),
            ConditionTarget::Bool(value) => VariableValue::Bool(value),
        }
    }

    proptest! {
        #[test]
        fn criteria_tell_the_classes_of_values_apart_as_they_do_values(
            keys in vec(select(&TEXTS[..]), 0..8),
            value in target().prop_map(value),
            targets in vec(vec(target(), 1..5), 1..4),
        ) {
            let criteria = targets.iter().flat_map(|targets| {
                Comparison::ALL.map(|operator| criterion(operator, targets))
            });
            let criteria: Vec<Criterion> = criteria.collect();
            let distinct: BTreeSet<&Criterion> = criteria.iter().collect();
            let budget = Budget::new(0, NEVER);
            let set = KeySet::new(keys.iter().copied());
            let classes_of = |possible| {
                let keys = keys.iter().copied();
                ValueClasses::new(possible, keys, &distinct, &budget).expect("within the budget")
            };
            let is_like = |classes: &ValueClasses<'_>, class: usize, value: &VariableValue| {
                criteria.iter().all(|criterion| {
                    classes.told_apart(criterion).contains(&class) == criterion.tells_apart(value)
                        && classes.outcomes(criterion)[class] == criterion.holds(value)
                })
            };
            let anything = classes_of(None);
            for classes in [&classes_of(Some(&set)), &anything] {
                for key in &keys {
                    let value = VariableValue::Text((*key).to_owned());
                    prop_assert!(is_like(classes, classes.key_class(key), &value), "{key}");
                }
                let unanswered = ValueClasses::UNANSWERED;
                prop_assert!(is_like(classes, unanswered, &VariableValue::Unanswered));
            }
            let mut all = 0..anything.count();
            prop_assert!(all.any(|class| is_like(&anything, class, &value)), "{value:?}");
            for criterion in &criteria {
                let mut values = keys.iter().map(|key| VariableValue::Text((*key).to_owned()));
                let expected = values.any(|value| criterion.tells_apart(&value));
                prop_assert_eq!(set.is_told_apart(criterion), expected, "{:?}", criterion);
            }
        }
    }
}
