//! What the analysis says about a document before it is written.

use std::collections::{BTreeMap, BTreeSet};

use console::Term;
use prost_types::value::Kind;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json};

use super::{
    PAGE_SIZE,
    document::{self, MessageJson},
    field_line::{FieldLines, SentText},
    layout::with_hanging_indent_on,
    out::sanitize,
    place::{DOCUMENT, GuidePlace},
    transfer, wording,
};
use crate::{
    client::{CallError, Client},
    proto::v1::{
        Finding, FindingCounts, Severity, TaskDocument, ValidateTaskRequest, ValidateTaskResponse,
        ValidationOptions, validate_task_request::Source,
    },
};

/// The most findings that are shown of one document; more are counted.
const MAX_FINDINGS: usize = 20;

/// The warnings and errors of a document.
#[derive(Debug)]
pub(super) struct Findings {
    document: TaskDocument,
    /// The first page of them, new ones first.
    listed: Vec<Finding>,
    /// How many of them the stored guide has, too.
    known: usize,
    /// The command that lists the findings of the stored guide.
    lint_command: String,
    counts: FindingCounts,
    /// Paths as the file of the document has them, after their lines.
    places: BTreeMap<String, String>,
}

impl Findings {
    /// Validates a document as what it will be: a new guide, or another form of the stored one
    /// whose id it has.
    pub async fn of(client: &Client, document: TaskDocument) -> Result<Self, CallError> {
        let source = Source::Document(document.clone());
        let answer = validate(client, source, Severity::Warning).await?;
        Ok(Self::new(document, answer))
    }

    fn new(document: TaskDocument, answer: ValidateTaskResponse) -> Self {
        Self {
            document,
            listed: answer.findings,
            known: 0,
            lint_command: String::new(),
            counts: answer.counts.unwrap_or_default(),
            places: BTreeMap::new(),
        }
    }

    /// Validates a document that replaces a stored guide. Findings that the stored guide has,
    /// too, come last, and the text only counts them. Those after the first page of the stored
    /// guide's findings count as new.
    pub async fn compared(client: &Client, document: TaskDocument) -> Result<Self, CallError> {
        let guid = transfer::guid(&document).to_owned();
        let all = Self::of(client, document).await?;
        if all.listed.is_empty() {
            return Ok(all);
        }
        // All findings are shown as new if those of the stored guide cannot be read.
        let stored = validate(client, Source::Guid(guid.clone()), Severity::Warning).await;
        let stored = stored.map(|answer| answer.findings).unwrap_or_default();
        let stored: BTreeSet<FindingKey> = stored.iter().map(FindingKey::of).collect();
        let is_known = |finding: &Finding| stored.contains(&FindingKey::of(finding));
        let (known, new): (Vec<_>, Vec<_>) = all.listed.into_iter().partition(is_known);
        Ok(Self {
            known: known.len(),
            lint_command: client.command(&format!("lint {guid}")),
            listed: new.into_iter().chain(known).collect(),
            ..all
        })
    }

    /// The errors of a stored guide; `None` if it has none, or cannot be analysed.
    pub async fn errors_of_stored(client: &Client, guid: &str) -> Option<Self> {
        let source = Source::Guid(guid.to_owned());
        let answer = validate(client, source, Severity::Error).await.ok()?;
        if answer.findings.is_empty() {
            return None;
        }
        let document = transfer::export(client, guid).await;
        Some(Self::new(document.unwrap_or_default(), answer))
    }

    /// Adds the places in the file that was sent, whose paths are those of the document.
    pub fn with_places_in(mut self, sent: SentText<'_>) -> Self {
        let lines = FieldLines::new(sent.text);
        let shown = self.listed.iter().take(MAX_FINDINGS);
        let places = shown.filter_map(|Finding { path, .. }| {
            let place = GuidePlace::find(sent.document, path, ("", ""))?;
            Some((path.clone(), lines.with_line(&place.path_as_written(path))))
        });
        self.places = places.collect();
        self
    }

    /// How many findings are errors.
    pub fn errors(&self) -> i32 {
        self.counts.errors
    }

    /// The new findings, each on a line that is wrapped at the width of the terminal, and how
    /// many others there are.
    pub fn text(&self, terminal: &Term) -> String {
        let new = self.listed.len().saturating_sub(self.known);
        let shown = self.listed.iter().take(new.min(MAX_FINDINGS));
        let mut text: String = shown.map(|finding| self.line(finding, terminal)).collect();
        let total = self.counts.errors + self.counts.warnings;
        let total = usize::try_from(total).unwrap_or_default();
        match total.saturating_sub(self.known + new.min(MAX_FINDINGS)) {
            0 => {}
            1 => text.push_str("  and 1 more finding\n"),
            more => text.push_str(&format!("  and {more} more findings\n")),
        }
        let known = match (self.known, text.is_empty()) {
            (0, _) => return text,
            (count, false) => format!("{count} more"),
            (1, true) => "1 finding".to_owned(),
            (count, true) => format!("{count} findings"),
        };
        let line = format!(
            "{known}, which the stored guide has too: see `{}`",
            self.lint_command
        );
        text + &with_hanging_indent_on(terminal, "  ", &line)
    }

    fn line(&self, finding: &Finding, terminal: &Term) -> String {
        let severity = wording::severity(finding.severity());
        let place = GuidePlace::find(
            &self.document,
            &finding.path,
            (&finding.task, &finding.step),
        );
        let label = place.and_then(|place| place.label());
        let label = label
            .map(|label| format!(" in {label}"))
            .unwrap_or_default();
        let at = match finding.path.as_str() {
            "" => label,
            path => {
                let path = self.places.get(path).map_or(path, String::as_str);
                format!(" at {}{label}", sanitize(path))
            }
        };
        let (message, rule) = (sanitize(&finding.message), sanitize(&finding.rule));
        let suggestion = match suggestion(finding) {
            Some(name) => format!(" Is {} meant?", sanitize(name)),
            None => String::new(),
        };
        let line = format!("{severity}{at}: {message}{suggestion} ({rule})");
        with_hanging_indent_on(terminal, "  ", &line)
    }

    /// How many errors and warnings there are, also of those that are not shown.
    pub fn counts(&self) -> Value {
        json!({"errors": self.counts.errors, "warnings": self.counts.warnings})
    }

    /// Adds the result of an analysis, if there is one, to a report of a written guide or of a
    /// dry run. Findings of a written guide are its errors only, so they have no counts.
    pub fn serialize_into<M: SerializeMap>(
        analysed: &Option<Result<Self, CallError>>,
        dry_run: bool,
        report: &mut M,
    ) -> Result<(), M::Error> {
        match analysed {
            Some(Ok(findings)) if dry_run => {
                report.serialize_entry("findings", findings)?;
                report.serialize_entry("counts", &findings.counts())
            }
            Some(Ok(errors)) => report.serialize_entry("findings", errors),
            Some(Err(error)) => report.serialize_entry("analysis_error", error),
            None => Ok(()),
        }
    }

    /// The lines of the result of an analysis, if there is one, for standard output.
    pub fn result_text(analysed: &Option<Result<Self, CallError>>) -> String {
        match analysed {
            Some(Ok(findings)) => findings.text(&Term::stdout()),
            Some(Err(error)) => format!("  not analysed: {error}\n"),
            None => String::new(),
        }
    }
}

/// The first findings of a guide, as many as a page has.
async fn validate(
    client: &Client,
    source: Source,
    min_severity: Severity,
) -> Result<ValidateTaskResponse, CallError> {
    let message = ValidateTaskRequest {
        replaces_stored: matches!(source, Source::Document(_)),
        source: Some(source),
        options: Some(ValidationOptions {
            min_severity: i32::from(min_severity),
            ..ValidationOptions::default()
        }),
        page_size: PAGE_SIZE,
        ..ValidateTaskRequest::default()
    };
    client.call(message).await
}

/// Identifies a finding both in a document and in a stored guide: by everything but the place
/// of its task or step in the document.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct FindingKey {
    rule: String,
    task: String,
    step: String,
    /// The path within the task or step.
    path: String,
    language: String,
    message: String,
}

impl FindingKey {
    fn of(finding: &Finding) -> Self {
        let Finding {
            rule,
            task,
            step,
            path,
            language,
            message,
            ..
        } = finding;
        Self {
            rule: rule.clone(),
            task: task.clone(),
            step: step.clone(),
            path: path_within(path, step).to_owned(),
            language: language.clone(),
            message: message.clone(),
        }
    }
}

/// The part of a path within its task or step. Only a path in a document has a part before it.
fn path_within<'a>(path: &'a str, step: &str) -> &'a str {
    if !path.starts_with(DOCUMENT) {
        return path;
    }
    let below = match step.is_empty() {
        true => path.rsplit_once(".task").map(|(_, below)| below),
        false => {
            let below = path.rsplit_once(".steps[").map(|(_, below)| below);
            below.map(|below| below.split_once(']').map_or("", |(_, below)| below))
        }
    };
    below.map_or(path, |below| below.trim_start_matches('.'))
}

/// The name that is probably meant.
fn suggestion(finding: &Finding) -> Option<&str> {
    let facts = finding.facts.as_ref()?;
    match facts.fields.get("suggestion")?.kind.as_ref()? {
        Kind::StringValue(name) => Some(name),
        _ => None,
    }
}

impl Serialize for Findings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let findings: Vec<MessageJson> = self
            .listed
            .iter()
            .take(MAX_FINDINGS)
            .filter_map(|finding| document::json("Finding", finding).ok())
            .collect();
        findings.serialize(serializer)
    }
}
