//! `expertise restore`.

use std::process::ExitCode;

use console::Term;
use serde_json::json;
use uuid::Uuid;

use super::{
    CliError,
    changes::{self, Change},
    confirm,
    imported_guide::outcome_name,
    out::{self, print_error, sanitize},
    place::GuidePlace,
    revisions, tasks,
    transfer::{self, StoredGuide},
};
use crate::{
    client::{CallError, Client},
    config::{Format, RestoreArgs},
    messages::managed_documents::all_managed,
    proto::v1::{
        ImportOutcome, RestoreRevisionRequest, RestoreRevisionResponse, TaskDocument, TaskRevision,
    },
};

/// The error where the command would have to ask and there is no terminal.
const NEEDS_FORCE: &str = "restore asks before it changes a guide, and there is no terminal to ask \
                           on: repeat it with --force to restore without asking, or with --dry-run";

/// Printed when the person does not agree.
const NOTHING_RESTORED: &str = "Nothing was restored.";

/// Fails where the command would have to ask and cannot.
pub(super) fn check(args: &RestoreArgs) -> Result<(), CliError> {
    match args.force || args.dry_run {
        true => Ok(()),
        false => confirm::require_terminal(NEEDS_FORCE),
    }
}

/// Makes a guide what a revision says, after a dry run that shows the difference.
pub(super) async fn restore(
    client: &Client,
    args: &RestoreArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let task = tasks::find_with_history(client, &args.revision.task).await?;
    let (revision, document) = revisions::get(client, task, &args.revision.revision).await?;
    let stored = match transfer::export_with_etag(client, &task.to_string()).await {
        Ok(stored) => Some(stored),
        Err(error) if error.reason == "TASK_NOT_FOUND" => None,
        Err(error) => return Err(error.into()),
    };
    let message = RestoreRevisionRequest {
        task: revision.task.clone(),
        // An alias could name another one meanwhile.
        revision: revision.revision.to_string(),
        guide_etag: match &stored {
            Some(StoredGuide { guide_etag, .. }) => guide_etag.clone(),
            None => String::new(),
        },
        skip_missing_subtasks: args.skip_missing_subtasks,
        request_id: String::new(),
        validate_only: true,
    };
    let planned = send(client, message.clone(), &document).await?;
    let mut report = RestoreReport {
        changes: match &stored {
            Some(stored) => changes::between(&stored.document, &document)?,
            None => Vec::new(),
        },
        answer: planned,
        revision,
        document,
        dry_run: true,
    };
    let is_written = !args.dry_run && report.answer.outcome() != ImportOutcome::Unchanged;
    if is_written && !args.force {
        print_error(report.text(&Term::stderr()).trim_end());
        if !confirm::agrees("restore this revision?") {
            print_error(NOTHING_RESTORED);
            return Ok(ExitCode::FAILURE);
        }
    }
    if is_written {
        let message = RestoreRevisionRequest {
            request_id: Uuid::now_v7().to_string(),
            validate_only: false,
            ..message
        };
        report.answer = send(client, message, &report.document).await?;
    }
    report.dry_run = args.dry_run;
    match format {
        Format::Text => out::print(&report.text(&Term::stdout()))?,
        Format::Json => out::print_json(&report.json())?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn send(
    client: &Client,
    message: RestoreRevisionRequest,
    document: &TaskDocument,
) -> Result<RestoreRevisionResponse, CliError> {
    let guid = message.task.clone();
    let answer = client.call(message).await;
    answer.map_err(|error| match error.reason.as_str() {
        "ETAG_MISMATCH" => CliError::ChangedSince(guid),
        "REVISION_UNRESTORABLE" => with_steps(error, document).into(),
        _ => error.into(),
    })
}

/// Names the flag in place of the field of the contract, and the steps by their titles.
fn with_steps(mut error: CallError, document: &TaskDocument) -> CallError {
    let (field, flag) = ("`skip_missing_subtasks`", "`--skip-missing-subtasks`");
    error.message = error.message.replace(field, flag);
    for violation in &mut error.violations {
        violation.place = step_label(document, &violation.field).unwrap_or_default();
    }
    error
}

fn step_label(document: &TaskDocument, step: &str) -> Option<String> {
    GuidePlace::find(document, "", ("", step))?.label()
}

/// What a restore did, or would do.
struct RestoreReport {
    revision: TaskRevision,
    document: TaskDocument,
    /// How the stored guide differs from the revision; empty if the guide was deleted.
    changes: Vec<Change>,
    answer: RestoreRevisionResponse,
    dry_run: bool,
}

impl RestoreReport {
    /// The lines for people. The changes are those that a dry run shows.
    fn text(&self, terminal: &Term) -> String {
        let TaskRevision { task, revision, .. } = &self.revision;
        let done = match (self.answer.outcome(), self.dry_run) {
            (ImportOutcome::Unchanged, _) => format!("unchanged {task}, as in revision {revision}"),
            (ImportOutcome::Created, true) => {
                format!("would bring {task} back as in revision {revision}")
            }
            (ImportOutcome::Created, false) => {
                format!("brought {task} back as in revision {revision}")
            }
            (ImportOutcome::Unspecified | ImportOutcome::Updated, true) => {
                format!("would restore {task} to revision {revision}")
            }
            (ImportOutcome::Unspecified | ImportOutcome::Updated, false) => {
                format!("restored {task} to revision {revision}")
            }
        };
        let stored = self.answer.task.clone().unwrap_or_default();
        let (name, steps) = (sanitize(&stored.name), out::step_count(stored.steps.len()));
        let undo = revisions::undo_note(task, self.answer.previous_revision);
        let changes = match self.dry_run {
            true => changes::text(&self.changes, terminal, 2),
            false => String::new(),
        };
        let remarks: String = self.remarks().map(|line| format!("  {line}\n")).collect();
        format!("{done}: {name}, {steps}{undo}\n{changes}{remarks}")
    }

    /// What is not as in the revision.
    fn remarks(&self) -> impl Iterator<Item = String> {
        let skipped = self.answer.skipped_steps.iter().map(|step| {
            let label = step_label(&self.document, step).unwrap_or_else(|| format!("step {step}"));
            format!("left out: {label}, as the task that it refers to is deleted")
        });
        let managed = all_managed(&self.document.steps).into_iter();
        let replaced = managed.filter_map(|(value, _)| {
            let former = &value.link;
            let new = self.answer.replaced_ids.get(former)?;
            let new = match self.dry_run {
                true => "a new task",
                false => new,
            };
            Some(format!(
                "replaced: \"{}\" is now {new}, as {former} was changed after the guide had let \
                 it go; {former} stays as it is",
                sanitize(&value.value)
            ))
        });
        skipped.chain(replaced)
    }

    fn json(&self) -> serde_json::Value {
        let Self {
            revision,
            document: _,
            changes,
            answer,
            dry_run,
        } = self;
        let stored = answer.task.clone().unwrap_or_default();
        json!({
            "outcome": outcome_name(answer.outcome()),
            "dry_run": dry_run,
            "guid": revision.task,
            "revision": revision.revision,
            "name": stored.name,
            "steps": stored.steps.len(),
            "changes": changes,
            "previous_revision": answer.previous_revision,
            "skipped_steps": answer.skipped_steps,
            "replaced_ids": answer.replaced_ids,
        })
    }
}
