//! Rules about single conditions, those of unpublished steps included.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::domain::{
    analysis::{
        CompiledGroup, Guide, PossibleValues, StepPosition, ValueSet, Variable, numeric_text,
        parse_account_name,
    },
    dependency::{Comparison, Condition, ConditionTarget, Group},
    json::number,
};

use super::{
    finding::{Finding, FindingPlace, shortened},
    order::GuideOrder,
    report::{OtherGuides, Own, Report},
    rules::Rule,
};

/// Most observations that a finding lists in `related`.
const MAX_RELATED: usize = 20;

/// A condition of an own task or step.
struct ReadCondition<'a> {
    reader: Own<'a>,
    path: String,
    source: &'a Condition,
    variable: &'a Variable,
    /// Whether a walk last comes to it before it comes to an observation of the guide that
    /// sets the variable.
    is_before_setters: bool,
}

/// Checks all conditions of the own tasks and their steps.
pub fn check(report: &mut Report<'_>) {
    let guide = report.subject.guide;
    let order = GuideOrder::new(guide);
    let names = KnownNames::new(guide);
    let setters = guide.variables.iter().map(|variable| {
        let setters = variable.setters.iter();
        let places = setters.filter_map(|setter| order.first_of_step(*setter));
        places.min()
    });
    let first_setters: Vec<Option<usize>> = setters.collect();
    for own in report.own_tasks() {
        let source = &own.task.source.task.content.dependencies;
        let last = order.last_of_task(own.index);
        let conditions = (source, &own.task.dependencies);
        check_group(
            report,
            own,
            conditions,
            last.zip(Some(&first_setters)),
            &names,
        );
    }
    for (own, step) in report.own_steps() {
        let source = &step.source.step.content.dependencies;
        let last = own.position().and_then(|step| order.last_of_step(step));
        let conditions = (source, &step.dependencies);
        check_group(
            report,
            own,
            conditions,
            last.zip(Some(&first_setters)),
            &names,
        );
    }
}

/// `places` are where a walk last comes to the reader, and where it first comes to an observation
/// that sets each variable.
fn check_group<'a>(
    report: &mut Report<'a>,
    reader: Own<'a>,
    (source, compiled): (&'a Option<Group>, &'a Option<CompiledGroup>),
    places: Option<(usize, &Vec<Option<usize>>)>,
    names: &KnownNames<'a>,
) {
    let Some((source, compiled)) = source.as_ref().zip(compiled.as_ref()) else {
        return;
    };
    let guide = report.subject.guide;
    for (placed, compiled) in compiled.with_sources(source) {
        let Some(variable) = guide.variables.get(compiled.variable.0) else {
            continue;
        };
        if report.is_stopped() {
            return;
        }
        let is_before_setters = places.is_some_and(|(last, first_setters)| {
            let setter = first_setters.get(compiled.variable.0).copied().flatten();
            setter.is_some_and(|setter| last < setter)
        });
        let condition = ReadCondition {
            reader,
            path: placed.path,
            source: placed.condition,
            variable,
            is_before_setters,
        };
        condition.check(report, names);
    }
}

impl ReadCondition<'_> {
    fn check(&self, report: &mut Report<'_>, names: &KnownNames<'_>) {
        let variable = self.variable;
        // To find a suggestion takes a part of a budget of all rules.
        if variable.is_unknown()
            && !self.may_be_set_by_unread_guides(report)
            && !report.skips(Rule::UnknownVariable)
        {
            let name = &variable.name;
            let message = format!("No observation of the account sets `{name}`.");
            let finding = self.about_variable(Rule::UnknownVariable, message);
            report.add(report.suggest(finding, name, names.readable_in(self.reader.index)));
        }
        // The finding names observations, so it needs one that was read.
        if variable.setters.is_empty() && !variable.outside.list().is_empty() {
            report.add(self.set_elsewhere());
        }
        if !variable.outside.may_exist() {
            if self.is_read_by_its_only_setter() {
                let message = format!(
                    "The observation reads `{}`, which only its own answer sets.",
                    variable.name
                );
                report.add(self.about_variable(Rule::SelfRead, message));
            } else if self.is_before_setters {
                report.add(self.answered_later(report.subject.guide));
            }
        }
        match self.source.operator {
            Comparison::Equal | Comparison::NotEqual => self.check_answers(report),
            Comparison::Greater | Comparison::Less => self.check_bounds(report),
        }
    }

    /// Whether a guide that was not read may set the variable.
    fn may_be_set_by_unread_guides(&self, report: &Report<'_>) -> bool {
        report.subject.other_guides == OtherGuides::Unknown
            && parse_account_name(&self.variable.name).is_some()
    }

    /// Whether the condition belongs to the only observation that sets its variable.
    fn is_read_by_its_only_setter(&self) -> bool {
        let reader: Vec<StepPosition> = self.reader.position().into_iter().collect();
        !reader.is_empty() && self.variable.setters == reader
    }

    fn finding<const N: usize>(
        &self,
        rule: Rule,
        below: &str,
        facts: [(&str, Value); N],
        message: String,
    ) -> Finding {
        let path = format!("{}{below}", self.path);
        self.reader.finding(rule, &path, facts, message)
    }

    fn about_variable(&self, rule: Rule, message: String) -> Finding {
        let facts = [("variable", json!(self.variable.name))];
        self.finding(rule, "", facts, message)
    }

    fn set_elsewhere(&self) -> Finding {
        let name = &self.variable.name;
        let message = format!("Only observations of other guides set `{name}`.");
        let setters = self.variable.outside.list().iter().take(MAX_RELATED);
        let related = setters.map(|setter| FindingPlace {
            task: setter.task.to_string(),
            step: setter.step.to_string(),
            path: String::new(),
            title: setter.title.clone(),
        });
        Finding {
            related: related.collect(),
            ..self.about_variable(Rule::SetElsewhere, message)
        }
    }

    fn answered_later(&self, guide: &Guide) -> Finding {
        let name = &self.variable.name;
        let message = format!("Every observation that sets `{name}` comes after this condition.");
        let setters = self.variable.setters.iter().take(MAX_RELATED);
        let related = setters.filter_map(|setter| FindingPlace::at(guide, *setter, ""));
        Finding {
            related: related.collect(),
            ..self.about_variable(Rule::AnsweredLater, message)
        }
    }

    /// Reports targets of `=` and `!=` that the variable never has.
    fn check_answers(&self, report: &mut Report<'_>) {
        let PossibleValues::Keys(keys) = &self.variable.possible else {
            return;
        };
        let name = &self.variable.name;
        for (index, target) in self.source.targets.iter().enumerate() {
            if keys.has_equal(target) {
                continue;
            }
            if report.is_stopped() {
                return;
            }
            if report.skips(Rule::UnknownAnswer) {
                continue;
            }
            let fact = target_fact(target);
            let message = format!("`{name}` is never {fact}.");
            let facts = [("variable", json!(name)), ("target", fact)];
            let below = format!(".targets[{index}]");
            let finding = self.finding(Rule::UnknownAnswer, &below, facts, message);
            let mut finding = finding.listing_keys(keys);
            if let ConditionTarget::Text(text) = target {
                finding = report.suggest(finding, text, keys.texts());
            }
            report.add(finding.hint_at_operator_in_value(target));
        }
    }

    /// Reports targets and answers that `>` and `<` cannot compare, and several targets.
    fn check_bounds(&self, report: &mut Report<'_>) {
        let name = &self.variable.name;
        let operator = self.source.operator.symbol();
        let facts = || [("variable", json!(name)), ("operator", json!(operator))];
        for (index, target) in self.source.targets.iter().enumerate() {
            if is_numeric(target) || report.skips(Rule::NotComparable) {
                continue;
            }
            let fact = target_fact(target);
            let message = format!("`{operator}` compares with {fact}, which is not numeric.");
            let below = format!(".targets[{index}]");
            let mut finding = self.finding(Rule::NotComparable, &below, facts(), message);
            finding.facts.insert("target".to_owned(), fact);
            report.add(finding.hint_at_operator_in_value(target));
        }
        if let PossibleValues::Keys(keys) = &self.variable.possible
            && !keys.has_numeric()
        {
            let message = format!("`{operator}` reads `{name}`, which has no numeric answer.");
            report.add(self.finding(Rule::NotComparable, "", facts(), message));
        }
        if self.source.targets.len() > 1 {
            let targets: Vec<Value> = self.source.targets.iter().map(target_fact).collect();
            let message = format!("`{operator}` has {} targets.", targets.len());
            let mut finding = self.finding(Rule::SeveralBounds, "", facts(), message);
            finding
                .facts
                .insert("targets".to_owned(), Value::Array(targets));
            report.add(finding);
        }
    }
}

/// Operators that a shorthand does not know: it takes them as text of the value.
const JOINS: [&str; 3] = [" AND ", " OR ", "|"];

/// The most keys that a hint lists.
const MAX_HINTED_KEYS: usize = 10;
/// The most characters of each.
const MAX_HINTED_CHARS: usize = 100;

impl Finding {
    /// Lists the first keys that a target may be.
    fn listing_keys(mut self, keys: &ValueSet) -> Self {
        let listed = keys.texts().take(MAX_HINTED_KEYS);
        let listed: Vec<String> = listed
            .map(|key| format!("`{}`", shortened(key, MAX_HINTED_CHARS)))
            .collect();
        let more = match keys.count().saturating_sub(listed.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if !listed.is_empty() {
            let hint = self.hint.trim_end_matches('.');
            self.hint = format!("{hint}: {}{more}.", listed.join(", "));
        }
        self
    }

    /// Says what to write in place of a target that seems to hold several conditions or values.
    fn hint_at_operator_in_value(mut self, target: &ConditionTarget) -> Self {
        let ConditionTarget::Text(text) = target else {
            return self;
        };
        if let Some(join) = JOINS.iter().find(|join| text.contains(**join)) {
            self.hint = format!(
                "The value contains `{}`, which joins nothing: write several conditions as groups \
                 in `dependencies`, and several values with commas. {}",
                join.trim(),
                self.hint
            );
        }
        self
    }
}

/// A target as the JSON value of a fact.
fn target_fact(target: &ConditionTarget) -> Value {
    match target {
        ConditionTarget::Text(text) => Value::String(text.clone()),
        ConditionTarget::Number(value) => number(*value).unwrap_or(Value::Null),
        ConditionTarget::Bool(value) => Value::Bool(*value),
    }
}

fn is_numeric(target: &ConditionTarget) -> bool {
    match target {
        ConditionTarget::Text(text) => numeric_text(text).is_some(),
        ConditionTarget::Number(_) => true,
        ConditionTarget::Bool(_) => false,
    }
}

/// The names of variables that are not unknown: the account-wide ones, and by task those that are
/// valid within it.
struct KnownNames<'a>(HashMap<Option<usize>, Vec<&'a str>>);

impl<'a> KnownNames<'a> {
    fn new(guide: &'a Guide) -> Self {
        let mut names: HashMap<Option<usize>, Vec<&str>> = HashMap::new();
        for variable in guide.variables.iter().filter(|it| !it.is_unknown()) {
            names.entry(variable.task).or_default().push(&variable.name);
        }
        Self(names)
    }

    /// The names that conditions of a task can read.
    fn readable_in(&self, task: usize) -> impl Iterator<Item = &'a str> {
        let names = [None, Some(task)].map(|task| self.0.get(&task));
        names.into_iter().flatten().flatten().copied()
    }
}
