//! Tasks of the account: all of them, and those that a user names.

use super::{CliError, PAGE_SIZE, out::sanitize};
use crate::{
    client::Client,
    config::TaskRef,
    domain::ids::TaskId,
    proto::v1::{ListTasksRequest, Task, TaskType},
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
            .call(message.clone(), |mut tasks, request| async move {
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

/// The task that a user names. A name must be that of one task only.
pub(super) async fn find(client: &Client, task: &TaskRef) -> Result<TaskId, CliError> {
    let name = match task {
        TaskRef::Id(task) => return Ok(*task),
        TaskRef::Name(name) => name,
    };
    find_by_name(client, name).await?.ok_or_else(|| {
        CliError::TaskName(format!(
            "no task of this account has the name {:?}: `expertise list` lists the tasks of the \
             account",
            sanitize(name)
        ))
    })
}

/// The task that has this name, if any has. Fails if several have it.
pub(super) async fn find_by_name(client: &Client, name: &str) -> Result<Option<TaskId>, CliError> {
    let tasks = list_all(client, None).await?;
    let named: Vec<&Task> = tasks.iter().filter(|task| task.name == name).collect();
    match named.as_slice() {
        [] => Ok(None),
        [task] => Ok(TaskId::parse(&task.guid)),
        several => {
            let guids: Vec<&str> = several.iter().map(|task| task.guid.as_str()).collect();
            Err(CliError::TaskName(format!(
                "{} tasks have the name {:?}: use the guid of one, {}",
                several.len(),
                sanitize(name),
                guids.join(", ")
            )))
        }
    }
}
