//! StepService: decode, one store call, encode.

use prost::Message;
use tonic::{Request, Response, Status};

use super::{
    call::{answer, mode},
    decode::{self, accepted, guid, optional_guid, required, step as decode_step, step_patch},
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
        ids::{StepId, TaskId},
        step::{NewStep, Placement, Step, linked_import_only},
        translation::Language,
        violation::{Path, Reason, Violations},
    },
    proto::v1::{
        self, CreateStepRequest, CreateStepResponse, DeleteStepRequest, DeleteStepResponse,
        GetStepRequest, GetStepResponse, ListStepsRequest, ListStepsResponse, UpdateStepRequest,
        UpdateStepResponse, step_service_server::StepService,
    },
    store::{Outcome, Store},
};

const STEP: Path<'static> = Path::root("step");

/// The steps of a store.
#[derive(Clone)]
pub struct Steps {
    /// The store.
    pub store: Store,
}

#[tonic::async_trait]
impl StepService for Steps {
    async fn create_step(
        &self,
        request: Request<CreateStepRequest>,
    ) -> Result<Response<CreateStepResponse>, Status> {
        answer(request, |caller, request| self.create(caller, request)).await
    }

    async fn get_step(
        &self,
        request: Request<GetStepRequest>,
    ) -> Result<Response<GetStepResponse>, Status> {
        answer(request, |caller, request| self.get(caller, request)).await
    }

    async fn list_steps(
        &self,
        request: Request<ListStepsRequest>,
    ) -> Result<Response<ListStepsResponse>, Status> {
        answer(request, |caller, request| self.list(caller, request)).await
    }

    async fn update_step(
        &self,
        request: Request<UpdateStepRequest>,
    ) -> Result<Response<UpdateStepResponse>, Status> {
        answer(request, |caller, request| self.update(caller, request)).await
    }

    async fn delete_step(
        &self,
        request: Request<DeleteStepRequest>,
    ) -> Result<Response<DeleteStepResponse>, Status> {
        answer(request, |caller, request| self.delete(caller, request)).await
    }
}

impl Steps {
    async fn create(
        &self,
        caller: Caller,
        mut request: CreateStepRequest,
    ) -> Result<CreateStepResponse> {
        let request_id = std::mem::take(&mut request.request_id);
        let validate_only = std::mem::take(&mut request.validate_only);
        let mut faults = Violations::new();
        let intent = Intent::read(&request_id, "CreateStep", &request, &mut faults);
        let mut ignored = Ignored::of("step");
        let new = required(request.step, &STEP, &mut faults)
            .and_then(|step| decode_step::new(step, &STEP, &mut faults, &mut ignored));
        let path = Path::root("prevstep");
        let prevstep = optional_guid(&request.prevstep, StepId::parse, &path, &mut faults);
        let new = accepted(new, faults)?;
        refuse_links(&new)?;
        let ignored = ignored.into_paths();
        let retry = intent.as_ref().map(|intent| {
            let ignored = ignored.clone();
            intent.retry(move |(step, placement): &(Step, Placement)| {
                let step = encode::step_without_bodies(step);
                created(step, *placement, ignored.clone()).encode_to_vec()
            })
        });
        let account = self.store.account(&caller.account);
        let outcome = account
            .create_step(new, prevstep, retry, mode(validate_only))
            .await?;
        match (outcome, intent) {
            (Outcome::Done((step, placement)), _) => {
                Ok(created(encode::step(step), placement, ignored))
            }
            (Outcome::Replayed(kept), Some(intent)) => {
                with_bodies(retry::read(&kept)?, intent.payload()?)
            }
            (Outcome::Replayed(kept), None) => retry::read(&kept),
        }
    }

    async fn get(&self, caller: Caller, request: GetStepRequest) -> Result<GetStepResponse> {
        let GetStepRequest { guid: id } = request;
        let id = named(&id)?;
        let step = self.store.account(&caller.account).get_step(id).await?;
        Ok(GetStepResponse {
            step: Some(encode::step(step)),
        })
    }

    async fn list(&self, caller: Caller, request: ListStepsRequest) -> Result<ListStepsResponse> {
        let ListStepsRequest {
            task,
            expand,
            page_size,
            page_token,
        } = request;
        let mut faults = Violations::new();
        let task = guid(&task, TaskId::parse, &Path::root("task"), &mut faults);
        let bodies = expands_bodies(&expand, &mut faults);
        let size = decode::page_size(page_size, &mut faults);
        let listing = Listing {
            key: self.store.page_key(),
            account: &caller.account,
            rpc: "ListSteps",
            filters: filters_as_bytes(task, bodies),
        };
        let after = page::after(&listing, &page_token, &mut faults);
        let (task, size) = accepted(task.zip(size), faults)?;
        let account = self.store.account(&caller.account);
        let page = account.list_steps(task, bodies, after, size).await?;
        let (steps, next_page_token) = page::cut(
            page,
            &listing,
            |(_, cursor)| cursor.clone(),
            |(step, _)| encode::step(step),
        );
        Ok(ListStepsResponse {
            steps,
            next_page_token,
        })
    }

    async fn update(
        &self,
        caller: Caller,
        request: UpdateStepRequest,
    ) -> Result<UpdateStepResponse> {
        let UpdateStepRequest {
            step,
            update_mask,
            validate_only,
        } = request;
        let mut faults = Violations::new();
        let mut ignored = Ignored::of("step");
        let mask = Mask::parse(update_mask, &mask::STEP, &mut faults, &mut ignored);
        let update = required(step, &STEP, &mut faults)
            .and_then(|step| step_patch::update(step, &mask, &STEP, &mut faults, &mut ignored));
        let step_patch::Update {
            guid,
            expected,
            patch,
        } = accepted(update, faults)?;
        let account = self.store.account(&caller.account);
        let (step, dropped) = account
            .update_step(guid, expected, patch, mode(validate_only))
            .await?;
        dropped.into_iter().for_each(|field| ignored.add(field));
        Ok(UpdateStepResponse {
            step: Some(encode::step(step)),
            ignored_paths: ignored.into_paths(),
        })
    }

    async fn delete(
        &self,
        caller: Caller,
        request: DeleteStepRequest,
    ) -> Result<DeleteStepResponse> {
        let DeleteStepRequest { guid: id, etag } = request;
        let mut faults = Violations::new();
        let id = guid(&id, StepId::parse, &Path::root("guid"), &mut faults);
        let expected = decode::expected(&etag, &Path::root("etag"), &mut faults);
        let id = accepted(id, faults)?;
        let account = self.store.account(&caller.account);
        account.delete_step(id, expected).await?;
        Ok(DeleteStepResponse {
            ignored_paths: Vec::new(),
        })
    }
}

fn created(step: v1::Step, placement: Placement, ignored_paths: Vec<String>) -> CreateStepResponse {
    CreateStepResponse {
        step: Some(step),
        ignored_paths,
        placement: encode::placement(placement).into(),
    }
}

/// Links are made by an import only.
fn refuse_links(new: &NewStep) -> Result<()> {
    match new.kind.feedback() {
        Some(config) if config.linked => Err(linked_import_only()),
        Some(_) | None => Ok(()),
    }
}

/// A kept response with the bodies of the request that asks for it again: the
/// payload is the same, so they are not kept twice.
fn with_bodies(
    mut response: CreateStepResponse,
    request: CreateStepRequest,
) -> Result<CreateStepResponse> {
    if let (Some(kept), Some(sent)) = (&mut response.step, request.step) {
        kept.body = sent.body;
        for (key, row) in sent.translations {
            let kept = Language::parse(&key)
                .and_then(|language| kept.translations.get_mut(language.as_str()));
            if let Some(kept) = kept {
                kept.body = row.body;
            }
        }
    }
    Ok(response)
}

/// The step that a request names.
fn named(id: &str) -> Result<StepId> {
    let mut faults = Violations::new();
    let id = guid(id, StepId::parse, &Path::root("guid"), &mut faults);
    accepted(id, faults)
}

/// Whether a listing is to show bodies.
fn expands_bodies(expand: &[String], faults: &mut Violations) -> bool {
    let list = Path::root("expand");
    for (index, name) in expand.iter().enumerate() {
        if name != "body" {
            let path = list.index(index);
            faults.add(&path, Reason::FieldInvalid, "must be `body`");
        }
    }
    !expand.is_empty()
}

/// The filters of a listing. A faulty one never gets to give out a token.
fn filters_as_bytes(task: Option<TaskId>, bodies: bool) -> Vec<u8> {
    let mut bytes = vec![u8::from(bodies)];
    bytes.extend(task.iter().flat_map(|task| *task.0.as_bytes()));
    bytes
}
