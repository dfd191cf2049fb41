//! A client of the service that calls as one account, and the calls that most
//! tests make.

use std::net::SocketAddr;

use bytes::Bytes;
use expertise::proto::v1::{self, *};
use http::uri::PathAndQuery;
use prost::Message;
use prost_types::FieldMask;
use tonic::{
    Request, Response, Status,
    client::Grpc,
    codec::Codec,
    metadata::AsciiMetadataValue,
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use super::{
    deadline::{in_time, until},
    failure::Outcome,
    raw::RawCodec,
    sample::*,
};

/// Largest message in bytes: a body can take 64 MB.
const MESSAGE_LIMIT: usize = 72 * 1024 * 1024;

const ACCOUNT: &str = "x-account-id";
const SCOPES: &str = "x-scopes";

/// One account on one server.
#[derive(Clone, Debug)]
pub struct Client {
    server: SocketAddr,
    channel: Channel,
    metadata: Metadata,
}

/// The metadata of every call of a client.
#[derive(Clone, Debug, Default)]
pub struct Metadata(Vec<(&'static str, AsciiMetadataValue)>);

impl Interceptor for Metadata {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        for (name, value) in &self.0 {
            request.metadata_mut().append(*name, value.clone());
        }
        Ok(request)
    }
}

/// A channel whose calls carry the client's metadata.
pub type Authenticated = InterceptedService<Channel, Metadata>;

impl Client {
    /// A new account on the server.
    pub fn at(server: SocketAddr) -> Self {
        Self::over(connect(server), server).with_account(&uuid::Uuid::now_v7().to_string())
    }

    /// Calls without credentials over a channel to the server.
    pub fn over(channel: Channel, server: SocketAddr) -> Self {
        Self {
            server,
            channel,
            metadata: Metadata::default(),
        }
    }

    /// Another new account on the same server.
    pub fn other_account(&self) -> Self {
        self.with_account(&uuid::Uuid::now_v7().to_string())
    }

    /// The same server, called as this account.
    pub fn with_account(&self, account: &str) -> Self {
        self.without(ACCOUNT).with_metadata(ACCOUNT, account)
    }

    /// The same server, called without an account.
    pub fn without_credentials(&self) -> Self {
        self.without(ACCOUNT)
    }

    /// The same account with these scopes alone.
    pub fn with_scopes(&self, scopes: &str) -> Self {
        self.without(SCOPES).with_metadata(SCOPES, scopes)
    }

    /// The same with one more metadata entry.
    pub fn with_metadata(&self, name: &'static str, value: &str) -> Self {
        let mut client = self.clone();
        let value = AsciiMetadataValue::try_from(value.as_bytes()).expect("a metadata value");
        client.metadata.0.push((name, value));
        client
    }

    fn without(&self, name: &str) -> Self {
        let mut client = self.clone();
        client.metadata.0.retain(|(known, _)| *known != name);
        client
    }

    /// The same account over a new connection.
    pub fn over_new_connection(&self) -> Self {
        Self {
            channel: connect(self.server),
            ..self.clone()
        }
    }

    /// The account's id.
    pub fn account(&self) -> &str {
        let mut entries = self.metadata.0.iter();
        let account = entries.find(|(name, _)| *name == ACCOUNT);
        account
            .and_then(|(_, value)| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.server
    }

    /// The connection, without credentials.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The connection, with credentials.
    pub fn authenticated(&self) -> Authenticated {
        InterceptedService::new(self.channel.clone(), self.metadata.clone())
    }

    /// Sends these bytes as the message of a call, such as `TaskService/GetTask`.
    pub async fn send_bytes(&self, call: &str, message: Bytes) -> Result<Bytes, Status> {
        self.send_request(call, Request::new(message)).await
    }

    /// The same with metadata of its own.
    pub async fn send_request(&self, call: &str, request: Request<Bytes>) -> Result<Bytes, Status> {
        let path = format!("/expertise.v1.{call}");
        let path = PathAndQuery::try_from(path).expect("the path of a call");
        in_time("an answer", self.unary(request, path, RawCodec)).await
    }

    async fn unary<C: Codec>(
        &self,
        request: Request<C::Encode>,
        path: PathAndQuery,
        codec: C,
    ) -> Result<C::Decode, Status>
    where
        C::Encode: Sync,
        C::Decode: Sync,
    {
        let mut client = Grpc::new(self.authenticated())
            .max_encoding_message_size(usize::MAX)
            .max_decoding_message_size(MESSAGE_LIMIT);
        let ready = client.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        let response = client.unary(request, path, codec).await;
        response.map(Response::into_inner)
    }
}

/// Calls with all of their request.
impl Client {
    pub async fn call<R: RpcRequest>(&self, request: R) -> Answer<R> {
        self.send(Request::new(request)).await
    }

    /// The same with a time limit or metadata of its own.
    pub async fn send<R: RpcRequest>(&self, request: Request<R>) -> Answer<R> {
        let path = PathAndQuery::from_static(R::PATH);
        self.unary(request, path, ProstCodec::default()).await
    }

    /// All pages of a list, after the token of the request; panics on an error.
    pub async fn pages<R: PageRequest>(&self, mut request: R) -> Vec<R::Response> {
        let mut pages = Vec::new();
        loop {
            let page = self.call(request.clone()).await.expect("a page");
            request.set_page_token(R::next_page_token(&page).to_owned());
            let is_last = R::next_page_token(&page).is_empty();
            pages.push(page);
            if is_last {
                return pages;
            }
        }
    }

    /// The items of all pages.
    pub async fn list<R: List>(&self, request: R) -> Vec<R::Item> {
        let pages = self.pages(request).await.into_iter();
        pages.flat_map(R::items).collect()
    }
}

/// Tasks. What returns no `Answer` panics on an error.
impl Client {
    pub async fn create_task(&self, task: Task) -> Answer<CreateTaskRequest> {
        self.call(create_task_request(task)).await
    }

    pub async fn given_task(&self, task: Task) -> Task {
        let response = self.create_task(task).await.accepted();
        response.task.expect("the response holds the task")
    }

    pub async fn get_task(&self, guid: &str) -> Result<Task, Status> {
        let guid = guid.to_owned();
        let response = self.call(GetTaskRequest { guid }).await?;
        Ok(response.task.expect("the response's task"))
    }

    /// An empty `mask` sends no mask.
    pub async fn update_task(&self, task: Task, mask: &[&str]) -> Answer<UpdateTaskRequest> {
        self.call(UpdateTaskRequest {
            task: Some(task),
            update_mask: field_mask(mask),
            validate_only: false,
        })
        .await
    }

    pub async fn updated_task(&self, task: Task, mask: &[&str]) -> Task {
        let response = self.update_task(task, mask).await.accepted();
        response.task.expect("the response holds the task")
    }

    pub async fn rename(&self, guid: &str, name: impl Into<String>) -> Task {
        self.updated_task(task_of(guid).named(name), &["name"])
            .await
    }

    /// Every task of the account.
    pub async fn all_tasks(&self) -> Vec<Task> {
        self.list(ListTasksRequest::default()).await
    }

    /// Every task of the account with its steps, bodies included, from lists.
    pub async fn tasks_with_steps(&self) -> Vec<(Task, Vec<Step>)> {
        let tasks = self.all_tasks().await;
        let steps = tasks.iter().map(|task| self.steps_with_bodies(&task.guid));
        let steps = futures_util::future::join_all(steps).await;
        tasks.into_iter().zip(steps).collect()
    }
}

/// Documents.
impl Client {
    pub async fn import(&self, document: TaskDocument) -> Answer<ImportTaskRequest> {
        self.call(import_of(document)).await
    }

    pub async fn imported(&self, document: TaskDocument) -> Task {
        let response = self.import(document).await.accepted();
        response.task.expect("the response holds the task")
    }

    pub async fn export(&self, guid: &str) -> Answer<ExportTaskRequest> {
        let guid = guid.to_owned();
        self.call(ExportTaskRequest { guid }).await
    }

    pub async fn exported(&self, guid: &str) -> TaskDocument {
        let response = self.export(guid).await.accepted();
        response.document.expect("the response's document")
    }
}

/// Steps.
impl Client {
    /// Appends the step.
    pub async fn create_step(&self, step: Step) -> Answer<CreateStepRequest> {
        self.create_step_after(step, "").await
    }

    pub async fn create_step_after(&self, step: Step, prevstep: &str) -> Answer<CreateStepRequest> {
        self.call(create_step_request(step).with(|it| it.prevstep = prevstep.to_owned()))
            .await
    }

    /// Appends the step.
    pub async fn given_step(&self, step: Step) -> Step {
        let response = self.create_step(step).await.accepted();
        response.step.expect("the response holds the step")
    }

    pub async fn get_step(&self, guid: &str) -> Result<Step, Status> {
        let guid = guid.to_owned();
        let response = self.call(GetStepRequest { guid }).await?;
        Ok(response.step.expect("the response's step"))
    }

    /// An empty `mask` sends no mask.
    pub async fn update_step(&self, step: Step, mask: &[&str]) -> Answer<UpdateStepRequest> {
        self.call(UpdateStepRequest {
            step: Some(step),
            update_mask: field_mask(mask),
            validate_only: false,
        })
        .await
    }

    pub async fn updated_step(&self, step: Step, mask: &[&str]) -> Step {
        let response = self.update_step(step, mask).await.accepted();
        response.step.expect("the response holds the step")
    }

    /// Every step of the task, in pages of this size.
    pub async fn steps_of(&self, task: &str, page_size: i32) -> Vec<Step> {
        let request = list_steps_of(task);
        self.list(request.with(|it| it.page_size = page_size)).await
    }

    /// Every step of the task, bodies included.
    pub async fn steps_with_bodies(&self, task: &str) -> Vec<Step> {
        let request = list_steps_of(task).with(|it| it.page_size = 500);
        self.list(request.with(|it| it.expand = vec!["body".to_owned()]))
            .await
    }

    /// The titles of the task's steps in their order.
    pub async fn step_titles(&self, task: &str) -> Vec<String> {
        let steps = self.steps_of(task, 0).await;
        steps.into_iter().map(|step| step.title).collect()
    }

    /// The ids of the task's steps in their order, from GetTask.
    pub async fn step_order(&self, task: &str) -> Vec<String> {
        self.get_task(task).await.expect("the task").steps
    }
}

/// Revisions.
impl Client {
    /// Keeps the guide of a task.
    pub async fn kept_revision(&self, task: &str) -> TaskRevision {
        let response = self.call(revision_of(task)).await.accepted();
        response.revision.expect("the response's revision")
    }

    pub async fn get_revision(
        &self,
        task: &str,
        revision: impl ToString,
    ) -> Answer<GetRevisionRequest> {
        self.call(GetRevisionRequest {
            task: task.to_owned(),
            revision: revision.to_string(),
            without_document: false,
        })
        .await
    }
}

/// Roles.
impl Client {
    pub async fn list_roles(&self, page_size: i32, page_token: &str) -> Answer<ListRolesRequest> {
        let page_token = page_token.to_owned();
        self.call(ListRolesRequest {
            page_size,
            page_token,
        })
        .await
    }
}

/// Automatic translations.
impl Client {
    pub async fn write_translations(
        &self,
        translations: Vec<AutomaticTranslation>,
    ) -> Answer<WriteTranslationsRequest> {
        self.call(WriteTranslationsRequest { translations }).await
    }
}

/// A request of a call.
pub trait RpcRequest: Message + Clone + Default + 'static {
    type Response: Message + Default + 'static;
    /// The path of the method.
    const PATH: &'static str;
}

/// The result of a call.
pub type Answer<R> = Result<<R as RpcRequest>::Response, Status>;

/// A request for a page.
pub trait PageRequest: RpcRequest {
    fn set_page_token(&mut self, token: String);
    fn next_page_token(page: &Self::Response) -> &str;
}

include!(concat!(env!("OUT_DIR"), "/calls.rs"));

/// A request for a page of items.
pub trait List: PageRequest {
    type Item;
    fn items(page: Self::Response) -> Vec<Self::Item>;
}

macro_rules! lists {
    ($($request:ident.$items:ident: $item:ident;)+) => {$(
        impl List for $request {
            type Item = $item;

            fn items(page: Self::Response) -> Vec<$item> {
                page.$items
            }
        }
    )+};
}

lists! {
    ListTasksRequest.tasks: Task;
    ListStepsRequest.steps: Step;
    ListRevisionsRequest.revisions: TaskRevision;
    ListDeletedStepsRequest.steps: DeletedStep;
    ListDeletedTasksRequest.tasks: DeletedTask;
    ListIndexWorkRequest.work: IndexWork;
    ListReferencesRequest.references: Reference;
    ListTranslationWorkRequest.work: TranslationWork;
}

/// A valid id that no resource has.
pub fn unknown_guid() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// The mask of these paths; `None` if there are none.
pub fn field_mask(paths: &[&str]) -> Option<FieldMask> {
    (!paths.is_empty()).then(|| FieldMask {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    })
}

/// A connection to the server, made at the first call.
pub fn connect(server: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{server}"))
        .expect("the server's address")
        .connect_lazy()
}
