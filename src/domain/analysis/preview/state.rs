//! The values of a guide's variables, from the answers of a request.

use std::collections::BTreeSet;

use crate::domain::{
    analysis::{Guide, GuideStep, Variable, VariableId, VariableValue, parse_account_name},
    violation::{Path, Reason, Violations, clip},
};

use super::Answers;

#[derive(Clone, Debug)]
pub struct GuideState(Vec<Option<VariableValue>>);

impl GuideState {
    /// The state that answers describe. Fails if they have different values for the two names of an
    /// observation.
    pub fn from_answers(guide: &Guide, answers: &Answers) -> Result<Self, Violations> {
        check_names(guide, answers)?;
        let values = guide.variables.iter().map(|variable| {
            let direct = answers.get(&variable.name);
            let value = direct.or_else(|| by_other_name(guide, answers, variable));
            value.cloned()
        });
        Ok(Self(values.collect()))
    }

    /// The value of a variable; `None` if it is unknown.
    pub fn value(&self, variable: VariableId) -> Option<&VariableValue> {
        self.0.get(variable.0)?.as_ref()
    }

    pub(super) fn set_unanswered(&mut self, variable: VariableId) {
        if let Some(value) = self.0.get_mut(variable.0) {
            *value = Some(VariableValue::Unanswered);
        }
    }

    /// The value that an observation sets, if it is known.
    pub fn answer(&self, step: &GuideStep) -> Option<&VariableValue> {
        self.value(*step.sets.first()?)
    }
}

/// The value that the answers have for the other name of a variable: the own name of an
/// account-wide variable, and vice versa.
///
/// A variable's name within a task may stand for several account-wide names. Then the answers must
/// have the same value for all of them. A name within a task does not take a value that is only a
/// key of observations of other tasks.
fn by_other_name<'a>(
    guide: &Guide,
    answers: &'a Answers,
    variable: &Variable,
) -> Option<&'a VariableValue> {
    if variable.setters.is_empty() {
        return None;
    }
    if variable.task.is_none() {
        let (_, own) = parse_account_name(&variable.name)?;
        return answers.get(own);
    }
    let mut values = variable.setters.iter().map(|setter| {
        let account_wide = &guide[*guide[*setter].sets.first()?];
        let value = answers.get(&account_wide.name)?;
        let is_of_other_task = !variable.may_be(value) && account_wide.may_be(value);
        (!is_of_other_task).then_some(value)
    });
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

/// Fails if the two names of an observation have different values.
fn check_names(guide: &Guide, answers: &Answers) -> Result<(), Violations> {
    let variables = guide.variables.iter();
    let set = variables.filter(|it| it.task.is_none() && !it.setters.is_empty());
    let conflicting = set.filter_map(|Variable { name: full, .. }| {
        let (_, own) = parse_account_name(full)?;
        (answers.get(full)? != answers.get(own)?).then_some((own, full))
    });
    let conflicting: BTreeSet<(&str, &String)> = conflicting.collect();
    let mut violations = Violations::new();
    for (own, full) in conflicting {
        let full = clip(full);
        let description = format!("differs from `{full}`, the other name of the same observation");
        let path = Path::root("answers");
        violations.add(&path.key(own), Reason::FieldInvalid, description);
    }
    violations.into_result()
}
