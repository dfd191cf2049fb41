//! Two accounts: one calls and names resources of the other.

use std::collections::BTreeSet;

use super::{reference_fields::Names, response::CallResult};
use crate::kit::prelude::*;

/// The names and titles of the other account's resources, which no other account has.
const SECRET: &str = "sealed7ledger";
/// The alias of a revision of the other account alone.
const SECRET_ALIAS: &str = "sealed7alias";
/// The external id of a task of the other account alone.
const SECRET_ID: &str = "sealed7external";

/// The account that calls.
pub struct CallingAccount {
    pub client: Client,
    /// A task with an observation and a subtask step.
    pub task: Task,
    pub observation: Step,
    pub subtask: Step,
    /// A task with a linked observation, as exported.
    pub document: TaskDocument,
    /// What there is to translate of the observation.
    pub work: TranslationWork,
}

impl CallingAccount {
    /// Creates the resources in the client's account: the same for each account that calls.
    pub async fn with_resources(client: &Client) -> Self {
        let task = client.given_task(task("Mine")).await;
        let observation = client.given_step(full_step(&task)).await;
        let subtask = client.given_step(subtask(&task, &task)).await;
        let imported = client.imported(linked_document("Mine, linked")).await;
        let document = client.exported(&imported.guid).await;
        let work = client.translation_work(&["fr"]).await;
        let work = work.into_iter().find(|work| work.guid == observation.guid);
        client.kept_revision(&task.guid).await;
        Self {
            client: client.clone(),
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
    let inner = document(name, vec![document_step(StepType::Information, name)]);
    let values = vec![answer_with("first", name, inner), answer("second", name)];
    document(name, vec![observation_asking(linked_question(values))])
}

/// The account whose resources are named.
pub struct OtherAccount {
    client: Client,
    pub task: Task,
    managed: String,
    step: Step,
    /// The id of a role, and an id that no role has.
    roles: (i64, i64),
    /// Request ids that the other account has used.
    retries: Vec<(&'static str, String)>,
    /// Where its changes end.
    cursor: String,
    pub work: TranslationWork,
    /// Every id in the other account.
    guids: BTreeSet<String>,
}

/// Ids to send, all of one length but for the malformed one.
pub struct Ids {
    pub foreign: String,
    pub absent: String,
    pub malformed: String,
    pub nil: String,
}

/// Everything that an account can read.
#[derive(Debug, PartialEq)]
pub struct AccountContents {
    tasks: Vec<(Task, Vec<Step>)>,
    exports: Vec<TaskDocument>,
    roles: Vec<Role>,
    work: Vec<TranslationWork>,
    revisions: Vec<TaskRevision>,
    deleted: Vec<DeletedTask>,
    /// The response to a repeated request id.
    retried: CreateTaskResponse,
}

impl OtherAccount {
    pub async fn with_resources(client: &Client) -> Self {
        let client = client.other_account();
        let task = full_task().named(SECRET).with_external_id(SECRET_ID);
        let task = client.given_task(task).await;
        let step = full_step(&task).titled(SECRET).with_body(SECRET);
        let step = client.given_step(step).await;
        client.given_step(subtask(&task, &task)).await;
        let linked = client.imported(linked_document(SECRET)).await;
        let exported = client.exported(&linked.guid).await;
        let managed = answers_of(&exported.steps[0])[0].link.clone();
        // The second one has an id that a first role of the caller has not.
        client.given_role(SECRET).await;
        let role = client.given_role(SECRET).await.id;
        let retries = [
            "CreateTask",
            "CreateStep",
            "ImportTask",
            "CreateRevision",
            "RestoreRevision",
        ];
        let deleted = client.given_task(crate::kit::sample::task(SECRET)).await;
        client.delete_task(&deleted.guid).await.accepted();
        let work = client.translation_work(&["fr"]).await;
        let work = work.into_iter().find(|work| work.guid == step.guid);
        let mut other = Self {
            client,
            task,
            managed,
            step,
            roles: (role, 9),
            retries: retries.map(|call| (call, unknown_guid())).into(),
            cursor: String::new(),
            work: work.expect("the step is not in French"),
            guids: BTreeSet::new(),
        };
        other.client.kept_revision(&other.task.guid).await;
        other.send_retries().await;
        other.cursor = other.client.cursor_now().await;
        other.guids = ids_of(&other.contents().await);
        other
    }

    /// Sends the requests with its request ids. The task equals the one that the calling
    /// account creates.
    async fn send_retries(&self) -> CreateTaskResponse {
        let step = CreateStepRequest {
            step: Some(information_step(&self.task, SECRET)),
            request_id: named(&self.retries, "CreateStep").to_owned(),
            ..CreateStepRequest::default()
        };
        self.client.send_create_step(step).await.accepted();
        let import = ImportTaskRequest {
            document: Some(linked_document(SECRET)),
            request_id: named(&self.retries, "ImportTask").to_owned(),
            ..ImportTaskRequest::default()
        };
        self.client.send_import(import).await.accepted();
        let create = CreateRevisionRequest {
            task: self.task.guid.clone(),
            alias: SECRET_ALIAS.to_owned(),
            request_id: named(&self.retries, "CreateRevision").to_owned(),
            ..CreateRevisionRequest::default()
        };
        self.client.create_revision(create).await.accepted();
        let restore = RestoreRevisionRequest {
            task: self.task.guid.clone(),
            revision: SECRET_ALIAS.to_owned(),
            request_id: named(&self.retries, "RestoreRevision").to_owned(),
            ..RestoreRevisionRequest::default()
        };
        self.client.send_restore(restore).await.accepted();
        let create = CreateTaskRequest {
            task: Some(task("Anybody's")),
            request_id: named(&self.retries, "CreateTask").to_owned(),
            ..CreateTaskRequest::default()
        };
        self.client.send_create_task(create).await.accepted()
    }

    /// The other account's tasks, whose etags show every change of them and of their
    /// steps.
    pub async fn tasks(&self) -> Vec<Task> {
        self.client.all_tasks().await
    }

    pub async fn contents(&self) -> AccountContents {
        let retried = self.send_retries().await;
        let tasks = self.client.tasks_with_steps().await;
        let mut exports = Vec::new();
        for (task, _) in &tasks {
            exports.push(self.client.exported(&task.guid).await);
        }
        let deleted = ListDeletedTasksRequest::default();
        let deleted = self.client.list_deleted_tasks(deleted).await;
        AccountContents {
            revisions: self.client.all_revisions(&self.task.guid).await,
            deleted: deleted.accepted().tasks,
            tasks,
            exports,
            roles: self.client.list_roles(0, "").await.accepted().roles,
            work: self.client.translation_work(&["fr", "de"]).await,
            retried,
        }
    }

    /// Ids to send in a field that names such a resource.
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
            Names::Account => guids(self.client.account()),
            Names::Retry => guids(named(&self.retries, call)),
            Names::Role => Ids {
                foreign: self.roles.0.to_string(),
                absent: self.roles.1.to_string(),
                malformed: "-1".to_owned(),
                nil: "0".to_owned(),
            },
            Names::Cursor => {
                let (first, rest) = self.cursor.split_at(1);
                let other = if first == "A" { "B" } else { "A" };
                Ids {
                    foreign: self.cursor.clone(),
                    absent: format!("{other}{rest}"),
                    malformed: "no cursor".to_owned(),
                    nil: "A".repeat(self.cursor.len()),
                }
            }
            Names::ExternalId => Ids {
                foreign: SECRET_ID.to_owned(),
                absent: "absent7external".to_owned(),
                malformed: " no id".to_owned(),
                nil: "zzzzzzzzzzzzzzz".to_owned(),
            },
            Names::Revision => Ids {
                foreign: SECRET_ALIAS.to_owned(),
                absent: "absent7alias".to_owned(),
                malformed: "no alias".to_owned(),
                nil: "zzzzzzzzzzzz".to_owned(),
            },
        }
    }

    /// Asserts that the response holds nothing of the other account but the id that was
    /// sent.
    pub fn assert_not_in(&self, answer: &CallResult, sent: &str, place: &str) {
        let text = answer.text();
        assert!(!text.contains(SECRET), "{place}: {text}");
        let account = self.client.account();
        let all = self.guids.iter().map(String::as_str).chain([account]);
        for id in all.filter(|id| *id != sent) {
            assert!(!text.contains(id), "{place}: {id} in {text}");
        }
    }
}

/// The text of the list for a call such as `TaskService/CreateTask`.
fn named<'a>(list: &'a [(&'static str, String)], call: &str) -> &'a str {
    let found = list.iter().find(|(of, _)| call.ends_with(of));
    &found.expect("a call of the other account").1
}

fn ids_of(contents: &AccountContents) -> BTreeSet<String> {
    let tasks = contents.tasks.iter();
    tasks
        .flat_map(|(task, _)| std::iter::once(&task.guid).chain(&task.steps))
        .cloned()
        .collect()
}
