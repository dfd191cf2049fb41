//! The findings of the analysis.

use std::collections::BTreeSet;

use console::style;
use prost_types::value::Kind;
use serde_json::{Value, json};

use super::{
    PAGE_SIZE, document,
    guide_file::FieldLines,
    guides,
    out::{call_error_json, sanitize},
    place::{DOCUMENT, GuidePlace},
    wording,
};
use crate::{
    client::{CallError, Client},
    domain::validation::UncheckedVariable,
    proto::v1::{
        Finding, FindingCounts, Place, Severity, TaskDocument, ValidateTaskRequest,
        ValidationOptions, validate_task_request::Source,
    },
};

/// The maximum number of findings that are shown for a written guide. Others are counted.
const MAX_FINDINGS: usize = 20;

/// The findings of a guide.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The guide; empty if it cannot be read.
    pub document: TaskDocument,
    /// The text of the guide's file.
    pub file: String,
    /// New ones first.
    pub listed: Vec<Finding>,
    pub counts: FindingCounts,
    /// Variables that look misspelled, but that another guide of the account may set.
    pub unchecked: Vec<UncheckedVariable>,
    /// How many of the listed findings the stored guide already has.
    pub known: usize,
    /// The command that lists the findings of the stored guide.
    pub lint_command: String,
}

impl Findings {
    /// All findings of a document, as a new guide or as a new state of the stored guide whose id it
    /// has.
    pub async fn for_document(
        client: &Client,
        document: TaskDocument,
        options: ValidationOptions,
    ) -> Result<Self, CallError> {
        let found = validate(client, Source::Document(document.clone()), options).await?;
        Ok(Self { document, ..found })
    }

    /// All findings of a stored guide.
    pub async fn for_stored(
        client: &Client,
        guid: &str,
        options: ValidationOptions,
    ) -> Result<Self, CallError> {
        let found = validate(client, Source::Guid(guid.to_owned()), options).await?;
        // Only needed for titles and conditions.
        let stored = match found.listed.is_empty() {
            true => None,
            false => guides::read(client, guid).await.ok(),
        };
        let document = stored.map(|stored| stored.document).unwrap_or_default();
        Ok(Self { document, ..found })
    }

    /// The warnings and errors of a document.
    pub async fn for_import(client: &Client, document: TaskDocument) -> Result<Self, CallError> {
        Self::for_document(client, document, from(Severity::Warning)).await
    }

    /// The warnings and errors of a document that replaces a stored guide. Findings that the stored
    /// guide already has come last, and the text only counts them.
    pub async fn compared(client: &Client, document: TaskDocument) -> Result<Self, CallError> {
        let guid = guides::guid(&document).to_owned();
        let all = Self::for_import(client, document).await?;
        if all.listed.is_empty() {
            return Ok(all);
        }
        // If the findings of the stored guide cannot be read, all findings are shown as new.
        let stored = validate(client, Source::Guid(guid.clone()), from(Severity::Warning)).await;
        let stored = stored.unwrap_or_default().listed;
        let stored: BTreeSet<[&str; 5]> = stored.iter().map(key).collect();
        let findings = all.listed.into_iter();
        let (known, new): (Vec<Finding>, Vec<Finding>) =
            findings.partition(|finding| stored.contains(&key(finding)));
        Ok(Self {
            known: known.len(),
            lint_command: client.command(&format!("lint {guid}")),
            listed: new.into_iter().chain(known).collect(),
            ..all
        })
    }

    /// The errors of a stored guide; `None` if it has none, or cannot be analyzed.
    pub async fn errors_in_stored(client: &Client, guid: &str) -> Option<Self> {
        let found = Self::for_stored(client, guid, from(Severity::Error)).await;
        found.ok().filter(|found| !found.listed.is_empty())
    }

    /// The new findings, one per line, and the number of others.
    pub fn text(&self) -> String {
        let new = self.listed.len() - self.known;
        let places = FindingPlaces::new(self);
        let lines = self.listed.iter().take(new.min(MAX_FINDINGS));
        let lines = lines.map(|finding| match suggestion(finding) {
            Some(name) => format!(
                "  {} Did you mean {}?\n",
                places.line(finding),
                sanitize(name)
            ),
            None => format!("  {}\n", places.line(finding)),
        });
        let mut text: String = lines.collect();
        match new.saturating_sub(MAX_FINDINGS) {
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
        let command = &self.lint_command;
        text + &format!("  {known}, which the stored guide has too: see `{command}`\n")
    }

    /// All findings and their counts.
    pub fn json(&self) -> Value {
        json!({
            "findings": document::json_list("Finding", &self.listed),
            "counts": document::json("FindingCounts", &self.counts),
        })
    }
}

pub(super) type Analyzed = Option<Result<Findings, CallError>>;

/// The first findings, and the counts of all.
pub(super) fn json(analyzed: &Analyzed) -> Value {
    match analyzed {
        Some(Ok(findings)) => {
            let mut json = findings.json();
            let listed = json.get_mut("findings").and_then(Value::as_array_mut);
            listed.into_iter().for_each(|it| it.truncate(MAX_FINDINGS));
            json
        }
        Some(Err(error)) => json!({"analysis_error": call_error_json(error)}),
        None => json!({}),
    }
}

pub(super) fn text(analyzed: &Analyzed) -> String {
    match analyzed {
        Some(Ok(findings)) => findings.text(),
        Some(Err(error)) => format!("  not analyzed: {error}\n"),
        None => String::new(),
    }
}

fn from(min_severity: Severity) -> ValidationOptions {
    ValidationOptions {
        min_severity: min_severity.into(),
        ..ValidationOptions::default()
    }
}

async fn validate(
    client: &Client,
    source: Source,
    options: ValidationOptions,
) -> Result<Findings, CallError> {
    let message = ValidateTaskRequest {
        replaces_stored: matches!(source, Source::Document(_)),
        source: Some(source),
        options: Some(options),
        page_size: PAGE_SIZE,
        ..ValidateTaskRequest::default()
    };
    let mut found = Findings::default();
    for page in client.pages(message).await? {
        found.listed.extend(page.findings);
        found.counts = page.counts.unwrap_or_default();
    }
    Ok(found)
}

/// Identifies a finding in a document and in a stored guide, although their paths differ.
fn key(finding: &Finding) -> [&str; 5] {
    let Finding {
        rule,
        task,
        step,
        language,
        message,
        ..
    } = finding;
    [rule, task, step, language, message]
}

/// The name that was probably meant.
fn suggestion(finding: &Finding) -> Option<&str> {
    let facts = finding.facts.as_ref()?;
    match facts.fields.get("suggestion")?.kind.as_ref()? {
        Kind::StringValue(name) => Some(name),
        _ => None,
    }
}

/// The places of the findings of a guide.
pub(super) struct FindingPlaces<'a> {
    document: &'a TaskDocument,
    lines: FieldLines<'a>,
}

impl<'a> FindingPlaces<'a> {
    pub fn new(Findings { document, file, .. }: &'a Findings) -> Self {
        let lines = FieldLines::new(file);
        Self { document, lines }
    }

    /// A finding on one line.
    pub fn line(&self, finding: &Finding) -> String {
        let Finding {
            rule,
            message,
            task,
            step,
            path,
            ..
        } = finding;
        let severity = finding.severity();
        let name = wording::name(severity.as_str_name(), "SEVERITY_");
        let name = style(name).bold();
        let severity = match severity {
            Severity::Error => name.red(),
            Severity::Warning => name.yellow(),
            Severity::Info | Severity::Off | Severity::Unspecified => name.cyan(),
        };
        let place = GuidePlace::find(self.document, path, (task, step));
        let place = match (
            place.and_then(|it| it.label()),
            task.as_str(),
            step.as_str(),
        ) {
            (Some(label), ..) => format!(" in {label}"),
            (None, "", "") => String::new(),
            (None, task, "") => format!(" in task {task}"),
            (None, _, step) => format!(" in step {step}"),
        };
        let at = match path.as_str() {
            "" => String::new(),
            path => format!(" at {}", self.path(path)),
        };
        let text = sanitize(&format!("{at}{place}: {message} ({rule})"));
        format!("{severity}{text}")
    }

    /// A related place of a finding, with its condition, if any, and the title of its step, unless
    /// the finding is in the same step.
    pub fn related(&self, place: &Place, finding: &Finding) -> String {
        let Place {
            task,
            step,
            path,
            title,
        } = place;
        let id = if step.is_empty() { task } else { step };
        let mut text = match path.starts_with(DOCUMENT) {
            true => self.path(path),
            false => format!("{id} {path}").trim().to_owned(),
        };
        let at = GuidePlace::find(self.document, path, (task, step));
        if let Some(condition) = at.and_then(|place| place.condition(path)) {
            text.push_str(&format!(": {condition}"));
        }
        let is_of_other_file = path.contains(": document") && !path.starts_with(DOCUMENT);
        if !title.is_empty() && (is_of_other_file || *step != finding.step) {
            text.push_str(&format!(" in \"{title}\""));
        }
        text
    }

    /// A path in the spelling of the document's file, after its line if that is known.
    fn path(&self, path: &str) -> String {
        let place = GuidePlace::find(self.document, path, ("", ""));
        let path = place.map_or_else(|| path.to_owned(), |it| it.path_as_written(path));
        self.lines.with_line(&path)
    }
}
