//! Finds the mistakes in a guide.
//!
//! Most rules check one condition, observation or step. Rules about walkthroughs are decided
//! exactly, or counted as undecided if the search reaches its limit. `walkthrough` builds one
//! Boolean formula for all walkthroughs, and `search` decides what can be true in it.

mod conditions;
mod conflict;
mod content;
mod document_set;
mod finding;
mod formula;
mod observations;
mod options;
mod reachability;
mod report;
mod rules;
mod search;
mod subtasks;
mod suggestion;
mod walkthrough;

use serde_json::json;

use crate::domain::{
    analysis::{Budget, GuideLimit, MAX_SUBTASK_LEVELS},
    ids::TaskId,
};

pub use document_set::{DocumentSet, OfflineFindings, UncheckedVariable};
pub use finding::{Finding, FindingPlace};
pub use options::{
    MAX_RULE_SETTINGS, MAX_SUPPRESSED_PATH_CHARS, MAX_SUPPRESSIONS, Suppression, ValidationOptions,
};
pub use report::{FindingCounts, OtherGuides, ValidationSubject};
pub use rules::{RULES_VERSION, Rule, RuleText, Severity};

use report::Report;

/// The maximum bytes of all findings. Further findings are only counted.
const MAX_FINDING_BYTES: usize = 32 * 1024 * 1024;

/// The findings of a guide in order, and their counts; `None` if the call is over.
pub fn validate(subject: ValidationSubject<'_>) -> Option<(Vec<Finding>, FindingCounts)> {
    let budget = Budget::new(MAX_FINDING_BYTES, subject.stop);
    let mut report = Report::new(subject, &budget);
    conditions::check(&mut report);
    observations::check(&mut report);
    content::check(&mut report);
    subtasks::check(&mut report);
    let limit = subject.guide.limit.or_else(|| {
        let is_too_deep = subtasks::check_depth(&mut report);
        is_too_deep.then_some(GuideLimit("subtask_levels", MAX_SUBTASK_LEVELS))
    });
    if let Some(limit) = limit {
        report_too_large(&mut report, limit);
    }
    reachability::check(&mut report, limit.is_some());
    if report.budget.is_stopped() {
        return None;
    }
    let Report {
        mut findings,
        mut counts,
        ..
    } = report;
    Finding::sort(&mut findings);
    findings.dedup_by(|later, earlier| {
        let is_equal = later == earlier;
        *counts.count_mut(later.severity) -= usize::from(is_equal);
        is_equal
    });
    Some((findings, counts))
}

/// The finding for a guide that was not read because it has more than `max_bytes`; `None` if the
/// options leave it out.
pub fn too_large(task: TaskId, max_bytes: usize, options: &ValidationOptions) -> Option<Finding> {
    let place = FindingPlace {
        task: task.to_string(),
        ..FindingPlace::default()
    };
    let facts = json!({ "limit": "bytes", "most": max_bytes });
    let message = format!("The guide has more than {max_bytes} bytes and is not analyzed.");
    let mut finding = Finding::new(Rule::TooLarge, place, (0, None), facts, message);
    finding.severity = options.severity(finding.rule, finding.severity)?;
    (!options.suppresses(&finding)).then_some(finding)
}

fn report_too_large(report: &mut Report<'_>, GuideLimit(limit, most): GuideLimit) {
    let facts = json!({ "limit": limit, "most": most });
    let limit = limit.replace('_', " ");
    let message = format!("The guide has more than {most} {limit}.");
    report.add(report.root().finding(Rule::TooLarge, "", facts, message));
}
