//! `expertise delete`.

use std::{collections::BTreeSet, process::ExitCode};

use clap::Args;
use serde_json::{Value, json};

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
    /// The guids or unique names of tasks
    #[arg(required = true)]
    pub tasks: Vec<TaskRef>,
    /// Delete without asking; required without a terminal
    #[arg(long)]
    pub force: bool,
    /// Also delete the history of the tasks, so they cannot be restored
    #[arg(long)]
    pub purge_history: bool,
}

const NEEDS_FORCE: &str = "delete asks for confirmation, but there is no terminal: use --force to \
    delete without asking";

/// The maximum number of references to a task that are shown.
const MAX_REFERENCES: usize = 20;

/// Fails if the command would need to ask without a terminal.
pub(super) fn check(args: &DeleteArgs) -> Result<(), CliError> {
    match args.force {
        true => Ok(()),
        false => confirm::require_terminal(NEEDS_FORCE),
    }
}

/// Deletes tasks with their steps. If any task is not found, nothing is deleted.
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
    let mut results = Results::new(format);
    let deleted = delete_all(client, named, history, &mut results).await?;
    let stay = managed
        .iter()
        .filter(|task| deleted.contains(&task.parent_guid) && !deleted.contains(&task.guid));
    print_left(client, stay.map(|task| task.guid.as_str()).collect());
    if format == Format::Text && count > 1 {
        let failed = results.failed();
        print_error(&format!("{} deleted, {failed} failed", deleted.len()));
    }
    results.end(None)
}

/// Prints which managed tasks remain after the tasks that managed them were deleted.
fn print_left(client: &Client, guids: Vec<&str>) {
    let what = match guids.len() {
        0 => return,
        1 => "1 managed task is now a standard task".to_owned(),
        count => format!("{count} managed tasks are now standard tasks"),
    };
    let command = client.command(&format!("delete {}", guids.join(" ")));
    print_error(&format!("{what}; to delete them as well: {command}"));
}

/// What happens to the history of deleted tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeletedHistory {
    /// The tasks can be restored for as long as the server keeps it.
    Kept,
    /// It is deleted with them.
    Purged,
}

/// Lists tasks, and asks for confirmation to delete them.
pub(super) fn agrees_to_delete(tasks: &[Task], history: DeletedHistory) -> bool {
    for task in tasks {
        print_error(&format!("  {}", description(task)));
    }
    let history = match history {
        DeletedHistory::Kept => "",
        DeletedHistory::Purged => " and all revisions, permanently",
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

/// Deletes tasks, prints the result for each, and returns the ids of the deleted ones. A task is
/// kept if its own fields or its list of steps have changed since it was read; edits of its steps
/// are not detected. A task is deleted after the tasks that refer to it.
pub(super) async fn delete_all(
    client: &Client,
    tasks: Vec<Task>,
    history: DeletedHistory,
    results: &mut Results,
) -> Result<BTreeSet<String>, CliError> {
    let mut deleted = BTreeSet::new();
    let mut left = tasks;
    loop {
        let before = left.len();
        let mut referenced = Vec::new();
        for task in left {
            match delete_one(client, &task, history).await {
                Ok(answer) => {
                    print_deleted(client, &task, &answer, results)?;
                    deleted.insert(task.guid);
                }
                Err(error) if error.reason == "TASK_REFERENCED" => referenced.push((task, error)),
                Err(error) => print_kept(client, &task, &error, results).await?,
            }
        }
        if referenced.len() == before || referenced.is_empty() {
            for (task, error) in referenced {
                print_kept(client, &task, &error, results).await?;
            }
            return Ok(deleted);
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
        // An earlier attempt, whose response was lost, has deleted it.
        Err(error) if error.undecided && error.reason == "TASK_NOT_FOUND" => {
            Ok(DeleteTaskResponse::default())
        }
        deleted => deleted,
    }
}

fn print_deleted(
    client: &Client,
    task: &Task,
    answer: &DeleteTaskResponse,
    results: &mut Results,
) -> Result<(), CliError> {
    let restore = match answer.previous_revision {
        0 => String::new(),
        revision => {
            let command = client.command(&format!("restore {}@{revision}", task.guid));
            format!("  to restore it: {command}\n")
        }
    };
    let response = document::json("DeleteTaskResponse", answer);
    let text = format!("deleted {}\n{restore}", description(task));
    results.add(&text, &with_members(response, json(task)))
}

fn json(task: &Task) -> Value {
    json!({"guid": task.guid, "name": task.name, "steps": task.steps.len()})
}

/// Prints why a task is not deleted, and what refers to it.
async fn print_kept(
    client: &Client,
    task: &Task,
    error: &CallError,
    results: &mut Results,
) -> Result<(), CliError> {
    let references = match error.reason.as_str() {
        "TASK_REFERENCED" | "TASK_MANAGED" => references(client, &task.guid).await,
        _ => Vec::new(),
    };
    let reason = match references.is_empty() {
        true => error.to_string(),
        // Without the server's list of ids, because the lines below name these steps.
        false => format!("{} ({})", error.message, error.reason),
    };
    let lines = references.iter().map(|reference| {
        let at = reference.place.clone().unwrap_or_default();
        let (task, step, path) = (at.task, at.step, at.path);
        let edit = client.command(&format!("edit {task}"));
        format!("\n  {path} of step {step} of task {task} refers to it: `{edit}` changes it")
    });
    let text = format!(
        "failed {}: {reason}{}",
        description(task),
        lines.collect::<String>()
    );
    let members = json!({
        "error": out::call_error_json(error),
        "references": document::json_list("Reference", &references),
    });
    results.add_failure(&text, &with_members(json(task), members))
}

/// The first references that prevent the deletion of a task, which excludes references by its own
/// steps. Empty if they cannot be read, because the refusal is printed anyway.
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
