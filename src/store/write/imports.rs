//! Writes of whole guides: imports and restores. The number of statements grows with the number of
//! batches, not with the number of steps.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::{Operation, Tx};
use crate::{
    domain::{
        Error, Result,
        change_feed::WriteRpc,
        changes::Changes,
        decide::WriteContext,
        etag::{ExpectedEtag, GuideEtag},
        history::{HistoryState, KeptGuide, RevisionCause, RevisionName, TranslatedFrom},
        ids::{StepId, TaskId},
        import::{
            AbsentFields, AbsentSteps, Document, ImportContext, ImportOutcome, ImportPlan,
            ImportTarget, MissingSubtasks, RevisionDocument, TaskTree, plan,
        },
        step::ReferencedTask,
        task::Task,
        translation_work::ResourceId,
    },
    store::{Account, RetryKey, WriteMode, WriteOutcome, error::StoreError, read::task_tree},
};

/// An import of a document.
#[derive(Debug)]
pub struct Import {
    /// The task to create, or to bring to the document's state.
    pub target: ImportTarget,
    /// The document.
    pub document: Document,
    /// The version that the task must have.
    pub expected: ExpectedEtag,
    /// What happens to steps that the document leaves out.
    pub absent: AbsentSteps,
    /// What happens to stored fields that the document leaves out.
    pub absent_fields: AbsentFields,
    /// The etag that the guide must have.
    pub expected_guide: ExpectedEtag,
    /// The bytes of the document in the request.
    pub document_bytes: usize,
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
    /// Whether to leave out subtask steps whose tasks are deleted.
    pub skip_missing_subtasks: bool,
}

/// What an import or a restore did.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The task.
    pub task: Task,
    /// Whether the guide was created, updated, or left unchanged.
    pub outcome: ImportOutcome,
    /// The etag of the guide.
    pub guide_etag: GuideEtag,
    /// The revision that keeps the guide as it was before; 0 if there is none.
    pub previous_revision: i64,
    /// The guide after the import; only a dry run returns it.
    pub guide: Option<Box<TaskTree>>,
    /// Fields that were sent and not honored, as paths in the request.
    pub ignored: BTreeSet<String>,
    /// Steps of the revision that were left out.
    pub skipped: BTreeSet<StepId>,
    /// New ids of tasks and steps, by their ids in the revision.
    pub replaced: BTreeMap<Uuid, Uuid>,
}

impl Account {
    /// Creates a task with all its steps, or brings one to a document's state, atomically.
    pub async fn import_task(
        &self,
        import: Import,
        retry: Option<RetryKey<Imported>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<Imported>> {
        let write = WriteGuide {
            source: import,
            mode,
        };
        self.write_idempotent(write, mode, retry).await
    }

    /// Restores a guide to a revision.
    pub async fn restore_revision(
        &self,
        request: RestoreRequest,
        retry: Option<RetryKey<Imported>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<Imported>> {
        let write = WriteGuide {
            source: request,
            mode,
        };
        self.write_idempotent(write, mode, retry).await
    }
}

/// The write of a whole guide.
struct WriteGuide<S> {
    source: S,
    mode: WriteMode,
}

/// What a guide is to be like: a document or a revision.
trait Source: Send + Sync + 'static {
    const RPC: WriteRpc;
    /// The cause of the revision that keeps the guide as it was before.
    const CAUSE: RevisionCause;
    /// What is read of it.
    type Content: Send;

    /// Reads it, and finds the tasks to lock.
    fn read(
        &self,
        tx: &Tx<'_>,
    ) -> impl Future<Output = Result<(Self::Content, TasksToLock), StoreError>> + Send;

    /// Checks that the stored guide is the expected one. There is a history, which may be empty, if the
    /// task was expected to exist.
    fn check(
        &self,
        stored: Option<&StoredGuide>,
        history: Option<&HistoryState>,
    ) -> Result<(), StoreError>;

    /// Plans the write.
    fn plan(
        &self,
        content: Self::Content,
        others: &[TaskTree],
        outdated: &TranslatedFrom,
        context: ImportContext<'_>,
    ) -> Result<ImportPlan>;
}

/// The tasks that the write of a guide locks.
#[derive(Default)]
struct TasksToLock {
    /// The task, if it may exist.
    root: Option<TaskId>,
    /// Tasks that become part of the guide, if they are outside of it.
    managed: BTreeSet<TaskId>,
    /// Tasks that subtask steps refer to.
    subtasks: BTreeSet<TaskId>,
    /// The bytes of a document that a dry run returns.
    document_bytes: usize,
    /// The bytes of a revision that is in memory in addition to the stored guide.
    kept_bytes: usize,
}

struct StoredGuide {
    tree: TaskTree,
    etag: GuideEtag,
}

/// What the write of a guide reads.
struct GuideSnapshot<C> {
    content: C,
    stored: Option<StoredGuide>,
    history: Option<HistoryState>,
    /// Tasks that become part of the guide and are outside of it.
    others: Vec<TaskTree>,
    /// What outdated translations of the stored tasks and steps were made from.
    outdated: TranslatedFrom,
    referenced: BTreeMap<TaskId, ReferencedTask>,
    /// Whether an index still holds the task, which is deleted.
    is_indexed: bool,
}

impl<S: Source> Operation for WriteGuide<S> {
    type Answer = Imported;
    const RPC: Option<WriteRpc> = Some(S::RPC);

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Imported), StoreError> {
        let snapshot = self.lock_and_read(tx).await?;
        Ok(self.plan_changes(snapshot, &tx.context)?)
    }
}

impl<S: Source> WriteGuide<S> {
    async fn lock_and_read(&self, tx: &Tx<'_>) -> Result<GuideSnapshot<S::Content>, StoreError> {
        let (content, to_lock) = self.source.read(tx).await?;
        let TasksToLock {
            root,
            managed,
            subtasks,
            document_bytes,
            kept_bytes,
        } = to_lock;
        let roots = Vec::from_iter(managed.into_iter().chain(root));
        let guides = tx.lock_guides(&roots, subtasks).await?;
        let returned_bytes = match self.mode {
            WriteMode::Store => 0,
            WriteMode::ValidateOnly => document_bytes,
        };
        let other_bytes = returned_bytes.saturating_add(kept_bytes);
        tx.permit_guides(guides.bytes.saturating_add(other_bytes))?;
        let history = match root {
            Some(root) => Some(tx.lock_history(root).await?),
            None => None,
        };
        let (mut others, outdated) = task_tree::read_trees(tx.scope(), &guides.ids).await?;
        let tree = others.iter().position(|tree| Some(tree.task.guid) == root);
        let tree = tree.map(|index| others.swap_remove(index));
        let stored = tree.map(|tree| StoredGuide {
            etag: GuideEtag::of(&tree),
            tree,
        });
        self.source.check(stored.as_ref(), history.as_ref())?;
        let is_indexed = match root.filter(|_| stored.is_none()) {
            Some(root) => !tx.lock_index_deletions(vec![root.0]).await?.is_empty(),
            None => false,
        };
        let referenced = guides.tasks.iter();
        let referenced = referenced.map(|task| (task.guid, task.referenced()));
        Ok(GuideSnapshot {
            content,
            stored,
            history,
            others,
            outdated,
            referenced: referenced.collect(),
            is_indexed,
        })
    }

    fn plan_changes(
        &self,
        snapshot: GuideSnapshot<S::Content>,
        context: &WriteContext,
    ) -> Result<(Changes, Imported)> {
        let GuideSnapshot {
            content,
            stored,
            history,
            others,
            outdated,
            referenced,
            is_indexed,
        } = snapshot;
        let planning = ImportContext {
            existing: stored.as_ref().map(|stored| &stored.tree),
            shows_guide: self.mode == WriteMode::ValidateOnly,
            ..ImportContext::of_new_guide(context, &referenced)
        };
        let plan = self.source.plan(content, &others, &outdated, planning)?;
        let ImportPlan {
            mut changes,
            mut task,
            outcome,
            guide_etag,
            guide,
            ignored,
            skipped,
            replaced,
            origins: _,
        } = plan;
        // As it is stored when its deletion is forgotten.
        task.index.indexed |= is_indexed;
        let mut previous_revision = 0;
        if let (Some(StoredGuide { tree, etag }), Some(history)) = (stored, history)
            && outcome == ImportOutcome::Updated
            && self.mode == WriteMode::Store
        {
            let guide = KeptGuide { tree, outdated }.if_exportable(context);
            let (number, edits) = history.add_automatic(S::CAUSE, etag, guide, context);
            previous_revision = number;
            changes.edit_history(task.guid, edits);
        }
        let imported = Imported {
            task,
            outcome,
            guide_etag,
            previous_revision,
            guide,
            ignored,
            skipped,
            replaced,
        };
        Ok((changes, imported))
    }
}

impl Source for Import {
    const RPC: WriteRpc = WriteRpc::ImportTask;
    const CAUSE: RevisionCause = RevisionCause::BeforeImport;
    type Content = ();

    async fn read(&self, tx: &Tx<'_>) -> Result<((), TasksToLock), StoreError> {
        let root = match &self.target {
            ImportTarget::New => None,
            ImportTarget::Id(id) => Some(*id),
            ImportTarget::ExternalId(id) => tx.find_task(id).await?,
        };
        let to_lock = TasksToLock {
            root,
            subtasks: self.document.subtasks(),
            document_bytes: self.document_bytes,
            ..TasksToLock::default()
        };
        Ok(((), to_lock))
    }

    fn check(
        &self,
        stored: Option<&StoredGuide>,
        history: Option<&HistoryState>,
    ) -> Result<(), StoreError> {
        let id = stored.and_then(|stored| stored.tree.task.content.external_id.as_ref());
        match (&self.target, stored) {
            (ImportTarget::Id(guid), None) => {
                Err(Error::task_not_found(*guid, "document.task.guid").into())
            }
            // The task was found, and has since lost the id or was deleted.
            (ImportTarget::ExternalId(wanted), _) if history.is_some() && id != Some(wanted) => {
                Err(StoreError::Conflict)
            }
            (_, None) => Ok(()),
            (_, Some(StoredGuide { tree, etag })) => {
                let guid = tree.task.guid;
                let resource = ResourceId::Task(guid);
                self.expected.check(&tree.task.etag(), resource)?;
                Ok(self.expected_guide.check_guide(Some(etag), guid)?)
            }
        }
    }

    fn plan(
        &self,
        (): (),
        _: &[TaskTree],
        _: &TranslatedFrom,
        context: ImportContext<'_>,
    ) -> Result<ImportPlan> {
        let context = ImportContext {
            absent_steps: self.absent,
            absent_fields: self.absent_fields,
            ..context
        };
        let mut plan = plan(&self.document, context)?;
        if matches!(self.target, ImportTarget::ExternalId(_)) {
            // It is no error if another task has since taken the id: the unique index rejects the row,
            // and the retried import finds that task.
            plan.changes.claimed_ids.clear();
        }
        Ok(plan)
    }
}

impl Source for RestoreRequest {
    const RPC: WriteRpc = WriteRpc::RestoreRevision;
    const CAUSE: RevisionCause = RevisionCause::BeforeRestore;
    type Content = KeptGuide;

    /// The tasks of the revision are locked, too, if they were unlinked since.
    async fn read(&self, tx: &Tx<'_>) -> Result<(KeptGuide, TasksToLock), StoreError> {
        let kept = tx.read_kept_guide(self.task, &self.revision).await?;
        let mut to_lock = TasksToLock {
            root: Some(self.task),
            kept_bytes: kept.tree.bytes(),
            ..TasksToLock::default()
        };
        to_lock.add(&kept.tree);
        Ok((kept, to_lock))
    }

    fn check(
        &self,
        stored: Option<&StoredGuide>,
        history: Option<&HistoryState>,
    ) -> Result<(), StoreError> {
        if history.is_none_or(|history| history.last_number == 0) {
            // The history has just been deleted.
            return Err(StoreError::Conflict);
        }
        let etag = stored.map(|stored| &stored.etag);
        Ok(self.expected.check_guide(etag, self.task)?)
    }

    fn plan(
        &self,
        kept: KeptGuide,
        others: &[TaskTree],
        outdated: &TranslatedFrom,
        context: ImportContext<'_>,
    ) -> Result<ImportPlan> {
        let stored = context.existing;
        let revision = RevisionDocument::new(kept, stored, others, outdated, context.write);
        let context = ImportContext {
            absent_steps: AbsentSteps::Delete,
            absent_fields: AbsentFields::Reset,
            missing_subtasks: match self.skip_missing_subtasks {
                true => MissingSubtasks::Skip,
                false => MissingSubtasks::Refuse,
            },
            unlinked: &revision.unlinked,
            shows_guide: false,
            ..context
        };
        let mut plan = plan(&revision.document, context)?;
        revision.complete(&mut plan);
        Ok(plan)
    }
}

impl TasksToLock {
    /// Adds the managed tasks of a guide at every depth, and the tasks that subtask steps refer to.
    fn add(&mut self, tree: &TaskTree) {
        let subtasks = tree.steps.iter().filter_map(|step| step.kind.subtask());
        self.subtasks.extend(subtasks.map(|subtask| subtask.task));
        for (task, tree) in &tree.managed {
            self.managed.insert(*task);
            self.add(tree);
        }
    }
}
