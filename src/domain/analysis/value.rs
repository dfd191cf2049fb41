//! Values of variables, and the sets of values and targets that conditions compare.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    ops::Bound,
    sync::Arc,
};

use ordered_float::OrderedFloat;

use crate::domain::dependency::{Comparison, ConditionTarget};

/// The value of a variable. Two are equal if type and value are; 0 and -0 are equal.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    Unanswered,
    /// An answer is the text of its key.
    Text(String),
    /// A finite number.
    Number(f64),
    Bool(bool),
}

/// A comparable form of a value or target. A value and a target are equal if one form matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Text(Arc<str>),
    /// A number, or the number that a text value spells.
    Number(OrderedFloat<f64>),
    /// A number, or the number that a text target spells. It differs from [`Self::Number`], as two
    /// spellings of a number are different texts.
    SpelledNumber(OrderedFloat<f64>),
    Bool(bool),
}

impl Form {
    fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) | Self::SpelledNumber(number) => Some(number.0),
            Self::Text(_) | Self::Bool(_) => None,
        }
    }
}

fn text_forms(text: Arc<str>) -> Vec<Form> {
    let number = numeric_text(&text).map(|number| Form::Number(OrderedFloat(number)));
    let bool = text.parse().ok().map(Form::Bool);
    let text = Some(Form::Text(text));
    [text, number, bool].into_iter().flatten().collect()
}

fn number_forms(number: f64) -> Vec<Form> {
    let number = OrderedFloat(number);
    vec![Form::Number(number), Form::SpelledNumber(number)]
}

fn bool_forms(value: bool) -> Vec<Form> {
    vec![Form::Bool(value), Form::text(&value.to_string())]
}

fn target_forms(target: &ConditionTarget) -> Vec<Form> {
    match target {
        ConditionTarget::Text(text) => {
            let number = numeric_text(text).map(|number| Form::SpelledNumber(OrderedFloat(number)));
            iter::once(Form::text(text)).chain(number).collect()
        }
        ConditionTarget::Number(number) => vec![Form::Number(OrderedFloat(*number))],
        ConditionTarget::Bool(value) => vec![Form::Bool(*value)],
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

    fn forms(&self) -> Vec<Form> {
        match self {
            Self::Unanswered => Vec::new(),
            Self::Text(text) => text_forms(text.as_str().into()),
            Self::Number(number) => number_forms(*number),
            Self::Bool(value) => bool_forms(*value),
        }
    }
}

/// The targets of one or more conditions: their forms, sorted, each once.
#[derive(Clone, Debug, Default)]
pub struct TargetSet(Vec<Form>);

impl TargetSet {
    pub fn new<'a>(targets: impl IntoIterator<Item = &'a ConditionTarget>) -> Self {
        Self::from_forms(targets.into_iter().flat_map(target_forms))
    }

    pub fn union<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::from_forms(sets.into_iter().flat_map(|set| set.0.iter().cloned()))
    }

    fn from_forms(forms: impl Iterator<Item = Form>) -> Self {
        let mut forms: Vec<Form> = forms.collect();
        forms.sort_unstable();
        forms.dedup();
        Self(forms)
    }

    /// How many targets there are; a numeric text counts twice.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The least target that is a number or numeric.
    pub fn least(&self) -> Option<f64> {
        let numbers = self.0.iter().filter_map(Form::number);
        numbers.min_by(f64::total_cmp)
    }

    pub fn greatest(&self) -> Option<f64> {
        let numbers = self.0.iter().filter_map(Form::number);
        numbers.max_by(f64::total_cmp)
    }

    /// Whether a condition with these targets holds for a value. `=`, `>` and `<` need one
    /// target for which they hold; `!=` needs all.
    pub fn satisfied_by(&self, operator: Comparison, value: &VariableValue) -> bool {
        let equals_one = || {
            let mut forms = value.forms().into_iter();
            forms.any(|form| self.0.binary_search(&form).is_ok())
        };
        let number = || value.numeric();
        match operator {
            Comparison::Equal => equals_one(),
            Comparison::NotEqual => !equals_one(),
            Comparison::Greater => number().zip(self.least()).is_some_and(|(n, it)| n > it),
            Comparison::Less => number().zip(self.greatest()).is_some_and(|(n, it)| n < it),
        }
    }

    /// The values for which `>` or `<` holds; `None` if it holds for none.
    fn range(&self, operator: Comparison) -> Option<(Bound<Form>, Bound<Form>)> {
        let number = |number| Form::Number(OrderedFloat(number));
        Some(match operator {
            Comparison::Less => (
                Bound::Included(number(f64::MIN)),
                Bound::Excluded(number(self.greatest()?)),
            ),
            _ => (
                Bound::Excluded(number(self.least()?)),
                Bound::Included(number(f64::MAX)),
            ),
        })
    }
}

/// Answered values, each listed once and known by its index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueSet {
    count: usize,
    /// The keys among them, in the order in which they were given.
    keys: Vec<Arc<str>>,
    /// The values that have each form.
    forms: BTreeMap<Form, Vec<usize>>,
}

impl ValueSet {
    pub fn from_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Self::default();
        for key in keys.into_iter().map(Arc::from) {
            if !set.forms.contains_key(&Form::Text(Arc::clone(&key))) {
                set.keys.push(Arc::clone(&key));
                set.add(text_forms(key));
            }
        }
        set
    }

    /// Keys, and values of every kind that conditions with these targets can tell apart. Conditions
    /// tell any other value from none of these, or not from an unanswered variable.
    pub fn told_apart_by<'a>(
        targets: impl IntoIterator<Item = &'a TargetSet>,
        keys: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut set = Self::from_keys(keys);
        let mut numbers = BTreeSet::new();
        let targets = targets.into_iter().flat_map(|targets| &targets.0);
        for form in targets.collect::<BTreeSet<&Form>>() {
            if let Form::Text(text) = form {
                set.add(text_forms(Arc::clone(text)));
            }
            if let Some(number) = form.number() {
                let near = [number.next_down(), number, number.next_up()].into_iter();
                numbers.extend(near.filter(|it| it.is_finite()).map(OrderedFloat));
            }
        }
        for number in numbers {
            set.add(number_forms(number.0));
            // A text that spells it as no target does.
            set.add(vec![Form::Number(number)]);
        }
        set.add(bool_forms(true));
        set.add(bool_forms(false));
        set
    }

    fn add(&mut self, forms: Vec<Form>) {
        for form in forms {
            self.forms.entry(form).or_default().push(self.count);
        }
        self.count += 1;
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.keys.iter().map(AsRef::as_ref)
    }

    pub fn index_of_key(&self, key: &str) -> Option<usize> {
        self.forms.get(&Form::text(key))?.first().copied()
    }

    /// Whether one of the values is a number or a numeric text.
    pub fn has_numeric(&self) -> bool {
        let mut numbers = self.forms.range(Form::Number(OrderedFloat(f64::MIN))..);
        numbers
            .next()
            .is_some_and(|(form, _)| form.number().is_some())
    }

    /// Whether one of the values equals a target.
    pub fn has_equal(&self, target: &ConditionTarget) -> bool {
        let mut forms = target_forms(target).into_iter();
        forms.any(|form| self.forms.contains_key(&form))
    }

    /// The values for which a condition has another outcome than for no answer: for which `=`, `>`
    /// or `<` holds, or `!=` does not. One may be listed twice.
    pub fn told_apart(
        &self,
        operator: Comparison,
        targets: &TargetSet,
    ) -> impl Iterator<Item = usize> {
        let (equal, range) = match operator {
            Comparison::Equal | Comparison::NotEqual => (targets.0.as_slice(), None),
            Comparison::Greater | Comparison::Less => (&[][..], targets.range(operator)),
        };
        let equal = equal.iter().filter_map(|form| self.forms.get(form));
        let range = range.into_iter().flat_map(|range| self.forms.range(range));
        let values = equal.chain(range.map(|(_, values)| values));
        values.flatten().copied()
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn equals(value: &VariableValue, target: &ConditionTarget) -> bool {
        TargetSet::new([target]).satisfied_by(Comparison::Equal, value)
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
            assert_eq!(equals(&value, &target), equal, "{value:?} {target:?}");
        }
    }
    #[test]
    fn of_several_bounds_one_suffices_and_an_unanswered_variable_satisfies_not_equal_alone() {
        let text = |text: &str| ConditionTarget::Text(text.to_owned());
        let bounds = TargetSet::new(&[text("10"), ConditionTarget::Number(20.0), text("x")]);
        let holding = |value| {
            let holds = |operator: &Comparison| bounds.satisfied_by(*operator, &value);
            Comparison::ALL
                .into_iter()
                .filter(holds)
                .collect::<Vec<_>>()
        };
        use Comparison::{Equal, Greater, Less, NotEqual};
        assert_eq!(
            holding(VariableValue::Number(15.0)),
            [NotEqual, Greater, Less]
        );
        assert_eq!(holding(VariableValue::Number(10.0)), [Equal, Less]);
        assert_eq!(holding(VariableValue::Bool(true)), [NotEqual]);
        assert_eq!(holding(VariableValue::Unanswered), [NotEqual]);
    }

    fn texts() -> impl Strategy<Value = String> {
        const TEXTS: [&str; 11] = [
            "", "a", "1", "1.0", "10e-1", "-0", "0", "2", "true", "false", "x y",
        ];
        proptest::sample::select(&TEXTS[..]).prop_map(str::to_owned)
    }

    fn numbers() -> impl Strategy<Value = f64> {
        proptest::sample::select(&[-0.0, 0.0, 1.0, 1.5, 2.0, f64::MAX, f64::MIN][..])
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
        fn a_set_finds_the_keys_that_each_comparison_tells_apart(
            given in proptest::collection::vec(texts(), 0..8),
            targets in targets(),
        ) {
            let set = ValueSet::from_keys(given.iter().map(String::as_str));
            let keys: Vec<VariableValue> =
                set.keys().map(|key| VariableValue::Text(key.to_owned())).collect();
            prop_assert!(given.iter().all(|key| set.index_of_key(key).is_some()));
            prop_assert_eq!(set.count(), keys.len());
            let compared = TargetSet::new(&targets);
            for operator in Comparison::ALL {
                let holds = |value: &VariableValue| compared.satisfied_by(operator, value);
                let unanswered = holds(&VariableValue::Unanswered);
                let expected: BTreeSet<usize> = (0..keys.len())
                    .filter(|index| holds(&keys[*index]) != unanswered)
                    .collect();
                let found: BTreeSet<usize> = set.told_apart(operator, &compared).collect();
                prop_assert_eq!(found, expected, "{:?} {:?}", operator, targets);
            }
            for target in &targets {
                let equal = keys.iter().any(|value| equals(value, target));
                prop_assert_eq!(set.has_equal(target), equal);
            }
        }

        #[test]
        fn any_value_is_like_one_of_those_that_targets_tell_apart(
            value in values(),
            targets in proptest::collection::vec(targets(), 1..4),
        ) {
            let targets: Vec<TargetSet> = targets.iter().map(TargetSet::new).collect();
            let set = ValueSet::told_apart_by(&targets, []);
            let conditions: Vec<_> = Comparison::ALL
                .into_iter()
                .flat_map(|operator| targets.iter().map(move |targets| (operator, targets)))
                .collect();
            let outcomes = |holds: &dyn Fn(Comparison, &TargetSet) -> bool| -> Vec<bool> {
                conditions.iter().map(|(operator, targets)| holds(*operator, targets)).collect()
            };
            let expected = outcomes(&|operator, targets| {
                let holds = |value| targets.satisfied_by(operator, value);
                holds(&value) != holds(&VariableValue::Unanswered)
            });
            // No value of the set has the last index, and is like an unanswered variable.
            let alike = (0..=set.count()).any(|index| {
                outcomes(&|operator, targets| set.told_apart(operator, targets).any(|it| it == index))
                    == expected
            });
            prop_assert!(alike, "{:?} {:?}", value, targets);
        }
    }
}
