//! Two accounts: the one that calls, and the other one, whose things it names.

use std::collections::BTreeSet;

use super::{answer::Answer, table::Names};
use crate::harness::prelude::*;

/// What every text of theirs holds.
const SECRET: &str = "sealed7ledger";

/// The account that calls.
pub struct Mine {
    pub world: World,
    /// A task with an observation and a subtask step.
    pub task: Task,
    pub observation: Step,
    pub subtask: Step,
    /// A task with a linked observation, as exported.
    pub document: TaskDocument,
    /// What there is to translate of the observation.
    pub work: TranslationWork,
}

impl Mine {
    /// The same in every account.
    pub async fn settled(world: &World) -> Self {
        let task = world.given_task(task("Mine")).await;
        let observation = world.given_step(rich_step(&task)).await;
        let subtask = world.given_step(subtask(&task, &task)).await;
        let imported = world.imported(linked_document("Mine, linked")).await;
        let document = world.exported(&imported.guid).await;
        let work = world.work(&["fr"]).await;
        let work = work.into_iter().find(|work| work.guid == observation.guid);
        Self {
            world: world.clone(),
            task,
            observation,
            subtask,
            document,
            work: work.expect("the observation is not in French"),
        }
    }
}

/// A guide whose observation manages two tasks, the first one with a step.
fn linked_document(name: &str) -> TaskDocument {
    let inner = document(name, vec![piece(StepType::Information, name)]);
    let values = vec![answer_with("first", name, inner), answer("second", name)];
    document(name, vec![asking(linked_question(values))])
}

/// The account that is named.
pub struct Theirs {
    world: World,
    task: Task,
    managed: String,
    step: Step,
    /// A role, and the number of none.
    roles: (i64, i64),
    /// Ids of retries of theirs.
    retries: Vec<(&'static str, String)>,
    /// Tokens of second pages.
    pages: Vec<(&'static str, String)>,
    pub work: TranslationWork,
    /// Every id of theirs.
    guids: BTreeSet<String>,
}

/// Ids to send, all of one length but for the malformed one.
pub struct Ids {
    pub foreign: String,
    pub absent: String,
    pub malformed: String,
    pub nil: String,
}

/// Everything that an account sees of itself.
#[derive(Debug, PartialEq)]
pub struct Everything {
    tasks: Vec<(Task, Vec<Step>)>,
    exports: Vec<TaskDocument>,
    roles: Vec<Role>,
    work: Vec<TranslationWork>,
    /// What a retry is answered.
    retried: CreateTaskResponse,
}

impl Theirs {
    pub async fn settled(world: &World) -> Self {
        let world = world.foreign();
        let task = Task {
            name: SECRET.to_owned(),
            ..rich_task()
        };
        let task = world.given_task(task).await;
        let step = Step {
            title: SECRET.to_owned(),
            body: Some(SECRET.to_owned()),
            ..rich_step(&task)
        };
        let step = world.given_step(step).await;
        world.given_step(subtask(&task, &task)).await;
        let linked = world.imported(linked_document(SECRET)).await;
        let exported = world.exported(&linked.guid).await;
        let managed = answers_of(&exported.steps[0])[0].link.clone();
        // More than a page of one, so that there are tokens.
        world.given_role(SECRET).await;
        let role = world.given_role(SECRET).await.id;
        let retries = ["CreateTask", "CreateStep", "ImportTask"];
        let work = world.work(&["fr"]).await;
        let work = work.into_iter().find(|work| work.guid == step.guid);
        let mut theirs = Self {
            world,
            task,
            managed,
            step,
            roles: (role, 9),
            retries: retries.map(|call| (call, unknown_guid())).into(),
            pages: Vec::new(),
            work: work.expect("the step is not in French"),
            guids: BTreeSet::new(),
        };
        theirs.do_once().await;
        theirs.pages = theirs.second_pages().await;
        theirs.guids = ids_of(&theirs.everything().await);
        theirs
    }

    async fn second_pages(&self) -> Vec<(&'static str, String)> {
        let tasks = ListTasksRequest {
            page_size: 1,
            ..ListTasksRequest::default()
        };
        let tasks = self.world.list_tasks(tasks).await.accepted();
        let steps = ListStepsRequest {
            task: self.task.guid.clone(),
            page_size: 1,
            ..ListStepsRequest::default()
        };
        let steps = self.world.list_steps(steps).await.accepted();
        let work = ListTranslationWorkRequest {
            page_size: 1,
            ..work_into(&["fr"])
        };
        let work = self.world.list_work(work).await.accepted();
        let roles = self.world.list_roles(1, "").await.accepted();
        vec![
            ("ListTasks", tasks.next_page_token),
            ("ListSteps", steps.next_page_token),
            ("ListTranslationWork", work.next_page_token),
            ("ListRoles", roles.next_page_token),
        ]
    }

    /// Uses up the ids of their retries; the task is the one that [`Mine`] makes
    /// too.
    async fn do_once(&self) -> CreateTaskResponse {
        let step = CreateStepRequest {
            step: Some(note(&self.task, SECRET)),
            request_id: named(&self.retries, "CreateStep").to_owned(),
            ..CreateStepRequest::default()
        };
        self.world.steps().create_step(step).await.accepted();
        let import = ImportTaskRequest {
            document: Some(linked_document(SECRET)),
            request_id: named(&self.retries, "ImportTask").to_owned(),
            ..ImportTaskRequest::default()
        };
        self.world.send_import(import).await.accepted();
        let create = CreateTaskRequest {
            task: Some(task("Anybody's")),
            request_id: named(&self.retries, "CreateTask").to_owned(),
            ..CreateTaskRequest::default()
        };
        let created = self.world.tasks().create_task(create).await;
        created.accepted().into_inner()
    }

    /// Their tasks with their etags, which move on with every change of a task or
    /// its steps.
    pub async fn tasks(&self) -> Vec<Task> {
        self.world.all_tasks().await
    }

    pub async fn everything(&self) -> Everything {
        let retried = self.do_once().await;
        let tasks = self.world.everything().await;
        let mut exports = Vec::new();
        for (task, _) in &tasks {
            exports.push(self.world.exported(&task.guid).await);
        }
        Everything {
            tasks,
            exports,
            roles: self.world.list_roles(0, "").await.accepted().roles,
            work: self.world.work(&["fr", "de"]).await,
            retried,
        }
    }

    /// What to send where such a thing is named.
    pub fn ids(&self, names: Names, call: &str) -> Ids {
        let guids = |foreign: &str| Ids {
            foreign: foreign.to_owned(),
            absent: unknown_guid(),
            malformed: "no-guid".to_owned(),
            nil: uuid::Uuid::nil().to_string(),
        };
        match names {
            Names::Task => guids(&self.task.guid),
            Names::Managed => guids(&self.managed),
            Names::Step => guids(&self.step.guid),
            Names::Account => guids(self.world.account()),
            Names::Retry => guids(named(&self.retries, call)),
            Names::Role => Ids {
                foreign: self.roles.0.to_string(),
                absent: self.roles.1.to_string(),
                malformed: "-1".to_owned(),
                nil: "0".to_owned(),
            },
            Names::Page => {
                let token = named(&self.pages, call);
                let (first, rest) = token.split_at(1);
                let other = if first == "A" { "B" } else { "A" };
                Ids {
                    foreign: token.to_owned(),
                    absent: format!("{other}{rest}"),
                    malformed: "no token".to_owned(),
                    nil: "A".repeat(token.len()),
                }
            }
        }
    }

    /// Asserts that the answer says nothing of theirs but what was sent.
    pub fn is_not_in(&self, answer: &Answer, sent: &str, place: &str) {
        let text = answer.text();
        assert!(!text.contains(SECRET), "{place}: {text}");
        let account = self.world.account();
        let all = self.guids.iter().map(String::as_str).chain([account]);
        for id in all.filter(|id| *id != sent) {
            assert!(!text.contains(id), "{place}: {id} in {text}");
        }
    }
}

/// What belongs to a call such as `TaskService/CreateTask`.
fn named<'a>(list: &'a [(&'static str, String)], call: &str) -> &'a str {
    let found = list.iter().find(|(of, _)| call.ends_with(of));
    &found.expect("a call of theirs").1
}

fn ids_of(everything: &Everything) -> BTreeSet<String> {
    let tasks = everything.tasks.iter();
    tasks
        .flat_map(|(task, _)| std::iter::once(&task.guid).chain(&task.steps))
        .cloned()
        .collect()
}
