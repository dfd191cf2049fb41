//! What the analysis says about a guide that is written.

use std::collections::BTreeSet;

use console::Term;
use prost_types::value::Kind;
use serde_json::{Value, json};

use super::{
    PAGE_SIZE, document, guides,
    layout::with_hanging_indent_on,
    out::{call_error_json, sanitize},
    place::{DOCUMENT, GuidePlace},
    wording,
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
        }
    }

    /// Validates a document that replaces a stored guide. Findings that the stored guide has, too,
    /// come last, and the text only counts them.
    pub async fn compared(client: &Client, document: TaskDocument) -> Result<Self, CallError> {
        let guid = guides::guid(&document).to_owned();
        let all = Self::of(client, document).await?;
        if all.listed.is_empty() {
            return Ok(all);
        }
        // All findings are shown as new if those of the stored guide cannot be read.
        let stored = validate(client, Source::Guid(guid.clone()), Severity::Warning).await;
        let stored = stored.map(|answer| answer.findings).unwrap_or_default();
        let stored: BTreeSet<[&str; 5]> = stored.iter().map(key).collect();
        let (known, new): (Vec<Finding>, Vec<Finding>) = all
            .listed
            .into_iter()
            .partition(|finding| stored.contains(&key(finding)));
        Ok(Self {
            known: known.len(),
            lint_command: client.command(&format!("lint {guid}")),
            listed: new.into_iter().chain(known).collect(),
            ..all
        })
    }

    /// The errors of a stored guide; `None` if it has none, or cannot be analyzed.
    pub async fn errors_of_stored(client: &Client, guid: &str) -> Option<Self> {
        let source = Source::Guid(guid.to_owned());
        let answer = validate(client, source, Severity::Error).await.ok()?;
        if answer.findings.is_empty() {
            return None;
        }
        let stored = guides::read(client, guid).await.ok();
        let document = stored.map(|stored| stored.document);
        Some(Self::new(document.unwrap_or_default(), answer))
    }

    pub fn errors(&self) -> i32 {
        self.counts.errors
    }

    /// The new findings, each on a line that is wrapped at the width of the terminal, and how many
    /// others there are.
    pub fn text(&self, terminal: &Term) -> String {
        let new = self.listed.len() - self.known;
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
        let ids = (finding.task.as_str(), finding.step.as_str());
        let place = GuidePlace::find(&self.document, &finding.path, ids);
        let label = place.and_then(|place| place.label());
        let label = label.map_or_else(String::new, |label| format!(" in {label}"));
        let at = match finding.path.as_str() {
            "" => label,
            path => {
                let path = place.map_or_else(|| path.to_owned(), |it| it.path_as_written(path));
                format!(" at {}{label}", sanitize(&path))
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

    /// The first findings and the counts of all.
    fn json(&self) -> Value {
        let shown = self.listed.iter().take(MAX_FINDINGS);
        json!({
            "findings": document::json_list("Finding", shown).ok(),
            "counts": document::json("FindingCounts", &self.counts).ok(),
        })
    }
}

pub(super) type Analyzed = Option<Result<Findings, CallError>>;

pub(super) fn json(analyzed: &Analyzed) -> Value {
    match analyzed {
        Some(Ok(findings)) => findings.json(),
        Some(Err(error)) => json!({"analysis_error": call_error_json(error)}),
        None => json!({}),
    }
}

pub(super) fn text(analyzed: &Analyzed, terminal: &Term) -> String {
    match analyzed {
        Some(Ok(findings)) => findings.text(terminal),
        Some(Err(error)) => format!("  not analyzed: {error}\n"),
        None => String::new(),
    }
}

/// The first findings of a guide, as many as a page has.
async fn validate(
    client: &Client,
    source: Source,
    min_severity: Severity,
) -> Result<ValidateTaskResponse, CallError> {
    let options = ValidationOptions {
        min_severity: min_severity.into(),
        ..ValidationOptions::default()
    };
    client.call(validation_request(source, options)).await
}

/// A request for the findings of a guide. A document is validated as what it will be.
pub(super) fn validation_request(
    source: Source,
    options: ValidationOptions,
) -> ValidateTaskRequest {
    ValidateTaskRequest {
        replaces_stored: matches!(source, Source::Document(_)),
        source: Some(source),
        options: Some(options),
        page_size: PAGE_SIZE,
        ..ValidateTaskRequest::default()
    }
}

/// What identifies a finding both in a document and in a stored guide: everything but the place of
/// its task or step in the document.
fn key(finding: &Finding) -> [&str; 5] {
    let Finding { path, step, .. } = finding;
    let below = match (path.starts_with(DOCUMENT), step.is_empty()) {
        (false, _) => None,
        (true, true) => path.rsplit_once(".task").map(|(_, below)| below),
        (true, false) => {
            let below = path.rsplit_once(".steps[").map(|(_, below)| below);
            below.map(|below| below.split_once(']').map_or("", |(_, below)| below))
        }
    };
    let path = below.map_or(path.as_str(), |below| below.trim_start_matches('.'));
    [
        &finding.rule,
        step,
        path,
        &finding.language,
        &finding.message,
    ]
}

/// The name that is probably meant.
fn suggestion(finding: &Finding) -> Option<&str> {
    let facts = finding.facts.as_ref()?;
    match facts.fields.get("suggestion")?.kind.as_ref()? {
        Kind::StringValue(name) => Some(name),
        _ => None,
    }
}
