//! Reads of deleted steps that can be restored.

use sea_orm::{
    ColumnTrait, ConnectionTrait, ExprTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait, Select, sea_query::Expr,
};
use uuid::Uuid;

use super::{
    MaxBytes, count_fitting, find_within, join_translations, read_by_ids,
    steps::{Bodies, get_order_epoch},
};
use crate::{
    domain::{
        Result,
        history::{DeletedBy, TranslatedFrom},
        ids::{AccountId, StepId, TaskId},
        page::{Page, PageSize},
        step::DeletedStep,
        time::Timestamp,
        translation::Language,
    },
    store::{
        Account,
        account::Scope,
        entity::{
            deleted_step::{Column, Entity},
            deleted_step_translation, step, step_translation,
        },
        error::StoreError,
        rows::{read_digest, read_step},
    },
};

/// The row of a step, and of its deletion.
#[derive(FromQueryResult)]
struct DeletedStepRow {
    #[sea_orm(nested)]
    step: step::Model,
    deleted_ts: i64,
    deleted_by: String,
    previous_step: Option<Uuid>,
}

/// The task of a deleted step, and the task that it refers to if it is a subtask step.
pub async fn find_references(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: StepId,
) -> Result<Option<(TaskId, Option<TaskId>)>, StoreError> {
    let columns = [Column::Task, Column::SubtaskId];
    let rows = by_id(scope, guid).select_only().columns(columns);
    Ok(rows.into_tuple().all(scope.db).await?.pop())
}

/// A deleted step with its body, and what its translations were made from.
pub async fn find(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: StepId,
    max_bytes: MaxBytes,
) -> Result<Option<(DeletedStep, TranslatedFrom)>, StoreError> {
    let bytes = Column::Size.into_expr().add(Column::BodySize.into_expr());
    let row = find_within(scope, by_id(scope, guid), bytes, max_bytes).await?;
    let steps = with_translations(scope, Vec::from_iter(row), Bodies::Read).await?;
    let mut steps = steps.into_iter();
    let Some((row, translations)) = steps.next() else {
        return Ok(None);
    };
    let mut translated_from = TranslatedFrom::default();
    for translation in &translations {
        let language = Language::parse(&translation.language);
        let language = language.ok_or(StoreError::Corrupt("language"))?;
        let digest = translation.translated_from_rest.clone();
        let source = (
            translation.translated_from_title.clone(),
            read_digest(digest, "translated_from_rest")?,
        );
        translated_from.steps.insert((guid, language), source);
    }
    Ok(Some((
        read(scope.account, row, translations)?,
        translated_from,
    )))
}

fn by_id(scope: Scope<'_, impl ConnectionTrait>, guid: StepId) -> Select<Entity> {
    scope.find::<Entity>().filter(Column::Guid.eq(guid.0))
}

async fn with_translations(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Vec<DeletedStepRow>,
    bodies: Bodies,
) -> Result<Vec<(DeletedStepRow, Vec<step_translation::Model>)>, StoreError> {
    use deleted_step_translation::{Column, Entity};
    let translated = rows.iter().filter(|row| row.step.language_count > 0);
    let ids = translated.map(|row| row.step.guid);
    let found = bodies.select(scope.find::<Entity>(), Column::Body);
    let translations = read_by_ids(scope, found, Column::Step, ids).await?;
    let owner = |row: &step_translation::Model| row.step;
    Ok(join_translations(rows, |row| row.step.guid, translations, owner).collect())
}

fn read(
    account: &AccountId,
    row: DeletedStepRow,
    translations: Vec<step_translation::Model>,
) -> Result<DeletedStep, StoreError> {
    let (step, _) = read_step(account, (row.step, translations))?;
    Ok(DeletedStep {
        step,
        deleted: DeletedBy {
            at: Timestamp(row.deleted_ts),
            subject: row.deleted_by,
        },
        previous: row.previous_step.map(StepId),
    })
}

impl Account {
    /// A page of the deleted steps of a task without their bodies, the latest deletion first. `after` is
    /// the time of a deletion and its step.
    pub async fn list_deleted_steps(
        &self,
        task: TaskId,
        after: Option<(Timestamp, StepId)>,
        size: PageSize,
    ) -> Result<Page<DeletedStep>> {
        self.read_snapshot(|snapshot, max_bytes| async move {
            let scope = snapshot.scope();
            // Fails if there is no such task.
            get_order_epoch(scope, task).await?;
            let rows = scope
                .find::<Entity>()
                .filter(Column::Task.eq(task.0))
                .apply_if(after, |rows, (deleted, step)| {
                    let place =
                        Expr::tuple([Column::DeletedTs.into_expr(), Column::Guid.into_expr()]);
                    let after = [deleted.0.into(), step.0.into()].map(Expr::Value);
                    rows.filter(place.lt(Expr::tuple(after)))
                })
                .order_by_desc(Column::DeletedTs)
                .order_by_desc(Column::Guid);
            let sizes = rows.clone().select_only().column(Column::Size);
            let sizes = sizes.limit(size.rows()).into_tuple();
            let sizes: Vec<i64> = sizes.all(scope.db).await?;
            let fitting = count_fitting(sizes.iter().copied(), size);
            max_bytes.check(sizes.iter().take(fitting).sum())?;
            let rows = Bodies::Skip.select(rows, Column::Body);
            let rows = rows.limit(fitting as u64).into_model().all(scope.db);
            let items = with_translations(scope, rows.await?, Bodies::Skip).await?;
            let items = items.into_iter();
            let items = items.map(|(row, translations)| read(scope.account, row, translations));
            Ok(Page {
                items: items.collect::<Result<_, _>>()?,
                more: sizes.len() > fitting,
            })
        })
        .await
    }
}
