//! `expertise restore`.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use uuid::Uuid;

use super::{
    CliError, Format, changes, confirm, document,
    guide_ref::{GuideRef, revision_ref},
    guides,
    out::{self, print_error, sanitize, with_members},
    place::{self, GuidePlace},
};
use crate::{
    client::{CallError, Client},
    messages::managed_documents::all_managed,
    proto::v1::{
        ImportOutcome, ListTasksRequest, RestoreRevisionRequest, RestoreRevisionResponse, Task,
        TaskDocument, TaskRevision,
    },
};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RestoreArgs {
    /// The guide, by guid or name, with the number or alias of the revision; the guide may be deleted
    #[arg(value_name = "GUIDE@REVISION", value_parser = revision_ref)]
    pub guide: GuideRef,
    /// Show what would change without storing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Restore without asking; required without a terminal
    #[arg(long)]
    pub force: bool,
    /// Leave out subtask steps that refer to deleted tasks [default: refuse the revision]
    #[arg(long)]
    pub skip_missing_subtasks: bool,
}

const NEEDS_FORCE: &str = "restore asks for confirmation, but there is no terminal: use --force to \
    restore without asking, or --dry-run";

/// Fails if the command would need to ask without a terminal.
pub(super) fn check(args: &RestoreArgs) -> Result<(), CliError> {
    match args.force || args.dry_run {
        true => Ok(()),
        false => confirm::require_terminal(NEEDS_FORCE),
    }
}

/// Restores a guide to a revision, after a dry run that shows the difference.
pub(super) async fn restore(
    client: &Client,
    args: &RestoreArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let GuideRef { task, revision } = &args.guide;
    let task = guides::find_with_history(client, task).await?.to_string();
    let revision = revision.as_deref().unwrap_or_default();
    let (revision, document) = guides::get_revision(client, &task, revision).await?;
    let stored = match guides::read(client, &task).await {
        Ok(stored) => Some(stored),
        Err(error) if error.reason == "TASK_NOT_FOUND" => None,
        Err(error) => return Err(error.into()),
    };
    let changes = match &stored {
        Some(stored) => changes::between(&stored.document, &document),
        None => Vec::new(),
    };
    let message = RestoreRevisionRequest {
        task: revision.task.clone(),
        // An alias could name another revision meanwhile.
        revision: revision.revision.to_string(),
        guide_etag: stored.map(|stored| stored.guide_etag).unwrap_or_default(),
        skip_missing_subtasks: args.skip_missing_subtasks,
        request_id: String::new(),
        validate_only: true,
    };
    let mut answer = send(client, message.clone(), &document).await?;
    let plan = text(&revision, &answer, true)
        + &changes::text(&changes, 2)
        + &remarks(&document, &answer, true);
    let is_written = !args.dry_run && answer.outcome() != ImportOutcome::Unchanged;
    if is_written {
        out::print_note(&plan);
        if !args.force && !confirm::agrees("restore this revision?") {
            print_error("Nothing was restored.");
            return Ok(ExitCode::FAILURE);
        }
        let message = RestoreRevisionRequest {
            request_id: Uuid::now_v7().to_string(),
            validate_only: false,
            ..message
        };
        answer = send(client, message, &document).await?;
    }
    match format {
        Format::Json => {
            let response = document::json("RestoreRevisionResponse", &answer);
            let members = json!({"dry_run": args.dry_run, "changes": changes});
            out::print_json(&with_members(response, members))?;
        }
        Format::Text if is_written => {
            let done = text(&revision, &answer, false) + &remarks(&document, &answer, false);
            out::print_text(&done)?;
        }
        Format::Text => out::print_text(&plan)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn send(
    client: &Client,
    message: RestoreRevisionRequest,
    document: &TaskDocument,
) -> Result<RestoreRevisionResponse, CliError> {
    let guid = message.task.clone();
    let mut error = match client.call(message).await {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    Err(match error.reason.as_str() {
        "ETAG_MISMATCH" => CliError::changed_since(&guid),
        "REVISION_UNRESTORABLE" => {
            // The flag instead of the field of the API.
            let (field, flag) = ("`skip_missing_subtasks`", "`--skip-missing-subtasks`");
            error.message = error.message.replace(field, flag);
            place::name_steps(&mut error, document);
            error.into()
        }
        "EXTERNAL_ID_TAKEN" => with_advice(client, error, document).await.into(),
        _ => error.into(),
    })
}

/// Names the guide that has taken the external id.
async fn with_advice(client: &Client, mut error: CallError, document: &TaskDocument) -> CallError {
    let filters = ListTasksRequest {
        external_id: document
            .task
            .as_ref()
            .map_or("", Task::external_id)
            .to_owned(),
        ..ListTasksRequest::default()
    };
    let others = guides::list(client, filters).await.unwrap_or_default();
    if let [other] = others.as_slice() {
        let delete = client.command(&format!("delete {}", other.guid));
        error.message = format!(
            "{}: to restore this one, delete the other guide with `{delete}`, or give it another \
             external id",
            error.message
        );
    }
    error
}

fn text(revision: &TaskRevision, answer: &RestoreRevisionResponse, dry_run: bool) -> String {
    let TaskRevision { task, revision, .. } = revision;
    let done = match (answer.outcome(), dry_run) {
        (ImportOutcome::Unchanged, _) => format!("unchanged {task}, same as revision {revision}"),
        (ImportOutcome::Created, true) => {
            format!("would restore the deleted {task} to revision {revision}")
        }
        (ImportOutcome::Created, false) => {
            format!("restored the deleted {task} to revision {revision}")
        }
        (_, true) => format!("would restore {task} to revision {revision}"),
        (_, false) => format!("restored {task} to revision {revision}"),
    };
    let stored = answer.task.clone().unwrap_or_default();
    let (name, steps) = (sanitize(&stored.name), out::step_count(stored.steps.len()));
    let undo = guides::undo_note(task, answer.previous_revision);
    format!("{done}: {name}, {steps}{undo}\n")
}

/// The differences from the revision.
fn remarks(document: &TaskDocument, answer: &RestoreRevisionResponse, dry_run: bool) -> String {
    let skipped = answer.skipped_steps.iter().map(|step| {
        let label = GuidePlace::find(document, "", ("", step)).and_then(|it| it.label());
        let label = label.unwrap_or_else(|| format!("step {step}"));
        format!("  left out: {label}, as the task that it refers to is deleted\n")
    });
    let managed = all_managed(&document.steps).into_iter();
    let replaced = managed.filter_map(|(value, _)| {
        let former = &value.link;
        let new = answer.replaced_ids.get(former)?;
        let new = if dry_run { "a new task" } else { new };
        Some(format!(
            "  replaced: \"{}\" is now {new}, because {former} was changed after the guide stopped \
             managing it; {former} is unchanged\n",
            sanitize(&value.value)
        ))
    });
    skipped.chain(replaced).collect()
}
