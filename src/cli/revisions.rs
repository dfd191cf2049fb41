//! Revisions of guides as the server has them.

use super::{
    PAGE_SIZE, out,
    tasks::FoundGuide,
    transfer::{self, StoredGuide},
};
use crate::{
    client::{CallError, Client},
    domain::ids::TaskId,
    proto::v1::{
        DeletedTask, GetRevisionRequest, ListDeletedTasksRequest, ListRevisionsRequest,
        TaskDocument, TaskRevision,
    },
};

/// Reads a revision with its document.
pub(super) async fn get(
    client: &Client,
    task: TaskId,
    revision: &str,
) -> Result<(TaskRevision, TaskDocument), CallError> {
    let message = GetRevisionRequest {
        task: task.to_string(),
        revision: revision.to_owned(),
        without_document: false,
    };
    let answer = client.call(message).await?;
    Ok((
        answer.revision.unwrap_or_default(),
        answer.document.unwrap_or_default(),
    ))
}

/// Reads a revision without its document.
pub(super) async fn head(
    client: &Client,
    task: &str,
    revision: &str,
) -> Result<TaskRevision, CallError> {
    let message = GetRevisionRequest {
        task: task.to_owned(),
        revision: revision.to_owned(),
        without_document: true,
    };
    let answer = client.call(message).await?;
    Ok(answer.revision.unwrap_or_default())
}

/// The document of a guide as it is now, or as a revision keeps it.
pub(super) async fn document(
    client: &Client,
    guide: &FoundGuide,
) -> Result<TaskDocument, CallError> {
    Ok(stored_guide(client, guide).await?.document)
}

/// A guide as it is now, or as a revision keeps it, with the etag of that state.
pub(super) async fn stored_guide(
    client: &Client,
    guide: &FoundGuide,
) -> Result<StoredGuide, CallError> {
    let Some(revision) = &guide.revision else {
        return transfer::export_with_etag(client, &guide.task.to_string()).await;
    };
    let (revision, document) = get(client, guide.task, revision).await?;
    Ok(StoredGuide {
        document,
        guide_etag: revision.guide_etag,
    })
}

/// The revisions of a task, the newest first.
pub(super) async fn list(client: &Client, task: TaskId) -> Result<Vec<TaskRevision>, CallError> {
    let message = ListRevisionsRequest {
        task: task.to_string(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut revisions = Vec::new();
    client
        .for_each_page(message, |page| {
            revisions.extend(page.revisions);
            Ok::<_, CallError>(())
        })
        .await?;
    Ok(revisions)
}

/// The deleted tasks that have a revision, the latest deletion first.
pub(super) async fn list_deleted(client: &Client) -> Result<Vec<DeletedTask>, CallError> {
    let message = ListDeletedTasksRequest {
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut tasks = Vec::new();
    client
        .for_each_page(message, |page| {
            tasks.extend(page.tasks);
            Ok::<_, CallError>(())
        })
        .await?;
    Ok(tasks)
}

/// A revision on one line.
pub(super) fn description(revision: &TaskRevision) -> String {
    let TaskRevision {
        task,
        revision,
        task_name,
        step_count,
        ..
    } = revision;
    let steps = out::step_count(usize::try_from(*step_count).unwrap_or_default());
    let name = out::sanitize(task_name);
    format!("revision {revision} of {task}: {name}, {steps}")
}

/// What is said behind a write about the revision that undoes it. Empty if there is none.
pub(super) fn undo_note(guid: &str, previous_revision: i64) -> String {
    match previous_revision {
        0 => String::new(),
        revision => format!("; `restore {guid}@{revision}` undoes it"),
    }
}
