//! Rows that are locked and read under locks: tasks by id first, then steps by id. On
//! SQLite the transaction itself is the lock.
//!
//! The steps that refer to renamed tasks are locked in a second pass, where two renames can
//! deadlock. PostgreSQL ends one of them, and that write is repeated.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Value,
    sea_query::Expr,
};
use uuid::Uuid;

use super::{
    sql::{MAX_IDS_PER_STATEMENT, Values},
    transaction::Tx,
};
use crate::{
    domain::{
        changes::Changes,
        ids::{StepId, TaskId},
        order::{Neighbours, Numbering, Place},
        row_version::RowVersion,
        task::{LockedTask, Task},
        text::Name,
        time::Timestamp,
    },
    store::{
        error::StoreError,
        json_columns,
        read::tasks::{self, KIND_LINKED, TaskTexts},
        row_reader::RowReader,
        schema::entity::{step, task},
    },
};

/// The place of a step and of the one behind it, with the version of its task. The inner
/// query finds nothing, and so does the outer one, when the step is not of the task.
const NEIGHBOURS: &str = "SELECT s.position, s.fraction, t.version FROM steps s \
    JOIN tasks t ON t.account_id = $1 AND t.guid = $2 \
    WHERE s.account_id = $1 AND s.task = $2 AND (s.position, s.fraction) >= \
        (SELECT position, fraction FROM steps \
         WHERE account_id = $1 AND guid = $3 AND task = $2) \
    ORDER BY s.position, s.fraction LIMIT 2";

impl Tx {
    /// Locks tasks in the order of their ids and returns those that exist.
    pub async fn lock_tasks(&self, guids: &[TaskId]) -> Result<Vec<LockedTask>, StoreError> {
        let mut guids = guids.to_vec();
        guids.sort_unstable();
        guids.dedup();
        let mut locked_tasks = Vec::with_capacity(guids.len());
        for guids in guids.chunks(MAX_IDS_PER_STATEMENT) {
            let statement = self
                .select::<task::Entity>()
                .select_only()
                .columns(TASK_HEAD)
                .filter(task::Column::Guid.is_in(guids.iter().map(|guid| guid.0)))
                .order_by_asc(task::Column::Guid)
                .lock_exclusive()
                .build(self.backend());
            for row in self.db.query_all_raw(statement).await? {
                locked_tasks.push(task_head(&mut RowReader::new(&row))?);
            }
        }
        Ok(locked_tasks)
    }

    /// The tasks of these steps. A step never changes its task, so they can be looked up before
    /// anything is locked.
    pub async fn tasks_of_steps(&self, steps: &[Uuid]) -> Result<Vec<TaskId>, StoreError> {
        let tasks: Vec<Uuid> = self
            .select::<step::Entity>()
            .select_only()
            .column(step::Column::Task)
            .distinct()
            .filter(step::Column::Guid.is_in(steps.iter().copied()))
            .into_tuple()
            .all(&self.db)
            .await?;
        Ok(tasks.into_iter().map(TaskId).collect())
    }

    /// Locks steps in the order of their ids, and returns those ids.
    pub async fn lock_steps(&self, filter: Expr) -> Result<Vec<Uuid>, StoreError> {
        let locked = self
            .select::<step::Entity>()
            .select_only()
            .column(step::Column::Guid)
            .filter(filter)
            .order_by_asc(step::Column::Guid)
            .lock_exclusive()
            .into_tuple()
            .all(&self.db)
            .await?;
        Ok(locked)
    }

    /// Locks all steps of locked tasks, and returns their ids.
    pub async fn lock_steps_of(&self, tasks: &[TaskId]) -> Result<Vec<StepId>, StoreError> {
        self.lock_steps_by(step::Column::Task, tasks).await
    }

    /// Locks the subtask steps that refer to locked tasks, and returns their ids.
    pub async fn lock_referring_steps(&self, tasks: &[TaskId]) -> Result<Vec<StepId>, StoreError> {
        self.lock_steps_by(step::Column::SubtaskId, tasks).await
    }

    async fn lock_steps_by(
        &self,
        column: step::Column,
        tasks: &[TaskId],
    ) -> Result<Vec<StepId>, StoreError> {
        let mut locked = Vec::new();
        for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
            let ids = tasks.iter().map(|task| task.0);
            let steps = self.lock_steps(column.is_in(ids)).await?;
            locked.extend(steps.into_iter().map(StepId));
        }
        Ok(locked)
    }

    /// Locks the stored steps that change, in the order of their ids. Fails with a conflict
    /// if one that is updated or deleted has another version than the decision is based
    /// on. A moved step needs no version check: places change only under the task's lock.
    pub async fn lock_changed_steps(&self, changes: &Changes) -> Result<(), StoreError> {
        let updated = changes.steps.iter().filter_map(|step| step.before.as_ref());
        let updated = updated.map(|step| (step.guid, Some(step.row_version)));
        let deleted = changes.deleted_steps.iter();
        let deleted = deleted.map(|deleted| (deleted.step, Some(deleted.row_version)));
        let moved = changes.moved.iter().map(|(step, _)| (*step, None));
        // The last entry of a step counts: one that moves and is updated is checked.
        let expected: BTreeMap<StepId, Option<RowVersion>> =
            moved.chain(updated).chain(deleted).collect();
        let ids: Vec<StepId> = expected.keys().copied().collect();
        let mut locked = 0;
        for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
            let ids = ids.iter().map(|step| step.0);
            for (step, version, modified) in self.lock_step_versions(ids).await? {
                let is_same = |expected: &RowVersion| {
                    (expected.version, expected.modified) == (version, modified)
                };
                match expected.get(&step) {
                    Some(row_version) if row_version.as_ref().is_none_or(is_same) => locked += 1,
                    Some(_) | None => return Err(StoreError::Conflict),
                }
            }
        }
        if locked == expected.len() {
            Ok(())
        } else {
            Err(StoreError::Conflict)
        }
    }

    /// Locks steps in the order of their ids, and returns those ids with their versions and the times of
    /// their last change.
    pub async fn lock_step_versions(
        &self,
        ids: impl IntoIterator<Item = Uuid>,
    ) -> Result<Vec<(StepId, i64, Timestamp)>, StoreError> {
        let statement = self
            .select::<step::Entity>()
            .select_only()
            .columns([
                step::Column::Guid,
                step::Column::Version,
                step::Column::ModifiedTs,
            ])
            .filter(step::Column::Guid.is_in(ids))
            .order_by_asc(step::Column::Guid)
            .lock_exclusive()
            .build(self.backend());
        let rows = self.db.query_all_raw(statement).await?;
        let step = |row| {
            let mut row = RowReader::new(row);
            Ok((StepId(row.take()?), row.take()?, Timestamp(row.take()?)))
        };
        rows.iter().map(step).collect()
    }

    /// A task as it is now. Fails with [`StoreError::NeedsLargeReadPermit`] if it is large and
    /// the write has no permit for that.
    pub async fn read_task(&self, guid: TaskId) -> Result<Option<Task>, StoreError> {
        tasks::find(&self.db, self.account(), guid, self.task_texts()).await
    }

    fn task_texts(&self) -> TaskTexts {
        match self.large_read_permit {
            None => TaskTexts::Small,
            Some(_) => TaskTexts::All,
        }
    }

    /// Tasks as they are now, in no order. Fails like [`Self::read_task`] if they are large
    /// together.
    pub async fn read_tasks(&self, guids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        let texts = self.task_texts();
        let columns = tasks::columns(self.backend(), texts, "SUM");
        let mut found = Vec::with_capacity(guids.len());
        for guids in guids.chunks(MAX_IDS_PER_STATEMENT) {
            let mut values = Values::new();
            let ids = values.bind_all(guids.iter().map(|guid| guid.0));
            let sql = format!(
                "SELECT {columns} FROM tasks t WHERE t.account_id = $1 AND t.guid IN ({ids})"
            );
            let statement = values.statement(sql, self.backend(), self.account());
            let rows = self.db.query_all_raw(statement).await?;
            found.extend(tasks::read_tasks(&rows, 0, texts, self.account())?);
        }
        Ok(found)
    }

    /// The places of a step of a task and of the one behind it, and the version of the
    /// task.
    pub async fn neighbours(
        &self,
        task: TaskId,
        step: StepId,
    ) -> Result<Option<(Neighbours, i64)>, StoreError> {
        let values = [Value::from(task.0), Value::from(step.0)];
        let statement = self.statement(NEIGHBOURS, values);
        let rows = self.db.query_all_raw(statement).await?;
        let mut places = Vec::with_capacity(2);
        let mut version = 0;
        for row in rows {
            let mut row = RowReader::new(&row);
            places.push(Place {
                position: row.take()?,
                fraction: row.take()?,
            });
            version = row.take()?;
        }
        let mut places = places.into_iter();
        let neighbours = places.next().map(|before| Neighbours {
            before,
            after: places.next(),
        });
        Ok(neighbours.map(|neighbours| (neighbours, version)))
    }

    /// The steps of a task in their order.
    pub async fn step_order(&self, task: TaskId) -> Result<Vec<StepId>, StoreError> {
        let steps: Vec<Uuid> = self
            .select::<step::Entity>()
            .select_only()
            .column(step::Column::Guid)
            .filter(step::Column::Task.eq(task.0))
            .order_by_asc(step::Column::Position)
            .order_by_asc(step::Column::Fraction)
            .into_tuple()
            .all(&self.db)
            .await?;
        Ok(steps.into_iter().map(StepId).collect())
    }
}

/// What a write needs of a task that it locks, as [`task_head`] takes it. Dependencies may have
/// megabytes.
const TASK_HEAD: [task::Column; 13] = [
    task::Column::Guid,
    task::Column::Name,
    task::Column::ProductId,
    task::Column::Kind,
    task::Column::StepCount,
    task::Column::OrderEpoch,
    task::Column::LastPosition,
    task::Column::LanguageCount,
    task::Column::Size,
    task::Column::Version,
    task::Column::DirtyRecord,
    task::Column::CreatedTs,
    task::Column::ModifiedTs,
];

fn task_head(row: &mut RowReader<'_>) -> Result<LockedTask, StoreError> {
    Ok(LockedTask {
        guid: TaskId(row.take()?),
        name: json_columns::valid(Name::parse(row.take()?), "name")?,
        product: json_columns::product(row.take()?)?,
        managed: row.take::<i32>()? == KIND_LINKED,
        step_count: row.take()?,
        numbering: Numbering {
            epoch: row.take()?,
            last_position: row.take()?,
        },
        languages: usize::try_from(row.take::<i64>()?).unwrap_or_default(),
        size: row.take()?,
        row_version: row.take_row_version()?,
    })
}
