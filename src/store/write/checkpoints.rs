//! Checkpoints: revisions that a guide gets before a change, if its newest revision is old.
//!
//! The statements that lock tasks and steps also read when the guide was last known to be kept, so a change
//! without a checkpoint costs no more statements. If that is too long ago, the write is rolled back. It is
//! retried, locks the whole guide first, and looks at the newest revision.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{
    ColumnTrait, ConnectionTrait, ExprTrait, QueryFilter, QuerySelect, QueryTrait, Select,
    UpdateMany,
    sea_query::{Expr, Func},
};

use super::{Tx, guide::total_bytes};
use crate::{
    domain::{
        changes::{Changes, TaskChange},
        history::RevisionCause,
        ids::TaskId,
    },
    store::{
        WriteMode,
        account::Scope,
        entity::{step, task},
        error::StoreError,
        read::task_tree,
        rows::KIND_LINKED,
    },
};

/// Which guides get a checkpoint before a write changes them, if their newest revisions are old.
#[derive(Clone, Copy)]
pub enum CheckpointsOf {
    NoGuides,
    ChangedGuides,
    /// The guide that manages the imported or restored task, which itself is kept in any case.
    ManagingGuide,
}

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

/// [`LockedTaskRow::kept_ts`](crate::store::rows::LockedTaskRow::kept_ts) as an expression in a statement on
/// tasks.
fn kept_ts() -> Expr {
    let known = task::Column::KeptTs.into_expr();
    let kept = Func::greatest([known, task::Column::CreatedTs.into_expr()]);
    Expr::case(task::Column::Kind.ne(KIND_LINKED), kept).into()
}

/// The same for the task of each step, in a statement on steps.
fn step_kept_ts(scope: Scope<'_, impl ConnectionTrait>) -> Expr {
    let is_of_step = task::Column::Guid
        .into_expr()
        .eq(step::Column::Task.into_expr());
    let tasks = scope.find::<task::Entity>().select_only();
    let tasks = tasks.expr(kept_ts()).filter(is_of_step);
    tasks.into_query().into()
}

/// Sets when a guide was last known to be kept.
pub fn set_kept_ts(
    scope: Scope<'_, impl ConnectionTrait>,
    task: TaskId,
    kept_ts: i64,
) -> UpdateMany<task::Entity> {
    let update = scope.update::<task::Entity>();
    update
        .col_expr(task::Column::KeptTs, Expr::value(kept_ts))
        .filter(task::Column::Guid.eq(task.0))
}

/// The name of the selected expression.
const KEPT_TS: &str = "kept_ts";

impl Tx<'_> {
    fn makes_checkpoints(&self) -> bool {
        self.mode == WriteMode::Store
            && !self.checkpoint_interval.is_zero()
            && self.context.automatic_revisions > 0
    }

    /// Also selects when the guide of each step was last known to be kept.
    pub fn select_step_kept_ts(&self, steps: Select<step::Entity>) -> Select<step::Entity> {
        self.select_kept_ts(steps, step_kept_ts(self.scope()))
    }

    /// The same for a statement that joins the task of each step.
    pub fn select_joined_kept_ts(&self, steps: Select<step::Entity>) -> Select<step::Entity> {
        self.select_kept_ts(steps, kept_ts())
    }

    fn select_kept_ts(&self, steps: Select<step::Entity>, kept: Expr) -> Select<step::Entity> {
        let kept = if self.makes_checkpoints() {
            kept
        } else {
            Expr::value(None::<i64>)
        };
        steps.expr_as(kept, KEPT_TS)
    }

    /// Records the `kept_ts` that was selected for a task.
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
        Ok(to_keep)
    }

    /// Adds a checkpoint of each guide of `of` whose newest revision is older than the interval. Fails with
    /// [`StoreError::NeedsCheckpoints`] if a guide may need a checkpoint and is not locked. Called before
    /// the write changes anything.
    pub async fn keep_checkpoints(
        &self,
        of: CheckpointsOf,
        changes: &Changes,
        checkpoints: &Checkpoints,
        locked: &LockedForCheckpoints,
    ) -> Result<(), StoreError> {
        let is_skipped = matches!(checkpoints, Checkpoints::Skip);
        if is_skipped || !self.makes_checkpoints() || changes.is_empty() {
            return Ok(());
        }
        let tasks = match of {
            CheckpointsOf::NoGuides => return Ok(()),
            CheckpointsOf::ChangedGuides => changed_tasks(changes),
            CheckpointsOf::ManagingGuide => changes.replaced.into_iter().collect(),
        };
        let mut due = self.find_due_guides(tasks).await?;
        due.retain(|guide| Some(*guide) != changes.replaced);
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
        let mut old = Vec::new();
        for (guide, to_keep) in to_keep {
            let history = self.lock_history(guide).await?;
            let newest = history.newest.as_ref().map(|newest| newest.created.0);
            match newest.filter(|created| !self.is_old(*created)) {
                Some(created) => self.store_kept_ts(guide, created).await?,
                None if to_keep.bytes > self.context.max_message_bytes => {
                    self.store_kept_ts(guide, self.context.now.0).await?;
                }
                None => old.push((to_keep, history)),
            }
        }
        // A write that waits for a permit must not have kept another guide.
        for (to_keep, _) in &old {
            self.permit_guides(to_keep.bytes)?;
        }
        for (to_keep, history) in old {
            let kept = self.read_guide(&to_keep.tasks, to_keep.bytes).await?;
            self.keep_guide(&history, RevisionCause::Checkpoint, kept)
                .await?;
        }
        Ok(())
    }

    /// Records that a guide was kept, or was too large to be kept, so that no write locks it for a
    /// checkpoint within the interval.
    async fn store_kept_ts(&self, guide: TaskId, kept_ts: i64) -> Result<(), StoreError> {
        let update = set_kept_ts(self.scope(), guide, kept_ts);
        update.exec(self.db()).await?;
        Ok(())
    }

    fn is_old(&self, kept_ts: i64) -> bool {
        let age = self.context.now.0.saturating_sub(kept_ts);
        age >= self.checkpoint_interval.as_micros() as i64
    }

    /// The topmost tasks of the guides to which these tasks belong, if the newest revisions of the guides may
    /// be old.
    async fn find_due_guides(
        &self,
        tasks: BTreeSet<TaskId>,
    ) -> Result<BTreeSet<TaskId>, StoreError> {
        let mut due = BTreeSet::new();
        for task in tasks {
            let noted = super::lock(&self.kept_ts).get(&task).copied().flatten();
            let found = match noted {
                Some(kept_ts) => Some((task, kept_ts)),
                None => self.find_topmost(task).await?,
            };
            if let Some((guide, kept_ts)) = found
                && self.is_old(kept_ts)
            {
                due.insert(guide);
            }
        }
        Ok(due)
    }

    /// The topmost task of a task's guide, and when that guide was last known to be kept.
    async fn find_topmost(&self, mut task: TaskId) -> Result<Option<(TaskId, i64)>, StoreError> {
        loop {
            let rows = self.find::<task::Entity>().select_only();
            let rows = rows
                .column(task::Column::ParentGuid)
                .expr(kept_ts())
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
