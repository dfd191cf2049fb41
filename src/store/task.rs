//! Writing tasks.

use std::sync::Arc;

use sea_orm::{
    ActiveModelTrait,
    ActiveValue::NotSet,
    ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, ExprTrait},
};
use uuid::Uuid;

use super::{
    Account, Mode, Outcome, Retry,
    entity::{step, task},
    fault::Fault,
    link,
    place::Found,
    retry::once,
    task_quick,
    task_read::LINKED,
    task_write::{Order, check_size, overlays, put_overlays, update_translations, write_row},
    transaction::{Tx, Write, work},
};
use crate::domain::{
    Error, Precondition, Result,
    etag::{Etag, Expected},
    ids::{StepId, TaskId},
    task::{IndexState, NewTask, Task, TaskPatch},
};

/// What a writer needs to know of a task that it has locked.
pub(super) struct Locked {
    /// The task.
    pub guid: TaskId,
    /// Its row.
    pub row: task::Model,
}

impl Tx {
    /// Locks tasks in the order of their ids and returns those that exist.
    pub async fn lock_tasks(&self, guids: &[TaskId]) -> Result<Vec<Locked>, Fault> {
        let rows = task::Entity::find()
            .filter(task::Column::AccountId.eq(self.account_id()))
            .filter(task::Column::Guid.is_in(guids.iter().map(|guid| guid.0)))
            .order_by_asc(task::Column::Guid)
            .lock_exclusive()
            .all(&self.db)
            .await?;
        let lock = |row: task::Model| Locked {
            guid: TaskId(row.guid),
            row,
        };
        Ok(rows.into_iter().map(lock).collect())
    }

    /// Locks one task.
    pub async fn lock_task(&self, guid: TaskId) -> Result<task::Model, Fault> {
        let locked = self.lock_tasks(&[guid]).await?;
        let found = locked.into_iter().next().map(|locked| locked.row);
        Ok(found.ok_or(Error::TaskNotFound(guid))?)
    }

    /// Notes on a locked task that its list of steps has changed: by how many, and
    /// where one was added.
    pub async fn touch_task(
        &self,
        guid: TaskId,
        steps: i64,
        added: Option<&Found>,
    ) -> Result<(), Fault> {
        use task::Column;
        let renumbered = added.is_some_and(|found| found.renumbered);
        let position = added.map_or(0, |found| found.place.position);
        let last = Expr::case(
            Expr::col(Column::LastPosition).lt(position),
            Expr::value(position),
        );
        task::Entity::update_many()
            .col_expr(Column::Version, Expr::col(Column::Version).add(1))
            .col_expr(
                Column::LastPosition,
                last.finally(Expr::col(Column::LastPosition)).into(),
            )
            .col_expr(Column::StepCount, Expr::col(Column::StepCount).add(steps))
            .col_expr(
                Column::OrderEpoch,
                Expr::col(Column::OrderEpoch).add(i64::from(renumbered)),
            )
            .col_expr(Column::DirtyRecord, Expr::value(true))
            .col_expr(Column::ModifiedTs, Expr::value(self.now.0))
            .filter(Column::AccountId.eq(self.account_id()))
            .filter(Column::Guid.eq(guid.0))
            .exec(&self.db)
            .await?;
        Ok(())
    }
}

impl Account {
    /// Creates a task.
    pub async fn create_task(
        &self,
        new: NewTask,
        retry: Option<Retry<Task>>,
        mode: Mode,
    ) -> Result<Outcome<Task>> {
        let sent = Arc::new((new, retry));
        let quick = (mode == Mode::Store).then(|| {
            work(&sent, |tx, sent| {
                Box::pin(async move {
                    let (task, row) = made(tx, &sent.0)?;
                    let retry = sent.1.as_ref();
                    let inserted = task_quick::insert(tx, &task, &row, retry).await?;
                    Ok(inserted.then_some(Outcome::Done(task)))
                })
            })
        });
        let whole = work(&sent, move |tx, sent| {
            Box::pin(async move {
                let (new, retry) = &*sent;
                once(tx, retry.as_ref(), mode, insert(tx, new)).await
            })
        });
        self.run(Write { mode, quick, whole }).await
    }

    /// Updates a task. The fields of the update that were not honored come with
    /// it.
    pub async fn update_task(
        &self,
        guid: TaskId,
        expected: Expected,
        patch: TaskPatch,
        mode: Mode,
    ) -> Result<(Task, Vec<&'static str>)> {
        let sent = Arc::new((expected, patch));
        let quick = (mode == Mode::Store).then(|| {
            work(&sent, move |tx, sent| {
                Box::pin(async move { amend(tx, guid, &sent.0, sent.1.clone()).await })
            })
        });
        let whole = work(&sent, move |tx, sent| {
            Box::pin(async move { update(tx, guid, &sent.0, sent.1.clone()).await })
        });
        self.run(Write { mode, quick, whole }).await
    }

    /// Deletes a task, with `force` together with its steps.
    pub async fn delete_task(&self, guid: TaskId, expected: Expected, force: bool) -> Result<()> {
        self.write(Mode::Store, move |tx| {
            let expected = expected.clone();
            Box::pin(async move { delete(tx, guid, &expected, force).await })
        })
        .await
    }
}

/// The task that is made of a new one, and its row.
fn made(tx: &Tx, new: &NewTask) -> Result<(Task, task::Model), Fault> {
    let NewTask {
        name,
        product,
        dependencies,
        published,
        roles,
        translations,
    } = new.clone();
    let task = Task {
        guid: TaskId(Uuid::now_v7()),
        account: tx.account.clone(),
        name,
        product,
        dependencies,
        published,
        roles,
        translations,
        managed: None,
        steps: Vec::new(),
        version: 1,
        dirty: true,
        index: IndexState::default(),
        created: tx.now,
        modified: tx.now,
    };
    let row = write_row(&task, Order::default());
    check_size(tx, &row)?;
    Ok((task, row))
}

async fn insert(tx: &Tx, new: &NewTask) -> Result<Task, Fault> {
    let (task, row) = made(tx, new)?;
    task::Entity::insert(row.into_active_model())
        .exec_without_returning(&tx.db)
        .await?;
    put_overlays(tx, overlays(tx, None, &task)).await?;
    Ok(task)
}

/// Updates what is in a task's own row with one read and one script. Nothing is
/// done when the update reaches further, when it is to be refused, or when the task
/// changes meanwhile.
async fn amend(
    tx: &Tx,
    guid: TaskId,
    expected: &Expected,
    patch: TaskPatch,
) -> Result<Option<(Task, Vec<&'static str>)>, Fault> {
    if !patch.faults.is_empty() {
        return Ok(None);
    }
    let before = match tx.read_task(guid).await {
        Err(Fault::Domain(_)) => return Ok(None),
        read => read?,
    };
    if !expected.matches(&Etag::of(guid.0, before.version, before.modified)) {
        return Ok(None);
    }
    let Ok((mut after, ignored)) = before.merge(patch) else {
        return Ok(None);
    };
    if after == before {
        return Ok(Some((after, ignored)));
    }
    if after.name != before.name {
        return Ok(None);
    }
    after.version += 1;
    after.dirty = true;
    after.modified = tx.now;
    let amended = task_quick::amend(tx, &before, &after).await?;
    Ok(amended.then_some((after, ignored)))
}

async fn update(
    tx: &Tx,
    guid: TaskId,
    expected: &Expected,
    patch: TaskPatch,
) -> Result<(Task, Vec<&'static str>), Fault> {
    let found = tx.lock_task(guid).await;
    let locked = match found {
        // What is wrong with the request comes before what it names.
        Err(Fault::Domain(Error::TaskNotFound(_))) if !patch.faults.is_empty() => {
            return Err(Error::Invalid(patch.faults).into());
        }
        found => found?,
    };
    if patch.faults.is_empty() && !expected.matches(&locked.etag()) {
        return Err(Error::EtagMismatch.into());
    }
    let before = tx.read_task(guid).await?;
    let (mut after, ignored) = before.merge(patch)?;
    if after == before {
        return Ok((after, ignored));
    }
    after.version += 1;
    after.dirty = true;
    after.modified = tx.now;
    let order = Order {
        step_count: locked.step_count,
        last_position: locked.last_position,
        epoch: locked.order_epoch,
    };
    let row = write_row(&after, order);
    check_size(tx, &row)?;
    let mut row = row.into_active_model().reset_all();
    // What the row is found by.
    row.account_id = NotSet;
    row.guid = NotSet;
    task::Entity::update_many()
        .set(row)
        .filter(task::Column::AccountId.eq(tx.account_id()))
        .filter(task::Column::Guid.eq(guid.0))
        .exec(&tx.db)
        .await?;
    update_translations(tx, &before, &after).await?;
    if after.name != before.name {
        link::sync_titles(tx, &[guid]).await?;
    }
    Ok((after, ignored))
}

async fn delete(tx: &Tx, guid: TaskId, expected: &Expected, force: bool) -> Result<(), Fault> {
    // The tasks that it manages are locked with it, in the order of ids.
    let managed = link::managed_by(tx, guid).await?;
    let named: Vec<TaskId> = managed.iter().copied().chain([guid]).collect();
    let locked = tx.lock_tasks(&named).await?;
    let locked = locked.into_iter().find(|locked| locked.guid == guid);
    let locked = locked.ok_or(Error::TaskNotFound(guid))?.row;
    if link::managed_by(tx, guid).await? != managed {
        return Err(Fault::Lost);
    }
    if !expected.matches(&locked.etag()) {
        return Err(Error::EtagMismatch.into());
    }
    if locked.kind == LINKED {
        return Err(Precondition::TaskManaged { task: guid }.into());
    }
    let by = references_from_elsewhere(tx, guid).await?;
    if !by.is_empty() {
        return Err(Precondition::TaskReferenced { task: guid, by }.into());
    }
    if locked.step_count > 0 {
        if !force {
            return Err(Precondition::TaskHasSteps { task: guid }.into());
        }
        link::unlink(tx, &managed).await?;
        delete_steps(tx, guid).await?;
    }
    task::Entity::delete_by_id((tx.account_id().to_owned(), guid.0))
        .exec(&tx.db)
        .await?;
    Ok(())
}

/// The first subtask steps of other tasks that refer to a task.
async fn references_from_elsewhere(tx: &Tx, guid: TaskId) -> Result<Vec<StepId>, Fault> {
    let steps: Vec<Uuid> = step::Entity::find()
        .select_only()
        .column(step::Column::Guid)
        .filter(step::Column::AccountId.eq(tx.account_id()))
        .filter(step::Column::SubtaskId.eq(guid.0))
        .filter(step::Column::Task.ne(guid.0))
        .order_by_asc(step::Column::Guid)
        .limit(Precondition::NAMED as u64)
        .into_tuple()
        .all(&tx.db)
        .await?;
    Ok(steps.into_iter().map(StepId).collect())
}

/// Deletes all steps of a locked task; bodies and translations go with them.
async fn delete_steps(tx: &Tx, guid: TaskId) -> Result<(), Fault> {
    let steps = || {
        sea_orm::Condition::all()
            .add(step::Column::AccountId.eq(tx.account_id()))
            .add(step::Column::Task.eq(guid.0))
    };
    step::Entity::find()
        .select_only()
        .column(step::Column::Guid)
        .filter(steps())
        .order_by_asc(step::Column::Guid)
        .lock_exclusive()
        .into_tuple::<Uuid>()
        .all(&tx.db)
        .await?;
    step::Entity::delete_many()
        .filter(steps())
        .exec(&tx.db)
        .await?;
    Ok(())
}
