//! RevisionService: decode, one store call, encode. CompareRevisions reads two guides. Each is a
//! revision, which never changes, or the current state.

use serde::{Deserialize, Serialize};

use super::{
    call::{Call, write_mode},
    compared_guide::ComparedGuide,
    idempotency, status,
};
use crate::{
    call_context::CallContext,
    domain::{
        Result,
        history::{self, RevisionAlias, RevisionName},
        ids::TaskId,
        import::Imported,
        page::Page,
        violation::Violations,
    },
    messages::{
        decode::{
            self, Field,
            field::{self, sent_text},
        },
        encode,
    },
    proto::v1::{
        CompareRevisionsRequest, CompareRevisionsResponse, CreateRevisionRequest,
        CreateRevisionResponse, DeleteRevisionRequest, DeleteRevisionResponse, DeletedTask,
        GetRevisionRequest, GetRevisionResponse, ListDeletedTasksRequest, ListDeletedTasksResponse,
        ListRevisionsRequest, ListRevisionsResponse, RestoreRevisionRequest,
        RestoreRevisionResponse, SetRevisionAliasRequest, SetRevisionAliasResponse, StepDifference,
        TaskRevision,
    },
    store::{CreatedRevision, NewRevisionRequest, RestoreRequest},
};

impl Call {
    pub async fn create_revision(
        self,
        request: CreateRevisionRequest,
    ) -> Result<CreateRevisionResponse> {
        let (idempotency, new) = decode::all(|violations| {
            let idempotency = self.idempotency(&request.request_id, &request, violations);
            let task = task(&request.task, violations);
            let note = field::text(request.note, violations.at("note"));
            let alias = violations
                .at("alias")
                .optional(sent_text(request.alias.as_str()), alias);
            let etag = violations.at("guide_etag");
            let expected = field::expected_etag(&request.guide_etag, etag);
            let new = NewRevisionRequest {
                task: task?,
                note: note?,
                alias,
                expected,
            };
            Some((idempotency, new))
        })?;
        let created = |made: CreatedRevision| CreateRevisionResponse {
            revision: Some(task_revision(made.revision)),
            unchanged: made.unchanged,
        };
        idempotency::once(idempotency, created, async |retry| {
            self.account.create_revision(new, retry).await
        })
        .await
    }

    pub async fn get_revision(self, request: GetRevisionRequest) -> Result<GetRevisionResponse> {
        let (task, name) = task_and_revision(&request.task, &request.revision)?;
        if request.without_document {
            let revision = self.account.get_revision(task, &name, "revision").await?;
            return Ok(GetRevisionResponse {
                revision: Some(task_revision(revision)),
                document: None,
            });
        }
        let found = ComparedGuide::revision(&self.account, task, &name, "revision", 0);
        let (revision, guide) = found.await?;
        let bytes = guide.held_bytes();
        // From now on, it counts towards the response.
        drop(guide.memory);
        CallContext::reserve_response(bytes)?;
        Ok(GetRevisionResponse {
            revision: Some(task_revision(revision)),
            document: Some(guide.document),
        })
    }

    pub async fn list_revisions(
        self,
        mut request: ListRevisionsRequest,
    ) -> Result<ListRevisionsResponse> {
        request.task.make_ascii_lowercase();
        let tokens = self.page_tokens(&request);
        let (task, (before, size)) = decode::all(|violations| {
            let task = task(&request.task, violations);
            task.zip(tokens.start(request.page_size, &request.page_token, violations))
        })?;
        let page = self.account.list_revisions(task, before, size).await?;
        let (revisions, next_page_token) =
            tokens.page(page, |revision| revision.number, task_revision);
        Ok(ListRevisionsResponse {
            revisions,
            next_page_token,
        })
    }

    pub async fn compare_revisions(
        self,
        mut request: CompareRevisionsRequest,
    ) -> Result<CompareRevisionsResponse> {
        request.task.make_ascii_lowercase();
        let tokens = self.page_tokens(&request);
        let (task, base, target, (after, size)) = decode::all(|violations| {
            let task = task(&request.task, violations);
            let base = revision_name(&request.base, violations.at("base"));
            let target = violations
                .at("target")
                .optional(sent_text(request.target.as_str()), revision_name);
            let start = tokens.start(request.page_size, &request.page_token, violations);
            Some((task?, base?, target, start?))
        })?;
        let account = &self.account;
        let (_, base) = ComparedGuide::revision(account, task, &base, "base", 0).await?;
        let held = base.held_bytes();
        let target = match target {
            Some(name) => {
                let found = ComparedGuide::revision(account, task, &name, "target", held);
                found.await?.1
            }
            None => ComparedGuide::now(account, task, held).await?,
        };
        // Later pages compare the same two guides, even if an alias has moved since.
        let guides = format!("{} {}", base.etag.as_str(), target.etag.as_str());
        let after: Option<ComparedSteps> = after;
        if after.as_ref().is_some_and(|after| after.guides != guides) {
            return Err(Violations::from(status::page_token_violation()).into());
        }
        let weight = base.weight() + target.weight();
        let compared = account.analyze(weight, move || base.compare(&target));
        let (mut task_paths, steps) = compared.await?;
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
        let (steps, next_page_token) = tokens.rest_of_page(used, page, cursor, |(_, step)| step);
        Ok(CompareRevisionsResponse {
            same,
            task_paths,
            steps,
            next_page_token,
        })
    }

    pub async fn restore_revision(
        self,
        request: RestoreRevisionRequest,
    ) -> Result<RestoreRevisionResponse> {
        let mode = write_mode(request.validate_only);
        let (idempotency, restore) = decode::all(|violations| {
            let idempotency = self.idempotency(&request.request_id, &request, violations);
            let task = task(&request.task, violations);
            let revision = revision_name(&request.revision, violations.at("revision"));
            let etag = violations.at("guide_etag");
            let restore = RestoreRequest {
                expected: field::expected_etag(&request.guide_etag, etag),
                task: task?,
                revision: revision?,
                skip_missing_subtasks: request.skip_missing_subtasks,
            };
            Some((idempotency, restore))
        })?;
        idempotency::once(idempotency, restored, async |retry| {
            self.account.restore_revision(restore, retry, mode).await
        })
        .await
    }

    pub async fn delete_revision(
        self,
        request: DeleteRevisionRequest,
    ) -> Result<DeleteRevisionResponse> {
        let (task, revision) = task_and_revision(&request.task, &request.revision)?;
        self.account.delete_revision(task, revision).await?;
        Ok(DeleteRevisionResponse {})
    }

    pub async fn set_revision_alias(
        self,
        request: SetRevisionAliasRequest,
    ) -> Result<SetRevisionAliasResponse> {
        let (task, alias, revision) = decode::all(|violations| {
            let task = task(&request.task, violations);
            let alias = alias(&request.alias, violations.at("alias"));
            let revision = violations
                .at("revision")
                .optional(sent_text(request.revision.as_str()), revision_name);
            Some((task?, alias?, revision))
        })?;
        let account = self.account;
        let revision = account.set_revision_alias(task, alias, revision).await?;
        Ok(SetRevisionAliasResponse {
            revision: revision.map(task_revision),
        })
    }

    pub async fn list_deleted_tasks(
        self,
        request: ListDeletedTasksRequest,
    ) -> Result<ListDeletedTasksResponse> {
        let tokens = self.page_tokens(&request);
        let (after, size) = decode::all(|violations| {
            tokens.start(request.page_size, &request.page_token, violations)
        })?;
        let page = self.account.list_deleted_tasks(after, size).await?;
        let cursor = |task: &history::DeletedTask| (task.deleted.at, task.latest.task);
        let (tasks, next_page_token) = tokens.page(page, cursor, deleted_task);
        Ok(ListDeletedTasksResponse {
            tasks,
            next_page_token,
        })
    }
}

/// The `task` of a request.
fn task(id: &str, violations: &mut Violations) -> Option<TaskId> {
    field::guid(id, TaskId::parse, violations.at("task"))
}

/// The number or alias of a revision.
fn revision_name(text: &str, mut field: Field<'_>) -> Option<RevisionName> {
    let max = RevisionAlias::MAX;
    let otherwise = format!(
        "is neither the number of a revision, in decimal digits, nor an alias: 1 to {max} characters \
         of `a-z 0-9 . _ -`, the first a letter"
    );
    field.parsed(text, RevisionName::parse(text), &otherwise)
}

fn alias(text: &str, mut field: Field<'_>) -> Option<RevisionAlias> {
    let max = RevisionAlias::MAX;
    let otherwise = format!("must be 1 to {max} characters of `a-z 0-9 . _ -`, the first a letter");
    field.parsed(text, RevisionAlias::parse(text), &otherwise)
}

/// The `task` and `revision` of a request.
fn task_and_revision(id: &str, revision: &str) -> Result<(TaskId, RevisionName)> {
    let decoded = decode::all(|violations| {
        let task = task(id, violations);
        task.zip(revision_name(revision, violations.at("revision")))
    })?;
    Ok(decoded)
}

fn restored(done: Imported) -> RestoreRevisionResponse {
    let replaced = done.replaced.into_iter();
    RestoreRevisionResponse {
        task: Some(encode::task(done.task)),
        outcome: done.outcome as i32,
        previous_revision: done.previous_revision,
        skipped_steps: done.skipped.iter().map(ToString::to_string).collect(),
        replaced_ids: replaced
            .map(|(former, new)| (former.to_string(), new.to_string()))
            .collect(),
        guide_etag: done.guide_etag.into_string(),
    }
}

/// A place in a comparison.
#[derive(Serialize, Deserialize)]
struct ComparedSteps {
    /// The number of steps before it.
    count: usize,
    /// The etags of the two guides.
    guides: String,
}

/// A revision without its document.
fn task_revision(revision: history::TaskRevision) -> TaskRevision {
    let aliases = revision.aliases.iter();
    TaskRevision {
        task: revision.task.to_string(),
        revision: revision.number,
        cause: revision.cause as i32,
        note: revision.note.into_string(),
        subject: revision.subject,
        created_ts: Some(encode::timestamp(revision.created)),
        task_name: revision.task_name.into_string(),
        product_id: revision.product.get(),
        step_count: i32::try_from(revision.step_count).unwrap_or(i32::MAX),
        size_bytes: revision.size,
        aliases: aliases.map(|alias| alias.as_str().to_owned()).collect(),
        guide_etag: revision.guide_etag.into_string(),
    }
}

/// A task that was deleted.
fn deleted_task(task: history::DeletedTask) -> DeletedTask {
    DeletedTask {
        latest: Some(task_revision(task.latest)),
        deleted_ts: Some(encode::timestamp(task.deleted.at)),
        subject: task.deleted.subject,
    }
}
