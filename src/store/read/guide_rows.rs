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
    entity::{step, step_translation, task, task_translation},
    error::StoreError,
};

/// A task with its translations.
pub type TaskRows = (task::Model, Vec<task_translation::Model>);

/// A step with its translations.
pub type StepRows = (step::Model, Vec<step_translation::Model>);

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
    let ids = ids.iter().copied();
    let rows = scope.find::<task::Entity>();
    let rows = read_by_ids(scope, rows, task::Column::Guid, ids).await?;
    let mut translations = tasks::translations(scope, rows.iter()).await?;
    let rows = rows.into_iter().map(|row: task::Model| {
        let translations = translations.remove(&row.guid).unwrap_or_default();
        (row, translations)
    });
    Ok(rows.collect())
}

/// Reads the steps of tasks in their order, by task.
pub async fn read_steps(
    scope: Scope<'_, impl ConnectionTrait>,
    tasks: &[Uuid],
    bodies: Bodies,
) -> Result<BTreeMap<Uuid, Vec<StepRows>>, StoreError> {
    let steps = bodies.select(scope.find::<step::Entity>(), step::Column::Body);
    let steps = steps.order_by_asc(step::Column::Position);
    let tasks = tasks.iter().copied();
    let rows = read_by_ids(scope, steps, step::Column::Task, tasks).await?;
    let mut translations = steps::translations(scope, &rows, bodies).await?;
    let rows = rows.into_iter().map(|row: step::Model| {
        let translations = translations.remove(&row.guid).unwrap_or_default();
        (row, translations)
    });
    Ok(group_by_id(rows.collect(), |(step, _)| step.task))
}
