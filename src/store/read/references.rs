//! Lists where a task or a variable is used. Each call examines a bounded number of tasks and steps.

mod variables;

use sea_orm::{ColumnTrait, ConnectionTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::{
    domain::{
        Error, Result,
        analysis::{
            Reference, ReferenceCursor, ReferenceFilter, ReferenceKind, ReferencePage,
            ReferencePlace,
        },
        feedback::Feedback,
        ids::{StepId, TaskId},
        page::PageSize,
    },
    store::{
        Account,
        account::Scope,
        entity::{step, task},
        error::StoreError,
        json::Json,
        rows::StepFields,
    },
};

impl Account {
    /// A page of references in order. It may be short or even empty although more references
    /// follow.
    pub async fn list_references(
        &self,
        filter: &ReferenceFilter,
        after: Option<ReferenceCursor>,
        size: PageSize,
    ) -> Result<ReferencePage> {
        let (after, size) = (after.as_ref(), size.get() as usize);
        self.read_snapshot(|snapshot, max_bytes| async move {
            let scope = snapshot.scope();
            match filter {
                ReferenceFilter::Task(task) => {
                    list_task_references(scope, *task, after.cloned(), size).await
                }
                ReferenceFilter::Variable(filter) => {
                    variables::list_variable_references(
                        scope,
                        filter,
                        after.cloned(),
                        size,
                        max_bytes,
                    )
                    .await
                }
            }
        })
        .await
    }
}

/// A page of the references to a task.
async fn list_task_references(
    scope: Scope<'_, impl ConnectionTrait>,
    task: TaskId,
    after: Option<ReferenceCursor>,
    size: usize,
) -> Result<ReferencePage, StoreError> {
    let parents: Vec<Option<TaskId>> = scope
        .find::<task::Entity>()
        .select_only()
        .column(task::Column::ParentGuid)
        .filter(task::Column::Guid.eq(task.0))
        .into_tuple()
        .all(scope.db)
        .await?;
    let parent = parents.into_iter().next();
    let parent = parent.ok_or_else(|| Error::task_not_found(task, "task"))?;
    let after = after.unwrap_or_else(|| ReferenceCursor::before(ReferenceKind::Subtask));
    let mut items = Vec::new();
    // Only a managed task has wiring steps.
    let wiring = parent.map(|_| ReferenceKind::Wiring);
    for kind in std::iter::once(ReferenceKind::Subtask).chain(wiring) {
        if kind >= after.kind && items.len() <= size {
            let limit = size + 1 - items.len();
            items.extend(list_referring_steps(scope, task, kind, &after, limit).await?);
        }
    }
    if let Some(parent) = parent
        && items.len() <= size
    {
        let managing = find_managing_values(scope, task, parent).await?;
        items.extend(managing.into_iter().filter(|item| after.is_before(item)));
    }
    Ok(page(items, size))
}

/// Subtask or wiring steps that refer to a task, after a cursor.
async fn list_referring_steps(
    scope: Scope<'_, impl ConnectionTrait>,
    task: TaskId,
    kind: ReferenceKind,
    after: &ReferenceCursor,
    limit: usize,
) -> Result<Vec<Reference>, StoreError> {
    let is_link = kind == ReferenceKind::Wiring;
    let after = (kind == after.kind).then_some(after.id);
    let found: Vec<(Uuid, Uuid, String)> = scope
        .find::<step::Entity>()
        .select_only()
        .columns([step::Column::Guid, step::Column::Task, step::Column::Title])
        .filter(step::Column::SubtaskId.eq(task.0))
        .filter(step::Column::IsLink.eq(is_link))
        .filter(step::Column::Guid.gt(after.unwrap_or_default()))
        .order_by_asc(step::Column::Guid)
        .limit(limit as u64)
        .into_tuple()
        .all(scope.db)
        .await?;
    let path = if is_link { "link" } else { "subtask_id" };
    let references = found.into_iter();
    Ok(references
        .map(|(step, task, title)| reference(kind, task, step, path.to_owned(), title))
        .collect())
}

/// The values of the parent's observations that manage a task; usually one.
async fn find_managing_values(
    scope: Scope<'_, impl ConnectionTrait>,
    task: TaskId,
    parent: TaskId,
) -> Result<Vec<Reference>, StoreError> {
    let mut items = Vec::new();
    for (step, title, question) in managing_observations(scope, parent, task).await? {
        let choices = question.values.iter().enumerate();
        for (index, _) in choices.filter(|(_, choice)| choice.link == Some(task)) {
            let path = format!("feedback_config[0].values[{index}]");
            let kind = ReferenceKind::Manages;
            items.push(reference(kind, parent.0, step.0, path, title.clone()));
        }
    }
    items.sort_by(|one, other| (one.id(), &one.place.path).cmp(&(other.id(), &other.place.path)));
    Ok(items)
}

/// The observations of a task that manage another one, with their titles and questions, by id.
pub async fn managing_observations(
    scope: Scope<'_, impl ConnectionTrait>,
    parent: TaskId,
    task: TaskId,
) -> Result<Vec<(StepId, String, Feedback)>, StoreError> {
    use step::Column;
    let rows: Vec<(StepId, String, Json<StepFields>)> = scope
        .find::<step::Entity>()
        .select_only()
        .columns([Column::Guid, Column::Title, Column::Content])
        .filter(Column::Task.eq(parent.0))
        .filter(Column::Content.contains(format!("\"link\":\"{task}\"")))
        .into_tuple()
        .all(scope.db)
        .await?;
    let observations = rows.into_iter().filter_map(|(step, title, content)| {
        let question = content.0.question?;
        let manages = question.linked_tasks().any(|linked| linked == task);
        manages.then_some((step, title, question))
    });
    let mut observations: Vec<_> = observations.collect();
    observations.sort_unstable_by_key(|(step, ..)| *step);
    Ok(observations)
}

/// A page of the first `size` references.
fn page(mut items: Vec<Reference>, size: usize) -> ReferencePage {
    let more = items.len() > size;
    items.truncate(size);
    let last = items.last().filter(|_| more);
    let next = last.map(Reference::cursor);
    ReferencePage { items, next }
}

/// A reference at a step, or at a task if `id` is the task's.
fn reference(kind: ReferenceKind, task: Uuid, id: Uuid, path: String, title: String) -> Reference {
    Reference {
        kind,
        place: ReferencePlace {
            task: TaskId(task),
            step: (id != task).then_some(StepId(id)),
            path,
            title,
        },
        condition: None,
    }
}
