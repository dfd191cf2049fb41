//! What an import did, or would do, with the guide of a file.

use serde_json::{Value, json};

use super::{
    CliError,
    changes::{self, Change},
    document,
    findings::{self, Analyzed, Findings},
    guides::undo_note,
    out::{print_error, sanitize, step_count, with_members},
};
use crate::{
    client::Client,
    proto::v1::{ImportOutcome, ImportTaskResponse},
};

#[derive(Default)]
pub(super) struct ImportedGuide {
    pub file: String,
    pub answer: ImportTaskResponse,
    pub dry_run: bool,
    pub changes: Vec<Change>,
    /// Notes about changes to the document, and about the account.
    pub notes: Vec<String>,
    /// Whether changes of the guide are merged into the file.
    pub is_merged: bool,
    /// Why the result of a merge could not be written into the file.
    pub unwritten: Option<CliError>,
    /// The findings of the guide; only errors, unless it is a dry run.
    pub findings: Analyzed,
}

impl ImportedGuide {
    /// The id of the guide; empty if a dry run would create it.
    pub fn guid(&self) -> &str {
        let is_made_up = self.dry_run && self.answer.outcome() == ImportOutcome::Created;
        let task = self.answer.task.as_ref().filter(|_| !is_made_up);
        task.map_or("", |task| &task.guid)
    }

    /// The errors that the guide has after the import, if it was written.
    pub async fn errors(&self, client: &Client, is_quiet: bool) -> Analyzed {
        let is_unchanged = self.answer.outcome() == ImportOutcome::Unchanged;
        match is_quiet || is_unchanged {
            true => None,
            false => Findings::errors_in_stored(client, self.guid())
                .await
                .map(Ok),
        }
    }

    pub fn text(&self) -> String {
        let (guid, file) = (self.guid(), sanitize(&self.file));
        let done = match (self.answer.outcome(), self.dry_run) {
            (ImportOutcome::Created, false) => format!("created {guid} from {file}"),
            (ImportOutcome::Created, true) => format!("would create a task from {file}"),
            (ImportOutcome::Unchanged, false) if self.is_merged => {
                format!("merged {guid} into {file}")
            }
            (ImportOutcome::Unchanged, true) if self.is_merged => {
                format!("would merge {guid} into {file}")
            }
            (ImportOutcome::Unchanged, _) => format!("unchanged {guid} in {file}"),
            (_, false) => format!("updated {guid} from {file}"),
            (_, true) => format!("would update {guid} from {file}"),
        };
        let task = self.answer.task.clone().unwrap_or_default();
        let (name, steps) = (sanitize(&task.name), step_count(task.steps.len()));
        let undo = undo_note(guid, self.answer.previous_revision);
        let changes = changes::text(&self.changes, 2);
        let notes = self.notes.iter().map(|line| format!("  {line}\n"));
        let ignored = self.answer.ignored_paths.iter();
        let ignored = ignored.map(|path| format!("  ignored: {}\n", sanitize(path)));
        let lines: String = notes.chain(ignored).collect();
        let findings = findings::text(&self.findings);
        format!("{done}: {name}, {steps}{undo}\n{changes}{lines}{findings}")
    }

    /// The response, with the file and what was done.
    pub fn json(&self) -> Value {
        let answer = ImportTaskResponse {
            document: None,
            ..self.answer.clone()
        };
        let response = document::json("ImportTaskResponse", &answer);
        let response = with_members(
            response,
            json!({
                "file": self.file,
                "dry_run": self.dry_run.then_some(true),
                "guid": Some(self.guid()).filter(|guid| !guid.is_empty()),
                "changes": Some(&self.changes).filter(|changes| !changes.is_empty()),
                "notes": Some(&self.notes).filter(|notes| !notes.is_empty()),
            }),
        );
        with_members(response, findings::json(&self.findings))
    }
}

pub(super) fn print_ignored(paths: &[String]) {
    for path in paths {
        print_error(&format!("ignored: {}", sanitize(path)));
    }
}

#[derive(Default)]
pub(super) struct OutcomeCounts {
    created: usize,
    updated: usize,
    unchanged: usize,
}

impl OutcomeCounts {
    pub fn add(&mut self, outcome: ImportOutcome) {
        *match outcome {
            ImportOutcome::Created => &mut self.created,
            ImportOutcome::Unspecified | ImportOutcome::Updated => &mut self.updated,
            ImportOutcome::Unchanged => &mut self.unchanged,
        } += 1;
    }

    /// The counts in a line. `deleted` counts other guides.
    pub fn line(&self, deleted: Option<usize>, failed: usize, dry_run: bool) -> String {
        let Self {
            created,
            updated,
            unchanged,
        } = self;
        let to_be = if dry_run { "to be " } else { "" };
        let deleted = deleted.map(|count| format!("{count} {to_be}deleted, "));
        let deleted = deleted.unwrap_or_default();
        format!(
            "{created} {to_be}created, {updated} {to_be}updated, {unchanged} unchanged, \
             {deleted}{failed} failed"
        )
    }
}
