//! Lists, pages and deletes.

use anyhow::ensure;
use expertise::proto::v1::{ListStepsRequest, ListTasksRequest, Task};
use prost::Message;
use tonic::Code;

use crate::{
    client::Client,
    show::{expect_error, heading, print_line},
};

/// Reads the list of steps with and without bodies.
pub async fn list(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("List steps: without bodies, unless expand includes them");
    for expand in [vec![], vec!["body".to_owned()]] {
        let request = ListStepsRequest {
            task: guide.guid.clone(),
            page_size: 500,
            expand: expand.clone(),
            ..ListStepsRequest::default()
        };
        let page = client.list_steps(request).await?;
        let bodies = page.steps.iter().filter(|step| step.body.is_some());
        let (bodies, bytes) = (bodies.count(), page.encoded_len());
        let count = page.steps.len();
        print_line(format!(
            "expand {expand:?}: {count} steps, {bodies} bodies, {bytes} bytes"
        ));
        ensure!(
            (bodies > 0) != expand.is_empty(),
            "bodies do not follow `expand`"
        );
    }
    Ok(())
}

/// Reads the list page by page, and sends a token with other filters.
pub async fn pages(client: &Client, guide: &Task) -> anyhow::Result<()> {
    heading("Pages of 15");
    let mut request = ListStepsRequest {
        task: guide.guid.clone(),
        page_size: 15,
        ..ListStepsRequest::default()
    };
    let mut seen = Vec::new();
    for number in 1.. {
        let page = client.list_steps(request.clone()).await?;
        let (count, token) = (page.steps.len(), page.next_page_token);
        let next = if token.is_empty() {
            "the last"
        } else {
            "and a token"
        };
        print_line(format!("page {number}: {count} steps, {next}"));
        seen.extend(page.steps.into_iter().map(|step| step.guid));
        if token.is_empty() {
            break;
        }
        request.page_token = token;
    }
    ensure!(
        seen == client.task(&guide.guid).await?.steps,
        "not the task's order"
    );
    print_line("all pages together are the task's order; a token of other filters is refused:");
    request.expand = vec!["body".to_owned()];
    expect_error(
        client.list_steps(request).await,
        Code::InvalidArgument,
        "PAGE_TOKEN_INVALID",
    )
}

/// Deletes the guides of the tour, and shows what prevents a delete.
pub async fn delete(client: &Client, guide: &Task, restart: &Task) -> anyhow::Result<()> {
    heading("Delete: not while a task is in use");
    let used = client.delete_task(&restart.guid, true).await;
    expect_error(used, Code::FailedPrecondition, "TASK_REFERENCED")?;
    let full = client.delete_task(&guide.guid, false).await;
    expect_error(full, Code::FailedPrecondition, "TASK_HAS_STEPS")?;
    client.delete_task(&guide.guid, true).await?;
    print_line("with force the guide and its steps are deleted");
    let left = client.list_tasks(ListTasksRequest::default()).await?.tasks;
    for task in &left {
        client.delete_task(&task.guid, true).await?;
    }
    let names: Vec<&str> = left.iter().map(|task| task.name.as_str()).collect();
    print_line(format!(
        "then the tasks that it referred to: {}",
        names.join(", ")
    ));
    let left = client.list_tasks(ListTasksRequest::default()).await?.tasks;
    ensure!(left.is_empty(), "tasks are left");
    print_line("ListTasks: none");
    Ok(())
}
