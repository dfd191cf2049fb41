//! StepService: decode, one store call, encode.

use std::sync::Arc;

use prost::Message;
use tonic::{Request, Response, Status};

use super::{
    Services,
    call::{respond, write_mode},
    decode::{self, Field, field, step as decode_step},
    encode,
    idempotency::{IdempotentRequest, decode_stored},
    page,
};
use crate::{
    domain::{
        Result,
        decide::linked_import_only,
        ids::{StepId, TaskId},
        step::{NewStep, Placement, Step},
        translation::Language,
    },
    messages::{
        fields::{FieldUse, STEP},
        ignored::Ignored,
        update,
    },
    proto::v1::{
        self, CreateStepRequest, CreateStepResponse, DeleteStepRequest, DeleteStepResponse,
        GetStepRequest, GetStepResponse, ListStepsRequest, ListStepsResponse, UpdateStepRequest,
        UpdateStepResponse, step_service_server::StepService,
    },
    store::WriteOutcome,
};

#[tonic::async_trait]
impl StepService for Services {
    async fn create_step(
        &self,
        request: Request<CreateStepRequest>,
    ) -> Result<Response<CreateStepResponse>, Status> {
        respond(request, async |caller, mut request| {
            let request_id = std::mem::take(&mut request.request_id);
            let validate_only = std::mem::take(&mut request.validate_only);
            let mut ignored = Ignored::default();
            let (idempotent, new, prevstep) = decode::all(|violations| {
                let idempotent =
                    IdempotentRequest::read(&request_id, "CreateStep", &request, violations);
                let mut field = Field::root("step", violations);
                let new = field.required(request.step).and_then(|step| {
                    STEP.list_sent(&step.encode_to_vec(), FieldUse::Identity, &mut ignored);
                    decode_step::new(step, field, &mut ignored)
                });
                let field = Field::root("prevstep", violations);
                let prevstep = field::optional_guid(&request.prevstep, StepId::parse, field);
                Some((idempotent, new?, prevstep))
            })?;
            refuse_links(&new)?;
            let ignored = ignored.into_paths("step");
            let retry = idempotent.as_ref().map(|request| {
                let ignored = ignored.clone();
                request.retry_key(move |(step, placement): &(Step, Placement)| {
                    let step = encode::step_without_bodies(step);
                    created(step, *placement, ignored.clone())
                })
            });
            let account = self.account(&caller);
            let outcome = account
                .create_step(new, prevstep, retry, write_mode(validate_only))
                .await?;
            match (outcome, idempotent) {
                (WriteOutcome::Done((step, placement)), _) => {
                    Ok(created(encode::step(step), placement, ignored))
                }
                (WriteOutcome::Replayed(stored), Some(request)) => {
                    Ok(with_bodies(decode_stored(&stored)?, request.payload()?))
                }
                (WriteOutcome::Replayed(stored), None) => decode_stored(&stored),
            }
        })
        .await
    }

    async fn get_step(
        &self,
        request: Request<GetStepRequest>,
    ) -> Result<Response<GetStepResponse>, Status> {
        respond(request, async |caller, request| {
            let GetStepRequest { guid } = request;
            let id = decode::only_guid("guid", &guid, StepId::parse)?;
            let step = self.account(&caller).get_step(id).await?;
            Ok(GetStepResponse {
                step: Some(encode::step(step)),
            })
        })
        .await
    }

    async fn list_steps(
        &self,
        request: Request<ListStepsRequest>,
    ) -> Result<Response<ListStepsResponse>, Status> {
        respond(request, async |caller, request| {
            let tokens = self.page_tokens(&caller, "ListSteps", &request);
            let ListStepsRequest {
                task,
                expand,
                page_size,
                page_token,
            } = request;
            let bodies = !expand.is_empty();
            let (task, (after, size)) = decode::all(|violations| {
                let task = field::guid(&task, TaskId::parse, Field::root("task", violations));
                field::check_expand(&expand, violations);
                task.zip(page::start(&tokens, page_size, &page_token, violations))
            })?;
            let account = self.account(&caller);
            let page = account.list_steps(task, bodies, after, size).await?;
            let (steps, next_page_token) = page::encode(
                page,
                &tokens,
                |(_, cursor)| *cursor,
                |(step, _)| encode::step(step),
            );
            Ok(ListStepsResponse {
                steps,
                next_page_token,
            })
        })
        .await
    }

    async fn update_step(
        &self,
        request: Request<UpdateStepRequest>,
    ) -> Result<Response<UpdateStepResponse>, Status> {
        respond(request, async |caller, request| {
            let UpdateStepRequest {
                step,
                update_mask,
                validate_only,
            } = request;
            let mut ignored = Ignored::default();
            let update = decode::all(|violations| {
                update::step(step, update_mask, violations, &mut ignored)
            })?;
            let update = Arc::new(update);
            let account = self.account(&caller);
            let step = account
                .update_step(Arc::clone(&update), write_mode(validate_only))
                .await?;
            update.edit.list_ignored_by_step(&step, &mut ignored);
            Ok(UpdateStepResponse {
                step: Some(encode::step(step)),
                ignored_paths: ignored.into_paths("step"),
            })
        })
        .await
    }

    async fn delete_step(
        &self,
        request: Request<DeleteStepRequest>,
    ) -> Result<Response<DeleteStepResponse>, Status> {
        respond(request, async |caller, request| {
            let DeleteStepRequest { guid, etag } = request;
            let (id, expected) = decode::guid_and_etag(&guid, StepId::parse, &etag)?;
            let account = self.account(&caller);
            account.delete_step(id, expected).await?;
            Ok(DeleteStepResponse {
                ignored_paths: Vec::new(),
            })
        })
        .await
    }
}

fn created(step: v1::Step, placement: Placement, ignored_paths: Vec<String>) -> CreateStepResponse {
    CreateStepResponse {
        step: Some(step),
        ignored_paths,
        placement: encode::placement(placement).into(),
    }
}

/// Refuses a linked question, as only an import creates links.
fn refuse_links(new: &NewStep) -> Result<()> {
    match new.kind.feedback() {
        Some(config) if config.linked => Err(linked_import_only()),
        Some(_) | None => Ok(()),
    }
}

/// A stored response, with the bodies of the retry. They are not stored with it, as
/// the payload of a retry is the same.
fn with_bodies(mut response: CreateStepResponse, request: CreateStepRequest) -> CreateStepResponse {
    if let (Some(stored), Some(sent)) = (&mut response.step, request.step) {
        stored.body = sent.body;
        for (key, translation) in sent.translations {
            let stored = Language::parse(&key)
                .and_then(|language| stored.translations.get_mut(language.as_str()));
            if let Some(stored) = stored {
                stored.body = translation.body;
            }
        }
    }
    response
}
