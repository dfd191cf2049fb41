//! Guides that a write locks and reads.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::QuerySelect;

use super::Tx;
use crate::{
    analysis_threads::run_by_weight,
    domain::{
        Error,
        changes::Changes,
        etag::GuideEtag,
        history::{
            EncodedGuide, HistoryEdit, HistoryState, KeptDocument, KeptGuide, RevisionCause,
            RevisionContent, TranslatedFrom,
        },
        ids::TaskId,
        import::TaskTree,
        size::stored_count,
        task::LockedTask,
    },
    store::{
        entity::step::{Column, Entity},
        error::StoreError,
        read::{LARGE_BYTES, steps, task_tree},
    },
};

/// Copies of a guide that a write holds in memory: rows, before, after, and encoded.
const COPIES: usize = 4;
/// Bytes of a guide that are encoded in the time that the analysis of one step takes.
const ENCODED_BYTES_PER_WEIGHT: usize = 1_024;

/// Guides whose tasks are locked.
pub struct LockedGuides {
    /// The ids of their tasks, sorted.
    pub ids: Vec<TaskId>,
    /// All locked tasks: the tasks of the guides, and others.
    pub tasks: BTreeMap<TaskId, LockedTask>,
}

/// The bytes of tasks with their steps.
pub type TaskBytes = BTreeMap<TaskId, i64>;

pub fn total_bytes(bytes: &TaskBytes, tasks: &[TaskId]) -> usize {
    let total: i64 = tasks.iter().filter_map(|task| bytes.get(task)).sum();
    usize::try_from(total).unwrap_or_default()
}

impl Tx<'_> {
    /// Locks the tasks of guides and other tasks in the order of their ids.
    pub async fn lock_guides(
        &self,
        roots: &[TaskId],
        others: impl IntoIterator<Item = TaskId>,
    ) -> Result<LockedGuides, StoreError> {
        let mut ids = task_tree::ids(self.scope(), roots).await?;
        let mut to_lock = BTreeSet::from_iter(ids.iter().copied().chain(others));
        let mut tasks = BTreeMap::new();
        while !to_lock.is_empty() {
            // Tasks that were created while this waited for its locks have greater ids, so they are
            // locked in order.
            if to_lock.first() < tasks.keys().next_back() {
                return Err(StoreError::Conflict);
            }
            tasks.append(&mut self.lock_tasks(to_lock).await?);
            ids = task_tree::ids(self.scope(), roots).await?;
            let created = ids.iter().filter(|id| !tasks.contains_key(id));
            to_lock = created.copied().collect();
        }
        Ok(LockedGuides { ids, tasks })
    }

    /// Locks all steps of guides, and returns the bytes of each task with its steps.
    pub async fn lock_guide_steps(&self, guides: &LockedGuides) -> Result<TaskBytes, StoreError> {
        let tasks = guides.ids.iter().filter_map(|id| guides.tasks.get(id));
        let mut bytes: TaskBytes = tasks.map(|task| (task.guid, task.size)).collect();
        let steps = self.find::<Entity>().select_only();
        let steps = steps.column(Column::Task).expr(steps::step_bytes());
        let ids = guides.ids.iter().map(|id| id.0);
        let steps = self.lock_by_ids(steps, Column::Guid, Column::Task, ids);
        let steps: Vec<(TaskId, i64)> = steps.await?;
        for (task, of_step) in steps {
            *bytes.entry(task).or_default() += of_step;
        }
        Ok(bytes)
    }

    /// Fails with [`StoreError::NeedsLargeReadPermit`] if guides of this size are large and the write
    /// has no permit for that.
    pub fn permit_guides(&self, bytes: usize) -> Result<(), StoreError> {
        if bytes <= LARGE_BYTES as usize {
            return Ok(());
        }
        let with_copies = stored_count(bytes.saturating_mul(COPIES));
        self.max_bytes.check(with_copies)
    }

    /// Reads guides whose tasks and steps are locked, and what their outdated translations were made
    /// from. Fails like [`Self::permit_guides`].
    pub async fn read_guides(
        &self,
        tasks: &[TaskId],
        bytes: usize,
    ) -> Result<(Vec<TaskTree>, TranslatedFrom), StoreError> {
        self.permit_guides(bytes)?;
        task_tree::read_trees(self.scope(), tasks).await
    }

    /// Locks the steps of one guide, and returns its bytes. `None` if it is too large to be exported.
    async fn lock_exportable_guide(
        &self,
        guide: &LockedGuides,
    ) -> Result<Option<usize>, StoreError> {
        let bytes = total_bytes(&self.lock_guide_steps(guide).await?, &guide.ids);
        Ok((bytes <= self.context.max_message_bytes).then_some(bytes))
    }

    /// Locks the steps of one guide, and reads it. Returns `None` if it is too large to be exported.
    pub async fn read_exportable_guide(
        &self,
        guide: &LockedGuides,
    ) -> Result<Option<KeptGuide>, StoreError> {
        match self.lock_exportable_guide(guide).await? {
            Some(bytes) => self.read_guide(&guide.ids, bytes).await.map(Some),
            None => Ok(None),
        }
    }

    /// Locks the history and the steps of a guide that this write publishes, for
    /// [`Self::keep_published`], and returns its tasks; none if it is too large to be exported. Fails
    /// like [`Self::permit_guides`], because a write cannot wait for a permit after it has changed
    /// something.
    pub async fn lock_published(
        &self,
        task: TaskId,
        guide: LockedGuides,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.lock_history(task).await?;
        let Some(bytes) = self.lock_exportable_guide(&guide).await? else {
            return Ok(Vec::new());
        };
        self.permit_guides(bytes)?;
        Ok(guide.ids)
    }

    /// Keeps a published guide, given by its tasks, as it is after the write, if it can be exported.
    pub async fn keep_published(&self, tasks: &[TaskId]) -> Result<(), StoreError> {
        let (mut trees, outdated) = task_tree::read_trees(self.scope(), tasks).await?;
        let guide = trees.pop().map(|tree| KeptGuide { tree, outdated });
        let Some(guide) = guide.and_then(|guide| guide.if_exportable(&self.context)) else {
            return Ok(());
        };
        let history = self.lock_history(guide.tree.task.guid).await?;
        self.keep_guide(&history, RevisionCause::Published, guide)
            .await
    }

    /// Keeps a guide in an automatic revision, in addition to the changes of the write.
    pub async fn keep_guide(
        &self,
        history: &HistoryState,
        cause: RevisionCause,
        guide: KeptGuide,
    ) -> Result<(), StoreError> {
        let etag = GuideEtag::for_guide(&guide.tree);
        let (_, edits) = history.add_automatic(cause, etag, Some(guide), &self.context);
        let mut revision = Changes::default();
        revision.edit_history(history.task, edits);
        self.encode_revision(&mut revision).await?;
        self.apply(revision, None, None).await
    }

    /// Reads one guide, given by its tasks. Fails like [`Self::permit_guides`].
    pub async fn read_guide(
        &self,
        tasks: &[TaskId],
        bytes: usize,
    ) -> Result<KeptGuide, StoreError> {
        let (mut trees, outdated) = self.read_guides(tasks, bytes).await?;
        // The guide existed when it was locked.
        let tree = trees.pop().ok_or(StoreError::Conflict)?;
        Ok(KeptGuide { tree, outdated })
    }

    /// Encodes the guide of a new revision, if there is one.
    pub async fn encode_revision(&self, changes: &mut Changes) -> Result<(), StoreError> {
        let edits = changes
            .history
            .iter_mut()
            .flat_map(|change| &mut change.edits);
        for edit in edits {
            if let HistoryEdit::Add(new) = edit
                && let RevisionContent::Guide(guide) = &mut new.content
                && let Some(guide) = guide.take()
            {
                new.content = RevisionContent::Encoded(self.encode(*guide)?);
            }
        }
        Ok(())
    }

    pub fn encode(&self, guide: KeptGuide) -> Result<EncodedGuide, StoreError> {
        let encode = self.guide_codec.encode;
        let weight = guide.tree.bytes() / ENCODED_BYTES_PER_WEIGHT;
        let encoded = run_by_weight(weight, || encode(guide));
        Ok(encoded.ok_or_else(|| Error::Internal("a guide is not encoded".to_owned()))?)
    }

    pub fn decode(&self, guide: EncodedGuide) -> Result<KeptDocument, StoreError> {
        let decode = self.guide_codec.decode;
        let weight = guide.document_bytes / ENCODED_BYTES_PER_WEIGHT;
        let guide = run_by_weight(weight, || decode(&guide));
        guide.ok_or(StoreError::Corrupt("content"))
    }
}
