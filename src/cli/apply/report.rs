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
            dry_run,
        }
    }

    /// Adds what the server returned for an import.
    pub fn set_imported(&mut self, answer: &mut ImportTaskResponse) {
        let task = answer.task.take().unwrap_or_default();
        let ignored_paths = std::mem::take(&mut answer.ignored_paths);
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
        let is_unchanged = self.guide.outcome == ImportOutcome::Unchanged;
        if is_unchanged && quiet && self.guide.ignored_paths.is_empty() {
            return Ok(());
        }
        let changes = match self.dry_run {
            true => changes::text(&self.changes, &Term::stdout(), 2),
            false => String::new(),
        };
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
        *match report.error {
            None => &mut self.deleted,
            Some(_) => &mut self.outcomes.failed,
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
