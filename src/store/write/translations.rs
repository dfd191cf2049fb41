//! Writing automatic translations. The check of a translation's lock and the write are one transaction,
//! which holds the database lock of the task or step.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, DerivePartialModel, ExprTrait, FromQueryResult, Iterable, QueryFilter,
    QuerySelect,
    sea_query::{Expr, Func, ValueTuple},
};
use uuid::Uuid;

use super::{Operation, Tx};
use crate::{
    domain::{
        Result,
        change_feed::WriteRpc,
        changes::Changes,
        decide::{
            StepTranslationSnapshot, StoredTranslation, TaskTranslationSnapshot,
            TranslationSnapshot, write_translations,
        },
        ids::TaskId,
        size::StepSize,
        translation::{Language, StepTranslation},
        translation_work::{AutomaticTranslation, SourceDigest, TranslationOutcome},
    },
    store::{
        Account, WriteMode,
        entity::{step, step_translation, task_translation},
        error::StoreError,
        rows::{read_digest, read_step_translation, read_task_translation},
    },
};

/// The maximum size of a stored translation's body that is read and compared. A larger one is written
/// again even if it is the same.
const MAX_COMPARED_BODY_BYTES: i32 = 1024 * 1024;

impl Account {
    /// Writes automatic translations. Returns the outcome of each, in order. One that is not
    /// applied does not affect the others.
    pub async fn write_translations(
        &self,
        items: Vec<AutomaticTranslation>,
    ) -> Result<Vec<TranslationOutcome>> {
        self.write(WriteTranslations(items), WriteMode::Store).await
    }
}

struct WriteTranslations(Vec<AutomaticTranslation>);

impl Operation for WriteTranslations {
    type Answer = Vec<TranslationOutcome>;
    const RPC: Option<WriteRpc> = Some(WriteRpc::WriteTranslations);

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Self::Answer), StoreError> {
        let mut stored = TranslationSnapshot::default();
        // The tasks of the steps are locked too: batches on one guide wait for each
        // other there, and not step by step.
        let ids: Vec<Uuid> = self.ids().collect();
        let mut tasks = tx.tasks_of_steps(&ids).await?;
        tasks.extend(self.ids().map(TaskId));
        for locked_task in tx.lock_tasks(&tasks).await? {
            let guid = locked_task.guid.0;
            if ids.contains(&guid) {
                let rows = BTreeMap::new();
                let task = TaskTranslationSnapshot { locked_task, rows };
                stored.tasks.insert(guid, task);
            }
        }
        stored.steps = self.lock_translated_steps(tx).await?;
        self.read_task_rows(tx, &mut stored.tasks).await?;
        self.read_step_rows(tx, &mut stored.steps).await?;
        Ok(write_translations(&self.0, stored, &tx.context)?)
    }
}

/// What the write needs of a step: what is translated, and its size.
#[derive(DerivePartialModel)]
#[sea_orm(entity = "step::Entity")]
struct TranslatedStepRow {
    guid: Uuid,
    task: Uuid,
    title: String,
    rest_digest: Vec<u8>,
    size: i64,
    body_size: i64,
    language_count: i64,
    version: i64,
}

/// A translation without its body if that is large, and the size of the body.
#[derive(FromQueryResult)]
struct StepTranslationRow {
    #[sea_orm(nested)]
    row: step_translation::Model,
    body_bytes: Option<i32>,
}

impl WriteTranslations {
    fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.0.iter().map(|item| item.guid)
    }

    async fn lock_translated_steps(
        &self,
        tx: &Tx<'_>,
    ) -> Result<BTreeMap<Uuid, StepTranslationSnapshot>, StoreError> {
        let steps = tx
            .find::<step::Entity>()
            .filter(step::Column::Guid.is_in(self.ids()));
        let rows: Vec<TranslatedStepRow> = tx
            .locked(steps, step::Column::Guid)
            .into_partial_model()
            .all(tx.db())
            .await?;
        let snapshot = |row: TranslatedStepRow| {
            let step = StepTranslationSnapshot {
                task: TaskId(row.task),
                title: row.title,
                content_digest: read_digest(row.rest_digest, "rest_digest")?,
                size: StepSize {
                    listed: row.size,
                    bodies: row.body_size,
                },
                languages: usize::try_from(row.language_count).unwrap_or_default(),
                version: row.version,
                rows: BTreeMap::new(),
            };
            Ok((row.guid, step))
        };
        rows.into_iter().map(snapshot).collect()
    }

    async fn read_task_rows(
        &self,
        tx: &Tx<'_>,
        tasks: &mut BTreeMap<Uuid, TaskTranslationSnapshot>,
    ) -> Result<(), StoreError> {
        use task_translation::{Column, Entity};
        if tasks.is_empty() {
            return Ok(());
        }
        let items = self.0.iter().filter(|item| tasks.contains_key(&item.guid));
        let languages = items.map(|item| item.language.as_str());
        let rows = tx
            .find::<Entity>()
            .filter(Column::Task.is_in(tasks.keys().copied()))
            .filter(Column::Language.is_in(languages))
            .all(tx.db())
            .await?;
        for row in rows {
            let (guid, source) = (row.task, row.translated_from_name.clone());
            let (language, translation) = read_task_translation(row)?;
            let stored = StoredTranslation {
                translation,
                body_bytes: 0,
                source,
            };
            if let Some(task) = tasks.get_mut(&guid) {
                task.rows.insert(language, stored);
            }
        }
        Ok(())
    }

    async fn read_step_rows(
        &self,
        tx: &Tx<'_>,
        steps: &mut BTreeMap<Uuid, StepTranslationSnapshot>,
    ) -> Result<(), StoreError> {
        use step_translation::{Column, Entity};
        if steps.is_empty() {
            return Ok(());
        }
        let items = self.0.iter().filter(|item| steps.contains_key(&item.guid));
        let keys =
            items.map(|item| ValueTuple::Two(item.guid.into(), item.language.as_str().into()));
        let key = Expr::tuple([Column::Step, Column::Language].map(Expr::col));
        let body_bytes = || Func::cust("octet_length").arg(Expr::col(Column::Body));
        let is_compared = Expr::expr(body_bytes()).lte(MAX_COMPARED_BODY_BYTES);
        let rows: Vec<StepTranslationRow> = tx
            .find::<Entity>()
            .select_only()
            .columns(Column::iter().filter(|column| !matches!(column, Column::Body)))
            .expr_as(
                Expr::case(is_compared, Expr::col(Column::Body)),
                Column::Body,
            )
            .expr_as(body_bytes(), "body_bytes")
            .filter(key.in_tuples(keys.collect::<Vec<_>>()))
            .into_model()
            .all(tx.db())
            .await?;
        for row in rows {
            let guid = row.row.step;
            let (language, stored) = row.read()?;
            if let Some(step) = steps.get_mut(&guid) {
                step.rows.insert(language, stored);
            }
        }
        Ok(())
    }
}

impl StepTranslationRow {
    fn read(self) -> Result<(Language, StoredStepTranslation), StoreError> {
        let Self {
            mut row,
            body_bytes,
        } = self;
        let title = std::mem::take(&mut row.translated_from_title);
        let rest = std::mem::take(&mut row.translated_from_rest);
        let (language, translation) = read_step_translation(row)?;
        let stored = StoredTranslation {
            translation,
            body_bytes: body_bytes.unwrap_or_default().into(),
            source: (title, read_digest(rest, "translated_from_rest")?),
        };
        Ok((language, stored))
    }
}

/// A stored translation, with the title and the digest of the other texts that it was translated from.
type StoredStepTranslation = StoredTranslation<StepTranslation, (String, SourceDigest)>;
