//! Writes of the history: requested revisions, aliases, restores.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::{Operation, Tx};
use crate::{
    domain::{
        Error, Precondition, Result, SizedResource,
        change_feed::WriteRpc,
        changes::Changes,
        decide::WriteContext,
        etag::{ExpectedEtag, GuideEtag},
        history::{
            EncodedGuide, HistoryEdit, HistoryState, KeptGuide, NewRevision, NewestRevision,
            RequestedRevision, RevisionAlias, RevisionAliases, RevisionCause, RevisionContent,
            RevisionName, TaskRevision, TranslatedFrom, aliases_of, check_alias_count,
            check_requested_count,
        },
        ids::{StepId, TaskId},
        import::{ImportOutcome, RestoreContext, RestorePlan, TaskTree, restore},
        size::stored_count,
        step::ReferencedTask,
        task::Task,
    },
    store::{
        Account, RetryKey, WriteMode, WriteOutcome,
        entity::{task_history, task_revision},
        error::StoreError,
        read::{revisions, task_tree},
    },
};

/// A revision to create.
#[derive(Clone, Debug)]
pub struct NewRevisionRequest {
    /// The task.
    pub task: TaskId,
    /// The note and the alias.
    pub requested: RequestedRevision,
    /// The etag that the guide must have.
    pub expected: ExpectedEtag,
}

/// A revision that was created or found.
#[derive(Clone, Debug)]
pub struct CreatedRevision {
    /// The revision.
    pub revision: TaskRevision,
    /// Whether it existed already: nothing has changed since.
    pub unchanged: bool,
}

/// A revision to restore.
#[derive(Clone, Debug)]
pub struct RestoreRequest {
    /// The task.
    pub task: TaskId,
    /// The revision.
    pub revision: RevisionName,
    /// The etag that the guide must have.
    pub expected: ExpectedEtag,
    /// Whether subtask steps are left out whose tasks are deleted.
    pub skip_missing_subtasks: bool,
}

/// What a restore did.
#[derive(Clone, Debug)]
pub struct RestoredRevision {
    /// The task.
    pub task: Task,
    /// Whether the guide was created, updated, or left unchanged.
    pub outcome: ImportOutcome,
    /// The revision that keeps the guide as it was before; 0 if there is none.
    pub previous_revision: i64,
    /// Steps that were left out.
    pub skipped: BTreeSet<StepId>,
    /// New ids of tasks and steps, by their ids in the revision.
    pub replaced: BTreeMap<Uuid, Uuid>,
    /// The etag of the guide.
    pub guide_etag: GuideEtag,
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

    /// Deletes a revision.
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

    /// Restores a guide to a revision.
    pub async fn restore_revision(
        &self,
        request: RestoreRequest,
        retry: Option<RetryKey<RestoredRevision>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<RestoredRevision>> {
        let write = RestoreWrite { request, mode };
        self.write_idempotent(write, mode, retry).await
    }
}

impl Tx<'_> {
    /// Locks the history of a task, if it has one, and reads its newest revision. Tasks and steps
    /// are locked before.
    pub async fn lock_history(&self, task: TaskId) -> Result<HistoryState, StoreError> {
        let history = self
            .find::<task_history::Entity>()
            .filter(task_history::Column::Task.eq(task.0));
        let histories = self
            .locked(history, task_history::Column::Task)
            .all(self.db())
            .await?;
        Ok(match histories.first() {
            None => HistoryState {
                task,
                last_number: 0,
                newest: None,
            },
            Some(history) => HistoryState {
                task,
                last_number: history.last_number,
                newest: self.find_newest_revision(task).await?,
            },
        })
    }

    async fn find_newest_revision(
        &self,
        task: TaskId,
    ) -> Result<Option<NewestRevision>, StoreError> {
        use task_revision::{Column, Entity};
        let newest: Vec<(i64, String)> = self
            .find::<Entity>()
            .select_only()
            .columns([Column::Number, Column::GuideEtag])
            .filter(Column::Task.eq(task.0))
            .order_by_desc(Column::Number)
            .limit(1)
            .into_tuple()
            .all(self.db())
            .await?;
        let newest = newest.into_iter().next();
        Ok(newest.map(|(number, guide_etag)| NewestRevision {
            number,
            guide_etag: GuideEtag::stored(guide_etag),
        }))
    }

    async fn count_requested_revisions(&self, task: TaskId) -> Result<usize, StoreError> {
        use task_revision::{Column, Entity};
        let count = self
            .find::<Entity>()
            .filter(Column::Task.eq(task.0))
            .filter(Column::Cause.eq(RevisionCause::Requested.number()))
            .count(self.db())
            .await?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Locks the history of a task, and reads one of its revisions and its aliases.
    async fn lock_revision(
        &self,
        task: TaskId,
        name: &RevisionName,
    ) -> Result<(TaskRevision, RevisionAliases), StoreError> {
        self.lock_history(task).await?;
        let aliases = revisions::aliases(self.scope(), task).await?;
        let found = revisions::find(self.scope(), task, name).await?;
        match found {
            Some((revision, _)) => Ok((revision, aliases)),
            None => Err(self.revision_not_found(task, name).await?),
        }
    }

    async fn revision_not_found(
        &self,
        task: TaskId,
        name: &RevisionName,
    ) -> Result<StoreError, StoreError> {
        let error = revisions::not_found(self.scope(), task, name, "revision").await?;
        Ok(error.into())
    }
}

struct CreateRevision(NewRevisionRequest);

/// What the creation of a revision reads.
struct NewRevisionSnapshot {
    history: HistoryState,
    aliases: RevisionAliases,
    requested: usize,
    guide: GuideToKeep,
}

/// Whether the guide differs from the newest revision.
enum GuideToKeep {
    /// It is the same as in this newest revision.
    Unchanged(TaskRevision),
    /// It differs. This is the next revision.
    Changed(Box<NewRevision>),
}

impl Operation for CreateRevision {
    type Answer = CreatedRevision;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, CreatedRevision), StoreError> {
        let stored = self.lock_and_read(tx).await?;
        Ok(self.plan_changes(stored)?)
    }
}

impl CreateRevision {
    async fn lock_and_read(&self, tx: &Tx<'_>) -> Result<NewRevisionSnapshot, StoreError> {
        let NewRevisionRequest {
            task,
            requested: RequestedRevision { note, alias: _ },
            expected,
        } = &self.0;
        let task = *task;
        let ids = task_tree::ids(tx.scope(), &[task]).await?;
        let locked_tasks = tx.lock_tasks(&ids).await?;
        if locked_tasks.iter().all(|locked| locked.guid != task) {
            return Err(Error::task_not_found(task, "task").into());
        }
        let history = tx.lock_history(task).await?;
        let guide = tx.read_exportable_guide(task, &locked_tasks).await?;
        let guide = guide.ok_or(Error::TooLarge {
            resource: SizedResource::Guide,
            limit: tx.context.max_message_bytes,
        })?;
        let guide_etag = GuideEtag::of(&guide.tree);
        expected.check_guide(Some(&guide_etag), task)?;
        let aliases = revisions::aliases(tx.scope(), task).await?;
        let requested = tx.count_requested_revisions(task).await?;
        let guide = match history.newest_if_unchanged(&guide_etag) {
            Some(number) => {
                let name = RevisionName::Number(number);
                let newest = revisions::find(tx.scope(), task, &name).await?;
                let (newest, _) = newest.ok_or(StoreError::Conflict)?;
                GuideToKeep::Unchanged(newest)
            }
            None => {
                let cause = RevisionCause::Requested;
                let revision = history.next(cause, note.clone(), guide_etag, &guide, &tx.context);
                let content = tx.encode(guide).await?;
                GuideToKeep::Changed(Box::new(NewRevision { revision, content }))
            }
        };
        Ok(NewRevisionSnapshot {
            history,
            aliases,
            requested,
            guide,
        })
    }

    fn plan_changes(&self, stored: NewRevisionSnapshot) -> Result<(Changes, CreatedRevision)> {
        let NewRevisionSnapshot {
            history,
            mut aliases,
            requested,
            guide,
        } = stored;
        let RequestedRevision { note, alias } = &self.0.requested;
        let mut edits = Vec::new();
        let unchanged = matches!(guide, GuideToKeep::Unchanged(_));
        let mut revision = match guide {
            GuideToKeep::Unchanged(mut newest) => {
                if newest.cause != RevisionCause::Requested {
                    check_requested_count(requested)?;
                    newest.cause = RevisionCause::Requested;
                    newest.note = note.clone();
                    edits.push(HistoryEdit::MarkRequested {
                        number: newest.number,
                        note: note.clone(),
                    });
                }
                newest
            }
            GuideToKeep::Changed(new) => {
                check_requested_count(requested)?;
                let mut revision = new.revision.clone();
                if let RevisionContent::Encoded(EncodedGuide { content, .. }) = &new.content {
                    revision.size = stored_count(content.len());
                }
                edits.push(HistoryEdit::SetState {
                    last_number: revision.number,
                    deleted: None,
                });
                edits.push(HistoryEdit::Add(new));
                revision
            }
        };
        let number = revision.number;
        if let Some(alias) = alias
            && aliases.get(alias) != Some(&number)
        {
            check_alias_count(&aliases, alias)?;
            aliases.insert(alias.clone(), number);
            edits.push(HistoryEdit::SetAlias {
                alias: alias.clone(),
                number,
            });
        }
        revision.aliases = aliases_of(&aliases, number);
        let mut changes = Changes::default();
        changes.edit_history(history.task, edits);
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
        let (stored, _) = tx.lock_revision(self.task, &self.revision).await?;
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
        let (revision, mut aliases) = self.lock_and_read(tx).await?;
        let alias = self.alias.clone();
        let stored = aliases.get(&alias).copied();
        let mut edits = Vec::new();
        match &revision {
            Some(TaskRevision { number, .. }) if stored == Some(*number) => {}
            Some(TaskRevision { number, .. }) => {
                check_alias_count(&aliases, &alias)?;
                let number = *number;
                aliases.insert(alias.clone(), number);
                edits.push(HistoryEdit::SetAlias { alias, number });
            }
            None if stored.is_none() => {}
            None => edits.push(HistoryEdit::RemoveAlias(alias)),
        }
        let mut changes = Changes::default();
        changes.edit_history(self.task, edits);
        let revision = revision.map(|revision| TaskRevision {
            aliases: aliases_of(&aliases, revision.number),
            ..revision
        });
        Ok((changes, revision))
    }
}

impl SetAlias {
    async fn lock_and_read(
        &self,
        tx: &Tx<'_>,
    ) -> Result<(Option<TaskRevision>, RevisionAliases), StoreError> {
        if let Some(name) = &self.revision {
            let (revision, aliases) = tx.lock_revision(self.task, name).await?;
            return Ok((Some(revision), aliases));
        }
        tx.lock_history(self.task).await?;
        let aliases = revisions::aliases(tx.scope(), self.task).await?;
        if !revisions::exists_or_has_history(tx.scope(), self.task).await? {
            return Err(Error::task_not_found(self.task, "task").into());
        }
        Ok((None, aliases))
    }
}

struct RestoreWrite {
    request: RestoreRequest,
    mode: WriteMode,
}

/// What a restore reads.
struct RestoreSnapshot {
    kept: KeptGuide,
    stored: Option<TaskTree>,
    /// Whether an index still holds the task, which is deleted.
    indexed: bool,
    others: Vec<TaskTree>,
    outdated: TranslatedFrom,
    referenced: BTreeMap<TaskId, ReferencedTask>,
    history: HistoryState,
}

impl RestoreWrite {
    /// The guide of the revision, which never changes.
    async fn read_kept_guide(&self, tx: &Tx<'_>) -> Result<KeptGuide, StoreError> {
        let RestoreRequest { task, revision, .. } = &self.request;
        let found = revisions::find(tx.scope(), *task, revision).await?;
        let Some((found, document_bytes)) = found else {
            return Err(tx.revision_not_found(*task, revision).await?);
        };
        // The stored guide is about as large.
        tx.permit_guides(document_bytes.saturating_mul(2))?;
        let content = revisions::content(tx.scope(), *task, found.number).await?;
        let Some(content) = content else {
            return Err(tx.revision_not_found(*task, revision).await?);
        };
        let guide = EncodedGuide {
            content,
            document_bytes,
        };
        tx.decode(guide).await
    }
}

/// Adds the managed tasks of a guide at every depth, and the tasks that subtask steps refer to.
fn add_referenced(
    tree: &TaskTree,
    managed: &mut BTreeSet<TaskId>,
    subtasks: &mut BTreeSet<TaskId>,
) {
    let steps = tree.steps.iter();
    subtasks.extend(steps.filter_map(|step| Some(step.kind.subtask()?.task)));
    for (task, tree) in &tree.managed {
        managed.insert(*task);
        add_referenced(tree, managed, subtasks);
    }
}

impl Operation for RestoreWrite {
    type Answer = RestoredRevision;
    const RPC: Option<WriteRpc> = Some(WriteRpc::RestoreRevision);

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, RestoredRevision), StoreError> {
        let stored = self.lock_and_read(tx).await?;
        Ok(self.plan_changes(stored, &tx.context)?)
    }
}

impl RestoreWrite {
    /// Locks what an import of the guide would lock, and the tasks that were unlinked since, with
    /// everything below them.
    async fn lock_and_read(&self, tx: &Tx<'_>) -> Result<RestoreSnapshot, StoreError> {
        let root = self.request.task;
        let kept = self.read_kept_guide(tx).await?;
        let (mut managed, mut subtasks) = (BTreeSet::from([root]), BTreeSet::new());
        add_referenced(&kept.tree, &mut managed, &mut subtasks);
        let roots = Vec::from_iter(managed);
        let guides = tx.lock_guides(&roots, subtasks).await?;
        let history = tx.lock_history(root).await?;
        if history.last_number == 0 {
            // The history has just been deleted.
            return Err(StoreError::Conflict);
        }
        tx.permit_guides(guides.bytes)?;
        let (mut others, outdated) = task_tree::read_trees(tx.scope(), &guides.ids).await?;
        let stored = others.iter().position(|tree| tree.task.guid == root);
        let stored = stored.map(|index| others.swap_remove(index));
        let indexed = match stored {
            Some(_) => false,
            None => !tx.lock_index_deletions(vec![root.0]).await?.is_empty(),
        };
        let referenced = guides.tasks.iter();
        let referenced = referenced.map(|task| (task.guid, task.referenced()));
        Ok(RestoreSnapshot {
            kept,
            stored,
            indexed,
            others,
            outdated,
            referenced: referenced.collect(),
            history,
        })
    }

    fn plan_changes(
        &self,
        snapshot: RestoreSnapshot,
        context: &WriteContext,
    ) -> Result<(Changes, RestoredRevision)> {
        let RestoreSnapshot {
            kept,
            stored,
            indexed,
            others,
            outdated,
            referenced,
            history,
        } = snapshot;
        let root = self.request.task;
        let former_etag = stored.as_ref().map(GuideEtag::of);
        self.request
            .expected
            .check_guide(former_etag.as_ref(), root)?;
        let RestorePlan {
            mut changes,
            mut task,
            outcome,
            skipped,
            replaced,
            guide_etag,
        } = restore(RestoreContext {
            write: context,
            kept: &kept,
            stored: stored.as_ref(),
            others: &others,
            outdated: &outdated,
            referenced: &referenced,
            skip_missing_subtasks: self.request.skip_missing_subtasks,
        })?;
        // As it is stored when its deletion is forgotten.
        task.index.indexed |= indexed;
        let mut previous_revision = 0;
        if outcome != ImportOutcome::Unchanged && self.mode == WriteMode::Store {
            let edits = match stored.zip(former_etag) {
                Some((tree, etag)) => {
                    let guide = KeptGuide { tree, outdated };
                    let guide = guide.if_exportable(context);
                    let cause = RevisionCause::BeforeRestore;
                    let (number, edits) = history.add_automatic(cause, etag, guide, context);
                    previous_revision = number;
                    edits
                }
                None => Vec::new(),
            };
            changes.edit_history(root, edits);
        }
        let restored = RestoredRevision {
            task,
            outcome,
            previous_revision,
            skipped,
            replaced,
            guide_etag,
        };
        Ok((changes, restored))
    }
}
