//! Tasks and steps that use names of variables. The index of names finds them.

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QuerySelect, Select,
};
use serde::Deserialize;
use uuid::Uuid;

use super::MAX_IDS_PER_STATEMENT;
use crate::{
    analysis_threads::check_call,
    domain::{dependency::Group, feedback::Feedback},
    store::{
        account::Scope,
        entity::{
            name_use::{IN_STEP, IN_TASK},
            step, task,
        },
        error::StoreError,
        json::Json,
    },
};

/// A task or step that uses names, without its texts.
#[derive(FromQueryResult)]
pub struct NameUser {
    pub guid: Uuid,
    /// The task of a step, or the task itself.
    pub task: Uuid,
    size: i64,
}

/// A task or step with the texts that name variables.
#[derive(FromQueryResult)]
pub struct NamingTexts {
    pub guid: Uuid,
    /// The task of a step, or the task itself.
    pub task: Uuid,
    /// The title of a step, or the name of a task.
    pub title: String,
    pub product_id: i64,
    pub content: Json<NamingFields>,
}

/// The fields that name variables. A task has no question.
#[derive(Deserialize)]
pub struct NamingFields {
    #[serde(default)]
    pub question: Option<Feedback>,
    #[serde(default)]
    pub dependencies: Option<Group>,
}

impl NameUser {
    /// The bytes of its texts without bodies.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX)
    }

    fn is_step(&self) -> bool {
        self.guid != self.task
    }
}

impl NamingTexts {
    pub fn is_step(&self) -> bool {
        self.guid != self.task
    }
}

/// Selects [`NameUser`]s from the rows of steps.
pub fn step_users<E: EntityTrait>(rows: Select<E>) -> Select<E> {
    use step::Column;
    rows.select_only()
        .columns([Column::Guid, Column::Task, Column::Size])
}

/// Selects [`NameUser`]s from the rows of tasks.
pub fn task_users<E: EntityTrait>(rows: Select<E>) -> Select<E> {
    use task::Column;
    rows.select_only()
        .columns([Column::Guid, Column::Size])
        .column_as(Column::Guid, "task")
}

/// Reads tasks and steps in the order of their ids. Each is given with `in_step` of the index.
pub async fn read_users(
    scope: Scope<'_, impl ConnectionTrait>,
    ids: &[(Uuid, i16)],
) -> Result<Vec<NameUser>, StoreError> {
    let of_kind = |kind: i16| {
        let ids = ids.iter().filter(move |(_, in_step)| *in_step == kind);
        ids.map(|(guid, _)| *guid).collect::<Vec<Uuid>>()
    };
    let steps = step_users(scope.find::<step::Entity>());
    let mut users = by_id(scope, steps, step::Column::Guid, of_kind(IN_STEP)).await?;
    let tasks = task_users(scope.find::<task::Entity>());
    users.extend(by_id(scope, tasks, task::Column::Guid, of_kind(IN_TASK)).await?);
    users.sort_unstable_by_key(|user: &NameUser| user.guid);
    Ok(users)
}

/// Reads the texts of tasks and steps, in the order of their ids.
pub async fn read_texts(
    scope: Scope<'_, impl ConnectionTrait>,
    users: &[NameUser],
) -> Result<Vec<NamingTexts>, StoreError> {
    let (steps, tasks): (Vec<_>, Vec<_>) = users.iter().partition(|user| user.is_step());
    let ids = |users: Vec<&NameUser>| users.iter().map(|user| user.guid).collect();
    let (step_ids, task_ids) = (ids(steps), ids(tasks));
    let steps = scope.find::<step::Entity>().select_only().columns([
        step::Column::Guid,
        step::Column::Task,
        step::Column::Title,
        step::Column::ProductId,
        step::Column::Content,
    ]);
    let mut texts = by_id(scope, steps, step::Column::Guid, step_ids).await?;
    let tasks = scope
        .find::<task::Entity>()
        .select_only()
        .columns([
            task::Column::Guid,
            task::Column::ProductId,
            task::Column::Content,
        ])
        .column_as(task::Column::Guid, "task")
        .column_as(task::Column::Name, "title");
    texts.extend(by_id(scope, tasks, task::Column::Guid, task_ids).await?);
    texts.sort_unstable_by_key(|texts: &NamingTexts| texts.guid);
    Ok(texts)
}

/// Reads those of the selected rows that have one of these ids.
async fn by_id<E: EntityTrait, R: FromQueryResult + Send + Sync>(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Select<E>,
    guid: E::Column,
    ids: Vec<Uuid>,
) -> Result<Vec<R>, StoreError> {
    let mut found = Vec::with_capacity(ids.len());
    for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
        check_call()?;
        let rows = rows.clone().filter(guid.is_in(ids.iter().copied()));
        found.extend(rows.into_model().all(scope.db).await?);
    }
    Ok(found)
}
