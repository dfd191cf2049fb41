//! The findings of guides, for people and for scripts.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use console::{Term, style};
use serde_json::{Value, json};

use super::{Checked, LintArgs};
use crate::{
    cli::{
        CliError, Format, document,
        guide_file::FieldLines,
        layout::{with_hanging_indent, with_hanging_indent_on},
        out::{self, Results, print_error, sanitize},
        place::{DOCUMENT, GuidePlace},
        wording,
    },
    domain::validation::{Rule, UncheckedVariable},
    proto::v1::{Finding, FindingCounts, Place, Severity},
};

/// What a check without a server leaves out.
const CHECKED_ALONE_NOTE: &str = "checked without the account: rules about its other guides are \
                                  left out, and tasks outside the files are not followed; --online \
                                  checks them too";

/// The indentation of the text of a finding.
const INDENT: &str = "    ";

pub(super) struct LintReport<'a> {
    lint: &'a LintArgs,
    results: Results,
    has_failed: bool,
    /// Whether guides were checked without a server.
    is_local: bool,
    totals: FindingCounts,
    /// The hints that were printed.
    hints: BTreeSet<String>,
}

impl<'a> LintReport<'a> {
    pub fn new(lint: &'a LintArgs, format: Format, is_local: bool) -> Self {
        Self {
            lint,
            results: Results::new(format),
            has_failed: false,
            is_local,
            totals: FindingCounts::default(),
            hints: BTreeSet::new(),
        }
    }

    pub fn add(&mut self, guide: &str, checked: Result<Checked, CliError>) -> Result<(), CliError> {
        let checked = match checked {
            Ok(checked) => checked,
            Err(error) => {
                self.has_failed = true;
                let text = format!("failed {guide}: {error}");
                let json = json!({"guide": guide, "error": out::error_json(&error)});
                return self.results.add_failure(&text, &json);
            }
        };
        self.totals.errors += checked.counts.errors;
        self.totals.warnings += checked.counts.warnings;
        self.totals.infos += checked.counts.infos;
        self.totals.undecided += checked.counts.undecided;
        let text = self.text(guide, &checked);
        self.results.add(&text, &json(guide, &checked)?)
    }

    fn text(&mut self, guide: &str, checked: &Checked) -> String {
        let unchecked = match checked.unchecked.len() {
            0 => String::new(),
            1 => ", 1 variable not checked".to_owned(),
            count => format!(", {count} variables not checked"),
        };
        let counts = counts(&checked.counts);
        let mut text = format!("{}: {counts}{unchecked}\n", style(guide).bold());
        let lines = checked.lines();
        // A variable that nobody sets is one finding in each place that reads it.
        let mut printed: BTreeMap<&str, usize> = BTreeMap::new();
        let unknown = Rule::UnknownVariable.text().id;
        let unknown = checked.findings.iter().filter(|it| it.rule == unknown);
        unknown.for_each(|it| *printed.entry(&it.message).or_default() += 1);
        for finding in &checked.findings {
            let places = match printed.get_mut(finding.message.as_str()) {
                Some(places) => std::mem::take(places),
                None => 1,
            };
            if places > 0 {
                text.push_str(&self.finding_text(finding, places, checked, &lines));
            }
        }
        for UncheckedVariable { name, suggestion } in &checked.unchecked {
            let line = format!(
                "not checked without the account: whether an observation sets {name}; is \
                 {suggestion} meant?"
            );
            text.push_str(&with_hanging_indent("  ", &sanitize(&line)));
        }
        text
    }

    fn finding_text(
        &mut self,
        finding: &Finding,
        places: usize,
        checked: &Checked,
        lines: &FieldLines<'_>,
    ) -> String {
        let Finding {
            task, step, path, ..
        } = finding;
        let severity = style(wording::severity(finding.severity()));
        let severity = match finding.severity() {
            Severity::Error => severity.red(),
            Severity::Warning => severity.yellow(),
            Severity::Info | Severity::Off | Severity::Unspecified => severity.cyan(),
        };
        let rule = style(sanitize(&finding.rule)).bold();
        let mut text = format!("  {} {rule}\n", severity.bold());
        let mut line = |lead: &str, line: &str| {
            let lead = format!("{INDENT}{lead}");
            text.push_str(&with_hanging_indent(&lead, &sanitize(line)));
        };
        let at = match step.as_str() {
            _ if path.starts_with(DOCUMENT) => checked.in_file(path, lines),
            "" => format!("task {task} {path}"),
            step => format!("step {step} {path}"),
        };
        match places {
            1 => line("at ", at.trim_end()),
            count => {
                let more = count - 1;
                line(
                    "at ",
                    &format!("{}, and in {more} more places", at.trim_end()),
                );
            }
        }
        if let Some(label) = checked.find(path, (task, step)).and_then(|it| it.label()) {
            line("in ", &label);
        }
        match (finding.language.as_str(), self.lint.languages.is_empty()) {
            ("", _) => {}
            (language, false) => line("language ", language),
            (language, true) => {
                let note = format!("{language}, which the guide is translated into");
                line("language ", &note);
            }
        }
        line("", &finding.message);
        let answers = finding.example.iter().map(|answer| {
            let value = answer.value.as_ref().map(wording::target);
            format!("{} = {}", answer.name, value.unwrap_or_default())
        });
        let answers: Vec<String> = answers.collect();
        if !answers.is_empty() {
            line("for example with ", &answers.join(", "));
        }
        if !finding.related.is_empty() {
            line("", related_heading(&finding.rule));
        }
        for place in &finding.related {
            line("  ", &checked.related_place(place, finding, lines));
        }
        // The hint names the field of the contract, which is a flag here.
        let hint = finding.hint.replace("`known_variables`", "`--variable`");
        if self.hints.insert(hint.clone()) {
            line("to do: ", &hint);
        }
        text
    }

    /// Prints the totals of several guides.
    pub fn end(self, guides: usize) -> Result<ExitCode, CliError> {
        if self.results.is_text() {
            if guides > 1 {
                print_error(&format!("{guides} guides: {}", counts(&self.totals)));
            }
            if self.is_local && !self.lint.closed {
                let note = with_hanging_indent_on(&Term::stderr(), "", CHECKED_ALONE_NOTE);
                print_error(note.trim_end());
            }
        }
        self.results.end()?;
        let FindingCounts {
            errors,
            warnings,
            infos,
            ..
        } = self.totals;
        let counted = match self.lint.fail_on {
            Severity::Error => errors,
            Severity::Warning => errors + warnings,
            Severity::Info => errors + warnings + infos,
            Severity::Off | Severity::Unspecified => 0,
        };
        Ok(match self.has_failed || counted > 0 {
            false => ExitCode::SUCCESS,
            true => ExitCode::FAILURE,
        })
    }
}

fn json(guide: &str, checked: &Checked) -> Result<Value, CliError> {
    let unchecked = checked.unchecked.iter();
    let unchecked = unchecked.map(|UncheckedVariable { name, suggestion }| {
        json!({"variable": name, "suggestion": suggestion})
    });
    Ok(json!({
        "guide": guide,
        "findings": document::json_list("Finding", &checked.findings)?,
        "counts": document::json("FindingCounts", &checked.counts)?,
        "unchecked_variables": unchecked.collect::<Value>(),
    }))
}

/// `2 errors, 1 warning`, or that there is nothing.
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

impl Checked {
    fn find(&self, path: &str, ids: (&str, &str)) -> Option<GuidePlace<'_>> {
        GuidePlace::find(&self.document, path, ids)
    }

    /// A path in a document as its file has it, after the line where that is known.
    fn in_file(&self, path: &str, lines: &FieldLines<'_>) -> String {
        let place = self.find(path, ("", ""));
        lines.with_line(&place.map_or_else(|| path.to_owned(), |it| it.path_as_written(path)))
    }

    /// The place, the condition there, if any, and the title of its step, unless the finding is in
    /// the same step.
    fn related_place(&self, place: &Place, finding: &Finding, lines: &FieldLines<'_>) -> String {
        let Place {
            task,
            step,
            path,
            title,
        } = place;
        let id = if step.is_empty() { task } else { step };
        let mut text = match path.starts_with(DOCUMENT) {
            true => self.in_file(path, lines),
            false => format!("{id} {path}").trim().to_owned(),
        };
        let at = self.find(path, (task, step));
        if let Some(condition) = at.and_then(|place| place.condition(path)) {
            text.push_str(&format!(": {condition}"));
        }
        let is_of_other_file = path.contains(": document") && !path.starts_with(DOCUMENT);
        if !title.is_empty() && (is_of_other_file || *step != finding.step) {
            text.push_str(&format!(" in \"{title}\""));
        }
        text
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
