//! Guides that a write reads under locks.

use std::collections::BTreeSet;

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::Tx;
use crate::{
    analysis_threads::run_by_weight,
    domain::{
        Error,
        changes::Changes,
        history::{EncodedGuide, HistoryEdit, KeptGuide, RevisionContent},
        ids::TaskId,
        size::stored_count,
        task::LockedTask,
    },
    store::{
        entity::step,
        error::StoreError,
        read::{LARGE_BYTES, MAX_IDS_PER_STATEMENT, steps, task_tree},
    },
};

/// How often a write holds a guide: as rows, as it was, as it will be, and encoded.
const COPIES: usize = 4;
/// Bytes of a guide that are encoded in the time that the analysis of one step takes.
const ENCODED_BYTES_PER_WEIGHT: usize = 1_024;

/// Guides whose tasks and steps are all locked.
pub struct LockedGuides {
    /// The ids of their tasks, sorted.
    pub ids: Vec<TaskId>,
    /// All locked tasks: the tasks of the guides, and others.
    pub tasks: Vec<LockedTask>,
    /// The bytes of their tasks and steps.
    pub bytes: usize,
}

impl Tx<'_> {
    /// Locks the tasks of guides and other tasks in the order of their ids; then all steps of the
    /// guides.
    pub async fn lock_guides(
        &self,
        roots: &[TaskId],
        others: impl IntoIterator<Item = TaskId>,
    ) -> Result<LockedGuides, StoreError> {
        let mut ids = task_tree::ids(self.scope(), roots).await?;
        let mut to_lock: BTreeSet<TaskId> = ids.iter().copied().chain(others).collect();
        let mut locked = BTreeSet::new();
        let mut tasks = Vec::with_capacity(to_lock.len());
        while !to_lock.is_empty() {
            // Tasks that were created while this waited for its locks have greater ids, so they are
            // locked in order.
            if to_lock.first() < locked.last() {
                return Err(StoreError::Conflict);
            }
            let guids = Vec::from_iter(to_lock.iter().copied());
            tasks.extend(self.lock_tasks(&guids).await?);
            locked.append(&mut to_lock);
            ids = task_tree::ids(self.scope(), roots).await?;
            to_lock.extend(ids.iter().filter(|id| !locked.contains(id)));
        }
        let bytes = self.lock_steps_of_guides(&ids, &tasks).await?;
        Ok(LockedGuides { ids, tasks, bytes })
    }

    /// Locks the steps of locked tasks, and returns the bytes of these tasks with their steps.
    async fn lock_steps_of_guides(
        &self,
        ids: &[TaskId],
        locked: &[LockedTask],
    ) -> Result<usize, StoreError> {
        let of_guides = locked
            .iter()
            .filter(|task| ids.binary_search(&task.guid).is_ok());
        let mut bytes: i64 = of_guides.map(|task| task.size).sum();
        for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
            let of_tasks = self.find::<step::Entity>().select_only();
            let of_tasks = of_tasks
                .column(step::Column::Guid)
                .expr(steps::step_bytes());
            let of_tasks = of_tasks.filter(step::Column::Task.is_in(ids.iter().map(|id| id.0)));
            let sizes: Vec<(Uuid, i64)> = self
                .locked(of_tasks, step::Column::Guid)
                .into_tuple()
                .all(self.db())
                .await?;
            bytes += sizes.iter().map(|(_, bytes)| bytes).sum::<i64>();
        }
        Ok(usize::try_from(bytes).unwrap_or_default())
    }

    /// Fails with [`StoreError::NeedsLargeReadPermit`] if guides of this size are large and the write
    /// has no permit for that.
    pub fn permit_guides(&self, bytes: usize) -> Result<(), StoreError> {
        if bytes <= LARGE_BYTES as usize {
            return Ok(());
        }
        let with_copies = stored_count(bytes.saturating_mul(COPIES));
        self.max_bytes().check(with_copies)
    }

    /// Locks the steps of a guide whose tasks are locked, and reads the guide. Returns `None` if it is
    /// too large to be exported. Fails with a conflict if the guide has other tasks than the locked ones.
    pub async fn lock_and_read_guide(
        &self,
        root: TaskId,
        locked: &[LockedTask],
    ) -> Result<Option<KeptGuide>, StoreError> {
        let ids: Vec<TaskId> = locked.iter().map(|locked_task| locked_task.guid).collect();
        if task_tree::ids(self.scope(), &[root]).await? != ids {
            return Err(StoreError::Conflict);
        }
        let bytes = self.lock_steps_of_guides(&ids, locked).await?;
        if bytes > self.context.max_message_bytes {
            return Ok(None);
        }
        self.permit_guides(bytes)?;
        let (mut trees, outdated) = task_tree::read_trees(self.scope(), &ids).await?;
        // It was there when it was locked.
        let tree = trees.pop().ok_or(StoreError::Conflict)?;
        Ok(Some(KeptGuide { tree, outdated }))
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

    /// Decodes the guide of a revision.
    pub async fn decode(&self, guide: EncodedGuide) -> Result<KeptGuide, StoreError> {
        let decode = self.guide_codec.decode;
        let weight = guide.document_bytes / ENCODED_BYTES_PER_WEIGHT;
        let guide = run_by_weight(weight, move || decode(&guide)).await?;
        guide.ok_or(StoreError::Corrupt("content"))
    }
}
