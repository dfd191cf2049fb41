//! Values of variables, and what conditions say of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use ordered_float::OrderedFloat;

use crate::domain::dependency::{Comparison, Condition, ConditionTarget};

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

/// A comparable form of a value or target. A value and a target are equal if they share a form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Text(String),
    /// A number, or the number that a text value spells.
    Number(OrderedFloat<f64>),
    /// A number, or the number that a text target spells. It differs from [`Self::Number`], as two
    /// spellings of a number are different texts.
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
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => numeric_text(text),
            Self::Unanswered | Self::Bool(_) => None,
        }
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

/// What a condition says of a value: an operator, and the forms of its targets, sorted, each once.
#[derive(Clone, Debug)]
pub struct Criterion {
    pub operator: Comparison,
    targets: Vec<Form>,
}

impl Criterion {
    pub fn new(condition: &Condition) -> Self {
        let targets = condition.targets.iter().flat_map(target_forms);
        Self::from_forms(condition.operator, targets)
    }

    /// A criterion for which a value differs from no answer if it does for one of `criteria`. All
    /// have the operator.
    pub fn merge<'a>(operator: Comparison, criteria: impl Iterator<Item = &'a Self>) -> Self {
        Self::from_forms(
            operator,
            criteria.flat_map(|one| one.targets.iter().cloned()),
        )
    }

    fn from_forms(operator: Comparison, forms: impl Iterator<Item = Form>) -> Self {
        let mut targets: Vec<Form> = forms.collect();
        targets.sort_unstable();
        targets.dedup();
        Self { operator, targets }
    }

    /// How many targets it has; a numeric text counts twice.
    pub fn target_count(&self) -> usize {
        self.targets.len()
    }

    /// The target that decides: the least of `>`, the greatest of `<`. `None` for other operators,
    /// and if no target is numeric.
    pub fn bound(&self) -> Option<f64> {
        let numbers = self.targets.iter().filter_map(Form::number);
        match self.operator {
            Comparison::Equal | Comparison::NotEqual => None,
            Comparison::Greater => numbers.min_by(f64::total_cmp),
            Comparison::Less => numbers.max_by(f64::total_cmp),
        }
    }

    /// Whether it holds for a value. `=`, `>` and `<` need one target for which they hold; `!=`
    /// needs all.
    pub fn holds(&self, value: &VariableValue) -> bool {
        let equals_one = || {
            let mut forms = value.forms().into_iter();
            forms.any(|form| self.targets.binary_search(&form).is_ok())
        };
        let number_and_bound = || value.numeric().zip(self.bound());
        match self.operator {
            Comparison::Equal => equals_one(),
            Comparison::NotEqual => !equals_one(),
            Comparison::Greater => number_and_bound().is_some_and(|(number, it)| number > it),
            Comparison::Less => number_and_bound().is_some_and(|(number, it)| number < it),
        }
    }

    /// Whether it holds for a value, but not for no answer, or the other way round.
    pub fn tells_apart(&self, value: &VariableValue) -> bool {
        self.holds(value) != self.holds(&VariableValue::Unanswered)
    }
}

/// Answered values, each listed once and known by its index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueSet {
    count: usize,
    /// The keys among them, in the order in which they were given.
    keys: Vec<String>,
    /// The values that have each form.
    forms: BTreeMap<Form, Vec<usize>>,
}

impl ValueSet {
    pub fn from_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Self::default();
        for key in keys {
            let forms = VariableValue::Text(key.to_owned()).forms();
            if forms
                .first()
                .is_some_and(|text| !set.forms.contains_key(text))
            {
                set.keys.push(key.to_owned());
                set.add(forms);
            }
        }
        set
    }

    /// Keys, and values of every kind that conditions can tell apart. Conditions tell any other value
    /// from none of these, or not from an unanswered variable.
    pub fn told_apart_by<'a>(
        criteria: impl IntoIterator<Item = &'a Criterion>,
        keys: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut set = Self::from_keys(keys);
        let mut numbers = BTreeSet::new();
        let targets = criteria.into_iter().flat_map(|one| &one.targets);
        for form in targets.collect::<BTreeSet<&Form>>() {
            if let Form::Text(text) = form {
                set.add(VariableValue::Text(text.clone()).forms());
            }
            if let Some(number) = form.number() {
                let near = [number.next_down(), number, number.next_up()].into_iter();
                numbers.extend(near.filter(|it| it.is_finite()).map(OrderedFloat));
            }
        }
        for number in numbers {
            set.add(VariableValue::Number(number.0).forms());
            // A text that spells it as no target does.
            set.add(vec![Form::Number(number)]);
        }
        set.add(VariableValue::Bool(true).forms());
        set.add(VariableValue::Bool(false).forms());
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
        self.keys.iter().map(String::as_str)
    }

    pub fn index_of_key(&self, key: &str) -> Option<usize> {
        self.forms
            .get(&Form::Text(key.to_owned()))?
            .first()
            .copied()
    }

    /// Whether one of the values is a number or a numeric text.
    pub fn has_numeric(&self) -> bool {
        let mut numbers = self.forms.range(Form::Number(OrderedFloat(f64::MIN))..);
        let first = numbers.next();
        first.is_some_and(|(form, _)| form.number().is_some())
    }

    /// Whether one of the values equals a target.
    pub fn has_equal(&self, target: &ConditionTarget) -> bool {
        let mut forms = target_forms(target).into_iter();
        forms.any(|form| self.forms.contains_key(&form))
    }

    /// The values that a criterion [tells apart](Criterion::tells_apart) from no answer. One may be
    /// listed twice.
    pub fn told_apart(&self, criterion: &Criterion) -> impl Iterator<Item = usize> {
        let number = |number| Form::Number(OrderedFloat(number));
        let range = criterion.bound().map(|bound| match criterion.operator {
            Comparison::Less => (
                Bound::Included(number(f64::MIN)),
                Bound::Excluded(number(bound)),
            ),
            _ => (
                Bound::Excluded(number(bound)),
                Bound::Included(number(f64::MAX)),
            ),
        });
        let equal = match criterion.operator {
            Comparison::Equal | Comparison::NotEqual => criterion.targets.as_slice(),
            Comparison::Greater | Comparison::Less => &[],
        };
        let equal = equal.iter().filter_map(|form| self.forms.get(form));
        let range = range.into_iter().flat_map(|range| self.forms.range(range));
        let values = equal.chain(range.map(|(_, values)| values));
        values.flatten().copied()
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
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    /// A criterion for each operator, with the same targets.
    fn criteria() -> impl Strategy<Value = [Criterion; 4]> {
        let target = prop_oneof![
            texts().prop_map(ConditionTarget::Text),
            numbers().prop_map(ConditionTarget::Number),
            any::<bool>().prop_map(ConditionTarget::Bool),
        ];
        proptest::collection::vec(target, 1..5)
            .prop_map(|targets| Comparison::ALL.map(|operator| criterion(operator, &targets)))
    }

    proptest! {
        #[test]
        fn a_set_finds_the_keys_that_each_criterion_tells_apart(
            given in proptest::collection::vec(texts(), 0..8),
            criteria in criteria(),
        ) {
            let set = ValueSet::from_keys(given.iter().map(String::as_str));
            prop_assert!(given.iter().all(|key| set.index_of_key(key).is_some()));
            for criterion in criteria {
                let is_told_apart =
                    |key: &str| criterion.tells_apart(&VariableValue::Text(key.to_owned()));
                let keys = set.keys().enumerate().filter(|(_, key)| is_told_apart(key));
                let expected: BTreeSet<usize> = keys.map(|(index, _)| index).collect();
                let found: BTreeSet<usize> = set.told_apart(&criterion).collect();
                prop_assert_eq!(found, expected, "{:?}", criterion);
            }
        }

        #[test]
        fn any_value_is_like_one_of_those_that_criteria_tell_apart(
            value in values(),
            criteria in proptest::collection::vec(criteria(), 1..4),
        ) {
            let criteria = criteria.concat();
            let set = ValueSet::told_apart_by(&criteria, []);
            let expected: Vec<bool> = criteria.iter().map(|one| one.tells_apart(&value)).collect();
            // No value of the set has the last index, and is like an unanswered variable.
            let alike = (0..=set.count()).any(|index| {
                let is_told = |one| set.told_apart(one).any(|it| it == index);
                criteria.iter().map(is_told).eq(expected.iter().copied())
            });
            prop_assert!(alike, "{:?} {:?}", value, criteria);
        }
    }
}
