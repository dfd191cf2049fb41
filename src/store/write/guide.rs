//! Guides that a write reads under locks, and their memory.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::Tx;
use crate::{
    analysis_threads::run_by_weight,
    call_context::WorkMemory,
    domain::{
        Error, Result, SizedResource,
        changes::Changes,
        history::{EncodedGuide, HistoryEdit, KeptGuide, RevisionContent},
        ids::TaskId,
        import::TaskTree,
        task::LockedTask,
    },
    store::{error::StoreError, read::task_tree},
};

/// Bytes of memory that a stored step takes in addition to its texts.
const BYTES_PER_STORED_STEP: usize = 1_200;
/// Bytes of memory for each byte of the size of a stored task or step. It takes twice its size
/// when it is read, and as much again in a plan or when it is encoded.
const MEMORY_PER_STORED_BYTE: usize = 4;
/// Bytes of a guide that are encoded in the time that the analysis of one step takes.
const ENCODED_BYTES_PER_WEIGHT: usize = 1_024;

/// The memory reserved for the guides of a write. Its attempts share it.
pub struct GuideMemory {
    memory: Mutex<WorkMemory>,
    /// The bytes reserved in addition to stored guides.
    other_bytes: AtomicUsize,
}

impl GuideMemory {
    /// Reserves this many bytes. Fails if they exceed the limit, or what other calls leave of it.
    pub fn of_current_call(other_bytes: usize) -> Result<Self> {
        let mut memory = WorkMemory::of_current_call();
        memory.hold(SizedResource::Import, other_bytes, 0)?;
        Ok(Self {
            memory: Mutex::new(memory),
            other_bytes: AtomicUsize::new(other_bytes),
        })
    }

    /// Reserves this many bytes, and releases those of stored guides.
    pub fn hold_other(&self, bytes: usize) -> Result<()> {
        self.other_bytes.store(bytes, Ordering::Relaxed);
        self.hold([], 0)
    }

    /// Reserves memory for stored tasks, and for their steps of this many bytes.
    pub fn hold<'h>(
        &self,
        tasks: impl IntoIterator<Item = &'h LockedTask>,
        step_bytes: usize,
    ) -> Result<()> {
        let (mut bytes, mut steps) = (step_bytes, 0_usize);
        for task in tasks {
            bytes = bytes.saturating_add(usize::try_from(task.size).unwrap_or_default());
            steps = steps.saturating_add(usize::try_from(task.step_count).unwrap_or_default());
        }
        let bytes = bytes
            .saturating_mul(MEMORY_PER_STORED_BYTE)
            .saturating_add(steps.saturating_mul(BYTES_PER_STORED_STEP))
            .saturating_add(self.other_bytes.load(Ordering::Relaxed));
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.hold(SizedResource::Import, bytes, 0)
    }
}

/// Whether an attempt locks all tasks and steps of a guide before it reads them. The first attempt does
/// so if an etag is compared. Otherwise attempts after a conflict do so, so other writes cannot starve
/// this one.
pub struct LocksWholeGuide(AtomicBool);

impl LocksWholeGuide {
    /// Whether the first attempt does so.
    pub fn new(from_the_start: bool) -> Self {
        Self(AtomicBool::new(from_the_start))
    }

    /// Notes how an attempt went.
    pub fn note<T>(&self, attempt: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Conflict | StoreError::Locked) = attempt {
            self.0.store(true, Ordering::Relaxed);
        }
        attempt
    }
}

impl Tx<'_> {
    /// Locks the tasks of guides and other tasks, in the order of their ids; then the steps of the guides,
    /// if these are to be locked whole. Returns the ids of the guides' tasks, and all locked tasks.
    pub async fn lock_guides(
        &self,
        roots: &[TaskId],
        others: impl IntoIterator<Item = TaskId>,
        LocksWholeGuide(whole): &LocksWholeGuide,
    ) -> Result<(Vec<TaskId>, Vec<LockedTask>), StoreError> {
        let mut of_guides = task_tree::ids(self.scope(), roots).await?;
        let mut ids: BTreeSet<TaskId> = others.into_iter().collect();
        ids.extend(&of_guides);
        let mut locked = self
            .lock_tasks(&Vec::from_iter(ids.iter().copied()))
            .await?;
        if !whole.load(Ordering::Relaxed) {
            return Ok((of_guides, locked));
        }
        // Tasks that were created while this waited for its locks have greater ids, so that they are
        // locked in order.
        loop {
            let now = task_tree::ids(self.scope(), roots).await?;
            if now == of_guides {
                break;
            }
            let new: Vec<TaskId> = now.iter().copied().filter(|id| !ids.contains(id)).collect();
            if new.first().is_some_and(|first| Some(first) < ids.last()) {
                return Err(StoreError::Conflict);
            }
            locked.extend(self.lock_tasks(&new).await?);
            ids.extend(new);
            of_guides = now;
        }
        self.lock_steps_of(&of_guides).await?;
        Ok((of_guides, locked))
    }

    /// Reads the guide of a task whose tasks are locked; `None` if it is too large to be
    /// exported. Fails with a conflict if the guide has other tasks than the locked ones.
    pub async fn read_exportable_guide(
        &self,
        root: TaskId,
        locked: &[LockedTask],
        memory: &GuideMemory,
    ) -> Result<Option<KeptGuide>, StoreError> {
        let ids: Vec<TaskId> = locked.iter().map(|locked_task| locked_task.guid).collect();
        let of_steps = task_tree::step_bytes(self.scope(), &ids).await?;
        let of_tasks: i64 = locked.iter().map(|locked_task| locked_task.size).sum();
        let bytes = of_steps.saturating_add(usize::try_from(of_tasks).unwrap_or_default());
        if bytes > self.context.max_message_bytes {
            return Ok(None);
        }
        memory.hold(locked, of_steps)?;
        match task_tree::read_tree(self.scope(), root, &ids, |_| Ok(())).await? {
            Some(tree) => Ok(Some(self.with_outdated_translations(tree).await?)),
            // It was there when it was locked.
            None => Err(StoreError::Conflict),
        }
    }

    /// A guide with the sources of its outdated translations.
    pub async fn with_outdated_translations(
        &self,
        tree: TaskTree,
    ) -> Result<KeptGuide, StoreError> {
        let outdated = task_tree::outdated_translations(self.scope(), [&tree]).await?;
        Ok(KeptGuide { tree, outdated })
    }

    /// Encodes the guide of a new revision, if there is one.
    pub async fn encode_revision(&self, changes: &mut Changes) -> Result<(), StoreError> {
        let edits = changes.history.iter_mut().flat_map(|it| &mut it.edits);
        for edit in edits {
            if let HistoryEdit::Add(new) = edit
                && let RevisionContent::Guide(guide) = &mut new.content
                && let Some(guide) = guide.take()
            {
                new.content = self.encode(*guide).await?;
            }
        }
        Ok(())
    }

    /// Encodes a guide.
    pub async fn encode(&self, guide: KeptGuide) -> Result<RevisionContent, StoreError> {
        let encode = self.guide_codec.encode;
        let weight = guide.tree.bytes() / ENCODED_BYTES_PER_WEIGHT;
        let encoded = run_by_weight(weight, move || encode(guide)).await?;
        let encoded = encoded.ok_or_else(|| Error::Internal("a guide is not encoded".to_owned()));
        Ok(RevisionContent::Encoded(encoded?))
    }

    /// Measures the decoded size of the guide of a revision, in bytes.
    pub async fn measure(&self, guide: EncodedGuide) -> Result<(EncodedGuide, usize), StoreError> {
        let decoded_bytes = self.guide_codec.decoded_bytes;
        let weight = guide.document_bytes / ENCODED_BYTES_PER_WEIGHT;
        let (bytes, guide) = run_by_weight(weight, move || (decoded_bytes(&guide), guide)).await?;
        Ok((guide, bytes.ok_or(StoreError::Corrupt("content"))?))
    }

    /// Decodes the guide of a revision.
    pub async fn decode(&self, guide: EncodedGuide) -> Result<KeptGuide, StoreError> {
        let decode = self.guide_codec.decode;
        let weight = guide.document_bytes / ENCODED_BYTES_PER_WEIGHT;
        let guide = run_by_weight(weight, move || decode(&guide)).await?;
        guide.ok_or(StoreError::Corrupt("content"))
    }
}
