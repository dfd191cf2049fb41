//! The findings of guides, for people and for scripts.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use console::style;
use serde_json::{Value, json};

use super::LintArgs;
use crate::{
    cli::{
        CliError, Format,
        findings::{FindingPlaces, Findings},
        out::{self, Results, print_note, sanitize, with_members},
        wording,
    },
    domain::validation::{Rule, UncheckedVariable},
    proto::v1::{Finding, FindingCounts, Severity},
};

/// What a check without a server does not include.
const CHECKED_ALONE_NOTE: &str = "checked without the account: this skips rules about its other \
    guides, and subtasks outside the files; --online includes them";

pub(super) struct LintReport {
    results: Results,
    guides: usize,
    totals: FindingCounts,
    /// The hints that were already printed.
    hints: BTreeSet<String>,
}

impl LintReport {
    pub fn new(format: Format) -> Self {
        Self {
            results: Results::new(format),
            guides: 0,
            totals: FindingCounts::default(),
            hints: BTreeSet::new(),
        }
    }

    pub fn add(
        &mut self,
        guide: &str,
        checked: Result<Findings, CliError>,
    ) -> Result<(), CliError> {
        self.guides += 1;
        let guide = sanitize(guide);
        let findings = match checked {
            Ok(findings) => findings,
            Err(error) => {
                let text = format!("failed {guide}: {error}");
                let json = json!({"guide": guide, "error": out::error_json(&error)});
                return self.results.add_failure(&text, &json);
            }
        };
        let counts = &findings.counts;
        self.totals.errors += counts.errors;
        self.totals.warnings += counts.warnings;
        self.totals.infos += counts.infos;
        self.totals.undecided += counts.undecided;
        let text = self.text(&guide, &findings);
        let unchecked = findings.unchecked.iter();
        let unchecked = unchecked.map(|UncheckedVariable { name, suggestion }| {
            json!({"variable": name, "suggestion": suggestion})
        });
        let unchecked: Value = unchecked.collect();
        let json = json!({"guide": guide, "unchecked_variables": unchecked});
        let json = with_members(json, findings.json());
        self.results.add(&text, &json)
    }

    fn text(&mut self, guide: &str, findings: &Findings) -> String {
        let not_checked = match findings.unchecked.len() {
            0 => String::new(),
            1 => ", 1 variable not checked".to_owned(),
            count => format!(", {count} variables not checked"),
        };
        let counts = counts(&findings.counts);
        let mut text = format!("{}: {counts}{not_checked}\n", style(guide).bold());
        let places = FindingPlaces::new(findings);
        // An unknown variable has a finding in each place that reads it.
        let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
        for finding in &findings.listed {
            if finding.rule == Rule::UnknownVariable.text().id {
                *unknown.entry(&finding.message).or_default() += 1;
            }
        }
        for finding in &findings.listed {
            let count = unknown.get_mut(finding.message.as_str());
            let count = count.map_or(1, std::mem::take);
            if count > 0 {
                text.push_str(&format!("  {}\n", places.line(finding)));
                for line in self.details(finding, count, &places) {
                    text.push_str(&format!("    {line}\n"));
                }
            }
        }
        for UncheckedVariable { name, suggestion } in &findings.unchecked {
            text.push_str(&sanitize(&format!(
                "  not checked without the account: whether an observation sets {name}; did you \
                 mean {suggestion}?"
            )));
            text.push('\n');
        }
        text
    }

    /// The details of a finding that `count` places have.
    fn details(
        &mut self,
        finding: &Finding,
        count: usize,
        places: &FindingPlaces<'_>,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        if count > 1 {
            lines.push(format!("and in {} more places", count - 1));
        }
        let answers = finding.example.iter().map(|answer| {
            let value = answer.value.as_ref().map(wording::target);
            format!("{} = {}", answer.name, value.unwrap_or_default())
        });
        let answers: Vec<String> = answers.collect();
        if !answers.is_empty() {
            lines.push(format!("for example with {}", answers.join(", ")));
        }
        if !finding.related.is_empty() {
            lines.push(related_heading(&finding.rule).to_owned());
        }
        let related = finding.related.iter();
        lines.extend(related.map(|place| format!("  {}", places.related(place, finding))));
        // The hint names the field of the API, which is a flag here.
        let hint = finding.hint.replace("`known_variables`", "`--variable`");
        if self.hints.insert(hint.clone()) {
            lines.push(format!("to do: {hint}"));
        }
        lines.iter().map(|line| sanitize(line)).collect()
    }

    /// Prints the totals of several guides. `is_local` says whether guides were checked without a
    /// server.
    pub fn end(self, lint: &LintArgs, is_local: bool) -> Result<ExitCode, CliError> {
        if self.results.is_text() {
            if self.guides > 1 {
                let totals = match self.results.failed() {
                    0 => counts(&self.totals),
                    failed if failed == self.guides => format!("{failed} failed"),
                    failed => format!("{failed} failed, {}", counts(&self.totals)),
                };
                print_note(&format!("{} guides: {totals}", self.guides));
            }
            if is_local && !lint.closed {
                print_note(CHECKED_ALONE_NOTE);
            }
        }
        let FindingCounts {
            errors,
            warnings,
            infos,
            ..
        } = self.totals;
        let counted = match lint.fail_on {
            Severity::Error => errors,
            Severity::Warning => errors + warnings,
            Severity::Info => errors + warnings + infos,
            Severity::Off | Severity::Unspecified => 0,
        };
        let code = self.results.end(None)?;
        Ok(match counted {
            0 => code,
            _ => ExitCode::FAILURE,
        })
    }
}

/// Such as `2 errors, 1 warning` or `no findings`.
fn counts(counts: &FindingCounts) -> String {
    let parts = [
        (counts.errors, "error", ""),
        (counts.warnings, "warning", ""),
        (counts.infos, "info", ""),
        (counts.undecided, "question", " undecided"),
    ];
    let parts = parts.into_iter().filter(|(number, ..)| *number > 0);
    let parts = parts.map(|(number, what, state)| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{number} {what}{plural}{state}")
    });
    match parts.collect::<Vec<String>>().as_slice() {
        [] => "no findings".to_owned(),
        parts => parts.join(", "),
    }
}

/// What the related places of a finding are.
fn related_heading(rule: &str) -> &'static str {
    match rule {
        "step/unreachable" | "task/never-visible" => "these conditions cannot hold together:",
        "subtask/cycle" => "the steps of the cycle:",
        "condition/set-elsewhere" | "condition/answered-later" => "it is set by:",
        _ => "see also:",
    }
}
