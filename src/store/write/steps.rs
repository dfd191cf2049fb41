//! Creating, updating and deleting steps.

use std::sync::Arc;

use super::{CheckpointsOf, Operation, tx::Tx};
use crate::{
    domain::{
        Error, Result,
        change_feed::WriteRpc,
        changes::Changes,
        decide::{
            CreateStep, DeleteStep, RestoreStep, StepSlot, StepSnapshot, StepToRestore, UpdateStep,
            Updated,
        },
        etag::ExpectedEtag,
        ids::StepId,
        order::{Insertion, Neighbors},
        step::{Placement, Step},
        task::LockedTask,
    },
    store::{
        Account, RetryKey, WriteMode, WriteOutcome,
        error::StoreError,
        read::{deleted_steps, steps::Bodies},
    },
};

impl Account {
    /// Creates a step right after `prevstep`, or at the end.
    pub async fn create_step(
        &self,
        create: CreateStep,
        retry: Option<RetryKey<(Step, Placement)>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<(Step, Placement)>> {
        self.write_idempotent(create, mode, retry).await
    }

    pub async fn update_step(
        &self,
        update: Arc<UpdateStep>,
        mode: WriteMode,
    ) -> Result<Updated<Step>> {
        self.write(update, mode).await
    }

    pub async fn delete_step(&self, guid: StepId, expected: ExpectedEtag) -> Result<()> {
        self.write(DeleteStep { guid, expected }, WriteMode::Store)
            .await
    }

    /// Brings back a step that [`Self::delete_step`] has deleted.
    pub async fn restore_step(&self, guid: StepId) -> Result<(Step, Placement)> {
        self.write(RestoreStep { guid }, WriteMode::Store).await
    }
}

impl Operation for CreateStep {
    type Answer = (Step, Placement);
    const RPC: Option<WriteRpc> = Some(WriteRpc::CreateStep);
    const CHECKPOINTS: CheckpointsOf = CheckpointsOf::ChangedGuides;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, (Step, Placement)), StoreError> {
        let task = self.new.task;
        let (locked_tasks, target) = tx.lock_with_subtask([task], &self.subtask).await?;
        let parent = locked_tasks.get(&task);
        let parent = parent.ok_or_else(|| Error::task_not_found(task, "step.task"))?;
        let slot = StepSlot {
            insertion: insertion(tx, parent, self.prevstep).await?,
            target,
            parent: parent.clone(),
        };
        Ok(self.clone().into_changes(slot, &tx.context)?)
    }
}

/// Where a new step goes in a locked task.
async fn insertion(
    tx: &Tx<'_>,
    parent: &LockedTask,
    prevstep: Option<StepId>,
) -> Result<Insertion, StoreError> {
    let neighbors = match prevstep {
        Some(prevstep) => tx.neighbors(parent.guid, prevstep).await?,
        None => None,
    };
    let placement = match (prevstep, &neighbors) {
        (None, _) => Placement::Appended,
        (Some(_), None) => Placement::AppendedPrevstepUnknown,
        (Some(_), Some(_)) => Placement::AfterPrevstep,
    };
    insert(tx, parent, placement, neighbors, prevstep).await
}

/// Inserts between neighbors, or appends. Renumbers the steps of the task if there is no room.
async fn insert(
    tx: &Tx<'_>,
    parent: &LockedTask,
    placement: Placement,
    neighbors: Option<Neighbors>,
    prevstep: Option<StepId>,
) -> Result<Insertion, StoreError> {
    if let Some(found) = Insertion::new(placement, neighbors, parent.numbering) {
        return Ok(found);
    }
    tx.lock_steps(parent.guid).await?;
    let order = tx.step_order(parent.guid).await?;
    let numbering = parent.numbering;
    Ok(Insertion::renumbering(
        placement, numbering, &order, prevstep,
    ))
}

impl Operation for Arc<UpdateStep> {
    type Answer = Updated<Step>;
    const RPC: Option<WriteRpc> = Some(WriteRpc::UpdateStep);
    const CHECKPOINTS: CheckpointsOf = CheckpointsOf::ChangedGuides;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Self::Answer), StoreError> {
        let (mut stored, mut target) = (None, None);
        if !self.subtask.names_task() {
            stored = if self.edits_question {
                tx.lock_simple_step(self.guid).await?
            } else {
                tx.lock_small_step(self.guid).await?
            };
        }
        if stored.is_none() {
            let mut managed = None;
            if self.edits_question {
                let found = tx.find_step(self.guid, Bodies::Skip).await?;
                managed = Some(found.map_or_else(Vec::new, |found| found.step.managed_tasks()));
            }
            // Locking the target delays its rename until this title is written; the rename
            // then updates it.
            let to_lock = managed.iter().flatten().copied();
            (_, target) = tx.lock_with_subtask(to_lock, &self.subtask).await?;
            let managed = managed.as_deref();
            stored = tx.lock_step(self.guid, managed, Bodies::Read).await?;
        }
        Ok(self.changes(stored, target, &tx.context)?)
    }
}

impl Operation for DeleteStep {
    type Answer = ();
    const RPC: Option<WriteRpc> = Some(WriteRpc::DeleteStep);
    const CHECKPOINTS: CheckpointsOf = CheckpointsOf::ChangedGuides;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, ()), StoreError> {
        let mut stored = tx.lock_task_and_simple_step(self.guid).await?;
        // A step never changes its task, so the task can be looked up before it is locked. If an import linked
        // the step while the first query waited, its task is already locked, out of order. A write that
        // deadlocks is retried.
        if stored.is_none()
            && let Some(StepSnapshot { step, .. }) = tx.find_step(self.guid, Bodies::Skip).await?
        {
            let managed = step.managed_tasks();
            let tasks = managed.iter().copied().chain([step.task]);
            tx.lock_tasks(tasks).await?;
            let managed = Some(managed.as_slice());
            stored = tx.lock_step(self.guid, managed, Bodies::Skip).await?;
        }
        Ok(self.clone().into_changes(stored, &tx.context)?)
    }
}

impl Operation for RestoreStep {
    type Answer = (Step, Placement);
    const RPC: Option<WriteRpc> = Some(WriteRpc::RestoreStep);
    const CHECKPOINTS: CheckpointsOf = CheckpointsOf::ChangedGuides;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, (Step, Placement)), StoreError> {
        let references = deleted_steps::find_references(tx.scope(), self.guid).await?;
        let (task, subtask) = references.ok_or_else(|| self.not_found())?;
        let mut locked_tasks = tx.lock_tasks(subtask.into_iter().chain([task])).await?;
        // If the step is restored twice concurrently, one restore waits here for the lock of its
        // task.
        let deleted = deleted_steps::find(tx.scope(), self.guid, tx.max_bytes).await?;
        let target = subtask.and_then(|task| Some(locked_tasks.get(&task)?.referenced()));
        let parent = locked_tasks.remove(&task);
        let ((deleted, translated_from), parent) =
            deleted.zip(parent).ok_or_else(|| self.not_found())?;
        let stored = StepToRestore {
            step: deleted.step,
            translated_from,
            slot: StepSlot {
                insertion: restored_insertion(tx, &parent, deleted.previous).await?,
                target,
                parent,
            },
        };
        Ok(self.changes(stored, &tx.context)?)
    }
}

/// Where a restored step goes in a locked task.
async fn restored_insertion(
    tx: &Tx<'_>,
    parent: &LockedTask,
    previous: Option<StepId>,
) -> Result<Insertion, StoreError> {
    if previous.is_some() {
        return insertion(tx, parent, previous).await;
    }
    match tx.first_place(parent.guid).await? {
        Some(first) => {
            let neighbors = Some(Neighbors::before_first(first));
            insert(tx, parent, Placement::First, neighbors, None).await
        }
        None => insert(tx, parent, Placement::AppendedPrevstepUnknown, None, None).await,
    }
}
