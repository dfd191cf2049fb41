//! What became of each document.

use std::path::PathBuf;

use console::Term;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::json;

use super::guides::DirectoryGuide;
use crate::{
    cli::{
        CliError,
        changes::{self, Change},
        delete::DeleteReport,
        imported_guide::{ImportedGuide, OutcomeCounts, outcome_name},
        out::{print, print_error, sanitize},
    },
    client::CallError,
    config::ApplyArgs,
    proto::v1::{ImportOutcome, ImportTaskResponse},
};

/// What became of a document, or would become of it.
pub(super) struct ApplyReport {
    file: PathBuf,
    /// The guide; before it is imported, as its document has it.
    pub guide: ImportedGuide,
    pub changes: Vec<Change>,
    pub error: Option<CliError>,
    /// The etag of the guide after the import.
    pub guide_etag: String,
    /// What has changed by other means and is merged with the document.
    merged: Vec<Change>,
    /// Why the guide is not kept as it was applied.
    pub not_kept: Option<CallError>,
    dry_run: bool,
}

impl ApplyReport {
    pub fn new(guide: &DirectoryGuide, outcome: ImportOutcome, dry_run: bool) -> Self {
        let task = guide.document.task.clone().unwrap_or_default();
        Self {
            file: guide.file.clone(),
            guide: ImportedGuide {
                guid: guide.guid.clone().unwrap_or_default(),
                steps: guide.document.steps.len(),
                ..ImportedGuide::new(outcome, &task, dry_run)
            },
            changes: Vec::new(),
            error: None,
            guide_etag: String::new(),
            merged: guide.merged.clone(),
            not_kept: None,
            dry_run,
        }
    }

    /// Adds what the server returned for an import.
    pub fn set_imported(&mut self, answer: &mut ImportTaskResponse) {
        let task = answer.task.take().unwrap_or_default();
        let ignored_paths = std::mem::take(&mut answer.ignored_paths);
        self.guide_etag = std::mem::take(&mut answer.guide_etag);
        self.guide = ImportedGuide {
            ignored_lines: ignored_paths.iter().map(|path| sanitize(path)).collect(),
            ignored_paths,
            previous_revision: answer.previous_revision,
            ..ImportedGuide::new(answer.outcome(), &task, self.dry_run)
        };
    }

    /// What became of the guide; `None` if it was refused.
    pub fn outcome(&self) -> Option<ImportOutcome> {
        match self.error {
            Some(_) => None,
            None => Some(self.guide.outcome),
        }
    }

    /// Prints it for people: a failure to standard error, the rest to standard output.
    pub fn print(&self, quiet: bool) -> Result<(), CliError> {
        let file = sanitize(&self.file.display().to_string());
        if let Some(error) = &self.error {
            print_error(&format!("failed {file}: {error}"));
            return Ok(());
        }
        if let Some(error) = &self.not_kept {
            print_error(&format!(
                "warning: {file}: the next run may not notice, or may list too much of, what changes \
                 by other means, as the guide could not be kept as it was applied: {error}"
            ));
        }
        let is_unchanged = self.guide.outcome == ImportOutcome::Unchanged;
        let is_brief = quiet || self.dry_run;
        let has_notes = !self.guide.ignored_paths.is_empty() || !self.merged.is_empty();
        if is_unchanged && is_brief && !has_notes {
            return Ok(());
        }
        let mut changes = match self.dry_run {
            true => changes::text(&self.changes, &Term::stdout(), 2),
            false => String::new(),
        };
        if !self.merged.is_empty() {
            changes.push_str("  merged, and missing in the file:\n");
            changes.push_str(&changes::text(&self.merged, &Term::stdout(), 4));
        }
        print(&self.guide.text(&file, &changes, self.dry_run))
    }
}

impl Serialize for ApplyReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("file", &self.file.display().to_string())?;
        if self.dry_run {
            object.serialize_entry("dry_run", &true)?;
        }
        let outcome = match self.error {
            Some(_) => "failed",
            None => outcome_name(self.guide.outcome),
        };
        object.serialize_entry("outcome", outcome)?;
        object.serialize_entry("changes", &self.changes)?;
        if !self.merged.is_empty() {
            object.serialize_entry("merged", &self.merged)?;
        }
        if let Some(error) = &self.not_kept {
            object.serialize_entry("not_kept", error)?;
        }
        self.guide.serialize_into(self.dry_run, &mut object)?;
        match &self.error {
            Some(CliError::Refused(error)) => object.serialize_entry("error", error)?,
            Some(error) => {
                object.serialize_entry("error", &json!({"message": error.to_string()}))?;
            }
            None => {}
        }
        object.end()
    }
}

/// The most tasks of the account that are named as not in the directory.
const MAX_SURPLUS_LINES: usize = 10;

/// How many guides ended in which way.
#[derive(Default)]
pub(super) struct ApplyCounts {
    pub outcomes: OutcomeCounts,
    deleted: usize,
    /// A line for each task of the account without a document in the directory. Empty with
    /// --prune, and for JSON.
    pub surplus: Vec<String>,
}

impl ApplyCounts {
    pub fn add_pruned(&mut self, report: &DeleteReport) {
        *match report.has_failed() {
            false => &mut self.deleted,
            true => &mut self.outcomes.failed,
        } += 1;
    }

    pub fn print(&self, args: &ApplyArgs) {
        let Self {
            outcomes,
            deleted,
            surplus,
        } = self;
        let named = match surplus.len() {
            0 => None,
            1 => Some(("1 task of the account is".to_owned(), "it")),
            count => Some((format!("{count} tasks of the account are"), "them")),
        };
        if let Some((tasks, them)) = named {
            print_error(&format!(
                "{tasks} not in the directory: --prune deletes {them}"
            ));
        }
        for line in surplus.iter().take(MAX_SURPLUS_LINES) {
            print_error(&format!("  {line}"));
        }
        match surplus.len().saturating_sub(MAX_SURPLUS_LINES) {
            0 => {}
            more => print_error(&format!("  and {more} more")),
        }
        let deleted = args.prune.then_some(*deleted);
        print_error(&outcomes.line(deleted, args.dry_run));
    }
}
