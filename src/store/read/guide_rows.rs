//! Reads the rows of a guide: of tasks, of their steps, and of all translations. Analyses, exports and
//! imports find the tasks level by level with their sizes first, and then read all rows.

use std::collections::BTreeMap;

use sea_orm::{ConnectionTrait, ExprTrait, FromQueryResult, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::{
    group_by_id, read_by_ids,
    steps::{self, Bodies},
    tasks,
};
use crate::store::{
    account::Scope,
    entity::{step, task},
    error::StoreError,
    rows::{StepRows, TaskRows},
};

/// The steps of some tasks that refer to one other task, or to none.
#[derive(FromQueryResult)]
pub struct StepsBySubtask {
    pub subtask_id: Option<Uuid>,
    /// The bytes of what is read of them.
    pub bytes: i64,
}

/// The tasks that the steps of these tasks refer to, with the bytes of the steps.
pub async fn steps_by_subtask(
    scope: Scope<'_, impl ConnectionTrait>,
    tasks: &[Uuid],
    bodies: Bodies,
) -> Result<Vec<StepsBySubtask>, StoreError> {
    let steps = scope
        .find::<step::Entity>()
        .select_only()
        .column(step::Column::SubtaskId)
        .expr_as(bodies.step_bytes().sum().cast_as("bigint"), "bytes")
        .group_by(step::Column::SubtaskId);
    read_by_ids(scope, steps, step::Column::Task, tasks.iter().copied()).await
}

/// Reads tasks, in no order.
pub async fn read_tasks(
    scope: Scope<'_, impl ConnectionTrait>,
    ids: &[Uuid],
) -> Result<Vec<TaskRows>, StoreError> {
    let (rows, ids) = (scope.find::<task::Entity>(), ids.iter().copied());
    let rows = read_by_ids(scope, rows, task::Column::Guid, ids).await?;
    tasks::with_translations(scope, rows, |row| row).await
}

/// Reads the steps of tasks in their order, by task.
pub async fn read_steps(
    scope: Scope<'_, impl ConnectionTrait>,
    tasks: &[Uuid],
    bodies: Bodies,
) -> Result<BTreeMap<Uuid, Vec<StepRows>>, StoreError> {
    let rows = bodies
        .select(scope.find::<step::Entity>(), step::Column::Body)
        .order_by_asc(step::Column::Position);
    let tasks = tasks.iter().copied();
    let rows = read_by_ids(scope, rows, step::Column::Task, tasks).await?;
    let rows = steps::with_translations(scope, rows, bodies).await?;
    Ok(group_by_id(rows, |(step, _)| step.task))
}
