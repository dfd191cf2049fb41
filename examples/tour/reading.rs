//! Lists and pages, and taking everything down again.

use anyhow::ensure;
use expertise::proto::v1::{ListStepsRequest, ListTasksRequest, Task};
use prost::Message;
use tonic::Code;

use crate::{
    desk::Desk,
    show::{refused, say, stage},
};

/// Reads the list of steps with and without bodies.
pub async fn list(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("List steps: without bodies, unless expand asks for them");
    for expand in [vec![], vec!["body".to_owned()]] {
        let call = ListStepsRequest {
            task: guide.guid.clone(),
            page_size: 500,
            expand: expand.clone(),
            ..ListStepsRequest::default()
        };
        let page = desk.list_steps(call).await?;
        let bodies = page.steps.iter().filter(|step| step.body.is_some());
        let (bodies, bytes) = (bodies.count(), page.encoded_len());
        let count = page.steps.len();
        say(format!(
            "expand {expand:?}: {count} steps, {bodies} bodies, {bytes} bytes"
        ));
        ensure!(
            (bodies > 0) != expand.is_empty(),
            "bodies do not follow `expand`"
        );
    }
    Ok(())
}

/// Walks through the list page by page, and tries a token that was altered.
pub async fn turn_pages(desk: &Desk, guide: &Task) -> anyhow::Result<()> {
    stage("Pages of 15");
    let mut call = ListStepsRequest {
        task: guide.guid.clone(),
        page_size: 15,
        ..ListStepsRequest::default()
    };
    let mut seen = Vec::new();
    for number in 1.. {
        let page = desk.list_steps(call.clone()).await?;
        let (count, token) = (page.steps.len(), page.next_page_token);
        let next = if token.is_empty() {
            "the last"
        } else {
            "and a token"
        };
        say(format!("page {number}: {count} steps, {next}"));
        seen.extend(page.steps.into_iter().map(|step| step.guid));
        if token.is_empty() {
            break;
        }
        call.page_token = token;
    }
    ensure!(
        seen == desk.task(&guide.guid).await?.steps,
        "not the task's order"
    );
    say("together they are the task's order; a token for other filters is refused:");
    call.expand = vec!["body".to_owned()];
    refused(
        desk.list_steps(call).await,
        Code::InvalidArgument,
        "PAGE_TOKEN_INVALID",
    )
}

/// Deletes what the tour has made, against the resistance that protects guides.
pub async fn delete(desk: &Desk, guide: &Task, restart: &Task) -> anyhow::Result<()> {
    stage("Delete: first what is in use");
    let used = desk.delete_task(&restart.guid, true).await;
    refused(used, Code::FailedPrecondition, "TASK_REFERENCED")?;
    let full = desk.delete_task(&guide.guid, false).await;
    refused(full, Code::FailedPrecondition, "TASK_HAS_STEPS")?;
    desk.delete_task(&guide.guid, true).await?;
    say("with force the guide goes, and its steps with it");
    let left = desk.list_tasks(ListTasksRequest::default()).await?.tasks;
    for task in &left {
        desk.delete_task(&task.guid, true).await?;
    }
    let names: Vec<&str> = left.iter().map(|task| task.name.as_str()).collect();
    say(format!(
        "then the tasks that it referred to: {}",
        names.join(", ")
    ));
    let left = desk.list_tasks(ListTasksRequest::default()).await?.tasks;
    ensure!(left.is_empty(), "tasks are left");
    say("ListTasks: none");
    Ok(())
}
