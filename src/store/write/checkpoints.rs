//! Checkpoints: revisions that a guide gets before a change, if its newest revision is old.
//!
//! The statements that lock tasks and steps also read how old the newest revision is, so a change without
//! a checkpoint costs no more statements. If a checkpoint is due, the write is rolled back. It is retried,
//! and locks the whole guide first.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{
    ColumnTrait, ConnectionTrait, ExprTrait, QueryFilter, QuerySelect, QueryTrait, Select,
    sea_query::{Expr, Func},
};

use super::{Tx, guide::total_bytes};
use crate::{
    domain::{
        changes::{Changes, TaskChange},
        etag::GuideEtag,
        history::RevisionCause,
        ids::TaskId,
    },
    store::{
        WriteMode,
        account::Scope,
        entity::{step, task, task_revision},
        error::StoreError,
        read::task_tree,
        rows::KIND_LINKED,
    },
};

/// The checkpoints of a write.
#[derive(Clone, Default)]
pub enum Checkpoints {
    /// It is not known whether one is due.
    #[default]
    Unknown,
    /// The guides of these tasks are locked before the decision, and kept if they are still due.
    Keep {
        guides: Vec<TaskId>,
        /// Other tasks that the write locks.
        others: Vec<TaskId>,
    },
    /// There is not enough memory for them: the write goes on without checkpoints.
    Skip,
}

impl Checkpoints {
    pub fn are_kept(&self) -> bool {
        matches!(self, Self::Keep { .. })
    }
}

/// The guides that a write has locked for checkpoints, by their topmost tasks.
pub type LockedForCheckpoints = BTreeMap<TaskId, GuideToKeep>;

pub struct GuideToKeep {
    tasks: Vec<TaskId>,
    bytes: usize,
}

/// The time of a guide's newest revision, or of the task's creation if there is none, as an expression in a
/// statement on tasks. A skipped checkpoint counts as a revision. NULL for a managed task, which belongs to the guide of another task.
fn kept_ts(scope: Scope<'_, impl ConnectionTrait>) -> Expr {
    use task_revision::{Column, Entity};
    let is_of_task = || Column::Task.into_expr().eq(task::Column::Guid.into_expr());
    let newest = scope
        .find::<Entity>()
        .select_only()
        .expr(Column::Number.max())
        .filter(is_of_task());
    let revision = scope
        .find::<Entity>()
        .select_only()
        .column(Column::CreatedTs)
        .filter(is_of_task())
        .filter(Column::Number.in_subquery(newest.into_query()));
    let kept = Func::coalesce([
        Expr::from(revision.into_query()),
        task::Column::CreatedTs.into_expr(),
    ]);
    let kept = Func::greatest([kept.into(), task::Column::SkippedCheckpointTs.into_expr()]);
    Expr::case(task::Column::Kind.ne(KIND_LINKED), kept).into()
}

/// The same for the task of each step, in a statement on steps.
fn kept_ts_of_step(scope: Scope<'_, impl ConnectionTrait>) -> Expr {
    let is_of_step = task::Column::Guid
        .into_expr()
        .eq(step::Column::Task.into_expr());
    let tasks = scope.find::<task::Entity>().select_only();
    let tasks = tasks.expr(kept_ts(scope)).filter(is_of_step);
    tasks.into_query().into()
}

/// The name of the selected expression.
const KEPT_TS: &str = "kept_ts";

impl Tx<'_> {
    fn makes_checkpoints(&self) -> bool {
        self.mode == WriteMode::Store
            && !self.checkpoint_interval.is_zero()
            && self.context.automatic_revisions > 0
    }

    /// Also selects when the newest revision of each task was made.
    pub fn select_task_kept_ts(&self, tasks: Select<task::Entity>) -> Select<task::Entity> {
        let kept = match self.makes_checkpoints() {
            true => kept_ts(self.scope()),
            false => Expr::value(None::<i64>),
        };
        tasks.expr_as(kept, KEPT_TS)
    }

    /// The same for the task of each step.
    pub fn select_step_kept_ts(&self, steps: Select<step::Entity>) -> Select<step::Entity> {
        let kept = match self.makes_checkpoints() {
            true => kept_ts_of_step(self.scope()),
            false => Expr::value(None::<i64>),
        };
        steps.expr_as(kept, KEPT_TS)
    }

    /// Notes what was selected of a task.
    pub fn note_kept_ts(&self, task: TaskId, kept_ts: Option<i64>) {
        super::lock(&self.kept_ts).insert(task, kept_ts);
    }

    /// Locks the guides that are to be kept, with the other tasks that the write locks.
    pub async fn lock_for_checkpoints(
        &self,
        checkpoints: &Checkpoints,
    ) -> Result<LockedForCheckpoints, StoreError> {
        let Checkpoints::Keep { guides, others } = checkpoints else {
            return Ok(BTreeMap::new());
        };
        let locked = self.lock_guides(guides, others.iter().copied()).await?;
        let bytes = self.lock_guide_steps(&locked).await?;
        let mut to_keep = BTreeMap::new();
        for guide in guides {
            let tasks = match guides.len() {
                1 => locked.ids.clone(),
                _ => task_tree::ids(self.scope(), &[*guide]).await?,
            };
            let bytes = total_bytes(&bytes, &tasks);
            to_keep.insert(*guide, GuideToKeep { tasks, bytes });
        }
        // A statement that waits for a lock on PostgreSQL does not see the revisions that were made meanwhile.
        super::lock(&self.kept_ts).retain(|task, _| !to_keep.contains_key(task));
        Ok(to_keep)
    }

    /// Adds a checkpoint of each guide that the write changes and whose newest revision is older than the
    /// interval. Fails with [`StoreError::NeedsCheckpoints`] if one of these guides is not locked. Called
    /// before the write changes anything.
    pub async fn keep_checkpoints(
        &self,
        changes: &mut Changes,
        checkpoints: &Checkpoints,
        locked: &LockedForCheckpoints,
    ) -> Result<(), StoreError> {
        let is_skipped = matches!(checkpoints, Checkpoints::Skip);
        if is_skipped || !self.makes_checkpoints() || changes.is_empty() {
            return Ok(());
        }
        let due = self.find_due_guides(changes).await?;
        if due.is_empty() {
            return Ok(());
        }
        let to_keep = due.iter().map(|guide| Some((*guide, locked.get(guide)?)));
        let Some(to_keep) = to_keep.collect::<Option<Vec<_>>>() else {
            return Err(StoreError::NeedsCheckpoints {
                guides: due.into_iter().collect(),
                others: super::lock(&self.kept_ts).keys().copied().collect(),
            });
        };
        let is_exportable = |guide: &GuideToKeep| guide.bytes <= self.context.max_message_bytes;
        // A write that waits for a permit must not have kept another guide.
        for (_, guide) in to_keep.iter().filter(|(_, guide)| is_exportable(guide)) {
            self.permit_guides(guide.bytes)?;
        }
        for (guide, to_keep) in to_keep {
            if !is_exportable(to_keep) {
                self.skip_checkpoint(guide).await?;
                continue;
            }
            let kept = self.read_guide(&to_keep.tasks, to_keep.bytes).await?;
            let history = self.lock_history(guide).await?;
            let etag = GuideEtag::of(&kept.tree);
            let (_, edits) =
                history.add_automatic(RevisionCause::Checkpoint, etag, Some(kept), &self.context);
            let mut checkpoint = Changes::default();
            checkpoint.edit_history(guide, edits);
            if let Some(later) = &mut changes.history
                && later.task == guide
                && !checkpoint.is_empty()
            {
                later.follow_checkpoint(self.context.automatic_revisions);
            }
            self.encode_revision(&mut checkpoint).await?;
            self.apply(checkpoint, None, None).await?;
        }
        Ok(())
    }

    /// Notes that a guide is too large for a checkpoint, so that it is not locked again within the interval.
    async fn skip_checkpoint(&self, guide: TaskId) -> Result<(), StoreError> {
        use task::Column;
        let update = self.scope().update::<task::Entity>();
        let update = update
            .col_expr(Column::SkippedCheckpointTs, Expr::value(self.context.now.0))
            .filter(Column::Guid.eq(guide.0));
        update.exec(self.db()).await?;
        Ok(())
    }

    /// The topmost tasks of changed guides whose newest revisions are old.
    async fn find_due_guides(&self, changes: &Changes) -> Result<BTreeSet<TaskId>, StoreError> {
        let mut due = BTreeSet::new();
        let interval = self.checkpoint_interval.as_micros();
        for task in changed_tasks(changes) {
            let noted = super::lock(&self.kept_ts).get(&task).copied().flatten();
            let found = match noted {
                Some(kept_ts) => Some((task, kept_ts)),
                None => self.find_topmost(task).await?,
            };
            if let Some((guide, kept_ts)) = found
                && self.context.now.0.saturating_sub(kept_ts) >= interval as i64
            {
                due.insert(guide);
            }
        }
        Ok(due)
    }

    /// The topmost task of the guide of a task, and when its newest revision was made.
    async fn find_topmost(&self, mut task: TaskId) -> Result<Option<(TaskId, i64)>, StoreError> {
        loop {
            let rows = self.find::<task::Entity>().select_only();
            let rows = rows
                .column(task::Column::ParentGuid)
                .expr(kept_ts(self.scope()))
                .filter(task::Column::Guid.eq(task.0));
            let found: Option<(Option<TaskId>, Option<i64>)> =
                rows.into_tuple().all(self.db()).await?.pop();
            match found {
                Some((_, Some(kept_ts))) => return Ok(Some((task, kept_ts))),
                Some((Some(parent), None)) => task = parent,
                Some((None, None)) | None => return Ok(None),
            }
        }
    }
}

/// The tasks that a write changes, or whose steps it changes. A managed task is changed with the task
/// that manages it.
fn changed_tasks(changes: &Changes) -> BTreeSet<TaskId> {
    let tasks = changes.tasks.iter().filter_map(|change| match change {
        TaskChange::Update { before, .. } => {
            let parent = before.managed.map(|managed| managed.parent);
            Some(parent.unwrap_or(before.guid))
        }
        TaskChange::Create(_) | TaskChange::Delete { .. } => None,
    });
    let steps = changes.steps.iter().map(|change| change.after.task);
    let deleted = changes.deleted_steps.iter().map(|deleted| deleted.task);
    let translated = changes.translated_tasks.iter().map(|it| it.task);
    let translated_steps = changes.translated_steps.iter().map(|it| it.task);
    tasks
        .chain(steps)
        .chain(deleted)
        .chain(translated)
        .chain(translated_steps)
        .collect()
}
