//! Imports: read what is stored, plan, and write the differences. The number of
//! statements grows with the number of batches, not with the number of steps.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use super::{
    Operation, Tx,
    guide::{GuideMemory, LocksWholeGuide},
};
use crate::{
    domain::{
        Error, Result, SizedResource,
        change_feed::WriteRpc,
        changes::Changes,
        decide::WriteContext,
        etag::{ExpectedEtag, GuideEtag},
        history::{HistoryState, KeptGuide, RevisionCause},
        ids::TaskId,
        import::{
            AbsentFields, AbsentSteps, Document, ImportContext, ImportOutcome, ImportPlan,
            ImportTarget, PlannedGuide, TaskTree, plan,
        },
        step::ReferencedTask,
        task::{LockedTask, Task},
        translation_work::ResourceId,
    },
    store::{
        Account, RetryKey, WriteMode, WriteOutcome,
        error::StoreError,
        read::task_tree::{self, LARGE_TREE_BYTES},
    },
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
}

/// What an import did.
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
}

impl Account {
    /// Creates a task with all its steps, or brings one to a document's state, atomically.
    pub async fn import_task(
        &self,
        import: Import,
        retry: Option<RetryKey<Imported>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<Imported>> {
        let document_bytes = import.document.step_count().saturating_mul(BYTES_PER_STEP);
        let write = ImportWrite {
            mode,
            // What is compared with the expected etag must not change before it is replaced.
            locks_whole_guide: LocksWholeGuide::new(import.expected_guide.is_set()),
            import,
            has_large_read_permit: AtomicBool::new(false),
            large_guide_bytes: AtomicUsize::new(0),
            memory: GuideMemory::of_current_call(document_bytes)?,
        };
        self.write_idempotent(write, mode, retry).await
    }
}

/// An import, and the state that its attempts share.
struct ImportWrite {
    import: Import,
    mode: WriteMode,
    /// Whether the attempt has a permit to return a large guide.
    has_large_read_permit: AtomicBool,
    /// The bytes of the guide that a dry run returns, if that needs a permit.
    large_guide_bytes: AtomicUsize,
    /// Memory for the document and the stored guide.
    memory: GuideMemory,
    locks_whole_guide: LocksWholeGuide,
}

/// Bytes of memory for a step of a document in addition to its texts: in the document, in the plan and
/// as a row.
const BYTES_PER_STEP: usize = 1_600;

/// What an import reads.
pub struct ImportSnapshot {
    existing: Option<ReplacedGuide>,
    referenced: BTreeMap<TaskId, ReferencedTask>,
}

/// The stored guide that the import replaces.
struct ReplacedGuide {
    guide: KeptGuide,
    history: HistoryState,
}

impl Operation for ImportWrite {
    type Snapshot = ImportSnapshot;
    type Answer = Imported;
    const RPC: Option<WriteRpc> = Some(WriteRpc::ImportTask);

    /// Locks the tasks of the guide and the tasks that subtask steps name, in the order of ids. Steps
    /// that change are locked after the decision; others may change meanwhile.
    async fn lock_and_read(&self, tx: &Tx<'_>) -> Result<ImportSnapshot, StoreError> {
        let has_permit = tx.large_read_permit.is_some();
        self.has_large_read_permit
            .store(has_permit, Ordering::Relaxed);
        let target = match &self.import.target {
            ImportTarget::New => None,
            ImportTarget::Id(id) => Some(*id),
            ImportTarget::ExternalId(id) => tx.find_task(id).await?,
        };
        let subtasks = self.import.document.subtasks();
        let whole = &self.locks_whole_guide;
        let (of_guide, locked) = match target {
            Some(root) => whole.note(tx.lock_guides(&[root], subtasks, whole).await)?,
            None => (Vec::new(), tx.lock_tasks(&Vec::from_iter(subtasks)).await?),
        };
        let existing = match target {
            Some(root) => self.read_existing(tx, root, &of_guide, &locked).await?,
            None => None,
        };
        let referenced = locked.iter().map(|task| (task.guid, task.referenced()));
        Ok(ImportSnapshot {
            existing,
            referenced: referenced.collect(),
        })
    }

    async fn lock_changed(&self, tx: &Tx<'_>, changes: &Changes) -> Result<(), StoreError> {
        match self.large_guide_bytes.swap(0, Ordering::Relaxed) {
            0 => {}
            bytes => return Err(StoreError::NeedsLargeReadPermit(bytes)),
        }
        let locked = tx.lock_changed_steps(changes).await;
        self.locks_whole_guide.note(locked)
    }

    fn decide(
        &self,
        stored: ImportSnapshot,
        context: &WriteContext,
    ) -> Result<(Changes, Imported)> {
        let import = &self.import;
        let existing = stored.existing.as_ref().map(|stored| &stored.guide.tree);
        let former_etag = existing.map(GuideEtag::of);
        self.check_existing(existing, former_etag.as_ref())?;
        let ImportPlan {
            mut changes,
            task,
            outcome,
            guide_etag,
            guide,
            ignored,
            origins: _,
        } = plan(
            &import.document,
            ImportContext {
                write: context,
                existing,
                referenced: &stored.referenced,
                absent: import.absent,
                absent_fields: import.absent_fields,
                max_guide_bytes: self.max_guide_bytes(context),
            },
        )?;
        let guide = self.guide_to_return(guide, context)?;
        if matches!(import.target, ImportTarget::ExternalId(_)) {
            // It is no error if another task has since taken the id: the unique index rejects the row,
            // and the retried import finds that task.
            changes.claimed_ids.clear();
        }
        let mut previous_revision = 0;
        if outcome == ImportOutcome::Updated
            && self.mode == WriteMode::Store
            && let Some(ReplacedGuide { guide, history }) = stored.existing
            && let Some(etag) = former_etag
        {
            let (cause, guide) = (RevisionCause::BeforeImport, guide.if_exportable(context));
            let (number, edits) = history.add_automatic(cause, etag, guide, context);
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
        };
        Ok((changes, imported))
    }
}

impl ImportWrite {
    /// Reads the stored guide that the import replaces. Its tasks are locked.
    async fn read_existing(
        &self,
        tx: &Tx<'_>,
        root: TaskId,
        of_guide: &[TaskId],
        locked: &[LockedTask],
    ) -> Result<Option<ReplacedGuide>, StoreError> {
        let is_of_guide = |task: &&LockedTask| of_guide.binary_search(&task.guid).is_ok();
        let tasks: Vec<&LockedTask> = locked.iter().filter(is_of_guide).collect();
        let history = tx.lock_history(root).await?;
        let hold = |step_bytes| self.memory.hold(tasks.iter().copied(), step_bytes);
        hold(0)?;
        let tree = task_tree::read_tree(tx.scope(), root, of_guide, hold).await;
        let tree = self.locks_whole_guide.note(tree)?;
        if let ImportTarget::ExternalId(wanted) = &self.import.target {
            let external_id = tree.as_ref().map(|tree| &tree.task.content.external_id);
            // The task may have lost the id, or may have been deleted, since it was found.
            if external_id.and_then(Option::as_ref) != Some(wanted) {
                return Err(StoreError::Conflict);
            }
        }
        let Some(tree) = tree else {
            return Ok(None);
        };
        let guide = tx.with_outdated_translations(tree).await?;
        Ok(Some(ReplacedGuide { guide, history }))
    }

    /// Checks that the task exists if the document has its id, and has the expected etags.
    fn check_existing(
        &self,
        existing: Option<&TaskTree>,
        guide_etag: Option<&GuideEtag>,
    ) -> Result<()> {
        let import = &self.import;
        match (&import.target, existing) {
            (ImportTarget::Id(guid), None) => {
                Err(Error::task_not_found(*guid, "document.task.guid"))
            }
            (_, Some(TaskTree { task, .. })) => {
                let etag = task.etag();
                import.expected.check(&etag, ResourceId::Task(task.guid))?;
                import.expected_guide.check_guide(guide_etag, task.guid)
            }
            (ImportTarget::New | ImportTarget::ExternalId(_), None) => Ok(()),
        }
    }

    /// The maximum size of the guide that a dry run returns. A real import returns none.
    fn max_guide_bytes(&self, context: &WriteContext) -> Option<usize> {
        let limit = context.max_message_bytes;
        match self.mode {
            WriteMode::Store => None,
            WriteMode::ValidateOnly if self.has_large_read_permit.load(Ordering::Relaxed) => {
                Some(limit)
            }
            WriteMode::ValidateOnly => Some(limit.min(LARGE_TREE_BYTES)),
        }
    }

    /// The guide that a dry run returns. If that needs a permit, notes its size for
    /// [`lock_changed`](Operation::lock_changed).
    fn guide_to_return(
        &self,
        guide: Option<PlannedGuide>,
        context: &WriteContext,
    ) -> Result<Option<Box<TaskTree>>> {
        match guide {
            None => Ok(None),
            Some(PlannedGuide::Shown(guide)) => Ok(Some(guide)),
            Some(PlannedGuide::TooLarge(bytes)) if bytes > context.max_message_bytes => {
                let (resource, limit) = (SizedResource::Guide, context.max_message_bytes);
                Err(Error::TooLarge { resource, limit })
            }
            Some(PlannedGuide::TooLarge(bytes)) => {
                self.large_guide_bytes.store(bytes, Ordering::Relaxed);
                Ok(None)
            }
        }
    }
}
