//! `expertise history`.

use super::{
    CliError, document,
    layout::{TableColumn, table},
    out::{self, JsonArray},
    revisions, tasks, wording,
};
use crate::{
    client::Client,
    config::{Format, HistoryArgs, TaskRef},
    proto::v1::{DeletedTask, TaskRevision},
};

/// Lists the revisions of a task, or the deleted tasks that have a revision.
pub(super) async fn history(
    client: &Client,
    args: &HistoryArgs,
    format: Format,
) -> Result<(), CliError> {
    match &args.task {
        Some(task) => list_revisions(client, task, format).await,
        None => list_deleted(client, format).await,
    }
}

async fn list_revisions(client: &Client, task: &TaskRef, format: Format) -> Result<(), CliError> {
    let task = tasks::find_with_history(client, task).await?;
    let revisions = revisions::list(client, task).await?;
    match format {
        Format::Json => print_array("TaskRevision", &revisions),
        Format::Text if revisions.is_empty() => {
            let keep = client.command(&format!("keep {task}"));
            out::print_error(&format!("task {task} has no revision: `{keep}` makes one"));
            Ok(())
        }
        Format::Text => {
            let rows = revisions.iter().map(revision_row).collect();
            out::print(&table(REVISION_COLUMNS, rows))
        }
    }
}

async fn list_deleted(client: &Client, format: Format) -> Result<(), CliError> {
    let tasks = revisions::list_deleted(client).await?;
    match format {
        Format::Json => print_array("DeletedTask", &tasks),
        Format::Text if tasks.is_empty() => {
            out::print_error("this account has no deleted guides that can be restored");
            Ok(())
        }
        Format::Text => {
            let rows = tasks.iter().map(deleted_row).collect();
            out::print(&table(DELETED_COLUMNS, rows))
        }
    }
}

fn print_array<M: prost::Message>(name: &str, messages: &[M]) -> Result<(), CliError> {
    let mut array = JsonArray::new();
    for message in messages {
        array.push(&document::json(name, message)?)?;
    }
    array.end()
}

const REVISION_COLUMNS: [TableColumn; 6] = [
    TableColumn::Number("REVISION"),
    TableColumn::Whole("CREATED"),
    TableColumn::Text("CAUSE"),
    TableColumn::Text("BY"),
    TableColumn::Text("ALIASES"),
    TableColumn::Text("NOTE"),
];

fn revision_row(revision: &TaskRevision) -> [String; 6] {
    let cause = wording::name(revision.cause().as_str_name(), "REVISION_CAUSE_");
    [
        revision.revision.to_string(),
        wording::time(revision.created_ts),
        cause.replace('_', " "),
        out::sanitize(&revision.subject),
        out::sanitize(&revision.aliases.join(", ")),
        out::sanitize(&revision.note),
    ]
}

const DELETED_COLUMNS: [TableColumn; 5] = [
    TableColumn::Whole("GUID"),
    TableColumn::Number("REVISION"),
    TableColumn::Whole("DELETED"),
    TableColumn::Text("BY"),
    TableColumn::Text("NAME"),
];

fn deleted_row(deleted: &DeletedTask) -> [String; 5] {
    let latest = deleted.latest.clone().unwrap_or_default();
    [
        latest.task,
        latest.revision.to_string(),
        wording::time(deleted.deleted_ts),
        out::sanitize(&deleted.subject),
        out::sanitize(&latest.task_name),
    ]
}
