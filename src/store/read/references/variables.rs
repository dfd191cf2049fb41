//! References to a variable.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{
    ColumnTrait, ConnectionTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{SelectStatement, UnionType},
};
use uuid::Uuid;

use super::{page, reference};
use crate::{
    domain::{
        analysis::{Reference, ReferenceCursor, ReferenceKind, ReferencePage, VariableFilter},
        ids::TaskId,
    },
    store::{
        account::Scope,
        entity::{
            name_use::{Column, NameUse, indexed_name, indexed_own_name},
            step, task,
        },
        error::StoreError,
        read::{
            MaxBytes, count_within_page_bytes,
            name_users::{NameUser, NamingFields, name_uses, read_texts, read_users},
            steps::get_order_epoch,
        },
        rows::read_product,
    },
};

/// The maximum number of batches of one call.
const MAX_BATCHES: usize = 3;
/// The maximum number of tasks and steps that a batch examines. The first batch of setters, and of
/// readers, only examines as many as the page has room for.
const MAX_BATCH_ROWS: usize = 1_000;

/// A page of the observations that set a variable and the conditions that read it.
pub async fn list_variable_references(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &VariableFilter,
    after: Option<ReferenceCursor>,
    size: usize,
    max_bytes: MaxBytes,
) -> Result<ReferencePage, StoreError> {
    if let Some(task) = filter.task {
        // Fails if the task does not exist.
        get_order_epoch(scope, task).await?;
    }
    let mut cursor = after.unwrap_or_else(|| {
        ReferenceCursor::before(if filter.may_have_setters() {
            ReferenceKind::Sets
        } else {
            ReferenceKind::Reads
        })
    });
    let mut items = Vec::new();
    let mut limit = size + 1;
    for _ in 0..MAX_BATCHES {
        let batch = read_batch(scope, filter, &cursor, limit, max_bytes);
        let (references, continues_after) = batch.await?;
        items.extend(references.into_iter().filter(|item| cursor.is_before(item)));
        if items.len() > size {
            return Ok(page(items, size));
        }
        if let Some(id) = continues_after {
            cursor.id = id;
            cursor.path = None;
            if items.len() == size {
                break;
            }
            limit = MAX_BATCH_ROWS;
        } else if cursor.kind == ReferenceKind::Sets {
            cursor = ReferenceCursor::before(ReferenceKind::Reads);
            limit = size + 1 - items.len();
        } else {
            return Ok(ReferencePage { items, next: None });
        }
    }
    let next = Some(cursor);
    Ok(ReferencePage { items, next })
}

/// Reads the references of the next tasks and steps after a cursor, at most `limit`, in order. Their texts
/// have about [`PAGE_BYTES`](crate::domain::page::PAGE_BYTES) in total, but at least one is read. If there are more, returns the id of the
/// last one. Fails with [`StoreError::NeedsLargeReadPermit`] if one is large and only small ones may be
/// read.
async fn read_batch(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &VariableFilter,
    cursor: &ReferenceCursor,
    limit: usize,
    max_bytes: MaxBytes,
) -> Result<(Vec<Reference>, Option<Uuid>), StoreError> {
    let ids = find_ids(scope, filter, cursor, limit + 1).await?;
    let mut users = read_users(scope, &ids).await?;
    let sizes = users.iter().take(limit).map(|user| user.size);
    let fitting = count_within_page_bytes(sizes);
    let has_more = users.len() > fitting;
    users.truncate(fitting);
    let largest = users.iter().map(|user| user.size).max();
    max_bytes.check(largest.unwrap_or_default())?;
    let last = users.last().filter(|_| has_more).map(|user| user.guid);
    let texts = read_texts(scope, &users).await?;
    let references = match cursor.kind {
        ReferenceKind::Sets => setters(filter, texts)?,
        _ => readers(scope, filter, texts).await?,
    };
    Ok((references, last))
}

/// The ids of the first tasks and steps after a cursor that the index names for the variable.
async fn find_ids(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &VariableFilter,
    cursor: &ReferenceCursor,
    limit: usize,
) -> Result<Vec<Uuid>, StoreError> {
    let mut names = vec![indexed_name(&filter.name)];
    let name_use = match cursor.kind {
        ReferenceKind::Sets => {
            names.extend(filter.task.map(|task| indexed_own_name(task, &filter.name)));
            NameUse::Sets
        }
        _ => NameUse::Reads,
    };
    let uses = name_uses(scope, name_use, names)
        .select_only()
        .column(Column::Guid)
        .order_by_asc(Column::Guid);
    let uses = match filter.task {
        Some(task) => uses.filter(Column::Guid.in_subquery(task_and_step_ids(scope, task))),
        None => uses
            .filter(Column::Guid.gte(cursor.id))
            .limit(limit as u64 + 1),
    };
    let mut ids: Vec<Uuid> = uses.into_tuple().all(scope.db).await?;
    // Not part of the SQL: for a single task, SQLite might then scan all uses of the name.
    ids.retain(|id| *id > cursor.id || (*id == cursor.id && cursor.path.is_some()));
    ids.truncate(limit);
    Ok(ids)
}

/// Selects the ids of a task and of its steps.
fn task_and_step_ids(scope: Scope<'_, impl ConnectionTrait>, task: TaskId) -> SelectStatement {
    let steps = scope.find::<step::Entity>().select_only();
    let steps = steps.column(step::Column::Guid);
    let mut ids = steps.filter(step::Column::Task.eq(task.0)).into_query();
    let tasks = scope.find::<task::Entity>().select_only();
    let tasks = tasks.column(task::Column::Guid);
    let own = tasks.filter(task::Column::Guid.eq(task.0)).into_query();
    ids.union(UnionType::All, own).to_owned()
}

/// The observations that set the variable.
fn setters(
    filter: &VariableFilter,
    users: Vec<(NameUser, NamingFields)>,
) -> Result<Vec<Reference>, StoreError> {
    let mut references = Vec::new();
    for (user, NamingFields { question, .. }) in users {
        let product = read_product(user.product_id)?;
        if question.is_some_and(|question| filter.is_set_by(product, &question)) {
            let path = "feedback_config[0]".to_owned();
            let kind = ReferenceKind::Sets;
            references.push(reference(kind, user.task, user.guid, path, user.title));
        }
    }
    Ok(references)
}

/// The conditions that read the variable.
async fn readers(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &VariableFilter,
    mut users: Vec<(NameUser, NamingFields)>,
) -> Result<Vec<Reference>, StoreError> {
    if !filter.may_have_setters() {
        // If the name is also an own name in a task, the conditions of that task read its own
        // variable.
        let tasks = users.iter().map(|(user, _)| user.task);
        let own = find_tasks_with_own_name(scope, &filter.name, tasks).await?;
        users.retain(|(user, _)| !own.contains(&user.task));
    }
    let mut references = Vec::new();
    for (user, NamingFields { dependencies, .. }) in users {
        let conditions = dependencies.iter();
        let conditions = conditions.flat_map(|group| filter.conditions_reading(group));
        references.extend(conditions.map(|(path, condition)| {
            let (kind, title) = (ReferenceKind::Reads, user.title.clone());
            Reference {
                condition: Some(condition),
                ..reference(kind, user.task, user.guid, path, title)
            }
        }));
    }
    Ok(references)
}

/// Finds the tasks that have an observation with this own name.
async fn find_tasks_with_own_name(
    scope: Scope<'_, impl ConnectionTrait>,
    name: &str,
    tasks: impl Iterator<Item = Uuid>,
) -> Result<BTreeSet<Uuid>, StoreError> {
    let names: BTreeMap<String, Uuid> = tasks
        .map(|task| (indexed_own_name(TaskId(task), name), task))
        .collect();
    if names.is_empty() {
        return Ok(BTreeSet::new());
    }
    let found: Vec<String> = name_uses(scope, NameUse::Sets, names.keys())
        .select_only()
        .column(Column::Name)
        .into_tuple()
        .all(scope.db)
        .await?;
    let own = found.iter().filter_map(|name| names.get(name));
    Ok(own.copied().collect())
}
