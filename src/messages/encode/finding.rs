//! Findings and rules.

use super::{json, text};
use crate::{
    domain::validation::{Finding, FindingCounts, FindingPlace, Rule},
    proto::v1,
};

pub fn rule(rule: Rule) -> v1::Rule {
    let text = rule.text();
    v1::Rule {
        id: text.id.to_owned(),
        severity: text.severity as i32,
        description: text.description.to_owned(),
    }
}

pub fn finding(finding: Finding) -> v1::Finding {
    let id = finding.id();
    let place = finding.place;
    let example = finding.example.into_iter().map(|(name, key)| v1::Answer {
        name,
        value: Some(key.into()),
    });
    v1::Finding {
        rule: finding.rule.text().id.to_owned(),
        severity: finding.severity as i32,
        task: place.task,
        step: place.step,
        path: place.path,
        language: text(finding.language),
        message: finding.message,
        hint: finding.hint,
        facts: Some(json::object(finding.facts)),
        related: finding.related.into_iter().map(self::place).collect(),
        example: example.collect(),
        levels: finding.levels.into_iter().map(i32::from).collect(),
        id,
    }
}

fn place(place: FindingPlace) -> v1::Place {
    v1::Place {
        task: place.task,
        step: place.step,
        path: place.path,
        title: place.title,
    }
}

pub fn finding_counts(counts: FindingCounts) -> v1::FindingCounts {
    let count = |count| i32::try_from(count).unwrap_or(i32::MAX);
    v1::FindingCounts {
        errors: count(counts.errors),
        warnings: count(counts.warnings),
        infos: count(counts.infos),
        suppressed: count(counts.suppressed),
        undecided: count(counts.undecided),
    }
}
