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
        findings::Findings,
        out::{print, print_error, sanitize, step_count},
        transfer,
    },
    client::CallError,
    config::ApplyArgs,
    proto::v1::Task,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApplyOutcome {
    Created,
    Updated,
    Unchanged,
    Failed,
}

/// What became of a document, or would become of it.
pub(super) struct ApplyReport {
    file: PathBuf,
    pub outcome: ApplyOutcome,
    /// Empty for a guide that a dry run would create.
    pub guid: String,
    name: String,
    pub steps: usize,
    pub changes: Vec<Change>,
    pub ignored_paths: Vec<String>,
    /// What people are told about them.
    pub ignored_lines: Vec<String>,
    /// What the analysis says about the guide; the errors only, unless it is a dry run.
    pub findings: Option<Result<Findings, CallError>>,
    error: Option<CliError>,
    dry_run: bool,
}

impl ApplyReport {
    pub fn new(guide: &DirectoryGuide, outcome: ApplyOutcome, dry_run: bool) -> Self {
        Self {
            file: guide.file.clone(),
            outcome,
            guid: guide.guid.clone().unwrap_or_default(),
            name: transfer::name(&guide.document).to_owned(),
            steps: guide.document.steps.len(),
            changes: Vec::new(),
            ignored_paths: Vec::new(),
            ignored_lines: Vec::new(),
            findings: None,
            error: None,
            dry_run,
        }
    }

    /// Adds what the server returned for an import of an existing guide or a new one.
    pub fn set_imported(&mut self, task: Task, ignored_paths: Vec<String>) {
        // What a dry run creates has no guid yet.
        if !self.dry_run {
            self.guid = task.guid;
        }
        self.name = task.name;
        self.steps = task.steps.len();
        self.ignored_lines = ignored_paths.iter().map(|path| sanitize(path)).collect();
        self.ignored_paths = ignored_paths;
    }

    pub fn fail(&mut self, error: CliError) {
        self.outcome = ApplyOutcome::Failed;
        self.error = Some(error);
    }

    /// Prints it for people: a failure to standard error, the rest to standard output.
    pub fn print(&self, quiet: bool) -> Result<(), CliError> {
        let (file, name) = (
            sanitize(&self.file.display().to_string()),
            sanitize(&self.name),
        );
        let (guid, steps) = (&self.guid, step_count(self.steps));
        let head = match (self.outcome, self.dry_run) {
            (ApplyOutcome::Created, false) => format!("created {guid} from {file}"),
            (ApplyOutcome::Created, true) => format!("would create a task from {file}"),
            (ApplyOutcome::Updated, false) => format!("updated {guid} from {file}"),
            (ApplyOutcome::Updated, true) => format!("would update {guid} from {file}"),
            (ApplyOutcome::Unchanged, _) if quiet && self.ignored_paths.is_empty() => return Ok(()),
            (ApplyOutcome::Unchanged, _) => format!("unchanged {guid} in {file}"),
            (ApplyOutcome::Failed, _) => {
                if let Some(error) = &self.error {
                    print_error(&format!("failed {file}: {error}"));
                }
                return Ok(());
            }
        };
        let mut text = format!("{head}: {name}, {steps}\n");
        if self.dry_run {
            text.push_str(&changes::text(&self.changes, &Term::stdout(), 2));
        }
        for line in &self.ignored_lines {
            text.push_str(&format!("  ignored: {line}\n"));
        }
        text.push_str(&Findings::result_text(&self.findings));
        print(&text)
    }
}

impl Serialize for ApplyReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("file", &self.file.display().to_string())?;
        if self.dry_run {
            object.serialize_entry("dry_run", &true)?;
        }
        let outcome = match self.outcome {
            ApplyOutcome::Created => "created",
            ApplyOutcome::Updated => "updated",
            ApplyOutcome::Unchanged => "unchanged",
            ApplyOutcome::Failed => "failed",
        };
        object.serialize_entry("outcome", outcome)?;
        if !self.guid.is_empty() {
            object.serialize_entry("guid", &self.guid)?;
        }
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("steps", &self.steps)?;
        object.serialize_entry("changes", &self.changes)?;
        object.serialize_entry("ignored_paths", &self.ignored_paths)?;
        Findings::serialize_into(&self.findings, self.dry_run, &mut object)?;
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
    created: usize,
    updated: usize,
    unchanged: usize,
    deleted: usize,
    pub failed: usize,
    /// A line for each task of the account without a document in the directory. Empty with
    /// --prune, and for JSON.
    pub surplus: Vec<String>,
}

impl ApplyCounts {
    pub fn add(&mut self, outcome: ApplyOutcome) {
        *match outcome {
            ApplyOutcome::Created => &mut self.created,
            ApplyOutcome::Updated => &mut self.updated,
            ApplyOutcome::Unchanged => &mut self.unchanged,
            ApplyOutcome::Failed => &mut self.failed,
        } += 1;
    }

    pub fn add_pruned(&mut self, report: &DeleteReport) {
        *match report.error {
            None => &mut self.deleted,
            Some(_) => &mut self.failed,
        } += 1;
    }

    pub fn print(&self, args: &ApplyArgs) {
        let Self {
            created,
            updated,
            unchanged,
            deleted,
            failed,
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
        let to_be = if args.dry_run { "to be " } else { "" };
        let deleted = match args.prune {
            true => format!("{deleted} {to_be}deleted, "),
            false => String::new(),
        };
        print_error(&format!(
            "{created} {to_be}created, {updated} {to_be}updated, {unchanged} unchanged, \
             {deleted}{failed} failed"
        ));
    }
}
