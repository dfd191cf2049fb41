//! The services on a database in memory, called within this process.

use bytes::Bytes;
use expertise::{
    auth::{Caller, Scope},
    config::DatabaseUrl,
    domain::ids::AccountId,
    grpc::{self, Limits},
    proto::v1::*,
    store::{Options, Store},
};
use prost::Message;
use tokio::runtime::Runtime;
use tonic::{Request, Response, Status, service::Routes};

use crate::kit::{
    databases::runtime,
    raw::RawCodec,
    sample::{self, answer, create_step_request, full_step, full_task, observation_asking},
    store_server::{CHANGES_RETENTION, history_options},
};

/// The most bytes of a message: mutations exceed it now and then.
pub const MESSAGE_LIMIT: usize = 1 << 20;

/// The services as one account calls them.
pub struct LocalService {
    runtime: Runtime,
    routes: Routes,
    caller: Caller,
}

/// What [`LocalService::fill`] makes.
pub struct Fixture {
    /// A task with everything that a task can have, and a revision with the alias `live`.
    pub task: Task,
    /// A task to refer to, with a revision.
    pub other: Task,
    /// A step with everything that a step can have.
    pub step: Step,
    /// A task with a linked question, and the question.
    pub guide: Task,
    pub question: Step,
    pub role: Role,
}

impl LocalService {
    /// On an empty database.
    pub fn new() -> Self {
        let runtime = runtime();
        let store = Store::open(Options {
            database: DatabaseUrl::SqliteMemory,
            migrate: true,
            max_connections: 1,
            max_message_bytes: MESSAGE_LIMIT,
            history: history_options(),
            changes_retention: CHANGES_RETENTION,
        });
        let store = runtime.block_on(store).expect("a database");
        let limits = Limits {
            max_message_bytes: MESSAGE_LIMIT,
        };
        let caller = Caller {
            account: AccountId::parse("fuzz").expect("an account"),
            subject: String::new(),
            scopes: Scope::ALL.to_vec(),
        };
        Self {
            runtime,
            routes: grpc::routes(store, limits).prepare(),
            caller,
        }
    }

    /// Sets the account of the calls.
    pub fn call_as(&mut self, account: &str) {
        self.caller.account = AccountId::parse(account).expect("an account");
    }

    /// Sends these bytes as the message of a call, for example to
    /// `TaskService/GetTask`.
    pub fn send(&self, method: &str, message: Bytes) -> Result<Bytes, Status> {
        let path = format!("/expertise.v1.{method}");
        let path = http::uri::PathAndQuery::try_from(path).expect("the path of a method");
        let mut client = tonic::client::Grpc::new(self.routes.clone());
        let mut request = Request::new(message);
        request.extensions_mut().insert(self.caller.clone());
        self.runtime.block_on(async {
            client.ready().await.expect("the services are ready");
            let answer = client.unary(request, path, RawCodec).await;
            answer.map(Response::into_inner)
        })
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
