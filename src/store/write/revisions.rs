//! Writes of the history: requested revisions and aliases.

use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};

use super::{Operation, Tx};
use crate::{
    domain::{
        Error, Precondition, Result, SizedResource,
        changes::Changes,
        etag::{ExpectedEtag, GuideEtag},
        history::{
            EncodedGuide, HistoryEdit, HistoryState, KeptDocument, NewRevision, NewestRevision,
            Note, RevisionAlias, RevisionCause, RevisionContent, RevisionName, TaskRevision,
            check_requested_count, revision_aliases, set_alias,
        },
        ids::TaskId,
        size::stored_count,
        time::Timestamp,
    },
    store::{
        Account, RetryKey, WriteMode, WriteOutcome,
        entity::{
            task_history,
            task_revision::{Column, Entity},
        },
        error::StoreError,
        read::revisions,
    },
};

#[derive(Clone, Debug)]
pub struct NewRevisionRequest {
    pub task: TaskId,
    pub note: Note,
    pub alias: Option<RevisionAlias>,
    /// The etag that the guide must have.
    pub expected: ExpectedEtag,
}

#[derive(Clone, Debug)]
pub struct CreatedRevision {
    pub revision: TaskRevision,
    /// Whether the revision existed already, because nothing has changed since.
    pub unchanged: bool,
}

impl Account {
    /// Creates a revision of a guide as it is now.
    pub async fn create_revision(
        &self,
        request: NewRevisionRequest,
        retry: Option<RetryKey<CreatedRevision>>,
    ) -> Result<WriteOutcome<CreatedRevision>> {
        self.write_idempotent(CreateRevision(request), WriteMode::Store, retry)
            .await
    }

    pub async fn delete_revision(&self, task: TaskId, revision: RevisionName) -> Result<()> {
        let delete = DeleteRevision { task, revision };
        self.write(delete, WriteMode::Store).await
    }

    /// Points an alias at a revision, which is returned, or removes the alias.
    pub async fn set_revision_alias(
        &self,
        task: TaskId,
        alias: RevisionAlias,
        revision: Option<RevisionName>,
    ) -> Result<Option<TaskRevision>> {
        let set = SetAlias {
            task,
            alias,
            revision,
        };
        self.write(set, WriteMode::Store).await
    }
}

impl Tx<'_> {
    /// Locks the history of a task, if it has one, and reads its newest revision. If the task exists,
    /// lock it first.
    pub async fn lock_history(&self, task: TaskId) -> Result<HistoryState, StoreError> {
        let mut state = HistoryState {
            task,
            last_number: 0,
            newest: None,
        };
        let history = self
            .find::<task_history::Entity>()
            .filter(task_history::Column::Task.eq(task.0));
        let history = self.locked(history, task_history::Column::Task);
        if let Some(history) = history.all(self.db()).await?.pop() {
            state.last_number = history.last_number;
            let newest: Vec<(i64, i64, String)> = self
                .find::<Entity>()
                .select_only()
                .columns([Column::Number, Column::CreatedTs, Column::GuideEtag])
                .filter(Column::Task.eq(task.0))
                .order_by_desc(Column::Number)
                .limit(1)
                .into_tuple()
                .all(self.db())
                .await?;
            let newest = newest.into_iter().next();
            state.newest = newest.map(|(number, created, guide_etag)| NewestRevision {
                number,
                created: Timestamp(created),
                guide_etag: GuideEtag::stored(guide_etag),
            });
        }
        Ok(state)
    }

    /// Fails if the task has too many requested revisions for one more.
    async fn check_requested_revisions(&self, task: TaskId) -> Result<(), StoreError> {
        let count = self
            .find::<Entity>()
            .filter(Column::Task.eq(task.0))
            .filter(Column::Cause.eq(RevisionCause::Requested as i32))
            .count(self.db())
            .await?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(check_requested_count(count)?)
    }

    /// A revision with the bytes of its document.
    async fn get_revision(
        &self,
        task: TaskId,
        name: &RevisionName,
    ) -> Result<(TaskRevision, usize), StoreError> {
        revisions::get(self.scope(), task, name, "revision").await
    }

    /// The document of a revision, which never changes, and its bytes.
    pub async fn read_kept_document(
        &self,
        task: TaskId,
        name: &RevisionName,
    ) -> Result<(KeptDocument, usize), StoreError> {
        let (revision, document_bytes) = self.get_revision(task, name).await?;
        self.permit_guides(document_bytes)?;
        let content = revisions::content(self.scope(), task, revision.number).await?;
        let guide = EncodedGuide {
            // If it has just been deleted, the next attempt does not find it.
            content: content.ok_or(StoreError::Conflict)?,
            document_bytes,
        };
        Ok((self.decode(guide)?, document_bytes))
    }
}

struct CreateRevision(NewRevisionRequest);

impl Operation for CreateRevision {
    type Answer = CreatedRevision;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, CreatedRevision), StoreError> {
        let NewRevisionRequest {
            task,
            note,
            alias,
            expected,
        } = &self.0;
        let task = *task;
        let guides = tx.lock_guides(&[task], []).await?;
        if !guides.tasks.contains_key(&task) {
            return Err(Error::task_not_found(task, "task").into());
        }
        let history = tx.lock_history(task).await?;
        let guide = tx.read_exportable_guide(&guides).await?;
        let guide = guide.ok_or(Error::TooLarge {
            resource: SizedResource::Guide,
            limit: tx.context.max_message_bytes,
        })?;
        let guide_etag = GuideEtag::for_guide(&guide.tree);
        expected.check_guide(Some(&guide_etag), task)?;
        let newest = match history.newest_if_unchanged(&guide_etag) {
            Some(number) => {
                let name = RevisionName::Number(number);
                Some(tx.get_revision(task, &name).await?.0)
            }
            None => None,
        };
        let unchanged = newest.is_some();
        let mut edits = Vec::new();
        let mut revision = match newest {
            Some(newest) if newest.cause == RevisionCause::Requested => newest,
            Some(newest) => {
                tx.check_requested_revisions(task).await?;
                edits.push(HistoryEdit::MarkRequested {
                    number: newest.number,
                    note: note.clone(),
                });
                TaskRevision {
                    cause: RevisionCause::Requested,
                    note: note.clone(),
                    ..newest
                }
            }
            None => {
                tx.check_requested_revisions(task).await?;
                let (cause, note) = (RevisionCause::Requested, note.clone());
                let mut revision = history.next(cause, note, guide_etag, &guide, &tx.context);
                let guide = tx.encode(guide)?;
                revision.size = stored_count(guide.content.len());
                edits.push(HistoryEdit::SetState {
                    last_number: revision.number,
                    deleted: None,
                });
                edits.push(HistoryEdit::Add(Box::new(NewRevision {
                    revision: revision.clone(),
                    content: RevisionContent::Encoded(guide),
                })));
                revision
            }
        };
        let mut aliases = revisions::aliases(tx.scope(), task).await?;
        if let Some(alias) = alias {
            edits.extend(set_alias(&mut aliases, alias, revision.number)?);
        }
        revision.aliases = revision_aliases(&aliases, revision.number);
        let mut changes = Changes::default();
        changes.edit_history(task, edits);
        let created = CreatedRevision {
            revision,
            unchanged,
        };
        Ok((changes, created))
    }
}

struct DeleteRevision {
    task: TaskId,
    revision: RevisionName,
}

impl Operation for DeleteRevision {
    type Answer = ();

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, ()), StoreError> {
        // The task's `kept_ts` may be the time of this revision.
        tx.lock_tasks([self.task]).await?;
        tx.lock_history(self.task).await?;
        let (stored, _) = tx.get_revision(self.task, &self.revision).await?;
        let number = stored.number;
        if let Some(alias) = stored.aliases.into_iter().next() {
            let in_use = Precondition::RevisionInUse {
                task: self.task,
                number,
                alias,
            };
            return Err(in_use.into());
        }
        let mut changes = Changes::default();
        changes.edit_history(self.task, vec![HistoryEdit::Delete(number)]);
        Ok((changes, ()))
    }
}

struct SetAlias {
    task: TaskId,
    alias: RevisionAlias,
    revision: Option<RevisionName>,
}

impl Operation for SetAlias {
    type Answer = Option<TaskRevision>;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Self::Answer), StoreError> {
        tx.lock_history(self.task).await?;
        let mut revision = match &self.revision {
            Some(name) => Some(tx.get_revision(self.task, name).await?.0),
            None if revisions::exists_or_has_history(tx.scope(), self.task).await? => None,
            None => return Err(Error::task_not_found(self.task, "task").into()),
        };
        let mut aliases = revisions::aliases(tx.scope(), self.task).await?;
        let edit = match &mut revision {
            Some(revision) => {
                let edit = set_alias(&mut aliases, &self.alias, revision.number)?;
                revision.aliases = revision_aliases(&aliases, revision.number);
                edit
            }
            None => {
                let removed = aliases.remove(&self.alias);
                removed.map(|_| HistoryEdit::RemoveAlias(self.alias.clone()))
            }
        };
        let mut changes = Changes::default();
        changes.edit_history(self.task, edit.into_iter().collect());
        Ok((changes, revision))
    }
}
