//! A server on a database in memory.

use bytes::Bytes;
use expertise::proto::v1::*;
use prost::Message;
use tokio::runtime::Runtime;
use tonic::Status;

use crate::kit::{
    client::Client,
    databases::runtime,
    sample::{self, answer, create_step_request, full_step, full_task, observation_asking},
    server::{TestServer, in_memory},
};

/// The most bytes of a message: mutations exceed it now and then.
pub const MESSAGE_LIMIT: usize = 1 << 20;

/// A server that one account calls.
pub struct LocalService {
    runtime: Runtime,
    server: TestServer,
    client: Client,
}

/// What [`LocalService::fill`] makes.
pub struct Fixture {
    /// A task with everything that a task can have, and a revision with the alias `live`.
    pub task: Task,
    /// A task to refer to, with a revision.
    pub other: Task,
    /// A step with everything that a step can have.
    pub step: Step,
    /// A step that was deleted.
    pub deleted: Step,
    /// A task with a linked question, and the question.
    pub guide: Task,
    pub question: Step,
    pub role: Role,
}

impl LocalService {
    /// On an empty database.
    pub fn new() -> Self {
        let settings = in_memory()
            .set("EXPERTISE_MAX_MESSAGE_BYTES", MESSAGE_LIMIT)
            .set("EXPERTISE_LOG", "error");
        let (runtime, server) = (runtime(), TestServer::start_blocking(&settings));
        let client = runtime.block_on(async { Client::at(server.address()) });
        Self {
            runtime,
            server,
            client,
        }
    }

    /// Sets the account of the calls.
    pub fn call_as(&mut self, account: &str) {
        self.client = self.client.with_account(account);
    }

    /// What the server has logged, which is nothing unless something failed in it.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// Sends these bytes as the message of a call, for example to
    /// `TaskService/GetTask`.
    pub fn send(&self, method: &str, message: Bytes) -> Result<Bytes, Status> {
        self.runtime
            .block_on(self.client.send_bytes(method, message))
    }

    /// The same with messages.
    pub fn call<T: Message + Default>(
        &self,
        method: &str,
        request: &impl Message,
    ) -> Result<T, Status> {
        let answer = self.send(method, request.encode_to_vec().into())?;
        Ok(T::decode(answer).expect("an answer is its message"))
    }

    /// Fills the account.
    pub fn fill(&self) -> Fixture {
        let task = self.made(full_task());
        let other = self.made(Task {
            name: "Other".to_owned(),
            product_id: Some(7),
            ..Task::default()
        });
        let mut step = full_step(&task);
        step.set_type(StepType::Solution);
        let request = create_step_request(step);
        let created: CreateStepResponse = self.call("StepService/CreateStep", &request).unwrap();
        let request = create_step_request(sample::information_step(&task, "Deleted"));
        let deleted: CreateStepResponse = self.call("StepService/CreateStep", &request).unwrap();
        let deleted = deleted.step.expect("a step");
        let request = DeleteStepRequest {
            guid: deleted.guid.clone(),
            ..DeleteStepRequest::default()
        };
        let _: DeleteStepResponse = self.call("StepService/DeleteStep", &request).unwrap();
        let request = ImportTaskRequest {
            document: Some(linked_document()),
            ..ImportTaskRequest::default()
        };
        let imported: ImportTaskResponse = self.call("TaskService/ImportTask", &request).unwrap();
        let guide = imported.task.expect("a task");
        let guid = guide.steps[0].clone();
        let question = self.call("StepService/GetStep", &GetStepRequest { guid });
        let question: GetStepResponse = question.unwrap();
        let role = Role {
            name: "Technician".to_owned(),
            ..Role::default()
        };
        let request = CreateRoleRequest { role: Some(role) };
        let role: CreateRoleResponse = self.call("RoleService/CreateRole", &request).unwrap();
        for (guid, alias) in [(&task.guid, "live"), (&other.guid, "")] {
            let request = CreateRevisionRequest {
                task: guid.clone(),
                alias: alias.to_owned(),
                ..CreateRevisionRequest::default()
            };
            let kept = self.call("RevisionService/CreateRevision", &request);
            let _: CreateRevisionResponse = kept.unwrap();
        }
        let guid = task.guid;
        let task = self.call("TaskService/GetTask", &GetTaskRequest { guid });
        let task: GetTaskResponse = task.unwrap();
        Fixture {
            task: task.task.expect("a task"),
            other,
            step: created.step.expect("a step"),
            deleted,
            guide,
            question: question.step.expect("a step"),
            role: role.role.expect("a role"),
        }
    }

    fn made(&self, task: Task) -> Task {
        let request = CreateTaskRequest {
            task: Some(task),
            ..CreateTaskRequest::default()
        };
        let created: CreateTaskResponse = self.call("TaskService/CreateTask", &request).unwrap();
        created.task.expect("a task")
    }
}

fn question(linked: bool) -> FeedbackConfig {
    FeedbackConfig {
        linked: Some(linked),
        values: vec![answer("on", "Yes"), answer("off", "No")],
        ..sample::question("lamp", &[])
    }
}

fn linked_document() -> TaskDocument {
    let step = Step {
        title: "Is the lamp lit?".to_owned(),
        ..observation_asking(question(true))
    };
    TaskDocument {
        task: Some(full_task()),
        steps: vec![step],
    }
}
