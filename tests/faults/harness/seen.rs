//! What the service holds, read through the wire, and the laws over it.

use std::collections::{BTreeMap, BTreeSet};

use expertise::proto::v1::*;
use futures_util::{StreamExt, TryStreamExt, stream};
use tonic::Status;

use super::{caller::Caller, shelf::managing};

/// The largest page there is.
const PAGE: i32 = 500;
/// How much is read at once.
const AT_ONCE: usize = 8;

/// A task with its steps.
pub type Holding = (Task, Vec<Step>);

/// Everything of the account.
#[derive(Debug, Default)]
pub struct Seen {
    pub holdings: Vec<Holding>,
    pub roles: Vec<Role>,
}

/// What of it belongs to one shelf.
#[derive(Debug, Default)]
pub struct SeenShelf<'a> {
    pub holdings: Vec<&'a Holding>,
    /// Steps in a task that shelves share.
    pub shared: Vec<&'a Step>,
    pub roles: Vec<&'a Role>,
}

impl Seen {
    /// Reads everything.
    pub async fn read(caller: &Caller) -> Result<Self, Status> {
        let tasks = all_tasks(caller).await?;
        let holdings = stream::iter(tasks)
            .map(|task| async {
                let steps = steps_of(caller, &task.guid).await?;
                Ok::<_, Status>((task, steps))
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        let roles = all_roles(caller).await?;
        Ok(Self { holdings, roles })
    }

    /// What belongs to each shelf, by its word. The tasks of these ids belong to
    /// nobody, and their steps to those whose word they bear.
    pub fn by_shelf(&self, shared: &[String]) -> BTreeMap<&str, SeenShelf<'_>> {
        let mut shelves: BTreeMap<&str, SeenShelf> = BTreeMap::new();
        for holding in &self.holdings {
            let (task, steps) = holding;
            if shared.contains(&task.guid) {
                for step in steps {
                    shelves
                        .entry(word(&step.title))
                        .or_default()
                        .shared
                        .push(step);
                }
            } else {
                let shelf = shelves.entry(word(&task.name)).or_default();
                shelf.holdings.push(holding);
            }
        }
        for role in &self.roles {
            shelves
                .entry(word(&role.name))
                .or_default()
                .roles
                .push(role);
        }
        shelves
    }

    /// Asserts what holds whatever was written: orders name the steps that there
    /// are, subtask steps bear the names of their tasks, and each link has both
    /// its ends.
    pub fn is_consistent(&self) {
        let tasks = self.holdings.iter();
        let tasks: BTreeMap<&str, &Task> =
            tasks.map(|(task, _)| (task.guid.as_str(), task)).collect();
        assert_eq!(tasks.len(), self.holdings.len(), "a task is listed twice");
        let mut steps_seen = BTreeSet::new();
        let mut managed = BTreeSet::new();
        for (task, steps) in &self.holdings {
            let listed: Vec<&String> = steps.iter().map(|step| &step.guid).collect();
            let order: Vec<&String> = task.steps.iter().collect();
            assert_eq!(listed, order, "the order of {}", task.guid);
            for step in steps {
                assert!(
                    steps_seen.insert(&step.guid),
                    "{} is there twice",
                    step.guid
                );
                assert_eq!(step.task, task.guid);
                refers_rightly(step, &tasks);
                let values = managing(step).map(|(_, value)| value.link.as_str());
                managed.extend(values);
                links_are_whole(step, steps, &tasks);
            }
        }
        for (task, steps) in &self.holdings {
            let linked = task.r#type() == TaskType::Linked;
            assert_eq!(linked, managed.contains(task.guid.as_str()), "{task:?}");
            for link in steps
                .iter()
                .map(|s| s.link.as_str())
                .filter(|l| !l.is_empty())
            {
                assert!(managed.contains(link), "a link is left to {link}");
            }
        }
    }
}

fn refers_rightly(step: &Step, tasks: &BTreeMap<&str, &Task>) {
    if step.r#type() == StepType::Subtask {
        let found = tasks.get(step.subtask_id.as_str());
        let found = found.unwrap_or_else(|| panic!("it refers to nothing: {step:?}"));
        assert_eq!(step.title, found.name, "{step:?}");
        assert!(
            step.link.is_empty() || step.link == step.subtask_id,
            "{step:?}"
        );
    }
}

fn links_are_whole(question: &Step, siblings: &[Step], tasks: &BTreeMap<&str, &Task>) {
    for (idx, value) in managing(question) {
        let found = tasks.get(value.link.as_str());
        let found = found.unwrap_or_else(|| panic!("it manages nothing: {value:?}"));
        assert_eq!(
            (&found.name, &found.parent_guid),
            (&value.value, &question.task)
        );
        assert_eq!(found.idx as usize, idx, "{found:?}");
        let wires = siblings.iter().filter(|step| step.link == value.link);
        assert_eq!(wires.count(), 1, "{} is wired once", value.link);
    }
}

fn word(name: &str) -> &str {
    name.split(' ').next().unwrap_or_default()
}

/// One task with its steps.
pub async fn holding(caller: &Caller, guid: &str) -> Result<Holding, Status> {
    let request = GetTaskRequest {
        guid: guid.to_owned(),
    };
    let response = caller.tasks().get_task(request).await?.into_inner();
    let task = response.task.expect("the response holds the task");
    Ok((task, steps_of(caller, guid).await?))
}

async fn all_tasks(caller: &Caller) -> Result<Vec<Task>, Status> {
    let mut tasks = Vec::new();
    let mut request = ListTasksRequest {
        page_size: PAGE,
        ..ListTasksRequest::default()
    };
    loop {
        let page = caller
            .tasks()
            .list_tasks(request.clone())
            .await?
            .into_inner();
        tasks.extend(page.tasks);
        if page.next_page_token.is_empty() {
            return Ok(tasks);
        }
        request.page_token = page.next_page_token;
    }
}

async fn steps_of(caller: &Caller, task: &str) -> Result<Vec<Step>, Status> {
    let mut steps = Vec::new();
    let mut request = ListStepsRequest {
        task: task.to_owned(),
        expand: vec!["body".to_owned()],
        page_size: PAGE,
        page_token: String::new(),
    };
    loop {
        let page = caller
            .steps()
            .list_steps(request.clone())
            .await?
            .into_inner();
        steps.extend(page.steps);
        if page.next_page_token.is_empty() {
            return Ok(steps);
        }
        request.page_token = page.next_page_token;
    }
}

async fn all_roles(caller: &Caller) -> Result<Vec<Role>, Status> {
    let mut roles = Vec::new();
    let mut request = ListRolesRequest {
        page_size: PAGE,
        page_token: String::new(),
    };
    loop {
        let page = caller
            .roles()
            .list_roles(request.clone())
            .await?
            .into_inner();
        roles.extend(page.roles);
        if page.next_page_token.is_empty() {
            return Ok(roles);
        }
        request.page_token = page.next_page_token;
    }
}
