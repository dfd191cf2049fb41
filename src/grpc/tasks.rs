//! TaskService: decode, one store call, encode.

use std::{collections::BTreeSet, sync::Arc};

use prost::Message;
use tonic::{Request, Response, Status};

use super::{
    Services,
    call::{respond, write_mode},
    decode::{self, Field, document, field, task as decode_task},
    encode,
    idempotency::{self, IdempotentRequest},
    page,
};
use crate::{
    domain::{
        decide::DeleteTask,
        etag::GuideEtag,
        ids::TaskId,
        import::{AbsentFields, AbsentSteps, Imported},
        task::{Task, TaskFilter},
        violation::{Reason, Violations},
    },
    messages::{
        fields::{FieldUse, TASK},
        ignored::Ignored,
        update,
    },
    proto::v1::{
        self, CreateTaskRequest, CreateTaskResponse, DeleteTaskRequest, DeleteTaskResponse,
        ExportTaskRequest, ExportTaskResponse, GetTaskRequest, GetTaskResponse, ImportTaskRequest,
        ImportTaskResponse, ListTasksRequest, ListTasksResponse, UpdateTaskRequest,
        UpdateTaskResponse, task_service_server::TaskService,
    },
    store::Import,
};

#[tonic::async_trait]
impl TaskService for Services {
    async fn create_task(
        &self,
        request: Request<CreateTaskRequest>,
    ) -> Result<Response<CreateTaskResponse>, Status> {
        respond(request, async |caller, mut request| {
            let request_id = std::mem::take(&mut request.request_id);
            let validate_only = std::mem::take(&mut request.validate_only);
            let mut ignored = Ignored::default();
            let (idempotent, new) = decode::all(|violations| {
                let idempotent =
                    IdempotentRequest::read(&request_id, "CreateTask", &request, violations);
                let mut field = Field::root("task", violations);
                let task = field.required(request.task)?;
                TASK.list_sent(&task.encode_to_vec(), FieldUse::Identity, &mut ignored);
                Some((idempotent, decode_task::new(task, field)?))
            })?;
            let ignored = ignored.into_paths("task");
            let account = self.account(&caller);
            let mode = write_mode(validate_only);
            idempotency::once(
                idempotent,
                move |task| created(task, ignored.clone()),
                async |retry| account.create_task(new, retry, mode).await,
            )
            .await
        })
        .await
    }

    async fn get_task(
        &self,
        request: Request<GetTaskRequest>,
    ) -> Result<Response<GetTaskResponse>, Status> {
        respond(request, async |caller, request| {
            let GetTaskRequest { guid } = request;
            let id = decode::only_guid("guid", &guid, TaskId::parse)?;
            let task = self.account(&caller).get_task(id).await?;
            Ok(GetTaskResponse {
                task: Some(encode::task(task)),
            })
        })
        .await
    }

    async fn list_tasks(
        &self,
        request: Request<ListTasksRequest>,
    ) -> Result<Response<ListTasksResponse>, Status> {
        respond(request, async |caller, request| {
            let tokens = self.page_tokens(&caller, "ListTasks", &request);
            let (filter, (after, size)) = decode::all(|violations| {
                let filter = filter(&request, violations);
                let (size, token) = (request.page_size, &request.page_token);
                Some((filter, page::start(&tokens, size, token, violations)?))
            })?;
            let account = self.account(&caller);
            let page = account.list_tasks(&filter, after, size).await?;
            let (tasks, next_page_token) =
                page::encode(page, &tokens, |task| task.guid, encode::task);
            Ok(ListTasksResponse {
                tasks,
                next_page_token,
            })
        })
        .await
    }

    async fn update_task(
        &self,
        request: Request<UpdateTaskRequest>,
    ) -> Result<Response<UpdateTaskResponse>, Status> {
        respond(request, async |caller, request| {
            let UpdateTaskRequest {
                task,
                update_mask,
                validate_only,
            } = request;
            let mut ignored = Ignored::default();
            let update = decode::all(|violations| {
                update::task(task, update_mask, violations, &mut ignored)
            })?;
            let update = Arc::new(update);
            let account = self.account(&caller);
            let task = account
                .update_task(Arc::clone(&update), write_mode(validate_only))
                .await?;
            update.edit.list_ignored_by_task(&task, &mut ignored);
            Ok(UpdateTaskResponse {
                task: Some(encode::task(task)),
                ignored_paths: ignored.into_paths("task"),
            })
        })
        .await
    }

    async fn delete_task(
        &self,
        request: Request<DeleteTaskRequest>,
    ) -> Result<Response<DeleteTaskResponse>, Status> {
        respond(request, async |caller, request| {
            let DeleteTaskRequest {
                guid,
                etag,
                force,
                purge_history,
            } = request;
            let (guid, expected) = decode::guid_and_etag(&guid, TaskId::parse, &etag)?;
            let delete = DeleteTask {
                guid,
                expected,
                force,
                purge_history,
            };
            let previous_revision = self.account(&caller).delete_task(delete).await?;
            Ok(DeleteTaskResponse {
                ignored_paths: Vec::new(),
                previous_revision,
            })
        })
        .await
    }

    async fn import_task(
        &self,
        request: Request<ImportTaskRequest>,
    ) -> Result<Response<ImportTaskResponse>, Status> {
        respond(request, async |caller, mut request| {
            let request_id = std::mem::take(&mut request.request_id);
            let validate_only = std::mem::take(&mut request.validate_only);
            let document_bytes = request.encoded_len();
            let mut ignored = BTreeSet::new();
            let (idempotent, import) = decode::all(|violations| {
                let idempotent =
                    IdempotentRequest::read(&request_id, "ImportTask", &request, violations);
                let absent = absent_steps(request.absent_steps, violations);
                let absent_fields = absent_fields(request.absent_fields, violations);
                let document = document::document(
                    request.document,
                    absent_fields.unwrap_or(AbsentFields::Keep),
                    request.match_external_ids,
                    violations,
                    &mut ignored,
                );
                let expected = field::expected_etag(&request.etag, Field::root("etag", violations));
                let field = Field::root("guide_etag", violations);
                let expected_guide = field::expected_etag(&request.guide_etag, field);
                let document::ImportDocument {
                    target,
                    reimport,
                    document,
                } = document?;
                let etags = [("etag", &expected), ("guide_etag", &expected_guide)];
                for (name, _) in etags.iter().filter(|(_, etag)| !reimport && etag.is_set()) {
                    Field::root(name, violations).refuse(
                        Reason::FieldInvalid,
                        "needs `document.task.guid`, or `document.task.external_id` with \
                         `match_external_ids`: a new task has no etag to match",
                    );
                }
                document::add_violations(&document, reimport, violations);
                let import = Import {
                    target,
                    document,
                    expected,
                    absent: absent?,
                    absent_fields: absent_fields?,
                    expected_guide,
                    document_bytes,
                };
                Some((idempotent, import))
            })?;
            let account = self.account(&caller);
            let mode = write_mode(validate_only);
            idempotency::once(
                idempotent,
                move |done| imported(done, ignored.clone()),
                async |retry| account.import_task(import, retry, mode).await,
            )
            .await
        })
        .await
    }

    async fn export_task(
        &self,
        request: Request<ExportTaskRequest>,
    ) -> Result<Response<ExportTaskResponse>, Status> {
        respond(request, async |caller, request| {
            let ExportTaskRequest { guid } = request;
            let id = decode::only_guid("guid", &guid, TaskId::parse)?;
            let tree = self.account(&caller).export_task(id).await?;
            Ok(ExportTaskResponse {
                guide_etag: GuideEtag::of(&tree).into_string(),
                document: Some(encode::document(tree)),
            })
        })
        .await
    }
}

fn absent_steps(number: i32, violations: &mut Violations) -> Option<AbsentSteps> {
    let listed = [v1::AbsentSteps::Keep, v1::AbsentSteps::Delete];
    let mut field = Field::root("absent_steps", violations);
    let name = v1::AbsentSteps::as_str_name;
    let value = field::enum_value(number, "a value of AbsentSteps", listed, name, &mut field)?;
    Some(match value {
        v1::AbsentSteps::Unspecified => AbsentSteps::Refuse,
        v1::AbsentSteps::Keep => AbsentSteps::Keep,
        v1::AbsentSteps::Delete => AbsentSteps::Delete,
    })
}

fn absent_fields(number: i32, violations: &mut Violations) -> Option<AbsentFields> {
    let listed = [v1::AbsentFields::Keep, v1::AbsentFields::Reset];
    let mut field = Field::root("absent_fields", violations);
    let name = v1::AbsentFields::as_str_name;
    let value = field::enum_value(number, "a value of AbsentFields", listed, name, &mut field)?;
    Some(match value {
        v1::AbsentFields::Unspecified | v1::AbsentFields::Keep => AbsentFields::Keep,
        v1::AbsentFields::Reset => AbsentFields::Reset,
    })
}

fn imported(done: Imported, mut ignored: BTreeSet<String>) -> ImportTaskResponse {
    let Imported {
        task,
        outcome,
        guide_etag,
        previous_revision,
        guide,
        ignored: not_honored,
        skipped: _,
        replaced: _,
    } = done;
    ignored.extend(not_honored);
    ImportTaskResponse {
        task: Some(encode::task(task)),
        ignored_paths: ignored.into_iter().collect(),
        outcome: encode::import_outcome(outcome).into(),
        guide_etag: guide_etag.into_string(),
        previous_revision,
        document: guide.map(|guide| encode::document(*guide)),
    }
}

fn created(task: Task, ignored_paths: Vec<String>) -> CreateTaskResponse {
    CreateTaskResponse {
        task: Some(encode::task(task)),
        ignored_paths,
    }
}

fn filter(request: &ListTasksRequest, violations: &mut Violations) -> TaskFilter {
    let product = request
        .product_id
        .and_then(|id| field::product(Some(id), Field::root("product_id", violations)));
    let published = request
        .published
        .and_then(|number| field::published(number, Field::root("published", violations)));
    let role = request
        .role
        .and_then(|number| decode_task::access_level(number, Field::root("role", violations)));
    let managed = request
        .r#type
        .and_then(|number| managed(number, violations));
    let external_id = field::sent_text(request.external_id.clone())
        .and_then(|id| field::external_id(id, Field::root("external_id", violations)));
    let name = field::sent_text(request.name.clone())
        .and_then(|name| field::non_blank_text(name, Field::root("name", violations)));
    TaskFilter {
        product,
        published,
        role,
        managed,
        external_id,
        name,
    }
}

fn managed(number: i32, violations: &mut Violations) -> Option<bool> {
    let listed = [v1::TaskType::Standard, v1::TaskType::Linked];
    let mut field = Field::root("type", violations);
    let name = v1::TaskType::as_str_name;
    let value = field::enum_value(number, "a type of task", listed, name, &mut field)?;
    Some(value == v1::TaskType::Linked)
}
