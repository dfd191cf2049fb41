//! Reads of tasks.

use std::collections::BTreeSet;

use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbBackend, DerivePartialModel, ExprTrait,
    FromQueryResult, PartialModelTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
    sea_query::{Expr, Query},
};
use uuid::Uuid;

use super::{
    LARGE_BYTES, MAX_IDS_PER_STATEMENT, MaxBytes, count_fitting, find_within, join_translations,
    read_by_ids,
};
use crate::{
    domain::{
        Error, Result,
        external_id::ExternalId,
        ids::{AccountId, StepId, TaskId},
        page::{Page, PageSize},
        size::STEP_ID_BYTES,
        task::{Task, TaskFilter},
    },
    store::{
        Account,
        account::Scope,
        entity::{step, task, task_translation},
        error::StoreError,
        rows::{KIND_LINKED, TaskRows, read_task, valid},
    },
};

/// A task's row with the ids of its steps in order, separated by commas.
#[derive(FromQueryResult)]
struct TaskRow {
    #[sea_orm(nested)]
    task: task::Model,
    step_ids: Option<String>,
}

/// Selects the account's tasks with the ids of their steps, so that one statement reads a task. PostgreSQL
/// and SQLite have no common function that turns an id into text.
fn rows_with_step_ids(scope: Scope<'_, impl ConnectionTrait>) -> Select<task::Entity> {
    let joined_ids = match scope.backend() {
        DbBackend::Sqlite => "string_agg(hex(guid), ',')",
        _ => "string_agg(guid::text, ',')",
    };
    let is_of_task = Expr::col((step::Entity, step::Column::Task));
    // The subquery reads the ids in the order of an index. An ORDER BY in the aggregate would sort
    // them instead.
    let steps = scope
        .find::<step::Entity>()
        .select_only()
        .column(step::Column::Guid)
        .filter(is_of_task.equals((task::Entity, task::Column::Guid)))
        .order_by_asc(step::Column::Position);
    let step_ids = Query::select()
        .expr(Expr::cust(joined_ids))
        .from_subquery(steps.into_query(), "steps")
        .take();
    scope.find::<task::Entity>().expr_as(step_ids, "step_ids")
}

/// A task with the ids of its steps. The caller ensures that its statements read one state.
pub async fn find(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: TaskId,
    max_bytes: MaxBytes,
) -> Result<Option<Task>, StoreError> {
    let row = by_id(scope, guid);
    let row = find_within(scope, row, task::Column::Size.into_expr(), max_bytes).await?;
    Ok(read_rows(scope, Vec::from_iter(row)).await?.pop())
}

fn by_id(scope: Scope<'_, impl ConnectionTrait>, guid: TaskId) -> Select<task::Entity> {
    rows_with_step_ids(scope).filter(task::Column::Guid.eq(guid.0))
}

/// The tasks that exist, with the ids of their steps, in no order. Whether they are large depends on the
/// sum of their bytes. The caller ensures that its statements read one state.
pub async fn find_all(
    scope: Scope<'_, impl ConnectionTrait>,
    guids: &[TaskId],
    max_bytes: MaxBytes,
) -> Result<Vec<Task>, StoreError> {
    let guids = guids.iter().map(|guid| guid.0);
    let sizes = task_sizes(scope, task::Column::Guid, guids.clone()).await?;
    max_bytes.check(sizes.iter().map(|task| task.size).sum())?;
    read_all(scope, guids).await
}

/// The tasks that have one of these external ids.
pub async fn find_tasks_named(
    scope: Scope<'_, impl ConnectionTrait>,
    ids: &BTreeSet<&ExternalId>,
) -> Result<Vec<TaskId>, StoreError> {
    let ids = Vec::from_iter(ids.iter().map(|id| id.as_str()));
    let mut found = Vec::new();
    for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
        let tasks = scope.find::<task::Entity>().select_only();
        let tasks = tasks.column(task::Column::Guid);
        let tasks = tasks.filter(task::Column::ExternalId.is_in(ids.iter().copied()));
        let tasks: Vec<TaskId> = tasks.into_tuple().all(scope.db).await?;
        found.extend(tasks);
    }
    Ok(found)
}

async fn read_all(
    scope: Scope<'_, impl ConnectionTrait>,
    guids: impl IntoIterator<Item = Uuid>,
) -> Result<Vec<Task>, StoreError> {
    let rows = rows_with_step_ids(scope);
    let rows = read_by_ids(scope, rows, task::Column::Guid, guids).await?;
    read_rows(scope, rows).await
}

async fn read_rows(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Vec<TaskRow>,
) -> Result<Vec<Task>, StoreError> {
    let rows = with_translations(scope, rows, |row| &row.task).await?;
    rows.into_iter()
        .map(|rows| TaskRow::read(scope.account, rows))
        .collect()
}

/// The size of a task.
#[derive(DerivePartialModel)]
#[sea_orm(entity = "task::Entity")]
pub struct TaskSize {
    pub guid: Uuid,
    /// The bytes of its texts, without the ids of its steps.
    pub size: i64,
    pub step_count: i64,
}

impl From<&task::Model> for TaskSize {
    fn from(task: &task::Model) -> Self {
        Self {
            guid: task.guid,
            size: task.size,
            step_count: task.step_count,
        }
    }
}

/// The sizes of the tasks that have one of these ids in a column, in no order.
pub async fn task_sizes(
    scope: Scope<'_, impl ConnectionTrait>,
    column: task::Column,
    ids: impl IntoIterator<Item = Uuid>,
) -> Result<Vec<TaskSize>, StoreError> {
    let sizes = scope.find::<task::Entity>().select_only();
    let sizes = TaskSize::select_cols(sizes);
    read_by_ids(scope, sizes, column, ids).await
}

/// The rows of tasks in no order, including the rows that were read before.
pub async fn find_rows(
    scope: Scope<'_, impl ConnectionTrait>,
    ids: &[Uuid],
    mut rows: Vec<task::Model>,
) -> Result<Vec<TaskRows>, StoreError> {
    let (found, ids) = (scope.find::<task::Entity>(), ids.iter().copied());
    rows.extend(read_by_ids(scope, found, task::Column::Guid, ids).await?);
    with_translations(scope, rows, |row| row).await
}

/// Adds the translations of tasks to their rows. The caller ensures that both are of one state.
async fn with_translations<R>(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Vec<R>,
    task: impl Fn(&R) -> &task::Model,
) -> Result<Vec<(R, Vec<task_translation::Model>)>, StoreError> {
    use task_translation::{Column, Entity, Model};
    let translated = rows
        .iter()
        .map(&task)
        .filter(|task| task.language_count > 0);
    let ids = translated.map(|task| task.guid);
    let translations = read_by_ids(scope, scope.find::<Entity>(), Column::Task, ids).await?;
    let owner = |row: &Model| row.task;
    let id = |row: &R| task(row).guid;
    Ok(join_translations(rows, id, translations, owner).collect())
}

impl TaskRow {
    fn read(
        account: &AccountId,
        (row, translations): (Self, Vec<task_translation::Model>),
    ) -> Result<Task, StoreError> {
        let ids = row.step_ids.as_deref().unwrap_or_default();
        let ids = ids.split(',').filter(|id| !id.is_empty());
        let steps = ids.map(|id| valid(Uuid::try_parse(id), "guid").map(StepId));
        let steps = steps.collect::<Result<_, _>>()?;
        read_task(account, (row.task, translations), steps)
    }
}

/// The page of tasks that match a filter. A page has a bounded number of bytes, except that a single
/// task may be larger.
async fn list(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TaskFilter,
    after: Option<TaskId>,
    size: PageSize,
    max_bytes: MaxBytes,
) -> Result<Page<Task>, StoreError> {
    let mut sizes: Vec<TaskSize> = matching(scope, filter, after)
        .limit(size.rows())
        .into_partial_model()
        .all(scope.db)
        .await?;
    let found = sizes.len();
    let bytes = sizes.iter().map(|task| {
        let id_bytes = task.step_count.saturating_mul(STEP_ID_BYTES);
        task.size.saturating_add(id_bytes)
    });
    let fitting = count_fitting(bytes, size);
    sizes.truncate(fitting);
    max_bytes.check(sizes.iter().map(|task| task.size).sum())?;
    let mut items = read_all(scope, sizes.iter().map(|task| task.guid)).await?;
    items.sort_by_key(|task| task.guid);
    let more = found > items.len();
    Ok(Page { items, more })
}

/// Selects no columns of the tasks that match a filter, in the order of their ids.
fn matching(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TaskFilter,
    after: Option<TaskId>,
) -> Select<task::Entity> {
    scope
        .find::<task::Entity>()
        .select_only()
        .filter(condition(filter))
        .apply_if(after, |tasks, after| {
            tasks.filter(task::Column::Guid.gt(after.0))
        })
        .order_by_asc(task::Column::Guid)
}

fn condition(filter: &TaskFilter) -> Condition {
    use task::Column;
    let TaskFilter {
        product,
        published,
        role,
        managed,
        external_id,
        name,
    } = filter;
    Condition::all()
        .add_option(product.map(|product| Column::ProductId.eq(product.get())))
        .add_option(published.map(|published| Column::Published.eq(published.get())))
        .add_option(role.map(|role| Column::RoleBits.into_expr().bit_and(role.bit()).ne(0)))
        .add_option(managed.map(|managed| {
            if managed {
                Column::Kind.eq(KIND_LINKED)
            } else {
                Column::Kind.ne(KIND_LINKED)
            }
        }))
        .add_option(
            external_id
                .as_ref()
                .map(|id| Column::ExternalId.eq(id.as_str())),
        )
        .add_option(name.as_ref().map(|name| Column::Name.eq(name.as_str())))
}

impl Account {
    /// Reads a task with the ids of its steps. One statement reads a small task without translations.
    pub async fn get_task(&self, guid: TaskId) -> Result<Task> {
        let scope = self.reader();
        let small = by_id(scope, guid)
            .filter(task::Column::Size.lte(LARGE_BYTES))
            .filter(task::Column::LanguageCount.eq(0))
            .into_model()
            .all(scope.db)
            .await
            .map_err(StoreError::from)?
            .pop();
        let found = match small {
            Some(row) => Some(TaskRow::read(scope.account, (row, Vec::new()))?),
            None => {
                self.read_snapshot(|snapshot, max_bytes| async move {
                    find(snapshot.scope(), guid, max_bytes).await
                })
                .await?
            }
        };
        found.ok_or_else(|| Error::task_not_found(guid, "guid"))
    }

    /// A page of the account's tasks in the order of their ids, which is the order of creation. A
    /// page has about [`PAGE_BYTES`](crate::domain::page::PAGE_BYTES), but at least one task.
    pub async fn list_tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        size: PageSize,
    ) -> Result<Page<Task>> {
        self.read_snapshot(|snapshot, max_bytes| async move {
            list(snapshot.scope(), filter, after, size, max_bytes).await
        })
        .await
    }

    /// The ids of at most so many tasks, in the same order.
    pub async fn list_task_ids(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<TaskId>> {
        let scope = self.reader();
        let ids: Vec<Uuid> = matching(scope, filter, after)
            .column(task::Column::Guid)
            .limit(u64::from(limit))
            .into_tuple()
            .all(scope.db)
            .await
            .map_err(StoreError::from)?;
        Ok(ids.into_iter().map(TaskId).collect())
    }
}
