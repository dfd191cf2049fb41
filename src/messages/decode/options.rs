//! Options of validations.

use super::{
    Field, REQUIRED,
    field::{self, languages, optional_guid},
    names::known_variables,
};
use crate::{
    domain::{
        analysis::KnownVariables,
        ids::{StepId, TaskId},
        misspelling::closest,
        text::check,
        translation::MAX_LANGUAGES,
        validation::{
            MAX_RULE_SETTINGS, MAX_SUPPRESSED_PATH_CHARS, MAX_SUPPRESSIONS, Rule, RuleSetting,
            Severity, Suppression, Unpublished, ValidationOptions,
        },
        violation::Reason,
    },
    proto::v1,
};

/// How guides are validated.
pub fn options(message: Option<v1::ValidationOptions>, mut at: Field<'_>) -> ValidationOptions {
    let message = message.unwrap_or_default();
    let v1::ValidationOptions {
        rules,
        suppress,
        known_variables: known,
        languages: tags,
        include_unpublished,
        min_severity,
    } = message;
    let mut list = at.field("rules");
    let mut settings = Vec::new();
    if list.at_most(rules.len(), MAX_RULE_SETTINGS) {
        let each = rules.into_iter().enumerate();
        settings = each
            .filter_map(|(index, setting)| rule_setting(setting, list.index(index)))
            .collect();
    }
    let mut list = at.field("suppress");
    let mut suppressions = Vec::new();
    if list.at_most(suppress.len(), MAX_SUPPRESSIONS) {
        let each = suppress.into_iter().enumerate();
        suppressions = each
            .filter_map(|(index, one)| suppression(one, list.index(index)))
            .collect();
    }
    let known: KnownVariables = known_variables(known, at.field("known_variables"));
    let languages = languages(&tags, MAX_LANGUAGES, at.field("languages"));
    let min_severity = minimum(min_severity, at.field("min_severity"));
    ValidationOptions {
        rules: settings.into_iter().collect(),
        suppress: suppressions,
        known_variables: known,
        languages,
        unpublished: if include_unpublished {
            Unpublished::Included
        } else {
            Unpublished::Excluded
        },
        min_severity,
    }
}

fn rule_setting(message: v1::RuleSetting, mut at: Field<'_>) -> Option<(Rule, RuleSetting)> {
    let v1::RuleSetting { rule, severity } = message;
    let rule = known_rule(&rule, at.field("rule"));
    let mut field = at.field("severity");
    let setting = match v1::Severity::try_from(severity) {
        Ok(v1::Severity::Off) => RuleSetting::Off,
        Ok(v1::Severity::Info) => RuleSetting::Severity(Severity::Info),
        Ok(v1::Severity::Warning) => RuleSetting::Severity(Severity::Warning),
        Ok(v1::Severity::Error) => RuleSetting::Severity(Severity::Error),
        Ok(v1::Severity::Unspecified) => {
            field.refuse(Reason::FieldRequired, REQUIRED);
            return None;
        }
        Err(_) => {
            let description = no_severity([v1::Severity::Off, INFO, WARNING, ERROR]);
            field.refuse(Reason::FieldInvalid, description);
            return None;
        }
    };
    Some((rule?, setting))
}

fn minimum(number: i32, mut field: Field<'_>) -> Severity {
    match v1::Severity::try_from(number) {
        Ok(v1::Severity::Unspecified | v1::Severity::Info) => return Severity::Info,
        Ok(v1::Severity::Warning) => return Severity::Warning,
        Ok(v1::Severity::Error) => return Severity::Error,
        Ok(v1::Severity::Off) => {
            field.refuse(
                Reason::FieldInvalid,
                "must not be OFF, which is for single rules in `rules`",
            );
        }
        Err(_) => field.refuse(Reason::FieldInvalid, no_severity([INFO, WARNING, ERROR])),
    }
    Severity::Info
}

const INFO: v1::Severity = v1::Severity::Info;
const WARNING: v1::Severity = v1::Severity::Warning;
const ERROR: v1::Severity = v1::Severity::Error;

fn no_severity<const N: usize>(values: [v1::Severity; N]) -> String {
    let values = values.map(|value| (value.as_str_name(), value.into()));
    field::not_a_value("a severity", values)
}

fn known_rule(id: &str, mut field: Field<'_>) -> Option<Rule> {
    if id.is_empty() {
        return field.required(None);
    }
    let rule = Rule::parse(id);
    if rule.is_none() {
        let ids = Rule::ALL.iter().map(|rule| rule.text().id);
        let meant = closest(id, ids).map(|id| format!("; perhaps `{id}` is meant"));
        let meant = meant.unwrap_or_else(|| ": see ListRules".to_owned());
        field.refuse(
            Reason::FieldInvalid,
            format!("is not the id of a rule{meant}"),
        );
    }
    rule
}

fn suppression(message: v1::Suppression, mut at: Field<'_>) -> Option<Suppression> {
    let v1::Suppression {
        rule,
        task,
        step,
        path,
    } = message;
    if [&rule, &task, &step, &path]
        .iter()
        .all(|text| text.is_empty())
    {
        at.refuse(
            Reason::FieldRequired,
            "needs a rule, a task, a step or a path",
        );
        return None;
    }
    let rule = field::sent_text(rule).and_then(|id| known_rule(&id, at.field("rule")));
    let task = optional_guid(&task, TaskId::parse, at.field("task"));
    let step = optional_guid(&step, StepId::parse, at.field("step"));
    let path = field::sent_text(path);
    if let Some(path) = &path {
        let mut field = at.field("path");
        field.accept(check(path, MAX_SUPPRESSED_PATH_CHARS));
    }
    Some(Suppression {
        rule,
        task: task.map(|task| task.to_string()),
        step: step.map(|step| step.to_string()),
        path,
    })
}
