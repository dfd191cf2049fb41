//! StepService: decode, one store call, encode.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    call::{Call, ignored_paths, write_mode},
    idempotency::decode_stored,
};
use crate::{
    domain::{
        Result,
        decide::{CreateStep, linked_import_only},
        ids::{StepId, TaskId},
        step::{DeletedStep, Placement, Step},
        translation::Language,
    },
    messages::{
        decode::{self, field, step as decode_step},
        encode,
        fields::STEP,
        update,
    },
    proto::v1::{
        self, CreateStepRequest, CreateStepResponse, DeleteStepRequest, DeleteStepResponse,
        GetStepRequest, GetStepResponse, ListDeletedStepsRequest, ListDeletedStepsResponse,
        ListStepsRequest, ListStepsResponse, RestoreStepRequest, RestoreStepResponse,
        UpdateStepRequest, UpdateStepResponse,
    },
    store::WriteOutcome,
};

impl Call {
    pub async fn create_step(self, request: CreateStepRequest) -> Result<CreateStepResponse> {
        let mode = write_mode(request.validate_only);
        let is_repeatable = !request.request_id.is_empty();
        let sent = is_repeatable.then(|| request.step.clone()).flatten();
        let mut ignored = BTreeSet::new();
        let (idempotency, create) = decode::all(|violations| {
            let idempotency = self.idempotency(&request.request_id, &request, violations);
            let mut field = violations.at("step");
            let new = field.required(request.step).and_then(|step| {
                ignored.extend(STEP.ignored_by_create(&step));
                ignored.extend(decode_step::not_honored(&step));
                let subtask = decode_step::subtask(&step);
                Some((decode_step::new(step, field)?, subtask))
            });
            let field = violations.at("prevstep");
            let prevstep = field::optional_guid(&request.prevstep, StepId::parse, field);
            let (new, subtask) = new?;
            let create = CreateStep {
                new,
                subtask,
                prevstep,
            };
            Some((idempotency, create))
        })?;
        if create
            .new
            .kind
            .feedback()
            .is_some_and(|question| question.linked)
        {
            return Err(linked_import_only());
        }
        let ignored_paths = ignored_paths("step", ignored);
        let created = move |step, placement| CreateStepResponse {
            step: Some(step),
            ignored_paths: ignored_paths.clone(),
            placement: placement as i32,
        };
        let stored = created.clone();
        let retry = idempotency.map(|it| {
            it.retry_key(move |(step, placement): &(Step, Placement)| {
                stored(encode::step_without_bodies(step), *placement)
            })
        });
        let account = self.account;
        Ok(match account.create_step(create, retry, mode).await? {
            WriteOutcome::Done((step, placement)) => created(encode::step(step), placement),
            WriteOutcome::Replayed(stored) => with_bodies(decode_stored(&stored)?, sent),
        })
    }

    pub async fn get_step(self, request: GetStepRequest) -> Result<GetStepResponse> {
        let id = decode::only_guid("guid", &request.guid, StepId::parse)?;
        let step = self.account.get_step(id).await?;
        Ok(GetStepResponse {
            step: Some(encode::step(step)),
        })
    }

    pub async fn list_steps(self, mut request: ListStepsRequest) -> Result<ListStepsResponse> {
        request.task.make_ascii_lowercase();
        let tokens = self.page_tokens(&request);
        let bodies = !request.expand.is_empty();
        let (task, (after, size)) = decode::all(|violations| {
            let task = field::guid(&request.task, TaskId::parse, violations.at("task"));
            field::check_expand(&request.expand, violations);
            task.zip(tokens.start(request.page_size, &request.page_token, violations))
        })?;
        let page = self.account.list_steps(task, bodies, after, size).await?;
        let encode = |(step, _)| encode::step(step);
        let (steps, next_page_token) = tokens.page(page, |(_, cursor)| *cursor, encode);
        Ok(ListStepsResponse {
            steps,
            next_page_token,
        })
    }

    pub async fn update_step(self, request: UpdateStepRequest) -> Result<UpdateStepResponse> {
        let mode = write_mode(request.validate_only);
        let mut ignored = BTreeSet::new();
        let update = decode::all(|violations| {
            update::updated_step(request.step, request.update_mask, violations, &mut ignored)
        })?;
        let update = self.account.update_step(Arc::new(update), mode);
        let (step, not_applied) = update.await?;
        ignored.extend(not_applied);
        Ok(UpdateStepResponse {
            step: Some(encode::step(step)),
            ignored_paths: ignored_paths("step", ignored),
        })
    }

    pub async fn delete_step(self, request: DeleteStepRequest) -> Result<DeleteStepResponse> {
        let (id, expected) = decode::guid_and_etag(&request.guid, StepId::parse, &request.etag)?;
        self.account.delete_step(id, expected).await?;
        Ok(DeleteStepResponse::default())
    }

    pub async fn list_deleted_steps(
        self,
        mut request: ListDeletedStepsRequest,
    ) -> Result<ListDeletedStepsResponse> {
        request.task.make_ascii_lowercase();
        let tokens = self.page_tokens(&request);
        let (task, (after, size)) = decode::all(|violations| {
            let task = field::guid(&request.task, TaskId::parse, violations.at("task"));
            task.zip(tokens.start(request.page_size, &request.page_token, violations))
        })?;
        let page = self.account.list_deleted_steps(task, after, size).await?;
        let cursor = |step: &DeletedStep| (step.deleted.at, step.step.guid);
        let (steps, next_page_token) = tokens.page(page, cursor, encode::deleted_step);
        Ok(ListDeletedStepsResponse {
            steps,
            next_page_token,
        })
    }

    pub async fn restore_step(self, request: RestoreStepRequest) -> Result<RestoreStepResponse> {
        let id = decode::only_guid("guid", &request.guid, StepId::parse)?;
        let (step, placement) = self.account.restore_step(id).await?;
        Ok(RestoreStepResponse {
            step: Some(encode::step(step)),
            placement: placement as i32,
        })
    }
}

/// A stored response, with the bodies of the retry. They need not be stored, because a retry has
/// the same payload.
fn with_bodies(mut response: CreateStepResponse, sent: Option<v1::Step>) -> CreateStepResponse {
    if let (Some(stored), Some(sent)) = (&mut response.step, sent) {
        stored.body = sent.body;
        for (key, translation) in sent.translations {
            let language = Language::parse(&key);
            let stored = language.and_then(|it| stored.translations.get_mut(it.as_str()));
            if let Some(stored) = stored {
                stored.body = translation.body;
            }
        }
    }
    response
}
