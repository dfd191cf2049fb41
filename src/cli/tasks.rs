//! Tasks of the account: all of them, and those that a user names.

use super::{
    CliError, PAGE_SIZE,
    out::{sanitize, step_count},
};
use crate::{
    client::{CallError, Client},
    config::{GuideArg, TaskRef},
    domain::{ids::TaskId, misspelling::closest},
    proto::v1::{GetTaskRequest, ListTasksRequest, Task, TaskType},
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

/// Lists the tasks that pass the filters page by page, to the last one.
pub(super) async fn for_each_page(
    client: &Client,
    filters: ListTasksRequest,
    mut handle: impl FnMut(Vec<Task>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut message = ListTasksRequest {
        page_size: PAGE_SIZE,
        ..filters
    };
    loop {
        let page = client
            .call_tasks(message.clone(), |mut tasks, request| async move {
                tasks.list_tasks(request).await
            })
            .await?;
        handle(page.tasks)?;
        if page.next_page_token.is_empty() {
            return Ok(());
        }
        message.page_token = page.next_page_token;
    }
}

/// Reads a task.
pub(super) async fn get(client: &Client, guid: String) -> Result<Task, CallError> {
    let message = GetTaskRequest { guid };
    let answer = client
        .call_tasks(message, |mut tasks, request| async move {
            tasks.get_task(request).await
        })
        .await?;
    Ok(answer.task.unwrap_or_default())
}

/// The task that a user names. A name must be that of one task only.
pub(super) async fn find(client: &Client, task: &TaskRef) -> Result<TaskId, CliError> {
    let name = match task {
        TaskRef::Id(task) => return Ok(*task),
        TaskRef::Name(name) => name,
    };
    let not_found = format!("no task of this account has the name {:?}", sanitize(name));
    find_by_name(client, name, &not_found).await
}

/// The task that has this name, or else the only one whose name differs in upper and lower
/// case alone. Fails if several have it, or with `not_found` if none has.
async fn find_by_name(client: &Client, name: &str, not_found: &str) -> Result<TaskId, CliError> {
    let tasks = list_all(client, None).await?;
    let lower = name.to_lowercase();
    let mut named: Vec<&Task> = tasks.iter().filter(|task| task.name == name).collect();
    if named.is_empty() {
        let alike = tasks.iter();
        named = alike
            .filter(|task| task.name.to_lowercase() == lower)
            .collect();
    }
    let found = match named.as_slice() {
        [task] => TaskId::parse(&task.guid),
        [] => None,
        several => {
            let named = several.iter().map(|task| {
                let (product, steps) = (task.product_id(), step_count(task.steps.len()));
                format!("{} (product {product}, {steps})", task.guid)
            });
            let named: Vec<String> = named.collect();
            return Err(CliError::TaskName(format!(
                "{} tasks have the name {:?}: use the guid of one of {}",
                several.len(),
                sanitize(name),
                named.join(", ")
            )));
        }
    };
    found.ok_or_else(|| {
        let advice = match closest_name(&lower, &tasks) {
            Some(closest) => format!("is {:?} meant?", sanitize(closest)),
            None => {
                let list = client.command("list");
                format!("`{list}` lists the tasks of the account")
            }
        };
        CliError::TaskName(format!("{not_found}: {advice}"))
    })
}

/// The name of a task that `lower`, a name in lower case, may be a misspelling of.
fn closest_name<'a>(lower: &str, tasks: &'a [Task]) -> Option<&'a str> {
    let names: Vec<String> = tasks.iter().map(|task| task.name.to_lowercase()).collect();
    let candidates: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = closest(lower, candidates.iter().copied())?;
    let at = candidates.iter().position(|name| *name == found)?;
    tasks.get(at).map(|task| task.name.as_str())
}

/// A guide as the command line names it.
pub(super) fn guide_name(guide: &GuideArg) -> String {
    match guide {
        GuideArg::Task(TaskRef::Id(task)) => task.to_string(),
        GuideArg::Task(TaskRef::Name(name)) => name.clone(),
        GuideArg::File(file) => file.display().to_string(),
    }
}

/// Finds the task that an argument names. The argument could also have been a file, so the
/// error says that there is none.
pub(super) async fn find_task_or_file(client: &Client, task: &TaskRef) -> Result<TaskId, CliError> {
    let name = match task {
        TaskRef::Id(task) => return Ok(*task),
        TaskRef::Name(name) => name,
    };
    let not_found = format!(
        "there is no file {:?}, and no task of this account has this name",
        sanitize(name)
    );
    find_by_name(client, name, &not_found).await
}
