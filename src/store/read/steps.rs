//! Reads of steps.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ExprTrait, FromQueryResult, IdenStatic,
    QueryFilter, QueryOrder, QueryResult, QuerySelect, QueryTrait, Select, sea_query::Expr,
};
use uuid::Uuid;

use super::{LARGE_BYTES, Texts, count_fitting, group_by_id, read_by_ids};
use crate::{
    domain::{
        Error, Result,
        ids::{StepId, TaskId},
        order::{Place, StepCursor},
        page::{Page, PageSize},
        step::Step,
        translation::StepTranslations,
        violation::{Path, Reason},
    },
    store::{
        Account,
        account::Scope,
        entity::{step, step_translation, task},
        error::StoreError,
        rows::{read_step, read_step_translations},
    },
};

/// What is read of the bodies of steps and of their translations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    Read,
    Skip,
    /// Whether there is one: each body is read as an empty text.
    Mark,
}

impl Bodies {
    /// Selects what is read of a body.
    pub fn select<E: EntityTrait>(self, rows: Select<E>, body: E::Column) -> Select<E> {
        match self {
            Self::Read => rows,
            Self::Skip => rows.select_except([body]),
            Self::Mark => {
                let mark = Expr::case(body.is_not_null(), "");
                rows.select_except([body]).expr_as(mark, body.as_str())
            }
        }
    }

    /// The bytes of what is read of a step.
    pub fn step_bytes(self) -> Expr {
        match self {
            Self::Read => step_bytes(),
            Self::Skip | Self::Mark => step::Column::Size.into_expr(),
        }
    }
}

/// The bytes of a step with all of its texts.
pub fn step_bytes() -> Expr {
    step::Column::Size
        .into_expr()
        .add(step::Column::BodySize.into_expr())
}

fn by_id(scope: Scope<'_, impl ConnectionTrait>, guid: StepId) -> Select<step::Entity> {
    scope
        .find::<step::Entity>()
        .filter(step::Column::Guid.eq(guid.0))
}

async fn find_small_row(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: StepId,
) -> Result<Option<step::Model>, StoreError> {
    let small = by_id(scope, guid).filter(step_bytes().lte(LARGE_BYTES));
    Ok(small.all(scope.db).await?.pop())
}

/// A step and its place. The caller ensures that its statements read one state.
pub async fn find(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: StepId,
    texts: Texts,
) -> Result<Option<(Step, Place)>, StoreError> {
    let mut rows = Vec::from_iter(find_small_row(scope, guid).await?);
    if rows.is_empty() {
        let bytes: Vec<i64> = by_id(scope, guid)
            .select_only()
            .expr(step_bytes())
            .into_tuple()
            .all(scope.db)
            .await?;
        texts.check(bytes.into_iter().sum(), LARGE_BYTES)?;
        rows = by_id(scope, guid).all(scope.db).await?;
    }
    Ok(with_translations(scope, rows, Bodies::Read).await?.pop())
}

/// The steps of rows with their translations, in the order of the rows. The caller ensures that rows and
/// translations are of one state.
pub async fn with_translations(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Vec<step::Model>,
    bodies: Bodies,
) -> Result<Vec<(Step, Place)>, StoreError> {
    let mut translations = translations(scope, &rows, bodies).await?;
    let steps = rows.into_iter().map(|row| {
        let translations = translations.remove(&row.guid).unwrap_or_default();
        read_step(row, read_step_translations(translations)?)
    });
    steps.collect()
}

/// The translations of steps, by step.
pub async fn translations(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: &[step::Model],
    bodies: Bodies,
) -> Result<BTreeMap<Uuid, Vec<step_translation::Model>>, StoreError> {
    use step_translation::Column;
    let translated = rows.iter().filter(|row| row.language_count > 0);
    let translated = translated.map(|row| row.guid);
    let found = scope.find::<step_translation::Entity>();
    let found = bodies.select(found, Column::Body);
    let rows = read_by_ids(scope, found, Column::Step, translated).await?;
    Ok(group_by_id(rows, |row: &step_translation::Model| row.step))
}

/// The order epoch of a task.
async fn get_order_epoch(
    scope: Scope<'_, impl ConnectionTrait>,
    task: TaskId,
) -> Result<i64, StoreError> {
    let epochs: Vec<i64> = order_epoch(scope, task).into_tuple().all(scope.db).await?;
    let epoch = epochs.first().copied();
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
    /// Reads columns by their positions. Finding the 2,000 of a page by their names takes a tenth of the
    /// call.
    fn from_query_result(row: &QueryResult, _prefix: &str) -> Result<Self, DbErr> {
        let mut positions = 0..;
        let mut next = || positions.next().unwrap_or_default();
        let step = step::Model {
            account_id: row.try_get_by_index(next())?,
            guid: row.try_get_by_index(next())?,
            task: row.try_get_by_index(next())?,
            position: row.try_get_by_index(next())?,
            kind: row.try_get_by_index(next())?,
            product_id: row.try_get_by_index(next())?,
            title: row.try_get_by_index(next())?,
            external_id: row.try_get_by_index(next())?,
            published: row.try_get_by_index(next())?,
            subtask_id: row.try_get_by_index(next())?,
            subtask_pid: row.try_get_by_index(next())?,
            is_link: row.try_get_by_index(next())?,
            size: row.try_get_by_index(next())?,
            body_size: row.try_get_by_index(next())?,
            rest_digest: Vec::new(),
            language_count: row.try_get_by_index(next())?,
            version: row.try_get_by_index(next())?,
            dirty_record: row.try_get_by_index(next())?,
            indexed: false,
            created_ts: row.try_get_by_index(next())?,
            modified_ts: row.try_get_by_index(next())?,
            content: row.try_get_by_index(next())?,
            body: row.try_get_by_index(next())?,
        };
        Ok(Self {
            step,
            order_epoch: row.try_get_by_index(next())?,
        })
    }
}

impl StepPage {
    /// The steps of this page and of later ones, in their order.
    fn steps(&self, scope: Scope<'_, impl ConnectionTrait>) -> Select<step::Entity> {
        self.bodies
            .select(scope.find::<step::Entity>(), step::Column::Body)
            .filter(step::Column::Task.eq(self.task.0))
            .apply_if(self.after, |steps, after| {
                steps.filter(step::Column::Position.gt(after.place.0))
            })
            .order_by_asc(step::Column::Position)
    }

    /// The places and bytes of the steps of the page and of the one after it.
    fn sizes(&self, scope: Scope<'_, impl ConnectionTrait>) -> Select<step::Entity> {
        self.steps(scope)
            .select_only()
            .column(step::Column::Position)
            .expr_as(self.bodies.step_bytes(), "bytes")
            .limit(self.size.rows())
    }

    /// A step with more bytes may make the page large.
    fn max_small_bytes(&self) -> i64 {
        LARGE_BYTES / (i64::from(self.size.get()) + 1)
    }

    /// Reads the steps of the page and the one after it. Only small ones have their content and body.
    async fn list_small_texts(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
    ) -> Result<Vec<ListedStep>, StoreError> {
        use step::Column;
        let is_small = || self.bodies.step_bytes().lte(self.max_small_bytes());
        let content = Expr::case(is_small(), Column::Content.into_expr()).finally("{}");
        let body = match self.bodies {
            Bodies::Read => Expr::case(is_small(), Column::Body.into_expr()).into(),
            Bodies::Skip | Bodies::Mark => Expr::cust("NULL"),
        };
        let rows = self
            .steps(scope)
            .select_except([
                Column::RestDigest,
                Column::Indexed,
                Column::Content,
                Column::Body,
            ])
            .expr_as(content, "content")
            .expr_as(body, "body")
            .expr_as(order_epoch(scope, self.task).into_query(), "order_epoch")
            .limit(self.size.rows())
            .into_model()
            .all(scope.db);
        Ok(rows.await?)
    }

    /// Reads the page, in which steps may be large or have translations.
    async fn read(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
        texts: Texts,
    ) -> Result<Page<(Step, StepCursor)>, StoreError> {
        let epoch = get_order_epoch(scope, self.task).await?;
        let mut sizes: Vec<(i64, i64)> = self.sizes(scope).into_tuple().all(scope.db).await?;
        let found = sizes.len();
        sizes.truncate(count_fitting(sizes.iter().map(|size| size.1), self.size));
        texts.check(sizes.iter().map(|size| size.1).sum(), LARGE_BYTES)?;
        let items = match sizes.last() {
            None => Vec::new(),
            Some((last, _)) => {
                let steps = self.steps(scope);
                let steps = steps.filter(step::Column::Position.lte(*last));
                steps.all(scope.db).await?
            }
        };
        let more = found > items.len();
        self.complete(scope, Page { items, more }, epoch).await
    }

    /// The page with the steps of these rows.
    async fn complete(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
        rows: Page<step::Model>,
        epoch: i64,
    ) -> Result<Page<(Step, StepCursor)>, StoreError> {
        if self.after.is_some_and(|after| after.epoch != epoch) {
            return Err(StoreError::Domain(Error::invalid(
                &Path::root("page_token"),
                Reason::PageTokenInvalid,
                "the steps have been renumbered since; start again from the first page",
            )));
        }
        let steps = with_translations(scope, rows.items, self.bodies).await?;
        let with_cursor = |(step, place)| (step, StepCursor { epoch, place });
        Ok(Page {
            items: steps.into_iter().map(with_cursor).collect(),
            more: rows.more,
        })
    }
}

impl Account {
    /// Reads a step with its body. One statement reads a small step without translations.
    pub async fn get_step(&self, guid: StepId) -> Result<Step> {
        let found = match find_small_row(self.reader(), guid).await? {
            Some(row) if row.language_count == 0 => Some(read_step(row, StepTranslations::new())?),
            _ => {
                self.read_snapshot(move |snapshot, texts| async move {
                    find(snapshot.scope(), guid, texts).await
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
        let bodies = if bodies { Bodies::Read } else { Bodies::Skip };
        let page = StepPage {
            task,
            bodies,
            after,
            size,
        };
        let rows = page.list_small_texts(self.reader()).await?;
        let rows = Page::from_rows(rows, size);
        let is_complete = |ListedStep { step, .. }: &ListedStep| {
            let bytes = match bodies {
                Bodies::Read => step.size + step.body_size,
                Bodies::Skip | Bodies::Mark => step.size,
            };
            step.language_count == 0 && bytes <= page.max_small_bytes()
        };
        match rows.items.first().map(|first| first.order_epoch) {
            Some(epoch) if rows.items.iter().all(is_complete) => {
                let rows = Page {
                    items: rows.items.into_iter().map(|row| row.step).collect(),
                    more: rows.more,
                };
                Ok(page.complete(self.reader(), rows, epoch).await?)
            }
            _ => {
                self.read_snapshot(move |snapshot, texts| async move {
                    page.read(snapshot.scope(), texts).await
                })
                .await
            }
        }
    }

    /// The task's order epoch. Fails with [`Error::TaskNotFound`] if there is no such task.
    pub(in crate::store) async fn order_epoch(&self, task: TaskId) -> Result<i64> {
        Ok(get_order_epoch(self.reader(), task).await?)
    }
}
