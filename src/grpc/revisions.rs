//! RevisionService: decode, one store call, encode. CompareRevisions reads two guides, which are
//! revisions, and so never change, or the guide as it is now.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Request, Response, Status};

use super::{
    Services,
    call::{respond, write_mode},
    decode::{self, Field, REQUIRED, field},
    encode,
    idempotency::{self, IdempotentRequest},
    page, status,
};
use crate::{
    analysis_threads::run_by_weight,
    call_context::{CallContext, WorkMemory},
    domain::{
        Error, Result, SizedResource,
        compare::compare,
        etag::GuideEtag,
        history::{EncodedGuide, RequestedRevision, RevisionAlias, RevisionName},
        ids::TaskId,
        import::Imported,
        page::Page,
        violation::{Reason, Violations},
    },
    messages::{compared::compared_pair, kept_guide},
    proto::v1::{
        CompareRevisionsRequest, CompareRevisionsResponse, CreateRevisionRequest,
        CreateRevisionResponse, DeleteRevisionRequest, DeleteRevisionResponse, GetRevisionRequest,
        GetRevisionResponse, ListDeletedTasksRequest, ListDeletedTasksResponse,
        ListRevisionsRequest, ListRevisionsResponse, RestoreRevisionRequest,
        RestoreRevisionResponse, SetRevisionAliasRequest, SetRevisionAliasResponse, StepDifference,
        TaskDocument, revision_service_server::RevisionService,
    },
    store::{Account, CreatedRevision, NewRevisionRequest, RestoreRequest},
};

#[tonic::async_trait]
impl RevisionService for Services {
    async fn create_revision(
        &self,
        request: Request<CreateRevisionRequest>,
    ) -> Result<Response<CreateRevisionResponse>, Status> {
        respond(request, async |caller, mut request| {
            let request_id = std::mem::take(&mut request.request_id);
            let (idempotent, new) = decode::all(|violations| {
                let idempotent =
                    IdempotentRequest::read(&request_id, "CreateRevision", &request, violations);
                let CreateRevisionRequest {
                    task,
                    note,
                    alias,
                    guide_etag,
                    request_id: _,
                } = request;
                let task = field::guid(&task, TaskId::parse, Field::root("task", violations));
                let note = field::text(note, Field::root("note", violations));
                let alias = match alias.as_str() {
                    "" => Some(None),
                    alias => self::alias(alias, violations).map(Some),
                };
                let field = Field::root("guide_etag", violations);
                let expected = field::expected_etag(&guide_etag, field);
                let requested = RequestedRevision {
                    note: note?,
                    alias: alias?,
                };
                let task = task?;
                let new = NewRevisionRequest {
                    task,
                    requested,
                    expected,
                };
                Some((idempotent, new))
            })?;
            let account = self.account(&caller);
            idempotency::once(idempotent, created, async |retry| {
                account.create_revision(new, retry).await
            })
            .await
        })
        .await
    }

    async fn get_revision(
        &self,
        request: Request<GetRevisionRequest>,
    ) -> Result<Response<GetRevisionResponse>, Status> {
        respond(request, async |caller, request| {
            let GetRevisionRequest {
                task,
                revision,
                without_document,
            } = request;
            let (task, name) = task_and_revision(&task, "revision", &revision)?;
            let account = self.account(&caller);
            let (revision, document) = if without_document {
                (account.get_revision(task, &name, "revision").await?, None)
            } else {
                let found = account.get_revision_and_guide(task, &name, "revision");
                let ((revision, guide), permit) = found.await?;
                let DecodedGuide { document, memory } = decoded(guide, permit, 0).await?;
                let bytes = memory.bytes();
                // From now on it counts as the response.
                drop(memory);
                if !CallContext::try_reserve_response(bytes) {
                    return Err(Error::Overloaded);
                }
                (revision, Some(document))
            };
            Ok(GetRevisionResponse {
                revision: Some(encode::task_revision(revision)),
                document,
            })
        })
        .await
    }

    async fn list_revisions(
        &self,
        request: Request<ListRevisionsRequest>,
    ) -> Result<Response<ListRevisionsResponse>, Status> {
        respond(request, async |caller, mut request| {
            request.task.make_ascii_lowercase();
            let tokens = self.page_tokens(&caller, "ListRevisions", &request);
            let ListRevisionsRequest {
                task,
                page_size,
                page_token,
            } = request;
            let (task, (before, size)) = decode::all(|violations| {
                let task = field::guid(&task, TaskId::parse, Field::root("task", violations));
                let start = page::start(&tokens, page_size, &page_token, violations);
                Some((task?, start?))
            })?;
            let account = self.account(&caller);
            let page = account.list_revisions(task, before, size).await?;
            let (revisions, next_page_token) = page::encode(
                page,
                &tokens,
                |revision| revision.number,
                encode::task_revision,
            );
            Ok(ListRevisionsResponse {
                revisions,
                next_page_token,
            })
        })
        .await
    }

    async fn compare_revisions(
        &self,
        request: Request<CompareRevisionsRequest>,
    ) -> Result<Response<CompareRevisionsResponse>, Status> {
        respond(request, async |caller, mut request| {
            request.task.make_ascii_lowercase();
            let tokens = self.page_tokens(&caller, "CompareRevisions", &request);
            let CompareRevisionsRequest {
                task,
                base,
                target,
                page_size,
                page_token,
            } = request;
            let (task, base, target, (after, size)) = decode::all(|violations| {
                let task = field::guid(&task, TaskId::parse, Field::root("task", violations));
                let base = revision_name(&base, Field::root("base", violations));
                let target = optional_revision(&target, Field::root("target", violations));
                let start = page::start(&tokens, page_size, &page_token, violations);
                Some((task?, base?, target?, start?))
            })?;
            let account = self.account(&caller);
            let base = ComparedGuide::revision(&account, task, &base, "base", 0).await?;
            let other = base.guide.memory.bytes();
            let target = match target {
                Some(target) => {
                    ComparedGuide::revision(&account, task, &target, "target", other).await?
                }
                None => ComparedGuide::now(&account, task, other).await?,
            };
            // A page follows one of these two guides, whatever the names mean by now.
            let guides = format!("{} {}", base.etag.as_str(), target.etag.as_str());
            let after: Option<ComparedSteps> = after;
            if after.as_ref().is_some_and(|after| after.guides != guides) {
                return Err(Error::Invalid(status::page_token_violation().into()));
            }
            let weight = weight(base.bytes + target.bytes);
            let comparison = account.analyse(weight, move || base.compare(&target));
            let Comparison {
                mut task_paths,
                steps,
            } = comparison.await?;
            let same = after.is_none() && task_paths.is_empty() && steps.is_empty();
            if after.is_some() {
                task_paths.clear();
            }
            let used = task_paths.iter().map(|path| path.len() + 4).sum();
            let first = after.map_or(0, |after| after.count);
            let mut items = (first + 1..).zip(steps.into_iter().skip(first));
            let page = Page {
                items: items.by_ref().take(size.get() as usize).collect(),
                more: items.next().is_some(),
            };
            let cursor = |(count, _): &(usize, StepDifference)| ComparedSteps {
                count: *count,
                guides: guides.clone(),
            };
            let (steps, next_page_token) =
                page::encode_beside(used, page, &tokens, cursor, |(_, step)| step);
            Ok(CompareRevisionsResponse {
                same,
                task_paths,
                steps,
                next_page_token,
            })
        })
        .await
    }

    async fn restore_revision(
        &self,
        request: Request<RestoreRevisionRequest>,
    ) -> Result<Response<RestoreRevisionResponse>, Status> {
        respond(request, async |caller, mut request| {
            let request_id = std::mem::take(&mut request.request_id);
            let validate_only = std::mem::take(&mut request.validate_only);
            let (idempotent, restore) = decode::all(|violations| {
                let idempotent =
                    IdempotentRequest::read(&request_id, "RestoreRevision", &request, violations);
                let RestoreRevisionRequest {
                    task,
                    revision,
                    guide_etag,
                    skip_missing_subtasks,
                    request_id: _,
                    validate_only: _,
                } = request;
                let task = field::guid(&task, TaskId::parse, Field::root("task", violations));
                let revision = revision_name(&revision, Field::root("revision", violations));
                let field = Field::root("guide_etag", violations);
                let expected = field::expected_etag(&guide_etag, field);
                let restore = RestoreRequest {
                    task: task?,
                    revision: revision?,
                    expected,
                    skip_missing_subtasks,
                };
                Some((idempotent, restore))
            })?;
            let account = self.account(&caller);
            let mode = write_mode(validate_only);
            idempotency::once(idempotent, restored, async |retry| {
                account.restore_revision(restore, retry, mode).await
            })
            .await
        })
        .await
    }

    async fn delete_revision(
        &self,
        request: Request<DeleteRevisionRequest>,
    ) -> Result<Response<DeleteRevisionResponse>, Status> {
        respond(request, async |caller, request| {
            let DeleteRevisionRequest { task, revision } = request;
            let (task, revision) = task_and_revision(&task, "revision", &revision)?;
            let account = self.account(&caller);
            account.delete_revision(task, revision).await?;
            Ok(DeleteRevisionResponse {})
        })
        .await
    }

    async fn set_revision_alias(
        &self,
        request: Request<SetRevisionAliasRequest>,
    ) -> Result<Response<SetRevisionAliasResponse>, Status> {
        respond(request, async |caller, request| {
            let SetRevisionAliasRequest {
                task,
                alias,
                revision,
            } = request;
            let (task, alias, revision) = decode::all(|violations| {
                let task = field::guid(&task, TaskId::parse, Field::root("task", violations));
                let alias = self::alias(&alias, violations);
                let revision = optional_revision(&revision, Field::root("revision", violations));
                Some((task?, alias?, revision?))
            })?;
            let account = self.account(&caller);
            let revision = account.set_revision_alias(task, alias, revision).await?;
            Ok(SetRevisionAliasResponse {
                revision: revision.map(encode::task_revision),
            })
        })
        .await
    }

    async fn list_deleted_tasks(
        &self,
        request: Request<ListDeletedTasksRequest>,
    ) -> Result<Response<ListDeletedTasksResponse>, Status> {
        respond(request, async |caller, request| {
            let tokens = self.page_tokens(&caller, "ListDeletedTasks", &request);
            let ListDeletedTasksRequest {
                page_size,
                page_token,
            } = request;
            let (after, size) =
                decode::all(|violations| page::start(&tokens, page_size, &page_token, violations))?;
            let account = self.account(&caller);
            let page = account.list_deleted_tasks(after, size).await?;
            let (tasks, next_page_token) =
                page::encode(page, &tokens, |task| task.cursor(), encode::deleted_task);
            Ok(ListDeletedTasksResponse {
                tasks,
                next_page_token,
            })
        })
        .await
    }
}

/// The number or alias in a required field.
fn revision_name(text: &str, mut field: Field<'_>) -> Option<RevisionName> {
    let name = RevisionName::parse(text);
    if name.is_none() {
        match text {
            "" => field.refuse(Reason::FieldRequired, REQUIRED),
            _ => field.refuse(
                Reason::FieldInvalid,
                "is neither the number of a revision, in decimal digits, nor an alias of \
                 `a-z 0-9 . _ -`",
            ),
        }
    }
    name
}

/// The number or alias in a field that may be empty.
fn optional_revision(text: &str, field: Field<'_>) -> Option<Option<RevisionName>> {
    match text {
        "" => Some(None),
        text => revision_name(text, field).map(Some),
    }
}

/// The `alias` of a request.
fn alias(text: &str, violations: &mut Violations) -> Option<RevisionAlias> {
    let alias = RevisionAlias::parse(text);
    let mut field = Field::root("alias", violations);
    match (&alias, text) {
        (Some(_), _) => {}
        (None, "") => field.refuse(Reason::FieldRequired, REQUIRED),
        (None, _) => {
            let max = RevisionAlias::MAX;
            let description =
                format!("must be 1 to {max} characters of `a-z 0-9 . _ -`, the first a letter");
            field.refuse(Reason::FieldInvalid, description);
        }
    }
    alias
}

/// The `task` of a request, and the revision in this field.
fn task_and_revision(task: &str, name: &str, revision: &str) -> Result<(TaskId, RevisionName)> {
    let decoded = decode::all(|violations| {
        let task = field::guid(task, TaskId::parse, Field::root("task", violations));
        let revision = revision_name(revision, Field::root(name, violations));
        Some((task?, revision?))
    })?;
    Ok(decoded)
}

/// The guide of a revision, and the memory that it takes.
struct DecodedGuide {
    document: TaskDocument,
    memory: WorkMemory,
}

/// Decodes the guide of a revision, on a thread of its own if it is large. The call holds `other`
/// bytes beside it.
async fn decoded(
    guide: EncodedGuide,
    permit: Option<OwnedSemaphorePermit>,
    other: usize,
) -> Result<DecodedGuide> {
    let mut memory = WorkMemory::of_current_call();
    let weight = weight(guide.document_bytes);
    let decode = move || {
        let broken = || Error::Internal("a stored guide cannot be decoded".to_owned());
        let bytes = kept_guide::decoded_bytes(&guide).ok_or_else(broken)?;
        memory.hold(SizedResource::Guide, bytes, other)?;
        let document = kept_guide::document(&guide).ok_or_else(broken)?;
        // The bytes that it was decoded from are gone.
        memory.shrink_to(bytes.saturating_sub(guide.document_bytes));
        drop(permit);
        Ok(DecodedGuide { document, memory })
    };
    run_by_weight(weight, decode).await?
}

/// The weight of work on a guide of so many bytes.
fn weight(bytes: usize) -> usize {
    bytes / 1_024
}

fn created(made: CreatedRevision) -> CreateRevisionResponse {
    let CreatedRevision {
        revision,
        unchanged,
    } = made;
    CreateRevisionResponse {
        revision: Some(encode::task_revision(revision)),
        unchanged,
    }
}

fn restored(done: Imported) -> RestoreRevisionResponse {
    let Imported {
        task,
        outcome,
        previous_revision,
        skipped,
        replaced,
        guide_etag,
        guide: _,
        ignored: _,
    } = done;
    let replaced = replaced
        .into_iter()
        .map(|(former, new)| (former.to_string(), new.to_string()));
    RestoreRevisionResponse {
        task: Some(encode::task(task)),
        outcome: encode::import_outcome(outcome).into(),
        previous_revision,
        skipped_steps: skipped.iter().map(ToString::to_string).collect(),
        replaced_ids: replaced.collect::<BTreeMap<_, _>>(),
        guide_etag: guide_etag.into_string(),
    }
}

/// A guide to compare.
struct ComparedGuide {
    guide: DecodedGuide,
    etag: GuideEtag,
    bytes: usize,
}

/// In what two guides differ.
struct Comparison {
    task_paths: Vec<String>,
    steps: Vec<StepDifference>,
}

impl ComparedGuide {
    /// A revision; the call already holds `other` bytes.
    async fn revision(
        account: &Account,
        task: TaskId,
        name: &RevisionName,
        field: &'static str,
        other: usize,
    ) -> Result<Self> {
        let found = account.get_revision_and_guide(task, name, field);
        let ((revision, guide), permit) = found.await?;
        let bytes = guide.document_bytes;
        Ok(Self {
            guide: decoded(guide, permit, other).await?,
            etag: revision.guide_etag,
            bytes,
        })
    }

    /// The guide as it is now; the call already holds `other` bytes.
    async fn now(account: &Account, task: TaskId, other: usize) -> Result<Self> {
        let tree = account
            .export_task(task)
            .await
            .map_err(|error| match error {
                Error::TaskNotFound(_) => Error::task_not_found(task, "task"),
                error => error,
            })?;
        let (etag, bytes) = (GuideEtag::of(&tree), tree.bytes());
        let mut memory = WorkMemory::of_current_call();
        memory.hold(SizedResource::Guide, 2 * bytes, other)?;
        let document = encode::document(tree);
        Ok(Self {
            guide: DecodedGuide { document, memory },
            etag,
            bytes,
        })
    }

    fn compare(&self, target: &Self) -> Comparison {
        let (base, target) = (&self.guide.document, &target.guide.document);
        let [before, after] = compared_pair::<[u8; 32]>(base, target);
        let difference = compare(&before, &after);
        Comparison {
            task_paths: encode::paths(&difference.fields),
            steps: encode::step_differences(&difference, base, target),
        }
    }
}

/// A place in a comparison.
#[derive(Serialize, Deserialize)]
struct ComparedSteps {
    /// How many steps stand before it.
    count: usize,
    /// The etags of the two guides.
    guides: String,
}
