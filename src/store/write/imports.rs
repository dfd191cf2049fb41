//! Writes of whole guides: imports and restores. The number of statements grows with the number of
//! batches, not with the number of steps.

use std::collections::{BTreeMap, BTreeSet};

use super::{CheckpointsOf, Operation, Tx, external_ids::check_still_named, guide::total_bytes};
use crate::{
    domain::{
        Error, Result,
        change_feed::WriteRpc,
        changes::Changes,
        etag::{ExpectedEtag, GuideEtag},
        history::{HistoryState, KeptGuide, RevisionCause, RevisionName, TranslatedFrom},
        ids::TaskId,
        import::{
            Absent, ImportContext, ImportDocument, ImportOutcome, ImportPlan, ImportTarget,
            Imported, Restore, SubtaskIds, TaskTree, plan,
        },
        step::ReferencedTask,
        task::LockedTask,
        translation_work::ResourceId,
    },
    store::{
        Account, RetryKey, WriteMode, WriteOutcome, error::StoreError,
        read::tasks::find_tasks_named,
    },
};

#[derive(Debug)]
pub struct Import {
    /// The task to create, or to bring to the document's state.
    pub target: ImportTarget,
    pub document: ImportDocument,
    /// The tasks to which its subtask steps refer.
    pub subtasks: SubtaskIds,
    /// The version that the task must have.
    pub expected: ExpectedEtag,
    pub absent: Absent,
    /// The etag that the guide must have.
    pub expected_guide: ExpectedEtag,
    /// The bytes of the document in the request.
    pub document_bytes: usize,
}

#[derive(Clone, Debug)]
pub struct RestoreRequest {
    pub task: TaskId,
    pub revision: RevisionName,
    /// The etag that the guide must have.
    pub expected: ExpectedEtag,
    /// Whether to leave out subtask steps whose tasks are deleted.
    pub skip_missing_subtasks: bool,
}

impl Account {
    /// Creates a task with all its steps, or brings one to a document's state, atomically.
    pub async fn import_task(
        &self,
        import: Import,
        retry: Option<RetryKey<Imported>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<Imported>> {
        self.write_idempotent(import, mode, retry).await
    }

    pub async fn restore_revision(
        &self,
        request: RestoreRequest,
        retry: Option<RetryKey<Imported>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<Imported>> {
        self.write_idempotent(request, mode, retry).await
    }
}

impl Operation for Import {
    type Answer = Imported;
    const RPC: Option<WriteRpc> = Some(WriteRpc::ImportTask);
    const CHECKPOINTS: CheckpointsOf = CheckpointsOf::ManagingGuide;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Imported), StoreError> {
        let root = match &self.target {
            ImportTarget::New => None,
            ImportTarget::Id(id) => Some(*id),
            ImportTarget::ExternalId(id) => tx.find_task(id).await?,
        };
        let returned_bytes = match tx.mode {
            WriteMode::Store => 0,
            WriteMode::ValidateOnly => self.document_bytes,
        };
        let mut subtasks = self.subtasks.guids.clone();
        let named = self.subtasks.external_ids.iter().collect();
        let found = find_tasks_named(tx.scope(), &named).await?;
        subtasks.extend(&found);
        let guide = LockedGuide::lock_and_read(tx, root, [], subtasks, returned_bytes).await?;
        check_still_named(&found, &named, &guide.locked)?;
        self.check(&guide)?;
        let context = ImportContext {
            shows_guide: tx.mode == WriteMode::ValidateOnly,
            ..guide.import_context(tx)
        };
        let mut plan = match &self.document {
            ImportDocument::Decoded(document) => plan(document, self.absent, context),
            ImportDocument::Undecoded(sent) => {
                plan(&sent.decode(context.existing), self.absent, context)
            }
        }?;
        if matches!(self.target, ImportTarget::ExternalId(_)) {
            // It is not an error if another task has since taken the id: the unique index rejects
            // the row, and the retried import finds that task.
            plan.changes.claimed_ids.clear();
        }
        Ok(guide.complete(plan, RevisionCause::BeforeImport, tx))
    }
}

impl Import {
    /// Checks that the stored guide is the expected one.
    fn check(&self, guide: &LockedGuide) -> Result<(), StoreError> {
        let Some(tree) = &guide.tree else {
            return match &self.target {
                ImportTarget::Id(guid) => {
                    Err(Error::task_not_found(*guid, "document.task.guid").into())
                }
                // The task was found, and was deleted since.
                ImportTarget::ExternalId(_) if guide.history.is_some() => Err(StoreError::Conflict),
                ImportTarget::ExternalId(_) | ImportTarget::New => Ok(()),
            };
        };
        let task = &tree.task;
        if let ImportTarget::ExternalId(wanted) = &self.target
            && task.content.external_id.as_ref() != Some(wanted)
        {
            // The task was found, and has lost the id since.
            return Err(StoreError::Conflict);
        }
        self.expected
            .check(&task.etag(), ResourceId::Task(task.guid))?;
        self.expected_guide
            .check_guide(Some(&GuideEtag::for_guide(tree)), task.guid)?;
        Ok(())
    }
}

impl Operation for RestoreRequest {
    type Answer = Imported;
    const RPC: Option<WriteRpc> = Some(WriteRpc::RestoreRevision);
    const CHECKPOINTS: CheckpointsOf = CheckpointsOf::ManagingGuide;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Imported), StoreError> {
        let kept = tx.read_kept_document(self.task, &self.revision).await?;
        let (kept, kept_bytes) = kept;
        let steps = kept.document.all_steps();
        let subtasks = steps.filter_map(|step| step.subtask.guid).collect();
        let mut managed = kept.document.task_ids();
        managed.remove(&self.task);
        let root = Some(self.task);
        let guide = LockedGuide::lock_and_read(tx, root, managed, subtasks, kept_bytes).await?;
        let history = guide.history.as_ref();
        if history.is_none_or(|history| history.last_number == 0) {
            // The history has just been deleted.
            return Err(StoreError::Conflict);
        }
        let stored = guide.tree.as_ref();
        self.expected
            .check_guide(stored.map(GuideEtag::for_guide).as_ref(), self.task)?;
        let restore = Restore {
            kept,
            others: &guide.others,
            outdated: &guide.outdated,
            skip_missing_subtasks: self.skip_missing_subtasks,
        };
        let plan = restore.plan(guide.import_context(tx))?;
        Ok(guide.complete(plan, RevisionCause::BeforeRestore, tx))
    }
}

/// The stored guide before an import or restore.
struct LockedGuide {
    /// `None` if it is created.
    tree: Option<TaskTree>,
    /// The history of the task, which may be empty; `None` for a new task.
    history: Option<HistoryState>,
    /// Tasks outside the guide that become part of it.
    others: Vec<TaskTree>,
    /// What outdated translations of the stored tasks and steps were made from.
    outdated: TranslatedFrom,
    /// Its tasks, and the tasks that subtask steps refer to.
    locked: BTreeMap<TaskId, LockedTask>,
    referenced: BTreeMap<TaskId, ReferencedTask>,
    /// Whether the task is deleted and an index has said that it holds it.
    is_indexed: bool,
}

impl LockedGuide {
    /// Locks and reads the guide of `root`, a task that may exist, and tasks that become part of it.
    /// Locks the tasks that subtask steps refer to. `other_bytes`: memory used by the document or
    /// revision.
    async fn lock_and_read(
        tx: &Tx<'_>,
        root: Option<TaskId>,
        managed: impl IntoIterator<Item = TaskId>,
        subtasks: BTreeSet<TaskId>,
        other_bytes: usize,
    ) -> Result<Self, StoreError> {
        tx.begin_ids_after_newest_task().await?;
        let roots = Vec::from_iter(managed.into_iter().chain(root));
        let guides = tx.lock_guides(&roots, subtasks).await?;
        let bytes = total_bytes(&tx.lock_guide_steps(&guides).await?, &guides.ids);
        let bytes = bytes.saturating_add(other_bytes);
        let (mut others, outdated) = tx.read_guides(&guides.ids, bytes).await?;
        let tree = others.iter().position(|tree| Some(tree.task.guid) == root);
        let tree = tree.map(|index| others.swap_remove(index));
        let (mut history, mut is_indexed) = (None, false);
        if let Some(root) = root {
            history = Some(tx.lock_history(root).await?);
            let deletions = tx.lock_index_deletions([root.0]).await?;
            is_indexed = tree.is_none() && deletions.iter().any(|(.., indexed)| *indexed);
        }
        let referenced = guides.tasks.iter();
        let referenced = referenced.map(|(guid, task)| (*guid, task.referenced()));
        Ok(Self {
            tree,
            history,
            others,
            outdated,
            referenced: referenced.collect(),
            locked: guides.tasks,
            is_indexed,
        })
    }

    fn import_context<'a>(&'a self, tx: &'a Tx<'_>) -> ImportContext<'a> {
        ImportContext {
            existing: self.tree.as_ref(),
            ..ImportContext::for_new_guide(&tx.context, &self.referenced)
        }
    }

    /// The changes of the plan, and a revision of the guide as it is before.
    fn complete(self, plan: ImportPlan, cause: RevisionCause, tx: &Tx<'_>) -> (Changes, Imported) {
        let ImportPlan {
            mut changes,
            mut imported,
            origins: _,
        } = plan;
        // `forget_index_deletions` will set this flag, so return it.
        imported.task.index.indexed |= self.is_indexed;
        if let (Some(tree), Some(history)) = (self.tree, self.history)
            && imported.outcome == ImportOutcome::Updated
            && tx.mode == WriteMode::Store
        {
            let (etag, outdated) = (GuideEtag::for_guide(&tree), self.outdated);
            let guide = KeptGuide { tree, outdated }.if_exportable(&tx.context);
            let (number, edits) = history.add_automatic(cause, etag, guide, &tx.context);
            imported.previous_revision = number;
            changes.edit_history(imported.task.guid, edits);
            changes.replaced = Some(imported.task.guid);
        }
        (changes, imported)
    }
}
