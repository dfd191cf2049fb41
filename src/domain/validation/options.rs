//! Options of a validation: rules, severities, suppressions, languages.

use std::collections::BTreeMap;

use crate::domain::{
    analysis::{KnownVariables, Unpublished},
    translation::Language,
};

use super::{
    finding::Finding,
    rules::{Rule, Severity},
};

pub const MAX_RULE_SETTINGS: usize = 100;
pub const MAX_SUPPRESSIONS: usize = 1_000;
/// The maximum length of a suppressed path, in code points.
pub const MAX_SUPPRESSED_PATH_CHARS: usize = 2_000;

/// Findings that the caller knows and does not want to see. All set fields must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    pub rule: Option<Rule>,
    pub task: Option<String>,
    pub step: Option<String>,
    /// The path. `.*` at its end stands for the path before it and all paths below.
    pub path: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct ValidationOptions {
    /// The severities of rules that differ from their defaults; `None` for a rule that is off.
    pub rules: BTreeMap<Rule, Option<Severity>>,
    pub suppress: Vec<Suppression>,
    /// Variables that exist although no observation sets them.
    pub known_variables: KnownVariables,
    /// The languages that are checked. If empty, the languages that the guide has translations in.
    pub languages: Vec<Language>,
    /// Whether walkthroughs see unpublished tasks and steps.
    pub unpublished: Unpublished,
    /// Findings with a lower severity are left out.
    pub min_severity: Severity,
}

impl ValidationOptions {
    /// The severity of a rule's findings; `None` if they are left out.
    pub fn severity(&self, rule: Rule, default: Severity) -> Option<Severity> {
        let severity = self.rules.get(&rule).copied().unwrap_or(Some(default));
        severity.filter(|severity| *severity >= self.min_severity)
    }

    pub fn suppresses(&self, finding: &Finding) -> bool {
        self.suppress.iter().any(|one| one.matches(finding))
    }
}

impl Suppression {
    fn matches(&self, finding: &Finding) -> bool {
        let place = &finding.place;
        let is_at = |wanted: &Option<String>, at: &str| wanted.as_ref().is_none_or(|it| it == at);
        self.rule.is_none_or(|rule| rule == finding.rule)
            && is_at(&self.task, &place.task)
            && is_at(&self.step, &place.step)
            && (self.path.as_ref()).is_none_or(|path| path_matches(path, &place.path))
    }
}

/// Whether a path is suppressed: it equals the suppressed path, or is below it if that ends in
/// `.*`.
fn path_matches(suppressed: &str, path: &str) -> bool {
    match suppressed.strip_suffix(".*") {
        None => suppressed == path,
        Some("") => true,
        Some(above) => path
            .strip_prefix(above)
            .is_some_and(|below| below.is_empty() || below.starts_with(['.', '['])),
    }
}
