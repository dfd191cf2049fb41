//! Reads of tasks.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbBackend, ExprTrait, FromQueryResult, QueryFilter,
    QueryOrder, QuerySelect, QueryTrait, Select, sea_query::Expr,
};
use uuid::Uuid;

use super::{MAX_IDS_PER_STATEMENT, Texts, count_fitting};
use crate::{
    domain::{
        Error, Result,
        ids::{StepId, TaskId},
        page::{Page, PageSize},
        size::STEP_ID_BYTES,
        task::{Task, TaskFilter},
    },
    store::{
        Account,
        account::Scope,
        entity::{step, task, task_translation},
        error::StoreError,
        rows::{KIND_LINKED, read_task, read_task_translations, valid},
    },
};

/// Tasks with more bytes, without the ids of their steps, are large: they are read under a permit.
const LARGE_TASK_BYTES: i64 = 1024 * 1024;

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
    let ids_in_order = match scope.backend() {
        DbBackend::Sqlite => "string_agg(hex(guid), ',' ORDER BY position)",
        _ => "string_agg(guid::text, ',' ORDER BY position)",
    };
    let is_of_task = Expr::col((step::Entity, step::Column::Task));
    let step_ids = scope
        .find::<step::Entity>()
        .select_only()
        .expr(Expr::cust(ids_in_order))
        .filter(is_of_task.equals((task::Entity, task::Column::Guid)));
    scope
        .find::<task::Entity>()
        .expr_as(step_ids.into_query(), "step_ids")
}

/// A task with the ids of its steps. The caller ensures that its statements read one state.
pub async fn find(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: TaskId,
    texts: Texts,
) -> Result<Option<Task>, StoreError> {
    let rows = match texts {
        Texts::All => {
            let rows = rows_with_step_ids(scope).filter(task::Column::Guid.eq(guid.0));
            rows.into_model().all(scope.db).await?
        }
        Texts::Small => match find_small_row(scope, guid).await? {
            Some(row) => vec![row],
            None => {
                check_small(scope, &[guid]).await?;
                Vec::new()
            }
        },
    };
    Ok(with_translations(scope, rows).await?.pop())
}

/// The tasks that exist, with the ids of their steps, in no order. Whether they are large depends on the
/// sum of their bytes. The caller ensures that its statements read one state.
pub async fn find_all(
    scope: Scope<'_, impl ConnectionTrait>,
    guids: &[TaskId],
    texts: Texts,
) -> Result<Vec<Task>, StoreError> {
    if texts == Texts::Small {
        check_small(scope, guids).await?;
    }
    let mut tasks = Vec::with_capacity(guids.len());
    for guids in guids.chunks(MAX_IDS_PER_STATEMENT) {
        let rows = rows_with_step_ids(scope)
            .filter(task::Column::Guid.is_in(guids.iter().map(|guid| guid.0)))
            .into_model()
            .all(scope.db)
            .await?;
        tasks.extend(with_translations(scope, rows).await?);
    }
    Ok(tasks)
}

/// The tasks of rows with their translations, but without the ids of their steps, in the order of the
/// rows. The caller ensures that rows and translations are of one state.
pub async fn without_steps(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Vec<task::Model>,
) -> Result<Vec<Task>, StoreError> {
    let rows = rows.into_iter().map(|task| TaskRow {
        task,
        step_ids: None,
    });
    with_translations(scope, rows.collect()).await
}

async fn with_translations(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Vec<TaskRow>,
) -> Result<Vec<Task>, StoreError> {
    let translated: Vec<Uuid> = rows
        .iter()
        .filter(|row| row.task.language_count > 0)
        .map(|row| row.task.guid)
        .collect();
    let mut translations: BTreeMap<Uuid, Vec<task_translation::Model>> = BTreeMap::new();
    for tasks in translated.chunks(MAX_IDS_PER_STATEMENT) {
        let found = scope
            .find::<task_translation::Entity>()
            .filter(task_translation::Column::Task.is_in(tasks.iter().copied()));
        for row in found.all(scope.db).await? {
            translations.entry(row.task).or_default().push(row);
        }
    }
    let tasks = rows.into_iter().map(|row| {
        let translations = translations.remove(&row.task.guid).unwrap_or_default();
        row.read(translations)
    });
    tasks.collect()
}

impl TaskRow {
    fn read(self, translations: Vec<task_translation::Model>) -> Result<Task, StoreError> {
        let ids = self.step_ids.as_deref().unwrap_or_default();
        let ids = ids.split(',').filter(|id| !id.is_empty());
        let steps = ids.map(|id| valid(Uuid::try_parse(id), "guid").map(StepId));
        let steps = steps.collect::<Result<_, _>>()?;
        read_task(self.task, read_task_translations(translations)?, steps)
    }
}

async fn find_small_row(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: TaskId,
) -> Result<Option<TaskRow>, StoreError> {
    let mut rows = rows_with_step_ids(scope)
        .filter(task::Column::Guid.eq(guid.0))
        .filter(task::Column::Size.lte(LARGE_TASK_BYTES))
        .into_model()
        .all(scope.db)
        .await?;
    Ok(rows.pop())
}

/// Fails with [`StoreError::NeedsLargeReadPermit`] if the tasks are large together.
async fn check_small(
    scope: Scope<'_, impl ConnectionTrait>,
    guids: &[TaskId],
) -> Result<(), StoreError> {
    let mut bytes = 0_i64;
    for guids in guids.chunks(MAX_IDS_PER_STATEMENT) {
        let sizes: Vec<i64> = scope
            .find::<task::Entity>()
            .select_only()
            .column(task::Column::Size)
            .filter(task::Column::Guid.is_in(guids.iter().map(|guid| guid.0)))
            .into_tuple()
            .all(scope.db)
            .await?;
        bytes = sizes.into_iter().fold(bytes, i64::saturating_add);
    }
    require_permit_above(LARGE_TASK_BYTES, bytes)
}

fn require_permit_above(limit: i64, bytes: i64) -> Result<(), StoreError> {
    if bytes <= limit {
        return Ok(());
    }
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Err(StoreError::NeedsLargeReadPermit(bytes))
}

/// The page of tasks that match a filter. A page has a bounded number of bytes, except that a single
/// task may be larger.
async fn list(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TaskFilter,
    after: Option<TaskId>,
    size: PageSize,
    texts: Texts,
) -> Result<Page<Task>, StoreError> {
    let mut sizes: Vec<(Uuid, i64, i64)> = matching(scope, filter, after)
        .columns([task::Column::Size, task::Column::StepCount])
        .limit(u64::from(size.get()) + 1)
        .into_tuple()
        .all(scope.db)
        .await?;
    let found = sizes.len();
    let bytes = sizes
        .iter()
        .map(|(_, bytes, steps)| bytes.saturating_add(steps.saturating_mul(STEP_ID_BYTES)));
    let fitting = count_fitting(bytes, size);
    sizes.truncate(fitting);
    if texts == Texts::Small {
        let largest = sizes.iter().map(|(_, bytes, _)| *bytes).max();
        require_permit_above(LARGE_TASK_BYTES, largest.unwrap_or_default())?;
    }
    let guids: Vec<TaskId> = sizes.into_iter().map(|(guid, ..)| TaskId(guid)).collect();
    let mut items = find_all(scope, &guids, Texts::All).await?;
    items.sort_by_key(|task| task.guid);
    let more = found > items.len();
    Ok(Page { items, more })
}

/// Selects the ids of the tasks that match a filter, in their order.
fn matching(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TaskFilter,
    after: Option<TaskId>,
) -> Select<task::Entity> {
    scope
        .find::<task::Entity>()
        .select_only()
        .column(task::Column::Guid)
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
        .add_option(managed.map(|managed| match managed {
            true => Column::Kind.eq(KIND_LINKED),
            false => Column::Kind.ne(KIND_LINKED),
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
        let found = match find_small_row(self.reader(), guid).await? {
            Some(row) if row.task.language_count == 0 => Some(row.read(Vec::new())?),
            _ => {
                self.read_snapshot(move |snapshot, texts| async move {
                    find(snapshot.scope(), guid, texts).await
                })
                .await?
            }
        };
        found.ok_or_else(|| Error::task_not_found(guid, "guid"))
    }

    /// A page of the account's tasks in the order of their ids, which is that of creation.
    /// A page has about [`PAGE_BYTES`](crate::domain::page::PAGE_BYTES), but at least one task.
    pub async fn list_tasks(
        &self,
        filter: TaskFilter,
        after: Option<TaskId>,
        size: PageSize,
    ) -> Result<Page<Task>> {
        self.read_snapshot(move |snapshot, texts| {
            let filter = filter.clone();
            async move { list(snapshot.scope(), &filter, after, size, texts).await }
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
            .limit(u64::from(limit))
            .into_tuple()
            .all(scope.db)
            .await
            .map_err(StoreError::from)?;
        Ok(ids.into_iter().map(TaskId).collect())
    }
}
