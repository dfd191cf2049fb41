//! Reads of steps.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ExprTrait, FromQueryResult, IdenStatic,
    QueryFilter, QueryOrder, QueryResult, QuerySelect, QueryTrait, Select, sea_query::Expr,
};
use uuid::Uuid;

use super::{
    LARGE_BYTES, MaxBytes, count_fitting, find_within, group_by_id, join_translations, read_by_ids,
    step_row::StepRow,
};
use crate::{
    domain::{
        Error, Result,
        ids::{StepId, TaskId},
        order::{Place, StepCursor},
        page::{Page, PageSize},
        step::Step,
        violation::{Path, Reason},
    },
    store::{
        Account,
        account::Scope,
        entity::{
            step::{self, Column, Entity},
            step_translation, task,
        },
        error::StoreError,
        rows::{StepRows, read_step},
    },
};

/// How much is read of the bodies of steps and of their translations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    Read,
    Skip,
    /// Only whether there is a body: each body is read as an empty text.
    Mark,
}

impl Bodies {
    /// Selects what is read of a body.
    pub fn select<E: EntityTrait>(self, rows: Select<E>, body: E::Column) -> Select<E> {
        match self {
            Self::Read => rows,
            Self::Skip => rows.select_except([body]),
            Self::Mark => {
                let rows = rows.select_except([body]);
                rows.expr_as(self.body(body), body.as_str())
            }
        }
    }

    /// What is read of a body, as an expression.
    pub fn body(self, body: impl ColumnTrait) -> Expr {
        match self {
            Self::Read => body.into_expr(),
            Self::Skip => Expr::cust("NULL"),
            Self::Mark => Expr::case(body.is_not_null(), "").into(),
        }
    }

    /// The bytes of what is read of a step.
    pub fn step_bytes(self) -> Expr {
        match self {
            Self::Read => step_bytes(),
            Self::Skip | Self::Mark => Column::Size.into_expr(),
        }
    }
}

/// The bytes of a step with all of its texts.
pub fn step_bytes() -> Expr {
    Column::Size.into_expr().add(Column::BodySize.into_expr())
}

fn by_id(scope: Scope<'_, impl ConnectionTrait>, guid: StepId) -> Select<Entity> {
    let is_step = Column::Guid.eq(guid.0);
    scope.find::<Entity>().filter(is_step)
}

/// The row of a step.
pub async fn find_row(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: StepId,
    bodies: Bodies,
    max_bytes: MaxBytes,
) -> Result<Option<step::Model>, StoreError> {
    let row = bodies.select(by_id(scope, guid), Column::Body);
    find_within(scope, row, bodies.step_bytes(), max_bytes).await
}

/// A step and its place. The caller ensures that its statements read one state.
pub async fn find(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: StepId,
    max_bytes: MaxBytes,
) -> Result<Option<(Step, Place)>, StoreError> {
    let row = find_row(scope, guid, Bodies::Read, max_bytes).await?;
    let mut rows = with_translations(scope, Vec::from_iter(row), Bodies::Read).await?;
    rows.next()
        .map(|rows| read_step(scope.account, rows))
        .transpose()
}

/// Adds the translations of steps to their rows. The caller ensures that both are of one state.
pub async fn with_translations(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Vec<step::Model>,
    bodies: Bodies,
) -> Result<impl Iterator<Item = StepRows>, StoreError> {
    use step_translation::{Column, Entity, Model};
    let translated = rows.iter().filter(|row| row.language_count > 0);
    let ids = translated.map(|row| row.guid);
    let found = bodies.select(scope.find::<Entity>(), Column::Body);
    let translations = read_by_ids(scope, found, Column::Step, ids).await?;
    let owner = |row: &Model| row.step;
    Ok(join_translations(rows, |row| row.guid, translations, owner))
}

/// The rows of the steps of tasks in their order, by task, with bodies.
pub async fn find_rows(
    scope: Scope<'_, impl ConnectionTrait>,
    tasks: &[Uuid],
) -> Result<BTreeMap<Uuid, Vec<StepRows>>, StoreError> {
    let rows = scope.find::<Entity>().order_by_asc(Column::Position);
    let rows = StepRow::select(rows, Bodies::Read);
    let tasks = tasks.iter().copied();
    let rows = read_by_ids(scope, rows, Column::Task, tasks).await?;
    let rows = rows.into_iter().map(|StepRow(row)| row).collect();
    let rows = with_translations(scope, rows, Bodies::Read).await?;
    Ok(group_by_id(rows, |(step, _)| step.task))
}

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
        .find::<Entity>()
        .select_only()
        .column(Column::SubtaskId)
        .expr_as(bodies.step_bytes().sum().cast_as("bigint"), "bytes")
        .group_by(Column::SubtaskId);
    read_by_ids(scope, steps, Column::Task, tasks.iter().copied()).await
}

/// The order epoch of a task. Fails with [`Error::NotFound`] if there is no such task.
pub async fn get_order_epoch(
    scope: Scope<'_, impl ConnectionTrait>,
    task: TaskId,
) -> Result<i64, StoreError> {
    let epochs: Vec<i64> = order_epoch(scope, task).into_tuple().all(scope.db).await?;
    let epoch = epochs.into_iter().next();
    Ok(epoch.ok_or_else(|| Error::task_not_found(task, "task"))?)
}

fn order_epoch(scope: Scope<'_, impl ConnectionTrait>, task: TaskId) -> Select<task::Entity> {
    scope
        .find::<task::Entity>()
        .select_only()
        .column(task::Column::OrderEpoch)
        .filter(task::Column::Guid.eq(task.0))
}

/// The page that a call requests.
#[derive(Clone, Copy)]
struct StepPage {
    task: TaskId,
    bodies: Bodies,
    after: Option<StepCursor>,
    size: PageSize,
}

/// A row with a step of a page.
struct ListedStep {
    step: step::Model,
    order_epoch: i64,
}

impl FromQueryResult for ListedStep {
    fn from_query_result(row: &QueryResult, prefix: &str) -> Result<Self, DbErr> {
        let StepRow(step) = StepRow::from_query_result(row, prefix)?;
        let order_epoch = row.try_get_by_index(StepRow::COUNT)?;
        Ok(Self { step, order_epoch })
    }
}

impl StepPage {
    /// The steps of this page and of later ones, in their order.
    fn steps(&self, scope: Scope<'_, impl ConnectionTrait>) -> Select<Entity> {
        let after = self.after.map_or(i64::MIN, |after| after.place.0);
        scope
            .find::<Entity>()
            .filter(Column::Task.eq(self.task.0))
            .filter(Column::Position.gt(after))
            .order_by_asc(Column::Position)
    }

    /// A step with more bytes may make the page large.
    fn max_small_bytes(&self) -> i64 {
        LARGE_BYTES / (i64::from(self.size.get()) + 1)
    }

    /// Reads the first steps of this page and of later ones. Larger steps come without content and
    /// body.
    async fn list(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
        limit: u64,
        max_bytes: i64,
    ) -> Result<Vec<ListedStep>, StoreError> {
        let fits = self.bodies.step_bytes().lte(max_bytes);
        let content = Expr::case(fits.clone(), Column::Content.into_expr()).finally("{}");
        let body = match self.bodies {
            Bodies::Read => Expr::case(fits, Column::Body.into_expr()).into(),
            bodies => bodies.body(Column::Body),
        };
        let rows = StepRow::select_as(self.steps(scope), content.into(), body)
            .expr(order_epoch(scope, self.task).into_query())
            .limit(limit)
            .into_model()
            .all(scope.db);
        Ok(rows.await?)
    }

    /// Reads the page, in which steps may be large or have translations.
    async fn read(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
        max_bytes: MaxBytes,
    ) -> Result<Page<(Step, StepCursor)>, StoreError> {
        let sizes = self.steps(scope).select_only();
        let sizes = sizes.expr(self.bodies.step_bytes()).limit(self.size.rows());
        let sizes: Vec<i64> = sizes.into_tuple().all(scope.db).await?;
        let fitting = count_fitting(sizes.iter().copied(), self.size);
        max_bytes.check(sizes.iter().take(fitting).sum())?;
        let items = self.list(scope, fitting as u64, i64::MAX).await?;
        let more = sizes.len() > fitting;
        self.complete(scope, Page { items, more }).await
    }

    /// The page with the steps of these rows.
    async fn complete(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
        rows: Page<ListedStep>,
    ) -> Result<Page<(Step, StepCursor)>, StoreError> {
        let epoch = match rows.items.first() {
            Some(first) => first.order_epoch,
            None => get_order_epoch(scope, self.task).await?,
        };
        if self.after.is_some_and(|after| after.epoch != epoch) {
            return Err(StoreError::Domain(Error::invalid(
                &Path::root("page_token"),
                Reason::PageTokenInvalid,
                "the steps have been renumbered since; start again from the first page",
            )));
        }
        let steps = rows.items.into_iter().map(|row| row.step).collect();
        let steps = with_translations(scope, steps, self.bodies).await?;
        let items = steps.map(|rows| {
            let (step, place) = read_step(scope.account, rows)?;
            Ok((step, StepCursor { epoch, place }))
        });
        Ok(Page {
            items: items.collect::<Result<_, StoreError>>()?,
            more: rows.more,
        })
    }
}

impl Account {
    /// Reads a step with its body. One statement reads a small step without translations.
    pub async fn get_step(&self, guid: StepId) -> Result<Step> {
        let scope = self.reader();
        let small = by_id(scope, guid)
            .filter(step_bytes().lte(LARGE_BYTES))
            .filter(Column::LanguageCount.eq(0));
        let small = StepRow::select(small, Bodies::Read)
            .into_model()
            .all(scope.db)
            .await
            .map_err(StoreError::from)?
            .pop();
        let found = match small {
            Some(StepRow(row)) => Some(read_step(scope.account, (row, Vec::new()))?),
            None => {
                self.read_snapshot(|snapshot, max_bytes| async move {
                    find(snapshot.scope(), guid, max_bytes).await
                })
                .await?
            }
        };
        let step = found.map(|(step, _)| step);
        step.ok_or_else(|| Error::step_not_found(guid, "guid"))
    }

    /// A page of a task's steps in order, each with the cursor after it. A page has about
    /// [`PAGE_BYTES`](crate::domain::page::PAGE_BYTES), but at least one step.
    ///
    /// One statement reads a page of small steps without translations. It does not read the texts of large
    /// ones, which needs a permit.
    pub async fn list_steps(
        &self,
        task: TaskId,
        bodies: bool,
        after: Option<StepCursor>,
        size: PageSize,
    ) -> Result<Page<(Step, StepCursor)>> {
        let page = StepPage {
            task,
            bodies: if bodies { Bodies::Read } else { Bodies::Skip },
            after,
            size,
        };
        let max_bytes = page.max_small_bytes();
        let rows = page.list(self.reader(), size.rows(), max_bytes).await?;
        let rows = Page::from_rows(rows, size);
        let is_complete = |ListedStep { step, .. }: &ListedStep| {
            let body_bytes = if bodies { step.body_size } else { 0 };
            step.language_count == 0 && step.size + body_bytes <= max_bytes
        };
        if !rows.items.is_empty() && rows.items.iter().all(is_complete) {
            return Ok(page.complete(self.reader(), rows).await?);
        }
        self.read_snapshot(|snapshot, max_bytes| async move {
            page.read(snapshot.scope(), max_bytes).await
        })
        .await
    }
}
