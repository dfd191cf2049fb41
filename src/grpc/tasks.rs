//! TaskService: decode, one store call, encode.

use std::{collections::BTreeSet, sync::Arc};

use prost::Message;

use super::{
    call::{Call, ignored_paths, write_mode},
    idempotency,
};
use crate::{
    domain::{
        Error, Result,
        decide::DeleteTask,
        etag::GuideEtag,
        external_id::TakenId,
        ids::TaskId,
        import::{Absent, AbsentFields, AbsentSteps, Imported},
        task::TaskFilter,
        violation::{Reason, Violations},
    },
    messages::{
        decode::{self, Field, field, task as decode_task},
        document_masks::DocumentMasks,
        encode,
        fields::TASK,
        sent_document::SentDocument,
        update,
    },
    proto::v1::{
        self, CreateTaskRequest, CreateTaskResponse, DeleteTaskRequest, DeleteTaskResponse,
        ExportTaskRequest, ExportTaskResponse, GetTaskRequest, GetTaskResponse, ImportTaskRequest,
        ImportTaskResponse, ListTasksRequest, ListTasksResponse, UpdateTaskRequest,
        UpdateTaskResponse,
    },
    store::Import,
};

impl Call {
    pub async fn create_task(self, request: CreateTaskRequest) -> Result<CreateTaskResponse> {
        let mode = write_mode(request.validate_only);
        let mut ignored = BTreeSet::new();
        let (idempotency, new) = decode::all(|violations| {
            let idempotency = self.idempotency(&request.request_id, &request, violations);
            let mut field = violations.at("task");
            let task = field.required(request.task)?;
            ignored.extend(TASK.ignored_by_create(&task));
            Some((idempotency, decode_task::new(task, field)?))
        })?;
        let ignored_paths = ignored_paths("task", ignored);
        let created = move |task| CreateTaskResponse {
            task: Some(encode::task(task)),
            ignored_paths: ignored_paths.clone(),
        };
        idempotency::once(idempotency, created, async |retry| {
            self.account.create_task(new, retry, mode).await
        })
        .await
    }

    pub async fn get_task(self, request: GetTaskRequest) -> Result<GetTaskResponse> {
        let id = decode::only_guid("guid", &request.guid, TaskId::parse)?;
        let task = self.account.get_task(id).await?;
        Ok(GetTaskResponse {
            task: Some(encode::task(task)),
        })
    }

    pub async fn list_tasks(self, request: ListTasksRequest) -> Result<ListTasksResponse> {
        let tokens = self.page_tokens(&request);
        let (filter, (after, size)) = decode::all(|violations| {
            let (size, token) = (request.page_size, request.page_token.clone());
            let filter = filter(request, violations);
            Some((filter, tokens.start(size, &token, violations)?))
        })?;
        let page = self.account.list_tasks(&filter, after, size).await?;
        let (tasks, next_page_token) = tokens.page(page, |task| task.guid, encode::task);
        Ok(ListTasksResponse {
            tasks,
            next_page_token,
        })
    }

    pub async fn update_task(self, request: UpdateTaskRequest) -> Result<UpdateTaskResponse> {
        let mode = write_mode(request.validate_only);
        let mut ignored = BTreeSet::new();
        let update = decode::all(|violations| {
            update::updated_task(request.task, request.update_mask, violations, &mut ignored)
        })?;
        let update = self.account.update_task(Arc::new(update), mode);
        let (task, not_applied) = update.await?;
        ignored.extend(not_applied);
        Ok(UpdateTaskResponse {
            task: Some(encode::task(task)),
            ignored_paths: ignored_paths("task", ignored),
        })
    }

    pub async fn delete_task(self, request: DeleteTaskRequest) -> Result<DeleteTaskResponse> {
        let (guid, expected) = decode::guid_and_etag(&request.guid, TaskId::parse, &request.etag)?;
        let delete = DeleteTask {
            guid,
            expected,
            force: request.force,
            purge_history: request.purge_history,
        };
        Ok(DeleteTaskResponse {
            ignored_paths: Vec::new(),
            previous_revision: self.account.delete_task(delete).await?,
        })
    }

    pub async fn import_task(self, request: ImportTaskRequest) -> Result<ImportTaskResponse> {
        let mode = write_mode(request.validate_only);
        let is_matchable = !request.match_external_ids;
        let (idempotency, import) = decode::all(|violations| {
            let idempotency = self.idempotency(&request.request_id, &request, violations);
            Some((idempotency, import(request, violations)?))
        })?;
        let done = idempotency::once(idempotency, imported, async |retry| {
            self.account.import_task(import, retry, mode).await
        });
        done.await.map_err(|error| match error {
            Error::ExternalIdTaken(taken) => Error::ExternalIdTaken(TakenId {
                is_matchable,
                ..taken
            }),
            error => error,
        })
    }

    pub async fn export_task(self, request: ExportTaskRequest) -> Result<ExportTaskResponse> {
        let id = decode::only_guid("guid", &request.guid, TaskId::parse)?;
        let tree = self.account.export_task(id).await?;
        Ok(ExportTaskResponse {
            guide_etag: GuideEtag::for_guide(&tree).into_string(),
            document: Some(encode::document(tree)),
        })
    }
}

fn import(request: ImportTaskRequest, violations: &mut Violations) -> Option<Import> {
    let document_bytes = request.encoded_len();
    let absent = absent_steps(request.absent_steps, violations.at("absent_steps"));
    let absent_fields = absent_fields(request.absent_fields, violations.at("absent_fields"));
    let kept_fields = absent_fields.unwrap_or(AbsentFields::Keep);
    let masks = DocumentMasks::read(kept_fields, request.reset_fields, violations);
    let document = SentDocument::import(
        request.document,
        masks,
        request.match_external_ids,
        violations,
    );
    let expected = field::expected_etag(&request.etag, violations.at("etag"));
    let expected_guide = field::expected_etag(&request.guide_etag, violations.at("guide_etag"));
    let document = document?;
    for (name, etag) in [("etag", &expected), ("guide_etag", &expected_guide)] {
        if !document.reimport && etag.is_set() {
            violations.at(name).refuse(
                Reason::FieldInvalid,
                "needs `document.task.guid`, or `document.task.external_id` with \
                 `match_external_ids`: a new task has no etag to match",
            );
        }
    }
    Some(Import {
        target: document.target.clone(),
        subtasks: document.subtasks(),
        document: document.into_checked(violations)?,
        expected,
        absent: Absent {
            steps: absent?,
            fields: absent_fields?,
            keeps_locked: request.keep_locked,
        },
        expected_guide,
        document_bytes,
    })
}

fn absent_steps(number: i32, mut field: Field<'_>) -> Option<AbsentSteps> {
    let known = AbsentSteps::from_repr;
    field.enum_value(number, "a value of AbsentSteps", "AbsentSteps", known)
}

fn absent_fields(number: i32, mut field: Field<'_>) -> Option<AbsentFields> {
    let known = |number| match number {
        0 => Some(AbsentFields::Keep),
        number => AbsentFields::from_repr(number),
    };
    field.enum_value(number, "a value of AbsentFields", "AbsentFields", known)
}

fn imported(done: Imported) -> ImportTaskResponse {
    ImportTaskResponse {
        task: Some(encode::task(done.task)),
        ignored_paths: done.ignored.into_iter().collect(),
        outcome: done.outcome as i32,
        guide_etag: done.guide_etag.into_string(),
        previous_revision: done.previous_revision,
        document: done.guide.map(|guide| encode::document(*guide)),
    }
}

fn filter(request: ListTasksRequest, violations: &mut Violations) -> TaskFilter {
    TaskFilter {
        product: violations
            .at("product_id")
            .optional(request.product_id, field::product),
        published: violations
            .at("published")
            .optional(request.published, field::published),
        role: violations
            .at("role")
            .optional(request.role, decode_task::access_level),
        managed: violations.at("type").optional(request.r#type, is_managed),
        external_id: violations
            .at("external_id")
            .optional(field::sent_text(request.external_id), field::external_id),
        name: violations
            .at("name")
            .optional(field::sent_text(request.name), field::non_blank_text),
    }
}

fn is_managed(number: i32, mut field: Field<'_>) -> Option<bool> {
    let known = |number| {
        let known = v1::TaskType::try_from(number).ok()?;
        Some(known == v1::TaskType::Linked)
    };
    field.enum_value(number, "a type of task", "TaskType", known)
}
