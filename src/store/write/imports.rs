//! Imports: read what is stored, plan, and write the differences. The number of
//! statements grows with the number of batches, not of steps.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::{Operation, transaction::Tx};
use crate::{
    call_context::WorkMemory,
    domain::{
        Error, Result, SizedResource,
        changes::Changes,
        decide::WriteContext,
        etag::ExpectedEtag,
        ids::TaskId,
        import::{
            AbsentFields, AbsentSteps, Document, ImportContext, ImportOutcome, ImportPlan,
            PlannedGuide, TaskTree, plan,
        },
        step::ReferencedTask,
        task::{Task, TaskHead},
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
    /// The task to bring to the document's state; `None` makes one.
    pub target: Option<TaskId>,
    /// The document.
    pub document: Document,
    /// The version that the task must have.
    pub expected: ExpectedEtag,
    /// What becomes of steps that the document leaves out.
    pub absent: AbsentSteps,
    /// What becomes of stored fields that the document leaves out.
    pub absent_fields: AbsentFields,
}

/// What an import did.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The task.
    pub task: Task,
    /// What became of the guide.
    pub outcome: ImportOutcome,
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
        let mut memory = WorkMemory::of_current_call();
        let document_bytes = import.document.step_count().saturating_mul(BYTES_PER_STEP);
        hold(&mut memory, document_bytes)?;
        let write = ImportWrite {
            import,
            document_bytes,
            mode,
            locks_all_steps: AtomicBool::new(false),
            has_large_read_permit: AtomicBool::new(false),
            large_guide_bytes: AtomicUsize::new(0),
            memory: Mutex::new(memory),
        };
        self.write_idempotent(write, mode, retry).await
    }
}

/// An import, and the state that its attempts share.
struct ImportWrite {
    import: Import,
    /// Bytes of memory that the steps of the document take beside their texts.
    document_bytes: usize,
    mode: WriteMode,
    /// Whether the attempt has a permit to return a large guide.
    has_large_read_permit: AtomicBool,
    /// The bytes of the guide that a dry run returns, if that needs a permit.
    large_guide_bytes: AtomicUsize,
    /// What the document and the stored guide take.
    memory: Mutex<WorkMemory>,
    /// Whether a step changed between reading and locking. Every step is then locked before
    /// it is read, so that edits of single steps cannot starve the import.
    locks_all_steps: AtomicBool,
}

/// Bytes of memory that a step of a document takes beside its texts: in the document, in the
/// plan and as a row.
const BYTES_PER_STEP: usize = 1_600;
/// Bytes of memory that a stored step takes beside its texts.
const BYTES_PER_STORED_STEP: usize = 1_200;
/// Bytes of memory for each byte of the size of a stored task or step: it takes twice its size
/// when it is read, and again in the plan when it stays.
const MEMORY_PER_STORED_BYTE: usize = 4;

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

    /// Holds the memory for the document, the stored tasks and their steps of so many bytes.
    fn hold_stored(&self, tasks: &[&TaskHead], step_bytes: usize) -> Result<()> {
        let of_tasks: i64 = tasks.iter().map(|task| task.size).sum();
        let of_tasks = usize::try_from(of_tasks).unwrap_or_default();
        let steps: i64 = tasks.iter().map(|task| task.step_count).sum();
        let steps = usize::try_from(steps).unwrap_or_default();
        let bytes = of_tasks
            .saturating_add(step_bytes)
            .saturating_mul(MEMORY_PER_STORED_BYTE)
            .saturating_add(steps.saturating_mul(BYTES_PER_STORED_STEP))
            .saturating_add(self.document_bytes);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        hold(&mut memory, bytes)
    }
}

/// Sets the reservation to so many bytes. Fails if they do not fit beside what other
/// calls hold, or never.
fn hold(memory: &mut WorkMemory, bytes: usize) -> Result<()> {
    let (resource, limit) = (SizedResource::Import, memory.limit());
    if bytes > limit {
        return Err(Error::TooLarge { resource, limit });
    }
    if !memory.try_grow_to(bytes) {
        return Err(Error::Overloaded);
    }
    memory.shrink_to(bytes);
    Ok(())
}

/// What an import reads.
pub struct ImportSnapshot {
    existing: Option<TaskTree>,
    referenced: BTreeMap<TaskId, ReferencedTask>,
}

impl Operation for ImportWrite {
    type Snapshot = ImportSnapshot;
    type Answer = Imported;

    /// Locks the task with everything below it and the tasks that subtask steps name, in the
    /// order of ids. Steps that change are locked after the decision; others may change
    /// meanwhile.
    async fn read_locked(&self, tx: &Tx) -> Result<ImportSnapshot, StoreError> {
        let (target, document) = (self.import.target, &self.import.document);
        let has_permit = tx.large_read_permit.is_some();
        self.has_large_read_permit
            .store(has_permit, Ordering::Relaxed);
        let below = match target {
            Some(root) => task_tree::ids(&tx.db, tx.account(), root).await?,
            None => Vec::new(),
        };
        let all: BTreeSet<TaskId> = document
            .subtasks()
            .into_iter()
            .chain(below.iter().copied())
            .collect();
        let all: Vec<TaskId> = all.into_iter().collect();
        let heads = tx.lock_tasks(&all).await?;
        let referenced = heads.iter().map(|head| (head.guid, head.referenced()));
        let referenced = referenced.collect();
        let existing = match target {
            None => None,
            Some(root) => {
                let is_of_guide = |head: &&TaskHead| below.binary_search(&head.guid).is_ok();
                let of_guide: Vec<&TaskHead> = heads.iter().filter(is_of_guide).collect();
                if self.locks_all_steps.load(Ordering::Relaxed) {
                    tx.lock_steps_of(&below).await?;
                }
                let hold = |step_bytes| self.hold_stored(&of_guide, step_bytes);
                hold(0)?;
                task_tree::read_tree(&tx.db, tx.account(), root, &below, hold).await?
            }
        };
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
        if let Err(StoreError::Conflict) = locked {
            self.locks_all_steps.store(true, Ordering::Relaxed);
        }
        locked
    }

    fn decide(
        &self,
        stored: ImportSnapshot,
        context: &WriteContext,
    ) -> Result<(Changes, Imported)> {
        let import = &self.import;
        let existing = stored.existing.as_ref();
        match (import.target, existing) {
            (Some(guid), None) => return Err(Error::task_not_found(guid, "document.task.guid")),
            (_, Some(tree)) => {
                let task = ResourceId::Task(tree.task.guid);
                import.expected.check(&tree.task.etag(), task)?;
            }
            (None, None) => {}
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
            changes,
            task,
            outcome,
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
        let imported = Imported {
            task,
            outcome,
            guide,
            ignored,
        };
        Ok((changes, imported))
    }
}
