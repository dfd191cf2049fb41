//! A client of the service that calls as one account, and the calls that most
//! tests make.

use std::net::SocketAddr;

use bytes::Bytes;
use expertise::proto::v1::{
    analysis_service_client::AnalysisServiceClient, change_service_client::ChangeServiceClient,
    index_service_client::IndexServiceClient, revision_service_client::RevisionServiceClient,
    role_service_client::RoleServiceClient, step_service_client::StepServiceClient,
    task_service_client::TaskServiceClient, translation_service_client::TranslationServiceClient,
    *,
};
use prost_types::FieldMask;
use tonic::{
    Request, Response, Status,
    metadata::AsciiMetadataValue,
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};

use super::{
    deadline::{in_time, until},
    raw::RawCodec,
    sample,
};

/// Largest message in bytes: a body can take 64 MB.
const MESSAGE_LIMIT: usize = 72 * 1024 * 1024;

const ACCOUNT: &str = "x-account-id";
const SCOPES: &str = "x-scopes";

/// Steps after which no place is left behind the step that [`Client::nearly_full`] returns.
pub const INSERTS_UNTIL_RENUMBERED: usize = 60;

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
        let path = http::uri::PathAndQuery::try_from(path).expect("the path of a call");
        let mut client = tonic::client::Grpc::new(self.authenticated())
            .max_encoding_message_size(usize::MAX)
            .max_decoding_message_size(MESSAGE_LIMIT);
        let ready = client.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        let response = in_time("an answer", client.unary(request, path, RawCodec)).await;
        response.map(Response::into_inner)
    }
}

/// The client of each service.
macro_rules! services {
    ($($service:ident: $client:ident $(.$limit:ident)*;)+) => {
        impl Client {$(
            pub fn $service(&self) -> $client<Authenticated> {
                $client::new(self.authenticated())$(.$limit(MESSAGE_LIMIT))*
            }
        )+}
    };
}

services! {
    tasks: TaskServiceClient.max_decoding_message_size.max_encoding_message_size;
    steps: StepServiceClient.max_decoding_message_size.max_encoding_message_size;
    revisions: RevisionServiceClient.max_decoding_message_size.max_encoding_message_size;
    changes: ChangeServiceClient;
    index: IndexServiceClient;
    roles: RoleServiceClient;
    translations: TranslationServiceClient.max_decoding_message_size.max_encoding_message_size;
    analysis: AnalysisServiceClient.max_decoding_message_size.max_encoding_message_size;
}

/// Calls with all of their request.
macro_rules! calls {
    ($($name:ident: $service:ident.$call:ident($request:ident) -> $response:ident;)+) => {
        impl Client {$(
            pub async fn $name(&self, request: $request) -> Result<$response, Status> {
                self.$service().$call(request).await.map(inner)
            }
        )+}
    };
}

calls! {
    send_create_task: tasks.create_task(CreateTaskRequest) -> CreateTaskResponse;
    send_update_task: tasks.update_task(UpdateTaskRequest) -> UpdateTaskResponse;
    send_delete_task: tasks.delete_task(DeleteTaskRequest) -> DeleteTaskResponse;
    send_import: tasks.import_task(ImportTaskRequest) -> ImportTaskResponse;
    send_export: tasks.export_task(ExportTaskRequest) -> ExportTaskResponse;
    list_tasks: tasks.list_tasks(ListTasksRequest) -> ListTasksResponse;
    send_create_step: steps.create_step(CreateStepRequest) -> CreateStepResponse;
    send_update_step: steps.update_step(UpdateStepRequest) -> UpdateStepResponse;
    send_delete_step: steps.delete_step(DeleteStepRequest) -> DeleteStepResponse;
    list_steps: steps.list_steps(ListStepsRequest) -> ListStepsResponse;
    list_deleted_steps: steps.list_deleted_steps(ListDeletedStepsRequest) -> ListDeletedStepsResponse;
    send_restore_step: steps.restore_step(RestoreStepRequest) -> RestoreStepResponse;
    create_revision: revisions.create_revision(CreateRevisionRequest) -> CreateRevisionResponse;
    send_get_revision: revisions.get_revision(GetRevisionRequest) -> GetRevisionResponse;
    list_revisions: revisions.list_revisions(ListRevisionsRequest) -> ListRevisionsResponse;
    send_compare: revisions.compare_revisions(CompareRevisionsRequest) -> CompareRevisionsResponse;
    send_restore: revisions.restore_revision(RestoreRevisionRequest) -> RestoreRevisionResponse;
    delete_revision: revisions.delete_revision(DeleteRevisionRequest) -> DeleteRevisionResponse;
    list_deleted_tasks: revisions.list_deleted_tasks(ListDeletedTasksRequest) -> ListDeletedTasksResponse;
    list_changes: changes.list_changes(ListChangesRequest) -> ListChangesResponse;
    list_index_work: index.list_index_work(ListIndexWorkRequest) -> ListIndexWorkResponse;
    acknowledge_indexed: index.acknowledge_indexed(AcknowledgeIndexedRequest) -> AcknowledgeIndexedResponse;
    list_translation_work: translations.list_translation_work(ListTranslationWorkRequest) -> ListTranslationWorkResponse;
    list_references: analysis.list_references(ListReferencesRequest) -> ListReferencesResponse;
    preview: analysis.preview_task(PreviewTaskRequest) -> PreviewTaskResponse;
    validate: analysis.validate_task(ValidateTaskRequest) -> ValidateTaskResponse;
    findings: analysis.list_findings(ListFindingsRequest) -> ListFindingsResponse;
}

/// Lists to their end: what is on all pages of the request, after its token. They panic on an error.
macro_rules! lists {
    ($($name:ident: $call:ident($request:ident).$items:ident -> $item:ident;)+) => {
        impl Client {$(
            pub async fn $name(&self, mut request: $request) -> Vec<$item> {
                let mut items = Vec::new();
                loop {
                    let page = self.$call(request.clone()).await.expect("a page");
                    items.extend(page.$items);
                    if page.next_page_token.is_empty() {
                        return items;
                    }
                    request.page_token = page.next_page_token;
                }
            }
        )+}
    };
}

lists! {
    list_all_tasks: list_tasks(ListTasksRequest).tasks -> Task;
    list_all_steps: list_steps(ListStepsRequest).steps -> Step;
    list_all_revisions: list_revisions(ListRevisionsRequest).revisions -> TaskRevision;
    list_all_deleted_steps: list_deleted_steps(ListDeletedStepsRequest).steps -> DeletedStep;
    list_all_deleted_tasks: list_deleted_tasks(ListDeletedTasksRequest).tasks -> DeletedTask;
    list_all_index_work: list_index_work(ListIndexWorkRequest).work -> IndexWork;
    references: list_references(ListReferencesRequest).references -> Reference;
    all_translation_work: list_translation_work(ListTranslationWorkRequest).work -> TranslationWork;
}

/// Tasks.
impl Client {
    pub async fn create_task(&self, task: Task) -> Result<CreateTaskResponse, Status> {
        let request = CreateTaskRequest {
            task: Some(task),
            ..CreateTaskRequest::default()
        };
        self.send_create_task(request).await
    }

    /// Creates the task; panics on an error.
    pub async fn given_task(&self, task: Task) -> Task {
        let response = self.create_task(task).await.expect("the task is created");
        response.task.expect("the response holds the task")
    }

    pub async fn get_task(&self, guid: &str) -> Result<Task, Status> {
        let guid = guid.to_owned();
        let response = self.tasks().get_task(GetTaskRequest { guid }).await?;
        Ok(response.into_inner().task.expect("the response's task"))
    }

    /// An empty `mask` sends no mask.
    pub async fn update_task(
        &self,
        task: Task,
        mask: &[&str],
    ) -> Result<UpdateTaskResponse, Status> {
        let request = UpdateTaskRequest {
            task: Some(task),
            update_mask: field_mask(mask),
            validate_only: false,
        };
        self.send_update_task(request).await
    }

    /// Updates the task; panics on an error.
    pub async fn updated_task(&self, task: Task, mask: &[&str]) -> Task {
        let response = self.update_task(task, mask).await;
        let response = response.expect("the task is updated");
        response.task.expect("the response holds the task")
    }

    pub async fn delete_task(&self, guid: &str) -> Result<DeleteTaskResponse, Status> {
        let request = DeleteTaskRequest {
            guid: guid.to_owned(),
            ..DeleteTaskRequest::default()
        };
        self.send_delete_task(request).await
    }

    /// Deletes the task with its steps.
    pub async fn force_delete_task(&self, guid: &str) -> Result<DeleteTaskResponse, Status> {
        let request = DeleteTaskRequest {
            guid: guid.to_owned(),
            force: true,
            ..DeleteTaskRequest::default()
        };
        self.send_delete_task(request).await
    }

    /// Every task of the account.
    pub async fn all_tasks(&self) -> Vec<Task> {
        self.list_all_tasks(ListTasksRequest {
            page_size: 500,
            ..ListTasksRequest::default()
        })
        .await
    }
}

/// Deleted steps.
impl Client {
    /// The deleted steps of a task; panics on an error.
    pub async fn deleted_steps(&self, task: &str) -> Vec<DeletedStep> {
        self.list_all_deleted_steps(ListDeletedStepsRequest {
            task: task.to_owned(),
            ..ListDeletedStepsRequest::default()
        })
        .await
    }

    pub async fn restore_step(&self, guid: &str) -> Result<RestoreStepResponse, Status> {
        let guid = guid.to_owned();
        self.send_restore_step(RestoreStepRequest { guid }).await
    }
}

/// Analysis.
impl Client {
    /// Previews a guide; panics on an error.
    pub async fn previewed(&self, request: PreviewTaskRequest) -> PreviewTaskResponse {
        self.preview(request).await.expect("a preview")
    }
}

/// Documents.
impl Client {
    pub async fn import(&self, document: TaskDocument) -> Result<ImportTaskResponse, Status> {
        self.import_with(AbsentSteps::Unspecified, document).await
    }

    /// Imports the document with this treatment of absent steps.
    pub async fn import_with(
        &self,
        absent: AbsentSteps,
        document: TaskDocument,
    ) -> Result<ImportTaskResponse, Status> {
        let request = ImportTaskRequest {
            document: Some(document),
            absent_steps: absent.into(),
            ..ImportTaskRequest::default()
        };
        self.send_import(request).await
    }

    /// Imports the document; panics on an error.
    pub async fn imported(&self, document: TaskDocument) -> Task {
        let response = self.import(document).await;
        let response = response.expect("the document is imported");
        response.task.expect("the response holds the task")
    }

    /// Puts steps behind the first one of a task until nearly no place is left behind the last
    /// of them: the task, and that step. [`INSERTS_UNTIL_RENUMBERED`] behind it renumber all.
    pub async fn nearly_full(&self, task: &Task) -> (Task, String) {
        const NEARLY_FULL: usize = 1_020;
        let mut document = self.exported(&task.guid).await;
        let between = sample::document_steps(&vec!["between"; NEARLY_FULL]);
        document.steps.splice(1..1, between);
        let imported = self.imported(document).await;
        let last = imported.steps[NEARLY_FULL].clone();
        (imported, last)
    }

    pub async fn export(&self, guid: &str) -> Result<TaskDocument, Status> {
        let guid = guid.to_owned();
        let response = self.send_export(ExportTaskRequest { guid }).await?;
        Ok(response.document.expect("the response's document"))
    }

    /// Exports the task; panics on an error.
    pub async fn exported(&self, guid: &str) -> TaskDocument {
        self.export(guid).await.expect("the task is exported")
    }

    /// Every task of the account with its steps, bodies included, from lists.
    pub async fn tasks_with_steps(&self) -> Vec<(Task, Vec<Step>)> {
        let tasks = self.all_tasks().await;
        let steps = tasks.iter().map(|task| self.steps_with_bodies(&task.guid));
        let steps = futures_util::future::join_all(steps).await;
        tasks.into_iter().zip(steps).collect()
    }
}

/// Steps.
impl Client {
    /// Appends the step.
    pub async fn create_step(&self, step: Step) -> Result<CreateStepResponse, Status> {
        self.create_step_after(step, "").await
    }

    pub async fn create_step_after(
        &self,
        step: Step,
        prevstep: &str,
    ) -> Result<CreateStepResponse, Status> {
        let request = CreateStepRequest {
            step: Some(step),
            prevstep: prevstep.to_owned(),
            ..CreateStepRequest::default()
        };
        self.send_create_step(request).await
    }

    /// Appends the step; panics on an error.
    pub async fn given_step(&self, step: Step) -> Step {
        let response = self.create_step(step).await.expect("the step is created");
        response.step.expect("the response holds the step")
    }

    /// Appends information steps of these titles and returns their ids.
    pub async fn given_steps(&self, task: &Task, titles: &[&str]) -> Vec<String> {
        let mut guids = Vec::new();
        for title in titles {
            let step = sample::step(task, StepType::Information, title);
            guids.push(self.given_step(step).await.guid);
        }
        guids
    }

    pub async fn get_step(&self, guid: &str) -> Result<Step, Status> {
        let guid = guid.to_owned();
        let response = self.steps().get_step(GetStepRequest { guid }).await?;
        Ok(response.into_inner().step.expect("the response's step"))
    }

    /// An empty `mask` sends no mask.
    pub async fn update_step(
        &self,
        step: Step,
        mask: &[&str],
    ) -> Result<UpdateStepResponse, Status> {
        let request = UpdateStepRequest {
            step: Some(step),
            update_mask: field_mask(mask),
            validate_only: false,
        };
        self.send_update_step(request).await
    }

    /// Updates the step; panics on an error.
    pub async fn updated_step(&self, step: Step, mask: &[&str]) -> Step {
        let response = self.update_step(step, mask).await;
        let response = response.expect("the step is updated");
        response.step.expect("the response holds the step")
    }

    pub async fn delete_step(&self, guid: &str) -> Result<DeleteStepResponse, Status> {
        let request = DeleteStepRequest {
            guid: guid.to_owned(),
            ..DeleteStepRequest::default()
        };
        self.send_delete_step(request).await
    }

    /// Every step of the task from ListSteps, in pages of this size.
    pub async fn steps_of(&self, task: &str, page_size: i32) -> Vec<Step> {
        self.list_all_steps(ListStepsRequest {
            task: task.to_owned(),
            page_size,
            ..ListStepsRequest::default()
        })
        .await
    }

    /// Every step of the task from ListSteps, bodies included.
    pub async fn steps_with_bodies(&self, task: &str) -> Vec<Step> {
        self.list_all_steps(ListStepsRequest {
            task: task.to_owned(),
            expand: vec!["body".to_owned()],
            page_size: 500,
            ..ListStepsRequest::default()
        })
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
    /// Keeps the guide of a task; the revision. Panics on an error.
    pub async fn kept_revision(&self, task: &str) -> TaskRevision {
        let request = CreateRevisionRequest {
            task: task.to_owned(),
            ..CreateRevisionRequest::default()
        };
        let response = self.create_revision(request).await.expect("a revision");
        response.revision.expect("the response's revision")
    }

    pub async fn get_revision(
        &self,
        task: &str,
        revision: impl ToString,
    ) -> Result<GetRevisionResponse, Status> {
        let request = GetRevisionRequest {
            task: task.to_owned(),
            revision: revision.to_string(),
            without_document: false,
        };
        self.send_get_revision(request).await
    }

    /// The document of a revision; panics on an error.
    pub async fn revision_document(&self, task: &str, revision: i64) -> TaskDocument {
        let response = self.get_revision(task, revision).await.expect("a revision");
        response.document.expect("the response's document")
    }

    /// Every revision of a task, the newest first; panics on an error.
    pub async fn all_revisions(&self, task: &str) -> Vec<TaskRevision> {
        let request = ListRevisionsRequest {
            task: task.to_owned(),
            page_size: 500,
            ..ListRevisionsRequest::default()
        };
        let page = self.list_revisions(request).await.expect("a page");
        assert_eq!(page.next_page_token, "", "one page");
        page.revisions
    }

    pub async fn compare_revisions(
        &self,
        task: &str,
        base: impl ToString,
        target: impl ToString,
    ) -> Result<CompareRevisionsResponse, Status> {
        let request = CompareRevisionsRequest {
            task: task.to_owned(),
            base: base.to_string(),
            target: target.to_string(),
            page_size: 500,
            page_token: String::new(),
        };
        self.send_compare(request).await
    }

    pub async fn restore_revision(
        &self,
        task: &str,
        revision: impl ToString,
    ) -> Result<RestoreRevisionResponse, Status> {
        let request = RestoreRevisionRequest {
            task: task.to_owned(),
            revision: revision.to_string(),
            ..RestoreRevisionRequest::default()
        };
        self.send_restore(request).await
    }

    /// Restores a revision; panics on an error.
    pub async fn restored(&self, task: &str, revision: i64) -> RestoreRevisionResponse {
        let response = self.restore_revision(task, revision).await;
        response.expect("the revision is restored")
    }

    pub async fn set_revision_alias(
        &self,
        task: &str,
        alias: &str,
        revision: impl ToString,
    ) -> Result<SetRevisionAliasResponse, Status> {
        let request = SetRevisionAliasRequest {
            task: task.to_owned(),
            alias: alias.to_owned(),
            revision: revision.to_string(),
        };
        self.revisions()
            .set_revision_alias(request)
            .await
            .map(inner)
    }
}

/// Changes, and the work of an index.
impl Client {
    /// A cursor behind everything that is committed; panics on an error.
    pub async fn cursor_now(&self) -> String {
        let now = ListChangesRequest {
            start: ChangeStart::Now.into(),
            ..ListChangesRequest::default()
        };
        // While old changes are deleted, new ones cannot be put in order.
        until("the changes are in order", async || {
            let page = self.list_changes(now.clone()).await.expect("a cursor");
            assert_eq!(page.changes, [], "no changes before the present");
            page.caught_up.then_some(page.next_cursor)
        })
        .await
    }

    /// Every change behind a cursor, and the cursor behind them; panics on an error.
    pub async fn changes_after(&self, cursor: &str) -> (Vec<Change>, String) {
        let mut request = ListChangesRequest {
            cursor: cursor.to_owned(),
            page_size: 500,
            ..ListChangesRequest::default()
        };
        let mut changes = Vec::new();
        loop {
            let page = self.list_changes(request.clone()).await.expect("a page");
            changes.extend(page.changes);
            request.cursor = page.next_cursor;
            if page.caught_up {
                return (changes, request.cursor);
            }
        }
    }

    /// All work of the index; panics on an error.
    pub async fn index_work(&self) -> Vec<IndexWork> {
        self.list_all_index_work(ListIndexWorkRequest {
            page_size: 500,
            ..ListIndexWorkRequest::default()
        })
        .await
    }

    /// Acknowledges states; the results. Panics on an error.
    pub async fn acknowledge(&self, items: Vec<IndexedItem>) -> Vec<IndexResult> {
        let request = AcknowledgeIndexedRequest { items };
        let response = self.acknowledge_indexed(request).await;
        response.expect("results").results().collect()
    }
}

/// Roles.
impl Client {
    pub async fn create_role(&self, name: &str) -> Result<CreateRoleResponse, Status> {
        let role = Role {
            id: 0,
            name: name.to_owned(),
        };
        let request = CreateRoleRequest { role: Some(role) };
        self.roles().create_role(request).await.map(inner)
    }

    /// Creates the role; panics on an error.
    pub async fn given_role(&self, name: &str) -> Role {
        let response = self.create_role(name).await.expect("the role is created");
        response.role.expect("the response holds the role")
    }

    pub async fn delete_role(&self, id: i64) -> Result<DeleteRoleResponse, Status> {
        let request = DeleteRoleRequest { id };
        self.roles().delete_role(request).await.map(inner)
    }

    pub async fn list_roles(
        &self,
        page_size: i32,
        page_token: &str,
    ) -> Result<ListRolesResponse, Status> {
        let request = ListRolesRequest {
            page_size,
            page_token: page_token.to_owned(),
        };
        self.roles().list_roles(request).await.map(inner)
    }
}

/// Automatic translations.
impl Client {
    /// All work into these languages, from all pages.
    pub async fn translation_work(&self, languages: &[&str]) -> Vec<TranslationWork> {
        self.all_translation_work(sample::translation_work_request(languages))
            .await
    }

    pub async fn write_translations(
        &self,
        translations: Vec<AutomaticTranslation>,
    ) -> Result<WriteTranslationsResponse, Status> {
        let request = WriteTranslationsRequest { translations };
        let mut client = self.translations();
        client.write_translations(request).await.map(inner)
    }

    /// Writes one translation; its result. Panics on an error.
    pub async fn written(&self, translation: AutomaticTranslation) -> TranslationResult {
        let response = self.write_translations(vec![translation]).await;
        let response = response.expect("the translation is taken");
        response.results().next().expect("a result")
    }
}

/// Validation.
impl Client {
    /// Validates a guide; panics on an error.
    pub async fn validated(&self, request: ValidateTaskRequest) -> ValidateTaskResponse {
        self.validate(request).await.expect("a validation")
    }

    pub async fn rules(&self) -> Result<ListRulesResponse, Status> {
        self.analysis()
            .list_rules(ListRulesRequest {})
            .await
            .map(inner)
    }
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

fn inner<T>(response: Response<T>) -> T {
    response.into_inner()
}

/// A connection to the server, made at the first call.
pub fn connect(server: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{server}"))
        .expect("the server's address")
        .connect_lazy()
}
