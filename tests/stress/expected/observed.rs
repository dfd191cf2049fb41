//! What the service holds, read over the wire.

use std::collections::{BTreeMap, BTreeSet};

use expertise::proto::v1::*;
use futures_util::{StreamExt, TryStreamExt, stream};
use tonic::Status;

use crate::kit::{client::Client, links::links_are_consistent};

const MAX_PAGE_SIZE: i32 = 500;
const PARALLEL_READS: usize = 8;

/// A task with its steps.
pub type TaskWithSteps = (Task, Vec<Step>);

/// Everything of an account.
#[derive(Debug, Default, PartialEq)]
pub struct ObservedState {
    pub tasks: Vec<TaskWithSteps>,
    pub roles: Vec<Role>,
}

/// The part of the state that belongs to one workspace.
#[derive(Debug, Default)]
pub struct ObservedWorkspace<'a> {
    pub tasks: Vec<&'a TaskWithSteps>,
    pub steps_of_shared_task: Vec<&'a Step>,
    pub roles: Vec<&'a Role>,
}

impl ObservedState {
    /// Reads everything.
    pub async fn read(client: &Client) -> Result<Self, Status> {
        let tasks = all_tasks(client).await?;
        let tasks = stream::iter(tasks)
            .map(|task| async {
                let steps = steps_of(client, &task.guid).await?;
                Ok::<_, Status>((task, steps))
            })
            .buffered(PARALLEL_READS)
            .try_collect()
            .await?;
        let roles = all_roles(client).await?;
        Ok(Self { tasks, roles })
    }

    /// The parts by the prefixes of their workspaces. The shared task belongs to no
    /// workspace, but its steps do.
    pub fn by_workspace(
        &self,
        shared_task: Option<&Task>,
    ) -> BTreeMap<&str, ObservedWorkspace<'_>> {
        let mut workspaces: BTreeMap<&str, ObservedWorkspace> = BTreeMap::new();
        let is_shared = |task: &Task| shared_task.is_some_and(|shared| shared.guid == task.guid);
        for task_with_steps in &self.tasks {
            let (task, steps) = task_with_steps;
            if is_shared(task) {
                for step in steps {
                    let workspace = workspaces.entry(prefix(&step.title)).or_default();
                    workspace.steps_of_shared_task.push(step);
                }
            } else {
                let workspace = workspaces.entry(prefix(&task.name)).or_default();
                workspace.tasks.push(task_with_steps);
            }
        }
        for role in &self.roles {
            let workspace = workspaces.entry(prefix(&role.name)).or_default();
            workspace.roles.push(role);
        }
        workspaces
    }

    /// Asserts what holds whatever was written: no task or step is listed twice, and
    /// links and titles are consistent.
    pub fn assert_consistent(&self) {
        let mut guids = BTreeSet::new();
        for (task, steps) in &self.tasks {
            for guid in steps.iter().map(|step| &step.guid).chain([&task.guid]) {
                assert!(guids.insert(guid), "{guid} is listed twice");
            }
        }
        links_are_consistent(&self.tasks);
    }
}

fn prefix(name: &str) -> &str {
    name.split(' ').next().unwrap_or_default()
}

/// One task with its steps.
pub async fn task_with_steps(client: &Client, guid: &str) -> Result<TaskWithSteps, Status> {
    let task = client.get_task(guid).await?;
    Ok((task, steps_of(client, guid).await?))
}

async fn all_tasks(client: &Client) -> Result<Vec<Task>, Status> {
    let mut tasks = Vec::new();
    let mut request = ListTasksRequest {
        page_size: MAX_PAGE_SIZE,
        ..ListTasksRequest::default()
    };
    loop {
        let page = client.list_tasks(request.clone()).await?;
        tasks.extend(page.tasks);
        if page.next_page_token.is_empty() {
            return Ok(tasks);
        }
        request.page_token = page.next_page_token;
    }
}

async fn steps_of(client: &Client, task: &str) -> Result<Vec<Step>, Status> {
    let mut steps = Vec::new();
    let mut request = ListStepsRequest {
        task: task.to_owned(),
        expand: vec!["body".to_owned()],
        page_size: MAX_PAGE_SIZE,
        page_token: String::new(),
    };
    loop {
        let page = client.list_steps(request.clone()).await?;
        steps.extend(page.steps);
        if page.next_page_token.is_empty() {
            return Ok(steps);
        }
        request.page_token = page.next_page_token;
    }
}

async fn all_roles(client: &Client) -> Result<Vec<Role>, Status> {
    let mut roles = Vec::new();
    let mut page_token = String::new();
    loop {
        let page = client.list_roles(MAX_PAGE_SIZE, &page_token).await?;
        roles.extend(page.roles);
        if page.next_page_token.is_empty() {
            return Ok(roles);
        }
        page_token = page.next_page_token;
    }
}
