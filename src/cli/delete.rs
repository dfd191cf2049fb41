//! `expertise delete`.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{
    CliError, Format, PAGE_SIZE, confirm, document, guides,
    out::{self, Results, print_error, sanitize, with_members},
};
use crate::{
    client::{CallError, Client},
    config::TaskRef,
    proto::v1::{
        DeleteTaskRequest, DeleteTaskResponse, ListReferencesRequest, ListTasksRequest, Reference,
        ReferenceKind, Task, TaskType,
    },
};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct DeleteArgs {
    /// The guids of tasks, or names that only one task has
    #[arg(required = true)]
    pub tasks: Vec<TaskRef>,
    /// Delete without asking; required where there is no terminal to ask on
    #[arg(long)]
    pub force: bool,
    /// Delete the history of the tasks, too, so that they cannot be restored
    #[arg(long)]
    pub purge_history: bool,
}

const NEEDS_FORCE: &str = "delete asks before it deletes, and there is no terminal to ask on: \
                           repeat it with --force to delete without asking";

/// The most references that are shown of a task.
const MAX_REFERENCES: usize = 20;

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
    let mut named: Vec<Task> = Vec::new();
    for task in &args.tasks {
        let guid = guides::find(client, task).await?.to_string();
        if !named.iter().any(|known| known.guid == guid) {
            named.push(guides::get_task(client, &guid).await?);
        }
    }
    let history = match args.purge_history {
        true => DeletedHistory::Purged,
        false => DeletedHistory::Kept,
    };
    if !args.force && !agrees_to_delete(&named, history) {
        print_error(confirm::NOTHING_DELETED);
        return Ok(ExitCode::FAILURE);
    }
    let count = named.len();
    let filters = ListTasksRequest {
        r#type: Some(TaskType::Linked.into()),
        ..ListTasksRequest::default()
    };
    let managed = guides::list(client, filters).await?;
    let deletions = delete_all(client, named, history).await;
    let mut results = Results::new(format);
    for deletion in &deletions {
        deletion.print(client, &mut results)?;
    }
    results.end()?;
    let is_deleted = |guid: &str| {
        let mut done = deletions.iter().filter(|it| it.outcome.is_ok());
        done.any(|it| it.task.guid == guid)
    };
    let stay = managed
        .iter()
        .filter(|task| is_deleted(&task.parent_guid) && !is_deleted(&task.guid));
    print_left(client, stay.map(|task| task.guid.as_str()).collect());
    let failed = deletions.iter().filter(|it| it.outcome.is_err()).count();
    if format == Format::Text && count > 1 {
        print_error(&format!("{} deleted, {failed} failed", count - failed));
    }
    Ok(match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Says which managed tasks stay although the tasks that managed them are deleted.
fn print_left(client: &Client, guids: Vec<&str>) {
    let what = match guids.len() {
        0 => return,
        1 => "1 task that was managed stays as an ordinary task".to_owned(),
        count => format!("{count} tasks that were managed stay as ordinary tasks"),
    };
    let command = client.command(&format!("delete {}", guids.join(" ")));
    print_error(&format!("{what}; to delete what stays: {command}"));
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
        print_error(&format!("  {}", description(task)));
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

pub(super) fn description(task: &Task) -> String {
    let (name, steps) = (sanitize(&task.name), out::step_count(task.steps.len()));
    format!("{}: {name}, {steps}", task.guid)
}

/// What became of a task that was to be deleted.
pub(super) struct Deletion {
    pub task: Task,
    pub outcome: Result<DeleteTaskResponse, CallError>,
    /// What keeps the task from being deleted.
    references: Vec<Reference>,
}

/// Deletes tasks as they were read: a task whose own fields or step list changed is kept; edits of
/// its steps are not noticed. Tasks that refer to each other are deleted in the order that this
/// allows.
pub(super) async fn delete_all(
    client: &Client,
    tasks: Vec<Task>,
    history: DeletedHistory,
) -> Vec<Deletion> {
    let mut deletions = Vec::with_capacity(tasks.len());
    let mut left = tasks;
    loop {
        let before = left.len();
        let mut referenced = Vec::new();
        for task in left {
            match delete_one(client, &task, history).await {
                Err(error) if error.reason == "TASK_REFERENCED" => referenced.push((task, error)),
                outcome => deletions.push(Deletion::new(client, task, outcome).await),
            }
        }
        if referenced.len() == before || referenced.is_empty() {
            for (task, error) in referenced {
                deletions.push(Deletion::new(client, task, Err(error)).await);
            }
            return deletions;
        }
        left = referenced.into_iter().map(|(task, _)| task).collect();
    }
}

async fn delete_one(
    client: &Client,
    task: &Task,
    history: DeletedHistory,
) -> Result<DeleteTaskResponse, CallError> {
    let message = DeleteTaskRequest {
        guid: task.guid.clone(),
        etag: task.etag.clone(),
        force: true,
        purge_history: history == DeletedHistory::Purged,
    };
    match client.call(message).await {
        // An attempt whose answer was lost has deleted it.
        Err(error) if error.undecided && error.reason == "TASK_NOT_FOUND" => {
            Ok(DeleteTaskResponse::default())
        }
        deleted => deleted,
    }
}

impl Deletion {
    async fn new(
        client: &Client,
        task: Task,
        outcome: Result<DeleteTaskResponse, CallError>,
    ) -> Self {
        let reason = outcome.as_ref().err().map(|error| error.reason.as_str());
        let references = match reason {
            Some("TASK_REFERENCED" | "TASK_MANAGED") => references(client, &task.guid).await,
            _ => Vec::new(),
        };
        Self {
            task,
            outcome,
            references,
        }
    }

    pub fn print(&self, client: &Client, results: &mut Results) -> Result<(), CliError> {
        let Self {
            task, references, ..
        } = self;
        let members = json!({
            "guid": task.guid,
            "name": task.name,
            "steps": task.steps.len(),
        });
        let description = description(task);
        let error = match &self.outcome {
            Ok(answer) => {
                let restore = match answer.previous_revision {
                    0 => String::new(),
                    revision => {
                        let command = format!("restore {}@{revision}", task.guid);
                        format!("  to bring it back: {}\n", client.command(&command))
                    }
                };
                let response = document::json("DeleteTaskResponse", answer)?;
                let text = format!("deleted {description}\n{restore}");
                return results.add(&text, &with_members(response, members));
            }
            Err(error) => error,
        };
        let reason = match references.is_empty() {
            true => error.to_string(),
            // Without the server's list of ids: the lines below name these steps.
            false => format!("{} ({})", error.message, error.reason),
        };
        let lines = references.iter().map(|reference| {
            let at = reference.place.clone().unwrap_or_default();
            let (task, step, path) = (at.task, at.step, at.path);
            let edit = client.command(&format!("edit {task}"));
            format!("\n  {path} of step {step} of task {task} refers to it: `{edit}` changes it")
        });
        let lines: String = lines.collect();
        let error = json!({
            "error": out::call_error_json(error),
            "references": document::json_list("Reference", references)?,
        });
        let text = format!("failed {description}: {reason}{lines}");
        results.add_failure(&text, &with_members(members, error))
    }
}

/// The first references that prevent the deletion of a task. Its own steps do not. Empty if they
/// cannot be read: the refusal is shown anyway.
async fn references(client: &Client, task: &str) -> Vec<Reference> {
    let message = ListReferencesRequest {
        task: task.to_owned(),
        page_size: PAGE_SIZE,
        ..ListReferencesRequest::default()
    };
    let page = client.call(message).await.unwrap_or_default();
    let prevents = |reference: &Reference| match reference.kind() {
        ReferenceKind::Subtask => reference.place.as_ref().is_some_and(|at| at.task != task),
        ReferenceKind::Manages => true,
        _ => false,
    };
    let references = page.references.into_iter().filter(prevents);
    references.take(MAX_REFERENCES).collect()
}
