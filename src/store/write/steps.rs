//! Creating, updating and deleting steps.

use std::sync::Arc;

use super::{Operation, links::WithManaged, tx::Tx};
use crate::{
    domain::{
        Error, Result,
        change_feed::WriteRpc,
        changes::Changes,
        decide::{CreateStep, DeleteStep, NewStepSnapshot, UpdateStep, UpdatedFields},
        etag::ExpectedEtag,
        ids::{StepId, TaskId},
        order::Insertion,
        step::{NewStep, Placement, Step},
        task::LockedTask,
    },
    store::{Account, RetryKey, WriteMode, WriteOutcome, error::StoreError, read::steps::Bodies},
};

impl Account {
    /// Creates a step right after `prevstep`, or at the end.
    pub async fn create_step(
        &self,
        new: NewStep,
        prevstep: Option<StepId>,
        retry: Option<RetryKey<(Step, Placement)>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<(Step, Placement)>> {
        self.write_idempotent(CreateStep { new, prevstep }, mode, retry)
            .await
    }

    /// Updates a step.
    pub async fn update_step<E: UpdatedFields<Step, New = NewStep>>(
        &self,
        update: Arc<UpdateStep<E>>,
        mode: WriteMode,
    ) -> Result<Step> {
        self.write(update, mode).await
    }

    /// Deletes a step.
    pub async fn delete_step(&self, guid: StepId, expected: ExpectedEtag) -> Result<()> {
        self.write(DeleteStep { guid, expected }, WriteMode::Store)
            .await
    }
}

impl Operation for CreateStep {
    type Answer = (Step, Placement);
    const RPC: Option<WriteRpc> = Some(WriteRpc::CreateStep);

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, (Step, Placement)), StoreError> {
        let task = self.new.task;
        let target = self.new.kind.subtask().map(|subtask| subtask.task);
        let named: Vec<TaskId> = target.into_iter().chain([task]).collect();
        let locked_tasks = tx.lock_tasks(&named).await?;
        let find = |guid: TaskId| {
            locked_tasks
                .iter()
                .find(|locked_task| locked_task.guid == guid)
        };
        let parent = find(task).ok_or_else(|| Error::task_not_found(task, "step.task"))?;
        let stored = NewStepSnapshot {
            insertion: insertion(tx, parent, self.prevstep).await?,
            target: target.and_then(find).map(LockedTask::referenced),
            parent: parent.clone(),
        };
        Ok(self.clone().into_changes(stored, &tx.context)?)
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
    if let Some(found) = Insertion::new(placement, neighbors, parent.numbering) {
        return Ok(found);
    }
    tx.lock_steps_of(&[parent.guid]).await?;
    let order = tx.step_order(parent.guid).await?;
    let numbering = parent.numbering;
    Ok(Insertion::renumbering(
        placement, numbering, &order, prevstep,
    ))
}

impl<E: UpdatedFields<Step, New = NewStep>> Operation for Arc<UpdateStep<E>> {
    type Answer = Step;
    const RPC: Option<WriteRpc> = Some(WriteRpc::UpdateStep);

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Step), StoreError> {
        let target = self.new_subtask;
        let with_managed = match self.edits_question {
            true => WithManaged::Load,
            false => WithManaged::Skip,
        };
        let mut stored = None;
        if target.is_none() && with_managed == WithManaged::Skip {
            stored = tx.lock_small_step(self.guid).await?;
        }
        let mut locked_tasks = Vec::new();
        if stored.is_none() {
            // Locking the target delays its rename until this title is written; the rename
            // then updates it.
            (stored, locked_tasks) = tx
                .lock_step(self.guid, target.as_slice(), with_managed, Bodies::Read)
                .await?;
        }
        let mut locked_tasks = locked_tasks.iter();
        let target = locked_tasks.find(|locked_task| Some(locked_task.guid) == target);
        let target = target.map(LockedTask::referenced);
        Ok(self.changes(stored, target, &tx.context)?)
    }
}

impl Operation for DeleteStep {
    type Answer = ();
    const RPC: Option<WriteRpc> = Some(WriteRpc::DeleteStep);

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, ()), StoreError> {
        // A step never changes its task, so the task can be looked up before it is
        // locked.
        let tasks = tx.tasks_of_steps(&[self.guid.0]).await?;
        let stored = match tasks.is_empty() {
            true => None,
            false => {
                let managed = WithManaged::Load;
                let locked = tx.lock_step(self.guid, &tasks, managed, Bodies::Skip);
                locked.await?.0
            }
        };
        Ok(self.clone().into_changes(stored, &tx.context)?)
    }
}
