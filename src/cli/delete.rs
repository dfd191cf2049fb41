//! `expertise delete`.

mod references;

use std::{path::Path, process::ExitCode};

use serde::Serialize;

use super::{
    CliError, confirm,
    out::{self, JsonArray},
    tasks,
};
use crate::{
    client::{CallError, Client},
    config::{DeleteArgs, Format},
    proto::v1::{DeleteTaskRequest, Task, TaskType},
};

/// The error where the command would have to ask and there is no terminal.
const NEEDS_FORCE: &str = "delete asks before it deletes, and there is no terminal to ask on: \
                           repeat it with --force to delete without asking";

/// Fails where the command would have to ask and cannot.
pub(super) fn check(args: &DeleteArgs) -> Result<(), CliError> {
    match args.force {
        true => Ok(()),
        false => confirm::require_terminal(NEEDS_FORCE),
    }
}

/// Deletes tasks with their steps. Nothing is deleted unless all of them are found.
pub(super) async fn delete(
    client: &Client,
    args: &DeleteArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let mut named = Vec::new();
    for task in &args.tasks {
        let guid = tasks::find(client, task).await?.to_string();
        if !named.iter().any(|known: &Task| known.guid == guid) {
            named.push(tasks::get(client, guid).await?);
        }
    }
    let history = match args.purge_history {
        true => DeletedHistory::Purged,
        false => DeletedHistory::Kept,
    };
    if !args.force && !agrees_to_delete(&named, history) {
        out::print_error(confirm::NOTHING_DELETED);
        return Ok(ExitCode::FAILURE);
    }
    let count = named.len();
    let managed = managed_tasks(client, &named).await?;
    let reports = delete_all(client, named, history).await;
    let failed = reports.iter().filter(|it| it.error.is_some()).count();
    print(&reports, format)?;
    if let Some(line) = unmanaged_tasks_line(client, &managed, &reports) {
        out::print_error(&line);
    }
    if format == Format::Text && count > 1 {
        out::print_error(&format!("{} deleted, {failed} failed", count - failed));
    }
    Ok(match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The tasks that these manage.
async fn managed_tasks(client: &Client, tasks: &[Task]) -> Result<Vec<Task>, CliError> {
    let mut managed = tasks::list_all(client, Some(TaskType::Linked)).await?;
    managed.retain(|task| tasks.iter().any(|named| named.guid == task.parent_guid));
    Ok(managed)
}

/// Which managed tasks stay although the tasks that managed them are deleted, and how to delete
/// them.
fn unmanaged_tasks_line(
    client: &Client,
    managed: &[Task],
    reports: &[DeleteReport],
) -> Option<String> {
    let is_deleted = |guid: &str| {
        let mut deleted = reports.iter().filter(|report| report.error.is_none());
        deleted.any(|report| report.guid == guid)
    };
    let stay = managed
        .iter()
        .filter(|task| is_deleted(&task.parent_guid) && !is_deleted(&task.guid));
    let guids: Vec<&str> = stay.map(|task| task.guid.as_str()).collect();
    let what = match guids.len() {
        0 => return None,
        1 => "1 task that was managed stays as an ordinary task".to_owned(),
        count => format!("{count} tasks that were managed stay as ordinary tasks"),
    };
    let command = client.command(&format!("delete {}", guids.join(" ")));
    Some(format!("{what}; to delete what stays: {command}"))
}

/// What becomes of the history of deleted tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeletedHistory {
    /// The tasks can be restored for as long as the server keeps it.
    Kept,
    /// It is deleted with them.
    Purged,
}

/// Lists tasks and asks whether they shall be deleted.
pub(super) fn agrees_to_delete(tasks: &[Task], history: DeletedHistory) -> bool {
    for task in tasks {
        out::print_error(&format!("  {}", description(task)));
    }
    let history = match history {
        DeletedHistory::Kept => "",
        DeletedHistory::Purged => " and all revisions, for ever",
    };
    confirm::agrees(&match tasks.len() {
        1 => format!("delete this task with its steps{history}?"),
        count => format!("delete these {count} tasks with their steps{history}?"),
    })
}

/// A task on one line.
pub(super) fn description(task: &Task) -> String {
    let (name, steps) = (out::sanitize(&task.name), out::step_count(task.steps.len()));
    format!("{}: {name}, {steps}", task.guid)
}

/// What became of a task that was to be deleted.
#[derive(Serialize)]
pub(super) struct DeleteReport {
    outcome: &'static str,
    #[serde(skip_serializing_if = "is_false")]
    dry_run: bool,
    guid: String,
    name: String,
    steps: usize,
    /// The revision that brings it back; 0 if there is none.
    #[serde(skip_serializing_if = "is_zero")]
    previous_revision: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallError>,
    /// The file whose guide would keep the task from being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    referring_file: Option<String>,
    /// What keeps the task from being deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    references: Vec<references::Referrer>,
    #[serde(skip)]
    description: String,
    /// The command that brings the task back if there is a revision.
    #[serde(skip)]
    restore: String,
}

fn is_zero(revision: &i64) -> bool {
    *revision == 0
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Deletes tasks as they were read: a task whose own fields or step list changed is kept;
/// edits of its steps are not noticed. Tasks that refer to each other are deleted in the
/// order that this allows.
pub(super) async fn delete_all(
    client: &Client,
    tasks: Vec<Task>,
    history: DeletedHistory,
) -> Vec<DeleteReport> {
    let mut reports = Vec::with_capacity(tasks.len());
    let mut left = tasks;
    loop {
        let before = left.len();
        let mut referenced = Vec::new();
        for task in left {
            match delete_one(client, &task, history).await {
                Err(error) if error.reason == "TASK_REFERENCED" => referenced.push((task, error)),
                Err(error) => reports.push(failed(client, task, error).await),
                Ok(revision) => reports.push(DeleteReport::deleted(client, task, revision)),
            }
        }
        if referenced.len() == before || referenced.is_empty() {
            for (task, error) in referenced {
                reports.push(failed(client, task, error).await);
            }
            return reports;
        }
        left = referenced.into_iter().map(|(task, _)| task).collect();
    }
}

/// Deletes a task. Returns the revision that brings it back, or 0.
async fn delete_one(
    client: &Client,
    task: &Task,
    history: DeletedHistory,
) -> Result<i64, CallError> {
    let message = DeleteTaskRequest {
        guid: task.guid.clone(),
        etag: task.etag.clone(),
        force: true,
        purge_history: history == DeletedHistory::Purged,
    };
    let deleted = client.call(message).await;
    match deleted {
        // An attempt whose answer was lost has deleted it.
        Err(error) if error.undecided && error.reason == "TASK_NOT_FOUND" => Ok(0),
        deleted => Ok(deleted?.previous_revision),
    }
}

async fn failed(client: &Client, task: Task, error: CallError) -> DeleteReport {
    let report = DeleteReport::new(task);
    let references = match error.reason.as_str() {
        "TASK_REFERENCED" | "TASK_MANAGED" => references::referrers(client, &report.guid).await,
        _ => Vec::new(),
    };
    DeleteReport {
        outcome: "failed",
        error: Some(error),
        references,
        ..report
    }
}

impl DeleteReport {
    /// A task whose deletion has left this revision, or 0.
    fn deleted(client: &Client, task: Task, previous_revision: i64) -> Self {
        let command = format!("restore {}@{previous_revision}", task.guid);
        Self {
            previous_revision,
            restore: client.command(&command),
            ..Self::new(task)
        }
    }

    fn new(task: Task) -> Self {
        Self {
            outcome: "deleted",
            dry_run: false,
            description: description(&task),
            steps: task.steps.len(),
            guid: task.guid,
            name: task.name,
            previous_revision: 0,
            error: None,
            referring_file: None,
            references: Vec::new(),
            restore: String::new(),
        }
    }

    /// A task that a dry run would delete, unless the guide of a file refers to it.
    pub fn planned(task: Task, referring: Option<&Path>) -> Self {
        Self {
            outcome: referring.map_or("deleted", |_| "failed"),
            referring_file: referring.map(|file| file.display().to_string()),
            dry_run: true,
            ..Self::new(task)
        }
    }

    /// Whether the task is not deleted.
    pub fn has_failed(&self) -> bool {
        self.error.is_some() || self.referring_file.is_some()
    }

    /// Prints it for people: a deletion to standard output, a failure to standard error.
    pub fn print(&self) -> Result<(), CliError> {
        if let Some(file) = &self.referring_file {
            let (task, file) = (&self.description, out::sanitize(file));
            out::print_error(&format!("would keep {task}: a step of {file} refers to it"));
            return Ok(());
        }
        let Some(error) = &self.error else {
            let done = if self.dry_run {
                "would delete"
            } else {
                "deleted"
            };
            let restore = match self.previous_revision {
                0 => String::new(),
                _ => format!("  to bring it back: {}\n", self.restore),
            };
            return out::print(&format!("{done} {}\n{restore}", self.description));
        };
        let reason = match self.references.is_empty() {
            true => error.to_string(),
            // Without the server's list of ids: the lines below name these steps.
            false => format!("{} ({})", error.message, error.reason),
        };
        out::print_error(&format!("failed {}: {reason}", self.description));
        for referrer in &self.references {
            out::print_error(&format!("  {referrer}"));
        }
        Ok(())
    }
}

fn print(reports: &[DeleteReport], format: Format) -> Result<(), CliError> {
    match format {
        Format::Text => reports.iter().try_for_each(DeleteReport::print),
        Format::Json => {
            let mut array = JsonArray::new();
            for report in reports {
                array.push(report)?;
            }
            array.end()
        }
    }
}
