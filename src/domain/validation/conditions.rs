//! Rules about single conditions, those of unpublished steps included.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::domain::{
    analysis::{
        CompiledGroup, Guide, PossibleValues, ValueIndex, Variable, numeric_text,
        parse_account_name,
    },
    dependency::{Comparison, Condition, ConditionTarget, Group},
};

use super::{
    finding::{Finding, FindingPlace, shortened},
    order::GuideOrder,
    report::{OtherGuides, OwnStep, OwnTask, Report, target_fact},
    rules::Rule,
};

/// Most observations that a finding lists in `related`.
const MAX_RELATED: usize = 20;

/// The task or step that a condition belongs to.
#[derive(Clone, Copy)]
enum Reader<'a> {
    Task(OwnTask<'a>),
    Step(OwnStep<'a>),
}

/// A condition of an own task or step.
struct ReadCondition<'a> {
    reader: Reader<'a>,
    /// Its path in the task or step.
    path: String,
    source: &'a Condition,
    variable: &'a Variable,
    /// Whether a walk last comes to it before it comes to an observation of the guide that
    /// sets the variable.
    is_before_setters: bool,
}

impl Reader<'_> {
    /// Where a walk last comes to the task or step.
    fn last_place(&self, order: &GuideOrder) -> Option<usize> {
        match self {
            Self::Task(own) => order.last_of_task(own.index),
            Self::Step(own) => order.last_of_step(own.position),
        }
    }
}

/// Checks all conditions of the own tasks and their steps.
pub fn check(report: &mut Report<'_>, order: Option<&GuideOrder>) {
    let setters = order.map(|order| first_setters(report.subject.guide, order));
    let places = order.zip(setters.as_deref());
    let names = KnownNames::of(report.subject.guide);
    for own in report.own_tasks() {
        let source = own.task.source.task.content.dependencies.as_ref();
        let compiled = own.task.dependencies.as_ref();
        check_group(
            report,
            places,
            &names,
            Reader::Task(own),
            source.zip(compiled),
        );
    }
    for own in report.own_steps() {
        let source = own.step.source.step.content.dependencies.as_ref();
        let compiled = own.step.dependencies.as_ref();
        check_group(
            report,
            places,
            &names,
            Reader::Step(own),
            source.zip(compiled),
        );
    }
}

/// Where a walk is, and for each variable, where it first comes to an observation that sets it.
type Places<'a> = (&'a GuideOrder, &'a [Option<usize>]);

fn first_setters(guide: &Guide, order: &GuideOrder) -> Vec<Option<usize>> {
    let variables = guide.variables.iter();
    let first = variables.map(|variable| {
        let setters = variable.setters.iter();
        setters
            .filter_map(|setter| order.first_of_step(*setter))
            .min()
    });
    first.collect()
}

fn check_group<'a>(
    report: &mut Report<'a>,
    places: Option<Places<'_>>,
    names: &KnownNames<'a>,
    reader: Reader<'a>,
    group: Option<(&'a Group, &'a CompiledGroup)>,
) {
    let Some((source, compiled)) = group else {
        return;
    };
    let guide = report.subject.guide;
    for (placed, compiled) in compiled.with_sources(source) {
        let variable = guide.variables.get(compiled.variable.0);
        if let Some(variable) = variable.filter(|_| !report.is_stopped()) {
            let first = places.and_then(|(order, setters)| {
                let setter = setters.get(compiled.variable.0).copied().flatten();
                Some((reader.last_place(order)?, setter?))
            });
            let condition = ReadCondition {
                reader,
                path: placed.path,
                source: placed.condition,
                variable,
                is_before_setters: first.is_some_and(|(reader, setter)| reader < setter),
            };
            condition.check(report, names);
        }
    }
}

impl<'a> ReadCondition<'a> {
    fn check(&self, report: &mut Report<'a>, names: &KnownNames<'a>) {
        let guide = report.subject.guide;
        if self.variable.is_unknown() && !self.may_be_set_by_unread_guides(report) {
            // To find a suggestion takes a part of a budget of all rules.
            if !report.skips(Rule::UnknownVariable) {
                let suggestion = names.closest(report, &self.variable.name, self.task());
                report.add(self.unknown_variable().suggesting(suggestion));
            }
        }
        // The finding names observations, so it needs one that was read.
        if self.variable.setters.is_empty() && !self.variable.outside.list().is_empty() {
            report.add(self.set_elsewhere());
        }
        if self.is_read_by_its_only_setter() {
            report.add(self.self_read());
        } else if self.is_before_setters && !self.variable.outside.may_exist() {
            report.add(self.answered_later(guide));
        }
        match self.source.operator {
            Comparison::Equal | Comparison::NotEqual => self.check_answers(report),
            Comparison::Greater | Comparison::Less => self.check_bounds(report),
        }
    }

    /// Whether a guide that was not read may set the variable.
    fn may_be_set_by_unread_guides(&self, report: &Report<'_>) -> bool {
        match report.subject.other_guides {
            OtherGuides::Read => false,
            OtherGuides::Unknown => parse_account_name(&self.variable.name).is_some(),
        }
    }

    fn task(&self) -> usize {
        match self.reader {
            Reader::Task(own) => own.index,
            Reader::Step(own) => own.own_task.index,
        }
    }

    fn finding<const N: usize>(
        &self,
        rule: Rule,
        below: &str,
        facts: [(&str, Value); N],
        message: String,
    ) -> Finding {
        let path = format!("{}{below}", self.path);
        match self.reader {
            Reader::Task(own) => own.finding(rule, &path, facts, message),
            Reader::Step(own) => own.finding(rule, &path, facts, message),
        }
    }

    fn unknown_variable(&self) -> Finding {
        let name = &self.variable.name;
        self.finding(
            Rule::UnknownVariable,
            "",
            [("variable", json!(name))],
            format!("No observation of the account sets `{name}`."),
        )
    }

    fn set_elsewhere(&self) -> Finding {
        let name = &self.variable.name;
        let mut finding = self.finding(
            Rule::SetElsewhere,
            "",
            [("variable", json!(name))],
            format!("Only observations of other guides set `{name}`."),
        );
        let setters = self.variable.outside.list().iter().take(MAX_RELATED);
        let places = setters.map(|setter| FindingPlace {
            task: setter.task.to_string(),
            step: setter.step.to_string(),
            path: String::new(),
            title: setter.title.clone(),
        });
        finding.related = places.collect();
        finding
    }

    /// Whether the condition belongs to the only observation that sets its variable.
    fn is_read_by_its_only_setter(&self) -> bool {
        match self.reader {
            Reader::Task(_) => false,
            Reader::Step(own) => {
                self.variable.setters == [own.position] && !self.variable.outside.may_exist()
            }
        }
    }

    fn self_read(&self) -> Finding {
        let name = &self.variable.name;
        self.finding(
            Rule::SelfRead,
            "",
            [("variable", json!(name))],
            format!("The observation reads `{name}`, which only its own answer sets."),
        )
    }

    fn answered_later(&self, guide: &Guide) -> Finding {
        let name = &self.variable.name;
        let mut finding = self.finding(
            Rule::AnsweredLater,
            "",
            [("variable", json!(name))],
            format!("Every observation that sets `{name}` comes after this condition."),
        );
        let setters = self.variable.setters.iter().take(MAX_RELATED);
        let places = setters.filter_map(|setter| FindingPlace::at(guide, *setter, ""));
        finding.related = places.collect();
        finding
    }

    /// Reports targets of `=` and `!=` that the variable never has.
    fn check_answers(&self, report: &mut Report<'a>) {
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
            let finding = self.finding(
                Rule::UnknownAnswer,
                &format!(".targets[{index}]"),
                [("variable", json!(name)), ("target", fact)],
                message,
            );
            let suggestion = match target {
                ConditionTarget::Text(text) => report.suggest(text, keys.texts()),
                ConditionTarget::Number(_) | ConditionTarget::Bool(_) => None,
            };
            let finding = finding.listing_keys(keys).suggesting(suggestion);
            report.add(finding.hint_at_operator_in_value(target));
        }
    }

    /// Reports targets and answers that `>` and `<` cannot compare, and several targets.
    fn check_bounds(&self, report: &mut Report<'a>) {
        let name = &self.variable.name;
        let operator = self.source.operator.symbol();
        for (index, target) in self.source.targets.iter().enumerate() {
            if is_numeric(target) || report.skips(Rule::NotComparable) {
                continue;
            }
            let fact = target_fact(target);
            let message = format!("`{operator}` compares with {fact}, which is not numeric.");
            let facts = [
                ("variable", json!(name)),
                ("operator", json!(operator)),
                ("target", fact),
            ];
            let below = format!(".targets[{index}]");
            let finding = self.finding(Rule::NotComparable, &below, facts, message);
            report.add(finding.hint_at_operator_in_value(target));
        }
        if let PossibleValues::Keys(keys) = &self.variable.possible
            && !keys.has_numeric()
        {
            let message = format!("`{operator}` reads `{name}`, which has no numeric answer.");
            let facts = [("variable", json!(name)), ("operator", json!(operator))];
            report.add(self.finding(Rule::NotComparable, "", facts, message));
        }
        if self.source.targets.len() > 1 {
            let targets: Vec<Value> = self.source.targets.iter().map(target_fact).collect();
            let message = format!("`{operator}` has {} targets.", targets.len());
            let facts = [
                ("variable", json!(name)),
                ("operator", json!(operator)),
                ("targets", Value::Array(targets)),
            ];
            report.add(self.finding(Rule::SeveralBounds, "", facts, message));
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
    fn listing_keys(mut self, keys: &ValueIndex) -> Self {
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

fn is_numeric(target: &ConditionTarget) -> bool {
    match target {
        ConditionTarget::Text(text) => numeric_text(text).is_some(),
        ConditionTarget::Number(_) => true,
        ConditionTarget::Bool(_) => false,
    }
}

/// The names of variables that are not unknown.
struct KnownNames<'a> {
    account_wide: Vec<&'a str>,
    /// Those that are valid within a task.
    of_task: HashMap<usize, Vec<&'a str>>,
}

impl<'a> KnownNames<'a> {
    fn of(guide: &'a Guide) -> Self {
        let mut names = Self {
            account_wide: Vec::new(),
            of_task: HashMap::new(),
        };
        for variable in guide.variables.iter().filter(|it| !it.is_unknown()) {
            let list = match variable.task {
                None => &mut names.account_wide,
                Some(task) => names.of_task.entry(task).or_default(),
            };
            list.push(&variable.name);
        }
        names
    }

    /// The closest name that conditions of a task can read.
    fn closest(&self, report: &mut Report<'_>, name: &str, task: usize) -> Option<&'a str> {
        let of_task = self.of_task.get(&task).into_iter().flatten();
        report.suggest(name, self.account_wide.iter().chain(of_task).copied())
    }
}
