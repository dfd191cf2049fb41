//! What the analysis says about a document before it is written.

use console::Term;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json};

use super::{
    document::{self, MessageJson},
    layout::with_hanging_indent_on,
    out::sanitize,
    place::GuidePlace,
    wording,
};
use crate::{
    client::{CallError, Client},
    proto::v1::{
        Finding, FindingCounts, Severity, TaskDocument, ValidateTaskRequest, ValidationOptions,
        validate_task_request::Source,
    },
};

/// The most findings that are shown of one document; more are counted.
const MAX_FINDINGS: i32 = 20;

/// The warnings and errors of a document.
#[derive(Debug)]
pub(super) struct Findings {
    document: TaskDocument,
    shown: Vec<Finding>,
    counts: FindingCounts,
}

impl Findings {
    /// Validates a document as what it will be: a new guide, or another form of the stored one
    /// whose id it has.
    pub async fn of(client: &Client, document: TaskDocument) -> Result<Self, CallError> {
        let message = ValidateTaskRequest {
            source: Some(Source::Document(document.clone())),
            options: Some(ValidationOptions {
                min_severity: i32::from(Severity::Warning),
                ..ValidationOptions::default()
            }),
            page_size: MAX_FINDINGS,
            replaces_stored: true,
            ..ValidateTaskRequest::default()
        };
        let answer = client
            .analyse(message, |mut analysis, request| async move {
                analysis.validate_task(request).await
            })
            .await?;
        Ok(Self {
            document,
            shown: answer.findings,
            counts: answer.counts.unwrap_or_default(),
        })
    }

    /// How many findings are certainly mistakes.
    pub fn errors(&self) -> i32 {
        self.counts.errors
    }

    /// The findings, each on a line that is wrapped at the width of the terminal.
    pub fn text(&self, terminal: &Term) -> String {
        let lines = self.shown.iter();
        let mut text: String = lines
            .map(|finding| line(finding, &self.document, terminal))
            .collect();
        let total = self.counts.errors + self.counts.warnings;
        let more = usize::try_from(total)
            .unwrap_or_default()
            .saturating_sub(self.shown.len());
        match more {
            0 => {}
            1 => text.push_str("  and 1 more finding\n"),
            more => text.push_str(&format!("  and {more} more findings\n")),
        }
        text
    }

    /// The numbers of all findings, also of those that are not shown.
    pub fn counts(&self) -> Value {
        json!({"errors": self.counts.errors, "warnings": self.counts.warnings})
    }

    /// Adds the findings and their numbers to a report, or why there are none.
    pub fn serialize_into<M: SerializeMap>(
        analysed: &Result<Self, CallError>,
        report: &mut M,
    ) -> Result<(), M::Error> {
        match analysed {
            Ok(findings) => {
                report.serialize_entry("findings", findings)?;
                report.serialize_entry("counts", &findings.counts())
            }
            Err(error) => report.serialize_entry("analysis_error", error),
        }
    }
}

fn line(finding: &Finding, document: &TaskDocument, terminal: &Term) -> String {
    let severity = wording::severity(finding.severity());
    let place = GuidePlace::find(document, &finding.path, (&finding.task, &finding.step));
    let label = place.and_then(|place| place.label());
    let label = label
        .map(|label| format!(" in {label}"))
        .unwrap_or_default();
    let at = match finding.path.as_str() {
        "" => label,
        path => format!(" at {}{label}", sanitize(path)),
    };
    let (message, rule) = (sanitize(&finding.message), sanitize(&finding.rule));
    let line = format!("{severity}{at}: {message} ({rule})");
    with_hanging_indent_on(terminal, "  ", &line)
}

impl Serialize for Findings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let findings: Vec<MessageJson> = self
            .shown
            .iter()
            .filter_map(|finding| document::json("Finding", finding).ok())
            .collect();
        findings.serialize(serializer)
    }
}
