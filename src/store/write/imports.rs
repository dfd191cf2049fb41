//! Imports: read what is stored, plan, and write the differences. The number of
//! statements grows with the number of batches, not of steps.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use super::{
    Operation,
    guide::{GuideMemory, LocksWholeGuide},
    transaction::Tx,
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

/// What an import is to do.
#[derive(Debug)]
pub struct Import {
    /// The task to make, or to bring to the document's state.
    pub target: ImportTarget,
    /// The document.
    pub document: Document,
    /// The version that the task must have.
    pub expected: ExpectedEtag,
    /// What becomes of steps that the document leaves out.
    pub absent: AbsentSteps,
    /// What becomes of stored fields that the document leaves out.
    pub absent_fields: AbsentFields,
    /// The etag that the guide must have.
    pub expected_guide: ExpectedEtag,
}

/// What an import did.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The task.
    pub task: Task,
    /// What became of the guide.
    pub outcome: ImportOutcome,
    /// The etag of the guide.
    pub guide_etag: GuideEtag,
    /// The revision that keeps the guide as it was before; 0 if there is none.
    pub previous_revision: i64,
    /// The guide after the import, of a dry run alone.
    pub guide: Option<Box<TaskTree>>,
    /// Fields that were sent and not honored, as paths in the request.
    pub ignored: BTreeSet<String>,
}

impl Account {
    /// Makes a task with all its steps, or brings one to a document's state;
    /// all or nothing.
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
    /// What the document and the stored guide take.
    memory: GuideMemory,
    locks_whole_guide: LocksWholeGuide,
}

/// Bytes of memory that a step of a document takes beside its texts: in the document, in the
/// plan and as a row.
const BYTES_PER_STEP: usize = 1_600;
impl ImportWrite {
    /// How many bytes the guide may have that a dry run returns. A real import returns none.
    fn max_guide_bytes(&self, context: &WriteContext) -> Option<usize> {
        let limit = context.max_message_bytes;
        match (
            self.mode,
            self.has_large_read_permit.load(Ordering::Relaxed),
        ) {
            (WriteMode::Store, _) => None,
            (WriteMode::ValidateOnly, true) => Some(limit),
            (WriteMode::ValidateOnly, false) => Some(limit.min(LARGE_TREE_BYTES)),
        }
    }
}

/// What an import reads.
pub struct ImportSnapshot {
    existing: Option<ImportedOver>,
    referenced: BTreeMap<TaskId, ReferencedTask>,
}

/// The guide that is imported over.
struct ImportedOver {
    guide: KeptGuide,
    history: HistoryState,
}

impl Operation for ImportWrite {
    type Snapshot = ImportSnapshot;
    type Answer = Imported;
    const RPC: Option<WriteRpc> = Some(WriteRpc::ImportTask);

    /// Locks the task with everything below it and the tasks that subtask steps name, in the
    /// order of ids. Steps that change are locked after the decision; others may change
    /// meanwhile.
    async fn read_locked(&self, tx: &Tx) -> Result<ImportSnapshot, StoreError> {
        let document = &self.import.document;
        let target = match &self.import.target {
            ImportTarget::New => None,
            ImportTarget::Id(id) => Some(*id),
            ImportTarget::ExternalId(id) => tx.find_task(id).await?,
        };
        let has_permit = tx.large_read_permit.is_some();
        self.has_large_read_permit
            .store(has_permit, Ordering::Relaxed);
        let subtasks = document.subtasks();
        let (below, locked_tasks) = match target {
            Some(root) => {
                let whole = &self.locks_whole_guide;
                whole.note(tx.lock_guides(&[root], subtasks, whole).await)?
            }
            None => {
                let subtasks: Vec<TaskId> = subtasks.into_iter().collect();
                (Vec::new(), tx.lock_tasks(&subtasks).await?)
            }
        };
        let referenced = locked_tasks
            .iter()
            .map(|locked_task| (locked_task.guid, locked_task.referenced()));
        let referenced = referenced.collect();
        let existing = match target {
            None => None,
            Some(root) => {
                let is_of_guide =
                    |locked_task: &&LockedTask| below.binary_search(&locked_task.guid).is_ok();
                let of_guide: Vec<&LockedTask> = locked_tasks.iter().filter(is_of_guide).collect();
                let history = tx.lock_history(root).await?;
                let hold = |step_bytes| self.memory.hold(of_guide.iter().copied(), step_bytes);
                hold(0)?;
                let tree = task_tree::read_tree(&tx.db, tx.account(), root, &below, hold).await;
                match self.locks_whole_guide.note(tree)? {
                    None => None,
                    Some(tree) => {
                        let guide = tx.with_outdated_translations(tree).await?;
                        Some(ImportedOver { guide, history })
                    }
                }
            }
        };
        if let (ImportTarget::ExternalId(wanted), Some(_)) = (&self.import.target, target) {
            let task = existing.as_ref().map(|existing| &existing.guide.tree.task);
            // It may have lost the id, or be gone, since it was found.
            if task.and_then(|task| task.content.external_id.as_ref()) != Some(wanted) {
                return Err(StoreError::Conflict);
            }
        }
        Ok(ImportSnapshot {
            existing,
            referenced,
        })
    }

    async fn lock_changed(&self, tx: &Tx, changes: &Changes) -> Result<(), StoreError> {
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
        match (&import.target, existing) {
            (ImportTarget::Id(guid), None) => {
                return Err(Error::task_not_found(*guid, "document.task.guid"));
            }
            (_, Some(TaskTree { task, .. })) => {
                let guid = task.guid;
                import
                    .expected
                    .check(&task.etag(), ResourceId::Task(guid))?;
                import
                    .expected_guide
                    .check_guide(former_etag.as_ref(), guid)?;
            }
            (ImportTarget::New | ImportTarget::ExternalId(_), None) => {}
        }
        let plan = plan(
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
        let ImportPlan {
            mut changes,
            task,
            outcome,
            guide_etag,
            guide,
            ignored,
            origins: _,
        } = plan;
        let guide = match guide {
            None => None,
            Some(PlannedGuide::Shown(guide)) => Some(guide),
            Some(PlannedGuide::TooLarge(bytes)) if bytes > context.max_message_bytes => {
                let (resource, limit) = (SizedResource::Guide, context.max_message_bytes);
                return Err(Error::TooLarge { resource, limit });
            }
            Some(PlannedGuide::TooLarge(bytes)) => {
                self.large_guide_bytes.store(bytes, Ordering::Relaxed);
                None
            }
        };
        if matches!(import.target, ImportTarget::ExternalId(_)) {
            // A task that has got the id since is no error: the index refuses the new one, and the
            // import is run again and finds that task.
            changes.claimed_ids.clear();
        }
        let mut previous_revision = 0;
        if outcome == ImportOutcome::Updated
            && self.mode == WriteMode::Store
            && let Some(ImportedOver { guide, history }) = stored.existing
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
