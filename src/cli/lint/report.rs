//! The findings of a guide, for people and for scripts.

use console::style;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::LintFindings;
use crate::{
    cli::{
        CliError, document,
        field_line::FieldLines,
        layout::with_hanging_indent,
        out::{print, print_error, sanitize},
        place::{self, GuidePlace},
        wording,
    },
    domain::validation::UncheckedVariable,
    proto::v1::{Finding, FindingCounts, Place, Severity, TaskDocument},
};

/// What a check without a server leaves out.
pub const CHECKED_ALONE_NOTE: &str = "\
checked without the account: rules about its other guides are left out, and tasks outside the \
files are not followed; --online checks them too";

/// The same for files that are all guides.
pub const CHECKED_AS_ALL_NOTE: &str = "\
checked as all guides of the account: the steps of the tasks that subtask steps refer to in other \
files are not followed";

/// The indentation of the text of a finding.
const INDENT: &str = "    ";

/// What was found in a guide, or why it could not be checked.
pub struct LintReport {
    guide: String,
    result: Result<LintFindings, CliError>,
}

impl LintReport {
    pub fn new(guide: &str, result: Result<LintFindings, CliError>) -> Self {
        Self {
            guide: sanitize(guide),
            result,
        }
    }

    /// Whether there is a finding of this severity or a higher one, or the guide could not be
    /// checked.
    pub fn fails_on(&self, severity: Severity) -> bool {
        let Ok(LintFindings { counts, .. }) = &self.result else {
            return true;
        };
        match severity {
            Severity::Error => counts.errors > 0,
            Severity::Warning => counts.errors + counts.warnings > 0,
            Severity::Info => counts.errors + counts.warnings + counts.infos > 0,
            Severity::Off | Severity::Unspecified => false,
        }
    }

    /// Prints it for people: findings to standard output, a failure to standard error.
    pub fn print(&self) -> Result<(), CliError> {
        let found = match &self.result {
            Ok(found) => found,
            Err(error) => {
                print_error(&format!("failed {}: {}", self.guide, message(error)));
                return Ok(());
            }
        };
        let unchecked = match found.unchecked.len() {
            0 => String::new(),
            1 => ", 1 variable not checked".to_owned(),
            count => format!(", {count} variables not checked"),
        };
        let counts = counts(&found.counts);
        let mut text = format!("{}: {counts}{unchecked}\n", style(&self.guide).bold());
        let checked = CheckedGuide {
            document: found.document.as_ref(),
            lines: found.text.as_deref().map(FieldLines::new),
            names_languages: found.names_languages,
        };
        for finding in &found.findings {
            text.push_str(&checked.finding_text(finding));
        }
        for UncheckedVariable { name, suggestion } in &found.unchecked {
            let line = format!(
                "not checked without the account: whether an observation sets {name}; is \
                 {suggestion} meant?"
            );
            text.push_str(&with_hanging_indent("  ", &sanitize(&line)));
        }
        print(&text)
    }
}

/// Why a guide could not be checked, without its name.
fn message(error: &CliError) -> String {
    match error {
        CliError::Read { reason, .. } => format!("it cannot be read: {reason}"),
        CliError::File { error, .. } => error.to_string(),
        error => error.to_string(),
    }
}

/// `2 errors, 1 warning`, or that there is nothing.
fn counts(counts: &FindingCounts) -> String {
    let FindingCounts {
        errors,
        warnings,
        infos,
        suppressed: _,
        undecided,
    } = counts;
    let count = |number: &i32, one: &str, several: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        number => Some(format!("{number} {several}")),
    };
    let parts = [
        count(errors, "error", "errors"),
        count(warnings, "warning", "warnings"),
        count(infos, "info", "infos"),
        count(undecided, "question undecided", "questions undecided"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.as_slice() {
        [] => "no findings".to_owned(),
        parts => parts.join(", "),
    }
}

/// The guide in which the places of findings are looked up.
struct CheckedGuide<'a> {
    document: Option<&'a TaskDocument>,
    /// The lines of its file.
    lines: Option<FieldLines<'a>>,
    /// Whether the command line names the languages to check.
    names_languages: bool,
}

impl CheckedGuide<'_> {
    fn finding_text(&self, finding: &Finding) -> String {
        let Finding {
            rule,
            severity: _,
            task,
            step,
            path,
            language,
            message,
            hint,
            // The message says the same as these facts and levels.
            facts: _,
            related,
            example,
            levels: _,
            id: _,
        } = finding;
        let severity = style(wording::severity(finding.severity()));
        let severity = match finding.severity() {
            Severity::Error => severity.red(),
            Severity::Warning => severity.yellow(),
            Severity::Info | Severity::Off | Severity::Unspecified => severity.cyan(),
        };
        let mut text = format!("  {} {}\n", severity.bold(), style(sanitize(rule)).bold());
        let mut line = |lead: &str, line: &str| {
            text.push_str(&with_hanging_indent(
                &format!("{INDENT}{lead}"),
                &sanitize(line),
            ));
        };
        line("at ", &self.place_of(finding));
        let place = self.find(path, task, step);
        if let Some(label) = place.and_then(|place| place.label()) {
            line("in ", &label);
        }
        if !language.is_empty() {
            line(
                "language ",
                &match self.names_languages {
                    true => language.clone(),
                    false => format!("{language}, which the guide is translated into"),
                },
            );
        }
        line("", message);
        let answers = example.iter().map(|answer| {
            let value = answer.value.as_ref().map(wording::target);
            format!("{} = {}", answer.name, value.unwrap_or_default())
        });
        let answers: Vec<String> = answers.collect();
        if !answers.is_empty() {
            line("for example with ", &answers.join(", "));
        }
        if !related.is_empty() {
            line("", related_heading(rule));
        }
        for place in related {
            line("  ", &self.related_place(place, finding));
        }
        // The hint names the field of the contract, which is a flag here.
        line(
            "to do: ",
            &hint.replace("`known_variables`", "`--variable`"),
        );
        text
    }

    fn find(&self, path: &str, task: &str, step: &str) -> Option<GuidePlace<'_>> {
        GuidePlace::find(self.document?, path, (task, step))
    }

    /// A path in a document as its file has it, after the line where that is known.
    fn in_file(&self, path: &str) -> String {
        let place = self.find(path, "", "");
        let path = place.map_or_else(|| path.to_owned(), |place| place.path_as_written(path));
        match &self.lines {
            Some(lines) => lines.with_line(&path),
            None => path,
        }
    }

    /// The path in a document, or the id of the stored step or task and the path within it.
    fn place_of(&self, finding: &Finding) -> String {
        let Finding {
            task, step, path, ..
        } = finding;
        let place = match step.as_str() {
            _ if path.starts_with(place::DOCUMENT) => self.in_file(path),
            "" => format!("task {task} {path}"),
            step => format!("step {step} {path}"),
        };
        place.trim_end().to_owned()
    }

    /// The place, the condition there, if any, and the title of its step, unless the finding is
    /// in the same step.
    fn related_place(&self, place: &Place, finding: &Finding) -> String {
        let Place {
            task,
            step,
            path,
            title,
        } = place;
        let id = if step.is_empty() { task } else { step };
        let mut text = match path.starts_with("document.") {
            true => self.in_file(path),
            false => format!("{id} {path}").trim().to_owned(),
        };
        let at = self.find(path, task, step);
        if let Some(condition) = at.and_then(|place| place.condition(path)) {
            text.push_str(&format!(": {condition}"));
        }
        if !title.is_empty() && *step != finding.step {
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

impl Serialize for LintReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;

        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("guide", &self.guide)?;
        match &self.result {
            Ok(found) => {
                let findings = found.findings.iter();
                let findings: Result<Vec<_>, _> = findings
                    .map(|finding| document::json("Finding", finding))
                    .collect();
                object.serialize_entry("findings", &findings.map_err(S::Error::custom)?)?;
                let counts = document::json("FindingCounts", &found.counts);
                object.serialize_entry("counts", &counts.map_err(S::Error::custom)?)?;
                let unchecked = found.unchecked.iter();
                let unchecked = unchecked.map(|UncheckedVariable { name, suggestion }| {
                    serde_json::json!({"variable": name, "suggestion": suggestion})
                });
                let unchecked: Vec<serde_json::Value> = unchecked.collect();
                if !unchecked.is_empty() {
                    object.serialize_entry("unchecked_variables", &unchecked)?;
                }
            }
            Err(CliError::Refused(refusal)) => object.serialize_entry("error", refusal)?,
            Err(error) => {
                let message = serde_json::json!({"message": message(error)});
                object.serialize_entry("error", &message)?;
            }
        }
        object.end()
    }
}
