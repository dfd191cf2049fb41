//! Creating, updating and deleting steps.

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::{Operation, links::WithManaged, transaction::Tx};
use crate::{
    domain::{
        Error, Result,
        change_feed::WriteRpc,
        changes::Changes,
        decide::{
            CreateStep, DeleteStep, NewStepSnapshot, StepSnapshot, StepToDelete, UpdateStep,
            WriteContext,
        },
        etag::ExpectedEtag,
        ids::{StepId, TaskId},
        order::Insertion,
        patch::Edit,
        step::{NewStep, Placement, ReferencedTask, Step, StepPatch},
        task::LockedTask,
    },
    store::{Account, RetryKey, WriteMode, WriteOutcome, error::StoreError, schema::entity::step},
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

    /// Updates a step. Returns it, and the fields of the update that were not honored.
    pub async fn update_step(
        &self,
        guid: StepId,
        expected: ExpectedEtag,
        patch: StepPatch,
        mode: WriteMode,
    ) -> Result<(Step, Vec<&'static str>)> {
        let update = UpdateStep {
            guid,
            expected,
            patch,
        };
        self.write(update, mode).await
    }

    /// Deletes a step.
    pub async fn delete_step(&self, guid: StepId, expected: ExpectedEtag) -> Result<()> {
        self.write(DeleteStep { guid, expected }, WriteMode::Store)
            .await
    }
}

impl Operation for CreateStep {
    type Snapshot = NewStepSnapshot;
    type Answer = (Step, Placement);
    const RPC: Option<WriteRpc> = Some(WriteRpc::CreateStep);

    async fn read(&self, tx: &Tx) -> Result<Option<NewStepSnapshot>, StoreError> {
        if self.new.kind.subtask().is_some() {
            return Ok(None);
        }
        let insertion = match self.prevstep {
            None => Some(Insertion::at_end(Placement::Appended)),
            Some(prevstep) => match tx.neighbours(self.new.task, prevstep).await? {
                None => Some(Insertion::at_end(Placement::AppendedPrevstepUnknown)),
                Some((neighbours, version)) => Insertion::after(&neighbours, version),
            },
        };
        Ok(insertion.map(|insertion| NewStepSnapshot {
            insertion,
            target: None,
            step_count: None,
        }))
    }

    async fn read_locked(&self, tx: &Tx) -> Result<NewStepSnapshot, StoreError> {
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
        Ok(NewStepSnapshot {
            insertion: insertion(tx, parent, self.prevstep).await?,
            target: target.and_then(find).map(LockedTask::referenced),
            step_count: Some(parent.step_count),
        })
    }

    fn decide(
        &self,
        stored: NewStepSnapshot,
        context: &WriteContext,
    ) -> Result<(Changes, (Step, Placement))> {
        self.clone().into_changes(stored, context)
    }
}

/// Where a new step goes in a locked task.
async fn insertion(
    tx: &Tx,
    parent: &LockedTask,
    prevstep: Option<StepId>,
) -> Result<Insertion, StoreError> {
    let neighbours = match prevstep {
        Some(prevstep) => tx.neighbours(parent.guid, prevstep).await?,
        None => None,
    };
    let neighbours = neighbours.map(|(neighbours, _)| neighbours);
    let placement = match (prevstep, &neighbours) {
        (None, _) => Placement::Appended,
        (Some(_), None) => Placement::AppendedPrevstepUnknown,
        (Some(_), Some(_)) => Placement::AfterPrevstep,
    };
    if let Some(found) = Insertion::in_locked(placement, neighbours.as_ref(), parent.numbering) {
        return Ok(found);
    }
    tx.lock_steps_of(&[parent.guid]).await?;
    let order = tx.step_order(parent.guid).await?;
    Ok(Insertion::renumbering(placement, &order, prevstep))
}

/// A step, and the task that an update of it names.
type StepAndTarget = (Option<StepSnapshot>, Option<ReferencedTask>);

impl Operation for UpdateStep {
    type Snapshot = StepAndTarget;
    type Answer = (Step, Vec<&'static str>);
    const RPC: Option<WriteRpc> = Some(WriteRpc::UpdateStep);

    async fn read(&self, tx: &Tx) -> Result<Option<StepAndTarget>, StoreError> {
        if self.patch.new_subtask().is_some() {
            return Ok(None);
        }
        let stored = tx.read_step(self.guid).await?;
        let manages = |stored: &StepSnapshot| !stored.step.managed_tasks().is_empty();
        if self.with_managed() == WithManaged::Load && stored.as_ref().is_some_and(manages) {
            return Ok(None);
        }
        Ok(Some((stored, None)))
    }

    async fn read_locked(&self, tx: &Tx) -> Result<StepAndTarget, StoreError> {
        let target = self.patch.new_subtask();
        if target.is_none()
            && self.with_managed() == WithManaged::Skip
            && let Some(stored) = tx.lock_and_read_step(self.guid).await?
        {
            return Ok((Some(stored), None));
        }
        // Locking the target delays its rename until this title is written; the rename
        // then updates it.
        let named: Vec<TaskId> = target.into_iter().collect();
        let locked = tx.lock_step(self.guid, &named, self.with_managed()).await?;
        let mut stored = tx.read_step(self.guid).await?;
        if let Some(stored) = &mut stored {
            let managed = stored.step.managed_tasks();
            stored.managed = tx.read_managed(&locked, &managed).await?;
        }
        let mut locked_tasks = locked.locked_tasks.iter();
        let target = locked_tasks.find(|locked_task| Some(locked_task.guid) == target);
        Ok((stored, target.map(LockedTask::referenced)))
    }

    fn decide(
        &self,
        (stored, target): StepAndTarget,
        context: &WriteContext,
    ) -> Result<(Changes, (Step, Vec<&'static str>))> {
        self.clone().into_changes(stored, target, context)
    }
}

impl UpdateStep {
    /// Whether the update may change what the step manages.
    fn with_managed(&self) -> WithManaged {
        match &self.patch.feedback {
            Edit::Keep | Edit::Refused => WithManaged::Skip,
            Edit::Clear | Edit::Set(_) => WithManaged::Load,
        }
    }
}

impl Operation for DeleteStep {
    type Snapshot = Option<StepToDelete>;
    type Answer = ();
    const RPC: Option<WriteRpc> = Some(WriteRpc::DeleteStep);

    async fn read(&self, tx: &Tx) -> Result<Option<Option<StepToDelete>>, StoreError> {
        let stored = tx.read_step_to_delete(self.guid).await?;
        let manages = stored
            .as_ref()
            .is_some_and(|step| !step.managed_ids.is_empty());
        Ok((!manages).then_some(stored))
    }

    async fn read_locked(&self, tx: &Tx) -> Result<Option<StepToDelete>, StoreError> {
        // A step never changes its task, so the task can be looked up before it is
        // locked.
        let task: Option<Uuid> = tx
            .select::<step::Entity>()
            .select_only()
            .column(step::Column::Task)
            .filter(step::Column::Guid.eq(self.guid.0))
            .into_tuple()
            .one(&tx.db)
            .await?;
        let Some(task) = task else {
            return Ok(None);
        };
        let tasks = [TaskId(task)];
        let locked = tx.lock_step(self.guid, &tasks, WithManaged::Load).await?;
        let Some(mut stored) = tx.read_step_to_delete(self.guid).await? else {
            return Ok(None);
        };
        stored.managed = tx.read_managed(&locked, &stored.managed_ids).await?;
        Ok(Some(stored))
    }

    fn decide(
        &self,
        stored: Option<StepToDelete>,
        context: &WriteContext,
    ) -> Result<(Changes, ())> {
        self.clone().into_changes(stored, context)
    }
}
