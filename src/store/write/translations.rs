//! Writing automatic translations. The check of a translation's lock and the write are one transaction,
//! which holds the database lock of the task or step.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, DerivePartialModel, ExprTrait, FromQueryResult, Iterable, QueryFilter,
    QuerySelect,
    sea_query::{Expr, Func},
};
use uuid::Uuid;

use super::{CheckpointsOf, Operation, Tx};
use crate::{
    domain::{
        Result,
        change_feed::WriteRpc,
        changes::Changes,
        decide::{StoredTranslation, Translatable, TranslationSnapshot, write_translations},
        ids::{StepId, TaskId},
        size::StepSize,
        task::LockedTask,
        translation::{StepTranslation, TaskTranslation},
        translation_work::{AutomaticTranslation, TranslationOutcome},
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
    const CHECKPOINTS: CheckpointsOf = CheckpointsOf::ChangedGuides;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Self::Answer), StoreError> {
        let ids: Vec<Uuid> = self.0.iter().map(|item| item.guid).collect();
        // Also locks the tasks of the steps, so that batches on one guide wait for each other once
        // and not at every step.
        let mut tasks = tx.find_step_tasks(&ids).await?;
        tasks.extend(ids.iter().copied().map(TaskId));
        let mut tasks = tx.lock_tasks(tasks).await?;
        tasks.retain(|guid, _| ids.contains(&guid.0));
        let steps = lock_translated_steps(tx, ids).await?;
        let stored = TranslationSnapshot {
            tasks: self.read_task_rows(tx, tasks).await?,
            steps: self.read_step_rows(tx, steps).await?,
        };
        Ok(write_translations(&self.0, stored, &tx.context)?)
    }
}

/// What the write needs of a step: the translated content, and its size.
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

async fn lock_translated_steps(
    tx: &Tx<'_>,
    ids: Vec<Uuid>,
) -> Result<Vec<TranslatedStepRow>, StoreError> {
    let steps = tx.find::<step::Entity>();
    let steps = steps.filter(step::Column::Guid.is_in(ids));
    let steps = tx.locked(steps, step::Column::Guid).into_partial_model();
    Ok(steps.all(tx.db()).await?)
}

impl WriteTranslations {
    /// The languages of the items of these tasks or steps.
    fn keys<T>(&self, resources: &BTreeMap<Uuid, T>) -> Vec<(Uuid, &str)> {
        let items = self
            .0
            .iter()
            .filter(|item| resources.contains_key(&item.guid));
        items
            .map(|item| (item.guid, item.language.as_str()))
            .collect()
    }

    async fn read_task_rows(
        &self,
        tx: &Tx<'_>,
        tasks: BTreeMap<TaskId, LockedTask>,
    ) -> Result<BTreeMap<Uuid, Translatable<TaskTranslation>>, StoreError> {
        use task_translation::{Column, Entity};
        let translatable = |(id, task): (TaskId, LockedTask)| {
            let task = Translatable {
                id,
                task: id,
                source: task.name.into_string(),
                size: StepSize {
                    listed: task.size,
                    bodies: 0,
                },
                languages: task.languages,
                version: task.row_version.version,
                stored: BTreeMap::new(),
                written: BTreeMap::new(),
            };
            (id.0, task)
        };
        let mut tasks: BTreeMap<_, _> = tasks.into_iter().map(translatable).collect();
        if tasks.is_empty() {
            return Ok(tasks);
        }
        let key = Expr::tuple([Column::Task, Column::Language].map(Expr::col));
        let rows = tx.find::<Entity>().filter(key.in_tuples(self.keys(&tasks)));
        for row in rows.all(tx.db()).await? {
            let (guid, source) = (row.task, row.translated_from_name.clone());
            let (language, translation) = read_task_translation(row)?;
            let stored = StoredTranslation {
                translation,
                body_bytes: 0,
                source,
            };
            if let Some(task) = tasks.get_mut(&guid) {
                task.stored.insert(language, stored);
            }
        }
        Ok(tasks)
    }

    async fn read_step_rows(
        &self,
        tx: &Tx<'_>,
        steps: Vec<TranslatedStepRow>,
    ) -> Result<BTreeMap<Uuid, Translatable<StepTranslation>>, StoreError> {
        use step_translation::{Column, Entity};
        let steps = steps.into_iter().map(TranslatedStepRow::read);
        let mut steps: BTreeMap<_, _> = steps.collect::<Result<_, StoreError>>()?;
        if steps.is_empty() {
            return Ok(steps);
        }
        let key = Expr::tuple([Column::Step, Column::Language].map(Expr::col));
        let body_bytes = || Func::cust("octet_length").arg(Expr::col(Column::Body));
        let is_compared = Expr::expr(body_bytes()).lte(MAX_COMPARED_BODY_BYTES);
        let body = Expr::case(is_compared, Expr::col(Column::Body));
        let rows: Vec<StepTranslationRow> = tx
            .find::<Entity>()
            .select_only()
            .columns(Column::iter().filter(|column| !matches!(column, Column::Body)))
            .expr_as(body, Column::Body)
            .expr_as(body_bytes(), "body_bytes")
            .filter(key.in_tuples(self.keys(&steps)))
            .into_model()
            .all(tx.db())
            .await?;
        for StepTranslationRow {
            mut row,
            body_bytes,
        } in rows
        {
            let (guid, title) = (row.step, std::mem::take(&mut row.translated_from_title));
            let rest = std::mem::take(&mut row.translated_from_rest);
            let (language, translation) = read_step_translation(row)?;
            let stored = StoredTranslation {
                translation,
                body_bytes: body_bytes.unwrap_or_default().into(),
                source: (title, read_digest(rest, "translated_from_rest")?),
            };
            if let Some(step) = steps.get_mut(&guid) {
                step.stored.insert(language, stored);
            }
        }
        Ok(steps)
    }
}

impl TranslatedStepRow {
    fn read(self) -> Result<(Uuid, Translatable<StepTranslation>), StoreError> {
        let step = Translatable {
            id: StepId(self.guid),
            task: TaskId(self.task),
            source: (self.title, read_digest(self.rest_digest, "rest_digest")?),
            size: StepSize {
                listed: self.size,
                bodies: self.body_size,
            },
            languages: usize::try_from(self.language_count).unwrap_or_default(),
            version: self.version,
            stored: BTreeMap::new(),
            written: BTreeMap::new(),
        };
        Ok((self.guid, step))
    }
}
