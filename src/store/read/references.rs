//! Lists where a task or a variable is used. References are read from the tasks and steps;
//! the index of digests only finds the rows.
//!
//! A call sends at most four statements and examines a bounded number of tasks and steps.

pub(super) mod variables;

use sea_orm::{
    ColumnTrait, ConnectionTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Value,
};
use uuid::Uuid;

use crate::{
    domain::{
        Error, Result,
        analysis::{
            Reference, ReferenceCursor, ReferenceFilter, ReferenceKind, ReferencePage,
            ReferencePlace,
        },
        feedback::Feedback,
        ids::{AccountId, StepId, TaskId},
        link::linked_tasks,
        page::PageSize,
    },
    store::{
        Account, backend,
        error::StoreError,
        json_columns,
        row_reader::RowReader,
        schema::entity::{OfAccount, step, task},
    },
};

/// A kind of subtask steps, and the field that refers to the task.
struct ReferringSteps {
    kind: ReferenceKind,
    is_link: bool,
    field: &'static str,
}

const SUBTASKS: ReferringSteps = ReferringSteps {
    kind: ReferenceKind::Subtask,
    is_link: false,
    field: "subtask_id",
};
const WIRING: ReferringSteps = ReferringSteps {
    kind: ReferenceKind::Wiring,
    is_link: true,
    field: "link",
};

impl Account {
    /// A page of references in order. It may be short or even empty although others follow.
    pub async fn list_references(
        &self,
        filter: &ReferenceFilter,
        after: Option<ReferenceCursor>,
        size: PageSize,
    ) -> Result<ReferencePage> {
        let size = size.get() as usize;
        match filter {
            ReferenceFilter::Task(task) => self.references_to_task(*task, after, size).await,
            ReferenceFilter::Variable(filter) => {
                self.references_to_variable(filter, after, size).await
            }
        }
    }

    async fn references_to_task(
        &self,
        task: TaskId,
        after: Option<ReferenceCursor>,
        size: usize,
    ) -> Result<ReferencePage> {
        let parent = self
            .select::<task::Entity>()
            .select_only()
            .column(task::Column::ParentGuid)
            .filter(task::Column::Guid.eq(task.0))
            .into_tuple::<Option<Uuid>>()
            .one(self.reader())
            .await
            .map_err(StoreError::from)?;
        let parent = parent.ok_or_else(|| Error::task_not_found(task, "task"))?;
        let first = ReferenceCursor::start_of(ReferenceKind::Subtask);
        let after = after.unwrap_or(first);
        let mut items = Vec::new();
        // Only a managed task has wiring steps.
        let wiring = parent.map(|_| WIRING);
        for steps in std::iter::once(SUBTASKS).chain(wiring) {
            if steps.kind >= after.kind && items.len() <= size {
                let room = size + 1 - items.len();
                items.extend(self.steps_referring_to(task, steps, &after, room).await?);
            }
        }
        if let Some(parent) = parent
            && items.len() <= size
        {
            let managing = self.values_managing(task, TaskId(parent)).await?;
            items.extend(managing.into_iter().filter(|item| after.is_before(item)));
        }
        Ok(page(items, size))
    }

    /// Subtask steps that refer to a task, behind a cursor.
    async fn steps_referring_to(
        &self,
        task: TaskId,
        steps: ReferringSteps,
        after: &ReferenceCursor,
        limit: usize,
    ) -> Result<Vec<Reference>, StoreError> {
        let db = self.reader();
        let ReferringSteps {
            kind,
            is_link,
            field,
        } = steps;
        let from = if kind == after.kind {
            after.id
        } else {
            Uuid::nil()
        };
        let statement = self
            .select::<step::Entity>()
            .select_only()
            .columns([step::Column::Guid, step::Column::Task, step::Column::Title])
            .filter(step::Column::SubtaskId.eq(task.0))
            .filter(step::Column::IsLink.eq(is_link))
            .filter(step::Column::Guid.gt(from))
            .order_by_asc(step::Column::Guid)
            .limit(limit as u64)
            .build(backend(db));
        let found = db.query_all_raw(statement).await?;
        let reference = |row| {
            let mut row = RowReader::new(row);
            let step = StepId(row.take()?);
            let place = ReferencePlace {
                task: TaskId(row.take()?),
                step: Some(step),
                path: field.to_owned(),
                title: row.take()?,
            };
            Ok(Reference {
                kind,
                place,
                condition: None,
            })
        };
        found.iter().map(reference).collect()
    }

    /// The values of the parent's observations that manage a task; usually one.
    async fn values_managing(
        &self,
        task: TaskId,
        parent: TaskId,
    ) -> Result<Vec<Reference>, StoreError> {
        let managing = managing_observations(self.reader(), &self.id, parent, task).await?;
        let mut items = Vec::new();
        for (step, title, question) in managing {
            let choices = question.values.iter().enumerate();
            for (index, _) in choices.filter(|(_, choice)| choice.link == Some(task)) {
                let place = ReferencePlace {
                    task: parent,
                    step: Some(step),
                    path: format!("feedback_config[0].values[{index}]"),
                    title: title.clone(),
                };
                items.push(Reference {
                    kind: ReferenceKind::Manages,
                    place,
                    condition: None,
                });
            }
        }
        items.sort_by(|one, other| {
            (one.id(), &one.place.path).cmp(&(other.id(), &other.place.path))
        });
        Ok(items)
    }
}

/// The observations of a task that manage another one, with their titles and questions, by id.
pub async fn managing_observations(
    db: &impl ConnectionTrait,
    account: &AccountId,
    parent: TaskId,
    task: TaskId,
) -> Result<Vec<(StepId, String, Feedback)>, StoreError> {
    let statement = step::Entity::select(account)
        .select_only()
        .columns([
            step::Column::Guid,
            step::Column::Title,
            step::Column::FeedbackConfig,
        ])
        .filter(step::Column::Task.eq(parent.0))
        // A text cannot look like this: its quotes are escaped.
        .filter(step::Column::FeedbackConfig.contains(format!("\"link\":\"{task}\"")))
        .order_by_asc(step::Column::Guid)
        .build(backend(db));
    let mut observations = Vec::new();
    for row in db.query_all_raw(statement).await? {
        let mut row = RowReader::new(&row);
        let (step, title) = (StepId(row.take()?), row.take()?);
        let question = json_columns::read_feedback(row.take()?)?;
        if let Some(question) = question.filter(|it| linked_tasks(it).any(|it| it == task)) {
            observations.push((step, title, question));
        }
    }
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

/// A number of rows as a value for LIMIT.
fn limit_value(count: usize) -> Value {
    i64::try_from(count).unwrap_or(i64::MAX).into()
}
