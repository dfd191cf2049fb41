//! What an import did, or would do, with the guide of a file.

use serde::ser::SerializeMap;

use super::{
    findings::Findings,
    out::{sanitize, step_count},
    revisions::undo_note,
};
use crate::{
    client::CallError,
    proto::v1::{ImportOutcome, Task},
};

/// The guide of a file that was imported.
pub(super) struct ImportedGuide {
    pub outcome: ImportOutcome,
    /// Empty for a guide that a dry run would create.
    pub guid: String,
    pub name: String,
    pub steps: usize,
    /// The revision that keeps the guide as it was before; 0 if there is none.
    pub previous_revision: i64,
    /// Fields of the document that were ignored.
    pub ignored_paths: Vec<String>,
    /// What people are told about them.
    pub ignored_lines: Vec<String>,
    /// What the analysis says about the guide; the errors only, unless it is a dry run.
    pub findings: Option<Result<Findings, CallError>>,
}

impl ImportedGuide {
    /// A guide of which the server has returned this.
    pub fn new(outcome: ImportOutcome, task: &Task, dry_run: bool) -> Self {
        let is_made_up = dry_run && outcome == ImportOutcome::Created;
        Self {
            outcome,
            guid: match is_made_up {
                true => String::new(),
                false => task.guid.clone(),
            },
            name: task.name.clone(),
            steps: task.steps.len(),
            previous_revision: 0,
            ignored_paths: Vec::new(),
            ignored_lines: Vec::new(),
            findings: None,
        }
    }

    /// The lines for people. `changes` are lines, too.
    pub fn text(&self, file: &str, changes: &str, dry_run: bool) -> String {
        let guid = &self.guid;
        let done = match (self.outcome, dry_run) {
            (ImportOutcome::Created, false) => format!("created {guid} from {file}"),
            (ImportOutcome::Created, true) => format!("would create a task from {file}"),
            (ImportOutcome::Unspecified | ImportOutcome::Updated, false) => {
                format!("updated {guid} from {file}")
            }
            (ImportOutcome::Unspecified | ImportOutcome::Updated, true) => {
                format!("would update {guid} from {file}")
            }
            (ImportOutcome::Unchanged, _) => format!("unchanged {guid} in {file}"),
        };
        let (name, steps) = (sanitize(&self.name), step_count(self.steps));
        let ignored = self.ignored_lines.iter();
        let ignored: String = ignored.map(|line| format!("  ignored: {line}\n")).collect();
        let findings = Findings::result_text(&self.findings);
        let undo = undo_note(guid, self.previous_revision);
        format!("{done}: {name}, {steps}{undo}\n{changes}{ignored}{findings}")
    }

    /// The fields that JSON has of it.
    pub fn serialize_into<M: SerializeMap>(
        &self,
        dry_run: bool,
        object: &mut M,
    ) -> Result<(), M::Error> {
        if !self.guid.is_empty() {
            object.serialize_entry("guid", &self.guid)?;
        }
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("steps", &self.steps)?;
        if self.previous_revision != 0 {
            object.serialize_entry("previous_revision", &self.previous_revision)?;
        }
        object.serialize_entry("ignored_paths", &self.ignored_paths)?;
        Findings::serialize_into(&self.findings, dry_run, object)
    }
}

/// The word for what was done, in JSON.
pub(super) fn outcome_name(outcome: ImportOutcome) -> &'static str {
    match outcome {
        ImportOutcome::Created => "created",
        ImportOutcome::Unspecified | ImportOutcome::Updated => "updated",
        ImportOutcome::Unchanged => "unchanged",
    }
}

/// How many guides of files ended in which way.
#[derive(Default)]
pub(super) struct OutcomeCounts {
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
    pub failed: usize,
}

impl OutcomeCounts {
    pub fn add(&mut self, outcome: Option<ImportOutcome>) {
        *match outcome {
            Some(ImportOutcome::Created) => &mut self.created,
            Some(ImportOutcome::Unspecified | ImportOutcome::Updated) => &mut self.updated,
            Some(ImportOutcome::Unchanged) => &mut self.unchanged,
            None => &mut self.failed,
        } += 1;
    }

    /// The counts in a line; `deleted` is that of other guides.
    pub fn line(&self, deleted: Option<usize>, dry_run: bool) -> String {
        let Self {
            created,
            updated,
            unchanged,
            failed,
        } = self;
        let to_be = if dry_run { "to be " } else { "" };
        let deleted = deleted.map(|count| format!("{count} {to_be}deleted, "));
        format!(
            "{created} {to_be}created, {updated} {to_be}updated, {unchanged} unchanged, {}{failed} \
             failed",
            deleted.unwrap_or_default()
        )
    }
}
