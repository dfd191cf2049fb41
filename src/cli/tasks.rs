//! Tasks of the account: all of them, and those that a user names.

use super::{
    CliError, PAGE_SIZE,
    out::{sanitize, step_count},
    revisions,
};
use crate::{
    client::{CallError, Client},
    config::{GuideRef, RevisionRef, TaskRef},
    domain::{ids::TaskId, misspelling::closest},
    proto::v1::{GetTaskRequest, ListTasksRequest, Task, TaskDocument, TaskType},
};

/// The tasks of the account in the order of their creation.
pub(super) async fn list_all(
    client: &Client,
    task_type: Option<TaskType>,
) -> Result<Vec<Task>, CliError> {
    let mut tasks = Vec::new();
    let filters = ListTasksRequest {
        r#type: task_type.map(i32::from),
        ..ListTasksRequest::default()
    };
    for_each_page(client, filters, |page| {
        tasks.extend(page);
        Ok(())
    })
    .await?;
    Ok(tasks)
}

/// The id of the task that an import of a document changes: the one that the document names, or
/// else that of the task with its external id. Empty if there is none.
pub(super) async fn guid_of_imported(
    client: &Client,
    document: &TaskDocument,
) -> Result<String, CliError> {
    let task = document.task.clone().unwrap_or_default();
    let mut guid = task.guid;
    let external_id = task.external_id.unwrap_or_default();
    if guid.is_empty() && !external_id.is_empty() {
        let filters = ListTasksRequest {
            external_id,
            ..ListTasksRequest::default()
        };
        for_each_page(client, filters, |page| {
            guid.extend(page.into_iter().map(|task| task.guid));
            Ok(())
        })
        .await?;
    }
    Ok(guid)
}

/// Lists the tasks that pass the filters page by page, to the last one.
pub(super) async fn for_each_page(
    client: &Client,
    filters: ListTasksRequest,
    mut handle: impl FnMut(Vec<Task>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let message = ListTasksRequest {
        page_size: PAGE_SIZE,
        ..filters
    };
    client
        .for_each_page(message, |page| handle(page.tasks))
        .await
}

/// Reads a task.
pub(super) async fn get(client: &Client, guid: String) -> Result<Task, CallError> {
    let message = GetTaskRequest { guid };
    let answer = client.call(message).await?;
    Ok(answer.task.unwrap_or_default())
}

/// A guide that a user named.
pub(super) struct FoundGuide {
    pub task: TaskId,
    /// The number or alias of a revision; `None` for the guide as it is now.
    pub revision: Option<String>,
}

impl FoundGuide {
    pub fn now(task: TaskId) -> Self {
        Self {
            task,
            revision: None,
        }
    }
}

/// The task that a user names. A name must be that of one task only.
pub(super) async fn find(client: &Client, task: &TaskRef) -> Result<TaskId, CliError> {
    let name = match task {
        TaskRef::Id(task) => return Ok(*task),
        TaskRef::Name(name) => name,
    };
    let tasks = stored(client).await?;
    with_name(&tasks, name)?.ok_or_else(|| no_such_task(client, name, &tasks))
}

/// The task that a user names, which may be deleted. The name of a deleted one counts where no
/// other task has it.
pub(super) async fn find_with_history(client: &Client, task: &TaskRef) -> Result<TaskId, CliError> {
    let name = match task {
        TaskRef::Id(task) => return Ok(*task),
        TaskRef::Name(name) => name,
    };
    let mut tasks = stored(client).await?;
    if let Some(task) = with_name(&tasks, name)? {
        return Ok(task);
    }
    let deleted = deleted(client).await?;
    if let Some(task) = with_name(&deleted, name)? {
        return Ok(task);
    }
    tasks.extend(deleted);
    Err(no_such_task(client, name, &tasks))
}

/// The guide that a user names, as it is now or as a revision keeps it.
pub(super) async fn find_guide(client: &Client, guide: &GuideRef) -> Result<FoundGuide, CliError> {
    let RevisionRef { task, revision } = match guide {
        GuideRef::Now(task) => return Ok(FoundGuide::now(find(client, task).await?)),
        GuideRef::Revision(revision) => revision,
    };
    // The name of a task may end like one of a revision.
    if let TaskRef::Name(_) = task
        && let Some(task) = with_name(&stored(client).await?, &guide.to_string())?
    {
        return Ok(FoundGuide::now(task));
    }
    Ok(FoundGuide {
        task: find_with_history(client, task).await?,
        revision: Some(revision.clone()),
    })
}

/// Finds the guide that an argument names. The argument could also have been a file, so the
/// error says that there is none.
pub(super) async fn find_guide_or_file(
    client: &Client,
    guide: &GuideRef,
) -> Result<FoundGuide, CliError> {
    let GuideRef::Now(TaskRef::Name(name)) = guide else {
        return find_guide(client, guide).await;
    };
    let tasks = stored(client).await?;
    let task = with_name(&tasks, name)?.ok_or_else(|| {
        let advice = advice(client, name, &tasks);
        CliError::TaskName(format!(
            "there is no file {:?}, and no task of this account has this name: {advice}",
            sanitize(name)
        ))
    })?;
    Ok(FoundGuide::now(task))
}

/// A task that a user may mean.
struct NamedTask {
    guid: String,
    name: String,
    product_id: i64,
    steps: usize,
}

async fn stored(client: &Client) -> Result<Vec<NamedTask>, CliError> {
    let tasks = list_all(client, None).await?.into_iter();
    let named = tasks.map(|task| NamedTask {
        product_id: task.product_id(),
        steps: task.steps.len(),
        guid: task.guid,
        name: task.name,
    });
    Ok(named.collect())
}

async fn deleted(client: &Client) -> Result<Vec<NamedTask>, CliError> {
    let tasks = revisions::list_deleted(client).await?.into_iter();
    let named = tasks.filter_map(|task| task.latest).map(|it| NamedTask {
        guid: it.task,
        name: it.task_name,
        product_id: it.product_id,
        steps: usize::try_from(it.step_count).unwrap_or_default(),
    });
    Ok(named.collect())
}

/// The task that has this name, or else the only one whose name differs in upper and lower
/// case alone. Fails if several have it.
fn with_name(tasks: &[NamedTask], name: &str) -> Result<Option<TaskId>, CliError> {
    let lower = name.to_lowercase();
    let mut named: Vec<&NamedTask> = tasks.iter().filter(|task| task.name == name).collect();
    if named.is_empty() {
        let alike = tasks.iter();
        named = alike
            .filter(|task| task.name.to_lowercase() == lower)
            .collect();
    }
    match named.as_slice() {
        [task] => Ok(TaskId::parse(&task.guid)),
        [] => Ok(None),
        several => {
            let named = several.iter().map(|task| {
                let (product, steps) = (task.product_id, step_count(task.steps));
                format!("{} (product {product}, {steps})", task.guid)
            });
            let named: Vec<String> = named.collect();
            Err(CliError::TaskName(format!(
                "{} tasks have the name {:?}: use the guid of one of {}",
                several.len(),
                sanitize(name),
                named.join(", ")
            )))
        }
    }
}

fn no_such_task(client: &Client, name: &str, tasks: &[NamedTask]) -> CliError {
    let advice = advice(client, name, tasks);
    CliError::TaskName(format!(
        "no task of this account has the name {:?}: {advice}",
        sanitize(name)
    ))
}

/// What to do about a name that none of these tasks has.
fn advice(client: &Client, name: &str, tasks: &[NamedTask]) -> String {
    let lower = name.to_lowercase();
    let is_task = |guide: &str| {
        TaskId::parse(guide).is_some() || tasks.iter().any(|it| it.name.to_lowercase() == guide)
    };
    if let Some((guide, revision)) = lower.rsplit_once('@')
        && is_task(guide)
    {
        return format!(
            "this command takes no revision, leave out `@{}`",
            sanitize(revision)
        );
    }
    match closest_name(&lower, tasks) {
        Some(closest) => format!("is {:?} meant?", sanitize(closest)),
        None => {
            let [list, history] = ["list", "history --deleted"].map(|words| client.command(words));
            format!("`{list}` lists the tasks of the account, `{history}` deleted ones")
        }
    }
}

/// The name of a task that `lower`, a name in lower case, may be a misspelling of.
fn closest_name<'a>(lower: &str, tasks: &'a [NamedTask]) -> Option<&'a str> {
    let names: Vec<String> = tasks.iter().map(|task| task.name.to_lowercase()).collect();
    let candidates: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = closest(lower, candidates.iter().copied())?;
    let at = candidates.iter().position(|name| *name == found)?;
    tasks.get(at).map(|task| task.name.as_str())
}
