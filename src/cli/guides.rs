//! Finds stored guides, tasks and revisions by the names that users give.

use uuid::Uuid;

use super::{
    CliError, PAGE_SIZE,
    guide_ref::GuideRef,
    out::{sanitize, step_count},
};
use crate::{
    client::{CallError, Client},
    config::TaskRef,
    domain::{external_id::ExternalId, ids::TaskId, misspelling::closest},
    proto::v1::{
        AbsentFields, AbsentSteps, DeletedTask, ExportTaskRequest, GetRevisionRequest,
        GetTaskRequest, ImportTaskRequest, ImportTaskResponse, ListDeletedTasksRequest,
        ListRevisionsRequest, ListTasksRequest, Task, TaskDocument, TaskRevision,
    },
};

#[derive(Clone, Debug)]
pub(super) struct StoredGuide {
    pub document: TaskDocument,
    /// A write with this etag fails if the guide has changed since.
    pub guide_etag: String,
}

pub(super) async fn read(client: &Client, guid: &str) -> Result<StoredGuide, CallError> {
    let message = ExportTaskRequest {
        guid: guid.to_owned(),
    };
    let answer = client.call(message).await?;
    Ok(StoredGuide {
        document: answer.document.unwrap_or_default(),
        guide_etag: answer.guide_etag,
    })
}

/// The guide that an import of a document changes, by its guid or else its external id.
pub(super) async fn read_imported(
    client: &Client,
    document: &TaskDocument,
) -> Result<Option<StoredGuide>, CliError> {
    let external_id = document.task.as_ref().map_or("", Task::external_id);
    let guid = match (guid(document), external_id) {
        // Without a valid id there is no stored guide. The import reports a malformed one with all other violations.
        ("", id) if ExternalId::parse(id.to_owned()).is_err() => return Ok(None),
        (guid, _) if !guid.is_empty() && TaskId::parse(guid).is_none() => return Ok(None),
        ("", external_id) => {
            let message = ListTasksRequest {
                external_id: external_id.to_owned(),
                ..ListTasksRequest::default()
            };
            match list(client, message).await?.pop() {
                Some(task) => task.guid,
                None => return Ok(None),
            }
        }
        (guid, _) => guid.to_owned(),
    };
    let stored = read(client, &guid).await;
    Ok(Some(
        stored.map_err(|error| with_advice(client, error, &guid))?,
    ))
}

/// Explains TASK_NOT_FOUND for a document whose task the account does not have.
pub(super) fn with_advice(client: &Client, error: CallError, guid: &str) -> CallError {
    let guid = guid.to_ascii_lowercase();
    // An error about the task of a subtask step is not changed.
    if guid.is_empty() || error.reason != "TASK_NOT_FOUND" || !error.message.contains(&guid) {
        return error;
    }
    let [import, apply] = ["import --as-new", "apply FILE"].map(|words| client.command(words));
    CallError {
        message: format!(
            "this account does not have task {guid} of the document: `{import}` creates a new task \
             from it, and `{apply}` creates one with that guid as its external id"
        ),
        ..error
    }
}

/// Sends a dry run of an import.
pub(super) async fn dry_run(
    client: &Client,
    message: ImportTaskRequest,
) -> Result<ImportTaskResponse, CallError> {
    let message = ImportTaskRequest {
        validate_only: true,
        // With it, the stored response of a retry would have no document.
        request_id: String::new(),
        ..message
    };
    client.call(message).await
}

/// An import that makes the guide match the document exactly. With an etag, the guide must not have
/// changed since.
pub(super) fn whole_import(document: TaskDocument, guide_etag: &str) -> ImportTaskRequest {
    ImportTaskRequest {
        document: Some(document),
        absent_steps: AbsentSteps::Delete.into(),
        // With a request id, retries import nothing twice.
        request_id: Uuid::now_v7().to_string(),
        absent_fields: AbsentFields::Reset.into(),
        guide_etag: guide_etag.to_owned(),
        ..ImportTaskRequest::default()
    }
}

/// Removes the id of a document's task, so that an import creates a task. The steps keep the id,
/// because subtask steps may refer to their own task.
pub(super) fn clear_guid(document: &mut TaskDocument) {
    if let Some(task) = &mut document.task {
        let guid = std::mem::take(&mut task.guid);
        let steps = document.steps.iter_mut();
        for step in steps.filter(|step| step.task.is_empty()) {
            step.task.clone_from(&guid);
        }
    }
}

/// The id of a document's task; empty if it has none.
pub(super) fn guid(document: &TaskDocument) -> &str {
    document.task.as_ref().map_or("", |task| &task.guid)
}

/// The name of a document's task.
pub(super) fn name(document: &TaskDocument) -> &str {
    document.task.as_ref().map_or("", |task| &task.name)
}

/// The tasks that match the filters, in the order of creation.
pub(super) async fn list(
    client: &Client,
    filters: ListTasksRequest,
) -> Result<Vec<Task>, CallError> {
    let message = ListTasksRequest {
        page_size: PAGE_SIZE,
        ..filters
    };
    client.list(message, |page| page.tasks).await
}

pub(super) async fn get_task(client: &Client, guid: &str) -> Result<Task, CallError> {
    let message = GetTaskRequest {
        guid: guid.to_owned(),
    };
    Ok(client.call(message).await?.task.unwrap_or_default())
}

pub(super) async fn get_revision(
    client: &Client,
    task: &str,
    revision: &str,
) -> Result<(TaskRevision, TaskDocument), CallError> {
    let message = GetRevisionRequest {
        task: task.to_owned(),
        revision: revision.to_owned(),
        ..GetRevisionRequest::default()
    };
    let answer = client.call(message).await?;
    let document = answer.document.unwrap_or_default();
    Ok((answer.revision.unwrap_or_default(), document))
}

/// A revision without its document; `None` if the number or alias does not exist.
pub(super) async fn find_revision(
    client: &Client,
    task: &str,
    revision: &str,
) -> Result<Option<TaskRevision>, CallError> {
    let message = GetRevisionRequest {
        task: task.to_owned(),
        revision: revision.to_owned(),
        without_document: true,
    };
    match client.call(message).await {
        Ok(answer) => Ok(answer.revision),
        Err(error) if error.reason == "REVISION_NOT_FOUND" => Ok(None),
        Err(error) => Err(error),
    }
}

/// The revisions of a task, the newest first.
pub(super) async fn list_revisions(
    client: &Client,
    task: &str,
) -> Result<Vec<TaskRevision>, CallError> {
    let message = ListRevisionsRequest {
        task: task.to_owned(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    client.list(message, |page| page.revisions).await
}

/// The deleted tasks that have a revision, the latest deletion first.
pub(super) async fn list_deleted(client: &Client) -> Result<Vec<DeletedTask>, CallError> {
    let message = ListDeletedTasksRequest {
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    client.list(message, |page| page.tasks).await
}

/// A revision on one line.
pub(super) fn revision_text(revision: &TaskRevision) -> String {
    let steps = step_count(usize::try_from(revision.step_count).unwrap_or_default());
    let (number, task) = (revision.revision, &revision.task);
    let name = sanitize(&revision.task_name);
    format!("revision {number} of {task}: {name}, {steps}")
}

/// How to undo a write, for the end of its line. Empty if no revision undoes it.
pub(super) fn undo_note(guid: &str, previous_revision: i64) -> String {
    match previous_revision {
        0 => String::new(),
        revision => format!("; `restore {guid}@{revision}` undoes it"),
    }
}

pub(super) struct FoundGuide {
    pub task: TaskId,
    /// The number or alias of a revision; `None` for the current state.
    pub revision: Option<String>,
}

impl FoundGuide {
    pub fn now(task: TaskId) -> Self {
        Self {
            task,
            revision: None,
        }
    }

    /// The current guide or the revision, with the etag of that state.
    pub async fn read(&self, client: &Client) -> Result<StoredGuide, CallError> {
        let Some(revision) = &self.revision else {
            return read(client, &self.task.to_string()).await;
        };
        let (revision, document) = get_revision(client, &self.task.to_string(), revision).await?;
        Ok(StoredGuide {
            document,
            guide_etag: revision.guide_etag,
        })
    }
}

/// The task that a user names. A name must be unique.
pub(super) async fn find(client: &Client, task: &TaskRef) -> Result<TaskId, CliError> {
    find_named(client, task, false).await
}

/// The task that a user names, which may be deleted. The name of a deleted task only counts if no
/// other task has it.
pub(super) async fn find_with_history(client: &Client, task: &TaskRef) -> Result<TaskId, CliError> {
    find_named(client, task, true).await
}

async fn find_named(
    client: &Client,
    task: &TaskRef,
    may_be_deleted: bool,
) -> Result<TaskId, CliError> {
    let name = match task {
        TaskRef::Id(task) => return Ok(*task),
        TaskRef::Name(name) => name,
    };
    let mut tasks = list(client, ListTasksRequest::default()).await?;
    if let Some(task) = with_name(&tasks, name)? {
        return Ok(task);
    }
    if may_be_deleted {
        let deleted = list_deleted(client).await?.into_iter();
        let deleted = deleted.filter_map(|task| task.latest).map(|it| Task {
            guid: it.task,
            name: it.task_name,
            product_id: Some(it.product_id),
            steps: vec![String::new(); usize::try_from(it.step_count).unwrap_or_default()],
            ..Task::default()
        });
        let deleted: Vec<Task> = deleted.collect();
        if let Some(task) = with_name(&deleted, name)? {
            return Ok(task);
        }
        tasks.extend(deleted);
    }
    Err(no_such_task(client, name, &tasks))
}

/// The guide that a user names, in its current state or at a revision.
pub(super) async fn find_guide(client: &Client, guide: &GuideRef) -> Result<FoundGuide, CliError> {
    let GuideRef { task, revision } = guide;
    if revision.is_none() {
        return Ok(FoundGuide::now(find(client, task).await?));
    }
    // The name of a task may end like a revision.
    if let TaskRef::Name(_) = task {
        let tasks = list(client, ListTasksRequest::default()).await?;
        if let Some(task) = with_name(&tasks, &guide.to_string())? {
            return Ok(FoundGuide::now(task));
        }
    }
    Ok(FoundGuide {
        task: find_with_history(client, task).await?,
        revision: revision.clone(),
    })
}

/// Finds the guide that an argument names. The argument could also have been a file, so the error
/// also says that there is no such file.
pub(super) async fn find_guide_or_file(
    client: &Client,
    guide: &GuideRef,
) -> Result<FoundGuide, CliError> {
    let found = find_guide(client, guide).await;
    found.map_err(|error| match error {
        CliError::NoSuchTask(message) => {
            let guide = guide.to_string();
            CliError::Failed(format!("there is no file {guide:?}, and {message}"))
        }
        error => error,
    })
}

/// The task with this name, or else the only task whose name only differs in case. Fails if several
/// have it.
fn with_name(tasks: &[Task], name: &str) -> Result<Option<TaskId>, CliError> {
    let mut named: Vec<&Task> = tasks.iter().filter(|task| task.name == name).collect();
    if named.is_empty() {
        let lower = name.to_lowercase();
        named = tasks
            .iter()
            .filter(|task| task.name.to_lowercase() == lower)
            .collect();
    }
    match named.as_slice() {
        [task] => Ok(TaskId::parse(&task.guid)),
        [] => Ok(None),
        several => {
            let named = several.iter().map(|task| {
                let (product, steps) = (task.product_id(), step_count(task.steps.len()));
                format!("{} (product {product}, {steps})", task.guid)
            });
            let named: Vec<String> = named.collect();
            Err(CliError::Failed(format!(
                "{} tasks have the name {:?}: use the guid of one of {}",
                several.len(),
                sanitize(name),
                named.join(", ")
            )))
        }
    }
}

/// The error for a name that none of these tasks has, with what to do.
fn no_such_task(client: &Client, name: &str, tasks: &[Task]) -> CliError {
    let lower = tasks.iter().map(|task| task.name.to_lowercase());
    let lower: Vec<String> = lower.collect();
    let meant = closest(&name.to_lowercase(), lower.iter().map(String::as_str));
    let mut meant = tasks
        .iter()
        .zip(&lower)
        .filter(|it| Some(it.1.as_str()) == meant);
    let advice = match meant.next() {
        Some((task, _)) => format!("did you mean {:?}?", sanitize(&task.name)),
        None => {
            let [list, history] = ["list", "history --deleted"].map(|words| client.command(words));
            format!("`{list}` lists the tasks of the account, `{history}` deleted ones")
        }
    };
    let name = sanitize(name);
    CliError::NoSuchTask(format!(
        "no task of this account has the name {name:?}: {advice}"
    ))
}
