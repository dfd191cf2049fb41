//! Values of variables and their comparison with the targets of a condition.

use crate::domain::dependency::{Comparison, ConditionTarget};

/// The value of a variable. Two are equal if type and value are; 0 and -0 are equal.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    /// Not answered.
    Unanswered,
    /// A text. An answer is the text of its key.
    Text(String),
    /// A finite number.
    Number(f64),
    /// A truth value.
    Bool(bool),
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

    /// Whether the value equals a target: the same type and value, a number and a numeric
    /// text of the same double, or a bool and the text `true` or `false`.
    pub fn equals(&self, target: &ConditionTarget) -> bool {
        TargetSet::new([target]).contains(self)
    }
}

/// The targets of a condition, sorted by type and value, so that lookups are fast.
#[derive(Clone, Debug, Default)]
pub struct TargetSet {
    texts: Vec<String>,
    /// The numbers among the targets.
    numbers: Vec<f64>,
    /// The numbers of the numeric texts.
    text_numbers: Vec<f64>,
    bools: Vec<bool>,
}

impl TargetSet {
    /// Sorts targets.
    pub fn new<'a>(targets: impl IntoIterator<Item = &'a ConditionTarget>) -> Self {
        let mut set = Self::default();
        for target in targets {
            match target {
                ConditionTarget::Text(text) => {
                    set.text_numbers.extend(numeric_text(text));
                    set.texts.push(text.clone());
                }
                ConditionTarget::Number(number) => set.numbers.push(*number),
                ConditionTarget::Bool(value) => set.bools.push(*value),
            }
        }
        set.sort();
        set
    }

    /// Sorts the targets, and leaves out those that are listed twice.
    fn sort(&mut self) {
        self.texts.sort_unstable();
        self.texts.dedup();
        self.bools.sort_unstable();
        self.bools.dedup();
        // Numbers are finite; `+ 0.0` makes -0 equal to 0 in the total order.
        for numbers in [&mut self.numbers, &mut self.text_numbers] {
            numbers.iter_mut().for_each(|number| *number += 0.0);
            numbers.sort_unstable_by(f64::total_cmp);
            numbers.dedup();
        }
    }

    /// All targets of several sets.
    pub fn union<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for set in sets {
            all.texts.extend_from_slice(&set.texts);
            all.numbers.extend_from_slice(&set.numbers);
            all.text_numbers.extend_from_slice(&set.text_numbers);
            all.bools.extend_from_slice(&set.bools);
        }
        all.sort();
        all
    }

    /// The targets that are texts, sorted.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The targets that are numbers, in order.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        self.numbers.iter().copied()
    }

    /// The numbers of the targets that are numeric texts, in order.
    pub fn text_numbers(&self) -> impl Iterator<Item = f64> {
        self.text_numbers.iter().copied()
    }

    /// The targets that are truth values.
    pub fn bools(&self) -> &[bool] {
        &self.bools
    }

    /// How many targets there are.
    pub fn count(&self) -> usize {
        self.texts.len() + self.numbers.len() + self.bools.len()
    }

    /// Whether a value equals one of the targets.
    pub fn contains(&self, value: &VariableValue) -> bool {
        match value {
            VariableValue::Unanswered => false,
            VariableValue::Text(text) => {
                self.has_text(text)
                    || (!self.numbers.is_empty()
                        && numeric_text(text).is_some_and(|number| has(&self.numbers, number)))
                    || self.bools.iter().any(|target| text == bool_text(*target))
            }
            VariableValue::Number(number) => {
                has(&self.numbers, *number) || has(&self.text_numbers, *number)
            }
            VariableValue::Bool(value) => {
                self.bools.contains(value) || self.has_text(bool_text(*value))
            }
        }
    }

    /// The least target that is a number or numeric.
    pub fn least(&self) -> Option<f64> {
        let least = |numbers: &[f64]| numbers.first().copied();
        let both = [least(&self.numbers), least(&self.text_numbers)];
        both.into_iter().flatten().reduce(f64::min)
    }

    /// The greatest target that is a number or numeric.
    pub fn greatest(&self) -> Option<f64> {
        let greatest = |numbers: &[f64]| numbers.last().copied();
        let both = [greatest(&self.numbers), greatest(&self.text_numbers)];
        both.into_iter().flatten().reduce(f64::max)
    }

    /// Whether a condition with these targets holds for a value. `=`, `>` and `<` need one
    /// target for which they hold; `!=` needs all.
    pub fn satisfied_by(&self, operator: Comparison, value: &VariableValue) -> bool {
        match operator {
            Comparison::Equal => self.contains(value),
            Comparison::NotEqual => !self.contains(value),
            Comparison::Greater => {
                (value.numeric().zip(self.least())).is_some_and(|(value, least)| value > least)
            }
            Comparison::Less => (value.numeric().zip(self.greatest()))
                .is_some_and(|(value, greatest)| value < greatest),
        }
    }

    fn has_text(&self, text: &str) -> bool {
        let found = self
            .texts
            .binary_search_by(|target| target.as_str().cmp(text));
        found.is_ok()
    }
}

fn has(sorted: &[f64], number: f64) -> bool {
    let number = number + 0.0;
    let found = sorted.binary_search_by(|target| target.total_cmp(&number));
    found.is_ok()
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

/// The text that a truth value equals.
pub fn bool_text(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(text("5.0").equals(&ConditionTarget::Number(5.0)));
        assert!(VariableValue::Number(5.0).equals(&target("5.0")));
        assert!(!text("5.0").equals(&target("5")));
        assert!(VariableValue::Number(0.0).equals(&ConditionTarget::Number(-0.0)));
        assert!(VariableValue::Bool(true).equals(&target("true")));
        assert!(!VariableValue::Bool(true).equals(&target("True")));
        assert!(text("false").equals(&ConditionTarget::Bool(false)));
        assert!(!VariableValue::Number(1.0).equals(&ConditionTarget::Bool(true)));
        assert!(!VariableValue::Unanswered.equals(&target("")));
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
}
