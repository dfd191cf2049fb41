//! TaskService: decode, one store call, encode.

use std::collections::BTreeSet;

use prost::Message;
use tonic::{Request, Response, Status};

use super::{
    call::{answer, mode},
    decode::{self, accepted, document, guid, required, task as decode_task},
    encode,
    ignored::Ignored,
    mask::{self, Mask},
    page,
    page_token::Listing,
    retry::{self, Intent},
};
use crate::{
    auth::Caller,
    domain::{
        Result,
        ids::TaskId,
        import::AbsentSteps,
        page::PageSize,
        task::{Task, TaskFilter},
        violation::{Path, Reason, Violations},
    },
    proto::v1::{
        self, CreateTaskRequest, CreateTaskResponse, DeleteTaskRequest, DeleteTaskResponse,
        ExportTaskRequest, ExportTaskResponse, GetTaskRequest, GetTaskResponse, ImportTaskRequest,
        ImportTaskResponse, ListTasksRequest, ListTasksResponse, UpdateTaskRequest,
        UpdateTaskResponse, task_service_server::TaskService,
    },
    store::{Import, Imported, Outcome, Store},
};

const TASK: Path<'static> = Path::root("task");

/// The tasks of a store.
#[derive(Clone)]
pub struct Tasks {
    /// The store.
    pub store: Store,
}

#[tonic::async_trait]
impl TaskService for Tasks {
    async fn create_task(
        &self,
        request: Request<CreateTaskRequest>,
    ) -> Result<Response<CreateTaskResponse>, Status> {
        answer(request, |caller, request| self.create(caller, request)).await
    }

    async fn get_task(
        &self,
        request: Request<GetTaskRequest>,
    ) -> Result<Response<GetTaskResponse>, Status> {
        answer(request, |caller, request| self.get(caller, request)).await
    }

    async fn list_tasks(
        &self,
        request: Request<ListTasksRequest>,
    ) -> Result<Response<ListTasksResponse>, Status> {
        answer(request, |caller, request| self.list(caller, request)).await
    }

    async fn update_task(
        &self,
        request: Request<UpdateTaskRequest>,
    ) -> Result<Response<UpdateTaskResponse>, Status> {
        answer(request, |caller, request| self.update(caller, request)).await
    }

    async fn delete_task(
        &self,
        request: Request<DeleteTaskRequest>,
    ) -> Result<Response<DeleteTaskResponse>, Status> {
        answer(request, |caller, request| self.delete(caller, request)).await
    }

    async fn import_task(
        &self,
        request: Request<ImportTaskRequest>,
    ) -> Result<Response<ImportTaskResponse>, Status> {
        answer(request, |caller, request| self.import(caller, request)).await
    }

    async fn export_task(
        &self,
        request: Request<ExportTaskRequest>,
    ) -> Result<Response<ExportTaskResponse>, Status> {
        answer(request, |caller, request| self.export(caller, request)).await
    }
}

impl Tasks {
    async fn create(
        &self,
        caller: Caller,
        mut request: CreateTaskRequest,
    ) -> Result<CreateTaskResponse> {
        let request_id = std::mem::take(&mut request.request_id);
        let validate_only = std::mem::take(&mut request.validate_only);
        let mut faults = Violations::new();
        let intent = Intent::read(&request_id, "CreateTask", &request, &mut faults);
        let mut ignored = Ignored::of("task");
        let new = required(request.task, &TASK, &mut faults)
            .and_then(|task| decode_task::new(task, &TASK, &mut faults, &mut ignored));
        let new = accepted(new, faults)?;
        let ignored = ignored.into_paths();
        let retry = intent.map(|intent| {
            let ignored = ignored.clone();
            intent.retry(move |task: &Task| created(task.clone(), ignored.clone()).encode_to_vec())
        });
        let account = self.store.account(&caller.account);
        match account.create_task(new, retry, mode(validate_only)).await? {
            Outcome::Done(task) => Ok(created(task, ignored)),
            Outcome::Replayed(response) => retry::read(&response),
        }
    }

    async fn get(&self, caller: Caller, request: GetTaskRequest) -> Result<GetTaskResponse> {
        let GetTaskRequest { guid: id } = request;
        let id = named(&id)?;
        let task = self.store.account(&caller.account).get_task(id).await?;
        Ok(GetTaskResponse {
            task: Some(encode::task(task)),
        })
    }

    async fn list(&self, caller: Caller, request: ListTasksRequest) -> Result<ListTasksResponse> {
        let listing = Listing {
            key: self.store.page_key(),
            account: &caller.account,
            rpc: "ListTasks",
            filters: filters_as_bytes(&request),
        };
        let mut faults = Violations::new();
        let filter = filter(&request, &mut faults);
        let after = page::after(&listing, &request.page_token, &mut faults);
        let size: Option<PageSize> = decode::page_size(request.page_size, &mut faults);
        let (filter, size) = accepted(filter.zip(size), faults)?;
        let account = self.store.account(&caller.account);
        let page = account.list_tasks(filter, after, size).await?;
        let (tasks, next_page_token) = page::cut(page, &listing, |task| task.guid, encode::task);
        Ok(ListTasksResponse {
            tasks,
            next_page_token,
        })
    }

    async fn update(
        &self,
        caller: Caller,
        request: UpdateTaskRequest,
    ) -> Result<UpdateTaskResponse> {
        let UpdateTaskRequest {
            task,
            update_mask,
            validate_only,
        } = request;
        let mut faults = Violations::new();
        let mut ignored = Ignored::of("task");
        let mask = Mask::parse(update_mask, &mask::TASK, &mut faults, &mut ignored);
        let update = required(task, &TASK, &mut faults)
            .and_then(|task| decode_task::update(task, &mask, &TASK, &mut faults, &mut ignored));
        let decode_task::Update {
            guid,
            expected,
            patch,
        } = accepted(update, faults)?;
        let account = self.store.account(&caller.account);
        let (task, dropped) = account
            .update_task(guid, expected, patch, mode(validate_only))
            .await?;
        dropped.into_iter().for_each(|field| ignored.add(field));
        Ok(UpdateTaskResponse {
            task: Some(encode::task(task)),
            ignored_paths: ignored.into_paths(),
        })
    }

    async fn delete(
        &self,
        caller: Caller,
        request: DeleteTaskRequest,
    ) -> Result<DeleteTaskResponse> {
        let DeleteTaskRequest {
            guid: id,
            etag,
            force,
        } = request;
        let mut faults = Violations::new();
        let id = guid(&id, TaskId::parse, &Path::root("guid"), &mut faults);
        let expected = decode::expected(&etag, &Path::root("etag"), &mut faults);
        let id = accepted(id, faults)?;
        let account = self.store.account(&caller.account);
        account.delete_task(id, expected, force).await?;
        Ok(DeleteTaskResponse {
            ignored_paths: Vec::new(),
        })
    }
}

impl Tasks {
    async fn import(
        &self,
        caller: Caller,
        mut request: ImportTaskRequest,
    ) -> Result<ImportTaskResponse> {
        let request_id = std::mem::take(&mut request.request_id);
        let validate_only = std::mem::take(&mut request.validate_only);
        let mut faults = Violations::new();
        let intent = Intent::read(&request_id, "ImportTask", &request, &mut faults);
        let mut ignored = BTreeSet::new();
        let absent = absent_steps(request.absent_steps, &mut faults);
        let sent = document::sent(request.document, &mut faults, &mut ignored);
        let expected = decode::expected(&request.etag, &Path::root("etag"), &mut faults);
        let (document::Sent { target, document }, absent) = accepted(sent.zip(absent), faults)?;
        let retry = intent.map(|intent| {
            let ignored = ignored.clone();
            intent.retry(move |done: &Imported| {
                imported(done.clone(), ignored.clone()).encode_to_vec()
            })
        });
        let import = Import {
            target,
            document,
            expected,
            absent,
        };
        let account = self.store.account(&caller.account);
        match account
            .import_task(import, retry, mode(validate_only))
            .await?
        {
            Outcome::Done(done) => Ok(imported(done, ignored)),
            Outcome::Replayed(response) => retry::read(&response),
        }
    }

    async fn export(
        &self,
        caller: Caller,
        request: ExportTaskRequest,
    ) -> Result<ExportTaskResponse> {
        let ExportTaskRequest { guid: id } = request;
        let id = named(&id)?;
        let tree = self.store.account(&caller.account).export_task(id).await?;
        Ok(ExportTaskResponse {
            document: Some(encode::document(tree)),
        })
    }
}

fn absent_steps(number: i32, faults: &mut Violations) -> Option<AbsentSteps> {
    match v1::AbsentSteps::try_from(number) {
        Ok(v1::AbsentSteps::Unspecified) => Some(AbsentSteps::Refuse),
        Ok(v1::AbsentSteps::Keep) => Some(AbsentSteps::Keep),
        Ok(v1::AbsentSteps::Delete) => Some(AbsentSteps::Delete),
        Err(_) => {
            let path = Path::root("absent_steps");
            faults.add(&path, Reason::FieldInvalid, "is no way to deal with steps");
            None
        }
    }
}

fn imported(done: Imported, mut ignored: BTreeSet<String>) -> ImportTaskResponse {
    ignored.extend(done.ignored);
    ImportTaskResponse {
        task: Some(encode::task(done.task)),
        ignored_paths: ignored.into_iter().collect(),
    }
}

fn created(task: Task, ignored_paths: Vec<String>) -> CreateTaskResponse {
    CreateTaskResponse {
        task: Some(encode::task(task)),
        ignored_paths,
    }
}

/// The task that a request names.
fn named(id: &str) -> Result<TaskId> {
    let mut faults = Violations::new();
    let id = guid(id, TaskId::parse, &Path::root("guid"), &mut faults);
    accepted(id, faults)
}

fn filter(request: &ListTasksRequest, faults: &mut Violations) -> Option<TaskFilter> {
    let product = request
        .product_id
        .map(|id| decode::product(Some(id), &Path::root("product_id"), faults));
    let published = request
        .published
        .map(|shown| decode::published(shown, &Path::root("published"), faults));
    let role = request
        .role
        .map(|level| decode_task::access_level(level, &Path::root("role"), faults));
    let managed = request.r#type.map(|number| managed(number, faults));
    Some(TaskFilter {
        product: flat(product)?,
        published: flat(published)?,
        role: flat(role)?,
        managed: flat(managed)?,
    })
}

/// An absent filter is one that was decoded; a faulty one is none.
#[allow(clippy::option_option)]
fn flat<T>(filter: Option<Option<T>>) -> Option<Option<T>> {
    match filter {
        None => Some(None),
        Some(None) => None,
        Some(decoded) => Some(decoded),
    }
}

fn managed(number: i32, faults: &mut Violations) -> Option<bool> {
    match v1::TaskType::try_from(number) {
        Ok(v1::TaskType::Standard) => Some(false),
        Ok(v1::TaskType::Linked) => Some(true),
        Err(_) => {
            let path = Path::root("type");
            faults.add(&path, Reason::FieldInvalid, "is not a type of task");
            None
        }
    }
}

/// The filters of a listing: the request without its page.
fn filters_as_bytes(request: &ListTasksRequest) -> Vec<u8> {
    let ListTasksRequest {
        product_id,
        published,
        role,
        r#type,
        page_size: _,
        page_token: _,
    } = request;
    ListTasksRequest {
        product_id: *product_id,
        published: *published,
        role: *role,
        r#type: *r#type,
        page_size: 0,
        page_token: String::new(),
    }
    .encode_to_vec()
}
