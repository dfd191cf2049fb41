//! Options of validations.

use super::{
    Field,
    field::{self, languages, optional_guid},
    names::known_variables,
};
use crate::{
    domain::{
        analysis::Unpublished,
        ids::{StepId, TaskId},
        misspelling::closest,
        text::check,
        translation::MAX_LANGUAGES,
        validation::{
            MAX_RULE_SETTINGS, MAX_SUPPRESSED_PATH_CHARS, MAX_SUPPRESSIONS, Rule, Severity,
            Suppression, ValidationOptions,
        },
        violation::Reason,
    },
    proto::v1,
};

/// How guides are validated.
pub fn options(message: Option<v1::ValidationOptions>, mut at: Field<'_>) -> ValidationOptions {
    let message = message.unwrap_or_default();
    let rules = at
        .field("rules")
        .elements(message.rules, MAX_RULE_SETTINGS, rule_setting);
    let suppress = at
        .field("suppress")
        .elements(message.suppress, MAX_SUPPRESSIONS, suppression);
    ValidationOptions {
        rules: rules.unwrap_or_default().into_iter().collect(),
        suppress: suppress.unwrap_or_default(),
        known_variables: known_variables(message.known_variables, at.field("known_variables")),
        languages: languages(message.languages, MAX_LANGUAGES, at.field("languages")),
        unpublished: Unpublished {
            included: message.include_unpublished,
        },
        min_severity: minimum(message.min_severity, at.field("min_severity")),
    }
}

fn rule_setting(message: v1::RuleSetting, mut at: Field<'_>) -> Option<(Rule, Option<Severity>)> {
    let rule = known_rule(&message.rule, at.field("rule"));
    let known = |number| match severity(number) {
        None if number == OFF => Some(None),
        severity => severity.map(Some),
    };
    let mut field = at.field("severity");
    let setting = field.enum_value(message.severity, "a severity", "Severity", known)?;
    Some((rule?, setting))
}

fn minimum(number: i32, mut field: Field<'_>) -> Severity {
    let description = match severity(number) {
        Some(severity) => return severity,
        None if number == 0 => return Severity::Info,
        None if number == OFF => "must not be OFF, which is for single rules in `rules`",
        None => "is not a severity: SEVERITY_INFO (2), SEVERITY_WARNING (3), SEVERITY_ERROR (4)",
    };
    field.refuse(Reason::FieldInvalid, description);
    Severity::Info
}

const OFF: i32 = v1::Severity::Off as i32;

fn severity(number: i32) -> Option<Severity> {
    let all = [Severity::Info, Severity::Warning, Severity::Error];
    all.into_iter().find(|it| *it as i32 == number)
}

fn known_rule(id: &str, mut field: Field<'_>) -> Option<Rule> {
    let rule = Rule::parse(id);
    if rule.is_some() {
        return rule;
    }
    let ids = Rule::ALL.iter().map(|rule| rule.text().id);
    let meant = closest(id, ids).map(|id| format!("; did you mean `{id}`?"));
    let meant = meant.unwrap_or_else(|| ": see ListRules".to_owned());
    field.parsed(id, rule, &format!("is not the id of a rule{meant}"))
}

fn suppression(message: v1::Suppression, mut at: Field<'_>) -> Option<Suppression> {
    if message == v1::Suppression::default() {
        let description = "needs a rule, a task, a step or a path";
        at.refuse(Reason::FieldRequired, description);
        return None;
    }
    let v1::Suppression {
        rule,
        task,
        step,
        path,
    } = message;
    let rule = field::sent_text(rule).and_then(|id| known_rule(&id, at.field("rule")));
    let task = optional_guid(&task, TaskId::parse, at.field("task"));
    let step = optional_guid(&step, StepId::parse, at.field("step"));
    let path = field::sent_text(path);
    if let Some(path) = &path {
        at.field("path")
            .accept(check(path, MAX_SUPPRESSED_PATH_CHARS));
    }
    Some(Suppression {
        rule,
        task: task.map(|task| task.to_string()),
        step: step.map(|step| step.to_string()),
        path,
    })
}
