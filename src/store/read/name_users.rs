//! Tasks and steps that use names of variables. The index finds their ids; then their sizes are read, and
//! then the texts of those that fit.

use sea_orm::{ColumnTrait, ConnectionTrait, FromQueryResult, QueryFilter, QuerySelect, Select};
use serde::Deserialize;
use uuid::Uuid;

use super::read_by_ids;
use crate::{
    domain::{dependency::Group, feedback::Feedback},
    store::{
        account::Scope,
        entity::{
            name_use::{self, NameUse},
            step, task,
        },
        error::StoreError,
        json::Json,
    },
};

/// A task or step that uses names.
#[derive(FromQueryResult)]
pub struct NameUser {
    pub guid: Uuid,
    /// The task of a step, or the task itself.
    pub task: Uuid,
    /// The title of a step, or the name of a task.
    pub title: String,
    pub product_id: i64,
    /// The bytes of its texts without bodies.
    pub size: i64,
    content: Option<Json<NamingFields>>,
}

/// The fields that name variables. A task has no question.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct NamingFields {
    pub question: Option<Feedback>,
    pub dependencies: Option<Group>,
}

/// Selects the rows of the index with one of these names.
pub fn name_uses(
    scope: Scope<'_, impl ConnectionTrait>,
    name_use: NameUse,
    names: impl IntoIterator<Item = impl Into<String>>,
) -> Select<name_use::Entity> {
    use name_use::Column;
    scope
        .find::<name_use::Entity>()
        .filter(Column::Name.is_in(names.into_iter().map(Into::into)))
        .filter(Column::NameUse.eq(name_use))
}

/// Reads tasks and steps without their texts, in the order of their ids.
pub async fn read_users(
    scope: Scope<'_, impl ConnectionTrait>,
    ids: &[Uuid],
) -> Result<Vec<NameUser>, StoreError> {
    read(scope, steps(scope), tasks(scope), ids).await
}

/// Reads the questions and conditions of these users.
pub async fn read_texts(
    scope: Scope<'_, impl ConnectionTrait>,
    users: &[NameUser],
) -> Result<Vec<(NameUser, NamingFields)>, StoreError> {
    let ids: Vec<Uuid> = users.iter().map(|user| user.guid).collect();
    let steps = steps(scope).column(step::Column::Content);
    let tasks = tasks(scope).column(task::Column::Content);
    let users = read(scope, steps, tasks, &ids).await?.into_iter();
    let texts = users.filter_map(|mut user| {
        let Json(fields) = user.content.take()?;
        Some((user, fields))
    });
    Ok(texts.collect())
}

fn steps(scope: Scope<'_, impl ConnectionTrait>) -> Select<step::Entity> {
    use step::Column;
    scope.find::<step::Entity>().select_only().columns([
        Column::Guid,
        Column::Task,
        Column::Title,
        Column::ProductId,
        Column::Size,
    ])
}

fn tasks(scope: Scope<'_, impl ConnectionTrait>) -> Select<task::Entity> {
    use task::Column;
    scope
        .find::<task::Entity>()
        .select_only()
        .columns([Column::Guid, Column::ProductId, Column::Size])
        .column_as(Column::Guid, "task")
        .column_as(Column::Name, "title")
}

/// Reads the steps with these ids. If any ids are left, also reads the tasks with these ids.
async fn read(
    scope: Scope<'_, impl ConnectionTrait>,
    steps: Select<step::Entity>,
    tasks: Select<task::Entity>,
    ids: &[Uuid],
) -> Result<Vec<NameUser>, StoreError> {
    let ids = ids.iter().copied();
    let mut found = read_by_ids(scope, steps, step::Column::Guid, ids.clone()).await?;
    if found.len() < ids.len() {
        found.extend(read_by_ids(scope, tasks, task::Column::Guid, ids).await?);
    }
    found.sort_unstable_by_key(|user: &NameUser| user.guid);
    Ok(found)
}
