//! Findings and rules.

use super::json;
use crate::{
    domain::validation::{Finding, FindingCounts, FindingPlace, Rule, Severity},
    proto::v1,
};

/// A rule.
pub fn rule(rule: Rule) -> v1::Rule {
    let text = rule.text();
    v1::Rule {
        id: text.id.to_owned(),
        severity: severity(text.severity).into(),
        description: text.description.to_owned(),
    }
}

/// A finding.
pub fn finding(finding: Finding) -> v1::Finding {
    let id = finding.id();
    let Finding {
        rule,
        severity,
        place,
        language,
        message,
        hint,
        facts,
        related,
        example,
        levels,
        order: _,
    } = finding;
    let FindingPlace {
        task,
        step,
        path,
        title: _,
    } = place;
    let example = example.into_iter().map(|(name, key)| v1::Answer {
        name,
        value: Some(json::value(serde_json::Value::String(key))),
    });
    let language = language.map(|language| language.to_string());
    v1::Finding {
        rule: rule.text().id.to_owned(),
        severity: self::severity(severity).into(),
        task,
        step,
        path,
        language: language.unwrap_or_default(),
        message,
        hint,
        facts: Some(json::object(facts)),
        related: related.into_iter().map(self::place).collect(),
        example: example.collect(),
        levels: levels.iter().map(|level| level.number()).collect(),
        id,
    }
}

fn place(place: FindingPlace) -> v1::Place {
    let FindingPlace {
        task,
        step,
        path,
        title,
    } = place;
    v1::Place {
        task,
        step,
        path,
        title,
    }
}

fn severity(severity: Severity) -> v1::Severity {
    match severity {
        Severity::Info => v1::Severity::Info,
        Severity::Warning => v1::Severity::Warning,
        Severity::Error => v1::Severity::Error,
    }
}

/// The counts of findings.
pub fn finding_counts(counts: FindingCounts) -> v1::FindingCounts {
    let FindingCounts {
        errors,
        warnings,
        infos,
        suppressed,
        undecided,
    } = counts;
    let count = |count| i32::try_from(count).unwrap_or(i32::MAX);
    v1::FindingCounts {
        errors: count(errors),
        warnings: count(warnings),
        infos: count(infos),
        suppressed: count(suppressed),
        undecided: count(undecided),
    }
}
