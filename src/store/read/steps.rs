//! Reads of steps.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, ExprTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait, Select,
    sea_query::{Expr, Query},
};
use uuid::Uuid;

use super::{MAX_IDS_PER_STATEMENT, Texts, count_fitting};
use crate::{
    domain::{
        Error, Result,
        ids::{StepId, TaskId},
        order::{Place, StepCursor},
        page::{PAGE_BYTES, Page, PageSize},
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

/// A step with more bytes is large: it is read under a permit.
pub const LARGE_STEP_BYTES: i64 = 1024 * 1024;

/// Whether the bodies of steps and of their translations are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    Read,
    Skip,
}

impl Bodies {
    /// The bytes of what is read of a step.
    fn step_bytes(self) -> Expr {
        match self {
            Self::Read => step_bytes(),
            Self::Skip => step::Column::Size.into_expr(),
        }
    }
}

/// The bytes of a step with all of its texts.
pub fn step_bytes() -> Expr {
    step::Column::Size
        .into_expr()
        .add(step::Column::BodySize.into_expr())
}

/// A small step and its place. Fails with [`StoreError::NeedsLargeReadPermit`] if it is large. The
/// caller ensures that its statements read one state.
pub async fn find_small(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: StepId,
) -> Result<Option<(Step, Place)>, StoreError> {
    if let Some(row) = find_small_row(scope, guid).await? {
        let mut steps = with_translations(scope, vec![row], Bodies::Read).await?;
        return Ok(steps.pop());
    }
    let sizes: Vec<i64> = row(scope, guid)
        .select_only()
        .expr(step_bytes())
        .into_tuple()
        .all(scope.db)
        .await?;
    let Some(bytes) = sizes.first() else {
        return Ok(None);
    };
    let bytes = usize::try_from(*bytes).unwrap_or(usize::MAX);
    Err(StoreError::NeedsLargeReadPermit(bytes))
}

/// A step of any size, and its place. The caller has a permit, and ensures that its statements read one
/// state.
pub async fn find_any(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: StepId,
) -> Result<Option<(Step, Place)>, StoreError> {
    let rows = row(scope, guid).all(scope.db).await?;
    Ok(with_translations(scope, rows, Bodies::Read).await?.pop())
}

/// The steps of rows with their translations, in the order of the rows. The caller ensures that rows and
/// translations are of one state.
pub async fn with_translations(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Vec<step::Model>,
    bodies: Bodies,
) -> Result<Vec<(Step, Place)>, StoreError> {
    let translated: Vec<Uuid> = rows
        .iter()
        .filter(|row| row.language_count > 0)
        .map(|row| row.guid)
        .collect();
    let mut translations: BTreeMap<Uuid, Vec<step_translation::Model>> = BTreeMap::new();
    for steps in translated.chunks(MAX_IDS_PER_STATEMENT) {
        let mut found = scope
            .find::<step_translation::Entity>()
            .filter(step_translation::Column::Step.is_in(steps.iter().copied()));
        if bodies == Bodies::Skip {
            found = found.select_except([step_translation::Column::Body]);
        }
        for row in found.all(scope.db).await? {
            translations.entry(row.step).or_default().push(row);
        }
    }
    let steps = rows.into_iter().map(|row| {
        let translations = translations.remove(&row.guid).unwrap_or_default();
        read_step(row, read_step_translations(translations)?)
    });
    steps.collect()
}

fn row(scope: Scope<'_, impl ConnectionTrait>, guid: StepId) -> Select<step::Entity> {
    scope
        .find::<step::Entity>()
        .filter(step::Column::Guid.eq(guid.0))
}

async fn find_small_row(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: StepId,
) -> Result<Option<step::Model>, StoreError> {
    let small = row(scope, guid).filter(step_bytes().lte(LARGE_STEP_BYTES));
    Ok(small.all(scope.db).await?.pop())
}

/// The order epoch of a task.
async fn get_order_epoch(
    scope: Scope<'_, impl ConnectionTrait>,
    task: TaskId,
) -> Result<i64, StoreError> {
    let epochs: Vec<i64> = scope
        .find::<task::Entity>()
        .select_only()
        .column(task::Column::OrderEpoch)
        .filter(task::Column::Guid.eq(task.0))
        .into_tuple()
        .all(scope.db)
        .await?;
    let epoch = epochs.first().copied();
    Ok(epoch.ok_or_else(|| Error::task_not_found(task, "task"))?)
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
#[derive(FromQueryResult)]
struct ListedStep {
    #[sea_orm(nested)]
    step: step::Model,
    order_epoch: i64,
}

impl StepPage {
    /// The maximum number of bytes of a small step of this page. If all steps of the page and the one
    /// after it are small, they have at most twice [`PAGE_BYTES`].
    fn max_small_step_bytes(&self) -> i64 {
        let share = 2 * PAGE_BYTES as i64 / (i64::from(self.size.get()) + 1);
        Ord::min(share, LARGE_STEP_BYTES)
    }

    /// The steps of this page and of later ones, in their order.
    fn steps(&self, scope: Scope<'_, impl ConnectionTrait>) -> Select<step::Entity> {
        let steps = scope.find::<step::Entity>();
        let steps = match self.bodies {
            Bodies::Read => steps,
            Bodies::Skip => steps.select_except([step::Column::Body]),
        };
        steps
            .filter(step::Column::Task.eq(self.task.0))
            .apply_if(self.after, |steps, after| {
                steps.filter(step::Column::Position.gt(after.place.0))
            })
            .order_by_asc(step::Column::Position)
    }

    /// The number of rows that are read: one more than the page has.
    fn limit(&self) -> u64 {
        u64::from(self.size.get()) + 1
    }

    /// Reads the steps of the page and the one after it if all of them are small; otherwise none.
    async fn read_small_rows(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
    ) -> Result<Vec<ListedStep>, StoreError> {
        let sizes = self
            .steps(scope)
            .select_only()
            .expr_as(self.bodies.step_bytes(), "bytes")
            .limit(self.limit());
        let large = Query::select()
            .column("bytes")
            .from_subquery(sizes.into_query(), "sizes")
            .and_where(Expr::col("bytes").gt(self.max_small_step_bytes()))
            .take();
        let order_epoch = scope
            .find::<task::Entity>()
            .select_only()
            .column(task::Column::OrderEpoch)
            .filter(task::Column::Guid.eq(self.task.0));
        let rows = self
            .steps(scope)
            .expr_as(order_epoch.into_query(), "order_epoch")
            .filter(Expr::exists(large).not())
            .limit(self.limit())
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
        let mut sizes: Vec<(i64, i64)> = self
            .steps(scope)
            .select_only()
            .column(step::Column::Position)
            .expr(self.bodies.step_bytes())
            .limit(self.limit())
            .into_tuple()
            .all(scope.db)
            .await?;
        let found = sizes.len();
        let fitting = count_fitting(sizes.iter().map(|(_, bytes)| *bytes), self.size);
        sizes.truncate(fitting);
        let max_small = self.max_small_step_bytes();
        if texts == Texts::Small && sizes.iter().any(|(_, bytes)| *bytes > max_small) {
            let bytes = sizes.iter().map(|(_, bytes)| *bytes).sum::<i64>();
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            return Err(StoreError::NeedsLargeReadPermit(bytes));
        }
        let rows = match sizes.last() {
            None => Vec::new(),
            Some((last, _)) => {
                let steps = self.steps(scope);
                let steps = steps.filter(step::Column::Position.lte(*last));
                steps.all(scope.db).await?
            }
        };
        self.complete(scope, rows, found, epoch).await
    }

    /// The page with the steps of these rows. `found` is how many steps there are from its start on, at
    /// most one more than it may have.
    async fn complete(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
        rows: Vec<step::Model>,
        found: usize,
        epoch: i64,
    ) -> Result<Page<(Step, StepCursor)>, StoreError> {
        if self.after.is_some_and(|after| after.epoch != epoch) {
            return Err(StoreError::Domain(Error::invalid(
                &Path::root("page_token"),
                Reason::PageTokenInvalid,
                "the steps have been renumbered since; start again from the first page",
            )));
        }
        let steps = with_translations(scope, rows, self.bodies).await?;
        let more = found > steps.len();
        let with_cursor = |(step, place)| (step, StepCursor { epoch, place });
        Ok(Page {
            items: steps.into_iter().map(with_cursor).collect(),
            more,
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
                    match texts {
                        Texts::Small => find_small(snapshot.scope(), guid).await,
                        Texts::All => find_any(snapshot.scope(), guid).await,
                    }
                })
                .await?
            }
        };
        let step = found.map(|(step, _)| step);
        step.ok_or_else(|| Error::step_not_found(guid, "guid"))
    }

    /// A page of a task's steps in order, each with the cursor after it. A page has about
    /// [`PAGE_BYTES`], but at least one step.
    ///
    /// One statement reads a page of small steps without translations. It finds no rows if a step is not
    /// small, so that large rows are never read without a permit.
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
        let mut rows = page.read_small_rows(self.reader()).await?;
        let found = rows.len();
        let bytes = rows.iter().map(|row| match bodies {
            Bodies::Read => row.step.size + row.step.body_size,
            Bodies::Skip => row.step.size,
        });
        let fitting = count_fitting(bytes, size);
        rows.truncate(fitting);
        match rows.first() {
            Some(first) if rows.iter().all(|row| row.step.language_count == 0) => {
                let epoch = first.order_epoch;
                let rows = rows.into_iter().map(|row| row.step).collect();
                Ok(page.complete(self.reader(), rows, found, epoch).await?)
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
