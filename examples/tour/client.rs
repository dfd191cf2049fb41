//! The generated clients on one connection, for one account.

use std::net::SocketAddr;

use anyhow::Context;
use expertise::proto::v1::{
    CreateStepRequest, CreateStepResponse, CreateTaskRequest, CreateTaskResponse,
    DeleteTaskRequest, ExportTaskRequest, GetStepRequest, GetTaskRequest, ImportTaskRequest,
    ImportTaskResponse, ListStepsRequest, ListStepsResponse, ListTasksRequest, ListTasksResponse,
    Step, Task, TaskDocument, UpdateStepRequest, UpdateStepResponse, UpdateTaskRequest,
    UpdateTaskResponse, step_service_client::StepServiceClient,
    task_service_client::TaskServiceClient,
};
use prost_types::FieldMask;
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};

type AccountChannel = InterceptedService<Channel, Account>;

/// Adds the account to the metadata of every call.
#[derive(Clone)]
struct Account(MetadataValue<Ascii>);

impl Interceptor for Account {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let Self(account) = self;
        request
            .metadata_mut()
            .insert("x-account-id", account.clone());
        Ok(request)
    }
}

/// The clients of one account.
#[derive(Clone)]
pub struct Client {
    tasks: TaskServiceClient<AccountChannel>,
    steps: StepServiceClient<AccountChannel>,
}

impl Client {
    pub async fn open(server: SocketAddr, account: &'static str) -> anyhow::Result<Self> {
        let channel = Endpoint::from_shared(format!("http://{server}"))?
            .connect()
            .await?;
        let account = Account(MetadataValue::from_static(account));
        Ok(Self {
            tasks: TaskServiceClient::with_interceptor(channel.clone(), account.clone()),
            steps: StepServiceClient::with_interceptor(channel, account),
        })
    }

    pub async fn import_task(
        &self,
        request: ImportTaskRequest,
    ) -> Result<ImportTaskResponse, Status> {
        Ok(self.tasks.clone().import_task(request).await?.into_inner())
    }

    /// A task with all its steps.
    pub async fn export_task(&self, guid: &str) -> Result<TaskDocument, Status> {
        let guid = guid.to_owned();
        let response = self
            .tasks
            .clone()
            .export_task(ExportTaskRequest { guid })
            .await?;
        resource(response.into_inner().document)
    }

    pub async fn create_task(
        &self,
        request: CreateTaskRequest,
    ) -> Result<CreateTaskResponse, Status> {
        Ok(self.tasks.clone().create_task(request).await?.into_inner())
    }

    pub async fn update_task(
        &self,
        request: UpdateTaskRequest,
    ) -> Result<UpdateTaskResponse, Status> {
        Ok(self.tasks.clone().update_task(request).await?.into_inner())
    }

    pub async fn list_tasks(&self, request: ListTasksRequest) -> Result<ListTasksResponse, Status> {
        Ok(self.tasks.clone().list_tasks(request).await?.into_inner())
    }

    pub async fn delete_task(&self, guid: &str, force: bool) -> Result<(), Status> {
        let request = DeleteTaskRequest {
            guid: guid.to_owned(),
            etag: String::new(),
            force,
            purge_history: false,
        };
        self.tasks.clone().delete_task(request).await?;
        Ok(())
    }

    pub async fn task(&self, guid: &str) -> Result<Task, Status> {
        let guid = guid.to_owned();
        let response = self.tasks.clone().get_task(GetTaskRequest { guid }).await?;
        resource(response.into_inner().task)
    }

    pub async fn create_step(
        &self,
        request: CreateStepRequest,
    ) -> Result<CreateStepResponse, Status> {
        Ok(self.steps.clone().create_step(request).await?.into_inner())
    }

    pub async fn update_step(
        &self,
        request: UpdateStepRequest,
    ) -> Result<UpdateStepResponse, Status> {
        Ok(self.steps.clone().update_step(request).await?.into_inner())
    }

    pub async fn list_steps(&self, request: ListStepsRequest) -> Result<ListStepsResponse, Status> {
        Ok(self.steps.clone().list_steps(request).await?.into_inner())
    }

    pub async fn step(&self, guid: &str) -> Result<Step, Status> {
        let guid = guid.to_owned();
        let response = self.steps.clone().get_step(GetStepRequest { guid }).await?;
        resource(response.into_inner().step)
    }

    /// The steps of a task without bodies, at most 500.
    pub async fn steps(&self, task: &str) -> Result<Vec<Step>, Status> {
        let request = ListStepsRequest {
            task: task.to_owned(),
            page_size: 500,
            ..ListStepsRequest::default()
        };
        Ok(self.list_steps(request).await?.steps)
    }

    /// A step of a task by its title, with its body.
    pub async fn step_titled(&self, task: &str, title: &str) -> anyhow::Result<Step> {
        let steps = self.steps(task).await?;
        let found = steps.into_iter().find(|step| step.title == title);
        let found = found.with_context(|| format!("no step is titled {title:?}"))?;
        Ok(self.step(&found.guid).await?)
    }
}

/// Takes the resource out of a response. The contract guarantees that each has one.
pub fn resource<T>(resource: Option<T>) -> Result<T, Status> {
    resource.ok_or_else(|| Status::internal("the response lacks its resource"))
}

/// An update mask.
pub fn mask(paths: &[&str]) -> Option<FieldMask> {
    let paths = paths.iter().map(|&path| path.to_owned()).collect();
    Some(FieldMask { paths })
}
