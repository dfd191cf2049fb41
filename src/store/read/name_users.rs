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

/// A task or step that uses names, without its texts.
#[derive(FromQueryResult)]
pub struct NameUser {
    pub guid: Uuid,
    /// The task of a step, or the task itself.
    pub task: Uuid,
    /// The bytes of its texts without bodies.
    pub size: i64,
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
    let steps = scope.find::<step::Entity>().select_only().columns([
        step::Column::Guid,
        step::Column::Task,
        step::Column::Size,
    ]);
    let tasks = scope
        .find::<task::Entity>()
        .select_only()
        .columns([task::Column::Guid, task::Column::Size])
        .column_as(task::Column::Guid, "task");
    let mut users = by_id(scope, steps, tasks, ids).await?;
    users.sort_unstable_by_key(|user: &NameUser| user.guid);
    Ok(users)
}

/// Reads the texts of tasks and steps, in the order of their ids.
pub async fn read_texts(
    scope: Scope<'_, impl ConnectionTrait>,
    users: &[NameUser],
) -> Result<Vec<NamingTexts>, StoreError> {
    let ids: Vec<Uuid> = users.iter().map(|user| user.guid).collect();
    let steps = scope.find::<step::Entity>().select_only().columns([
        step::Column::Guid,
        step::Column::Task,
        step::Column::Title,
        step::Column::ProductId,
        step::Column::Content,
    ]);
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
    let mut texts = by_id(scope, steps, tasks, &ids).await?;
    texts.sort_unstable_by_key(|texts: &NamingTexts| texts.guid);
    Ok(texts)
}

/// Reads the steps with one of these ids. If not all ids are of steps, it reads the tasks, too.
async fn by_id<R: FromQueryResult + Send + 'static>(
    scope: Scope<'_, impl ConnectionTrait>,
    steps: Select<step::Entity>,
    tasks: Select<task::Entity>,
    ids: &[Uuid],
) -> Result<Vec<R>, StoreError> {
    let ids = ids.iter().copied();
    let mut found = read_by_ids(scope, steps, step::Column::Guid, ids.clone()).await?;
    if found.len() < ids.len() {
        found.extend(read_by_ids(scope, tasks, task::Column::Guid, ids).await?);
    }
    Ok(found)
}
