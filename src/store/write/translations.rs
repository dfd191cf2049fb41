//! Writing automatic translations. The check of a lock and the write are one
//! transaction, under the lock of the task or step.

use std::collections::BTreeMap;

use sea_orm::{ColumnTrait, ConnectionTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::{
    Operation,
    sql::{Values, list},
    transaction::Tx,
};
use crate::{
    domain::{
        Result,
        change_feed::WriteRpc,
        changes::Changes,
        decide::{
            StepTranslationSnapshot, StoredTranslation, TaskTranslationSnapshot,
            TranslationSnapshot, WriteContext, write_translations,
        },
        ids::TaskId,
        size::StepSize,
        text::{Body, Name, Title},
        translation::{Language, StepTranslation, TaskTranslation},
        translation_work::{AutomaticTranslation, SourceDigest, TranslationOutcome},
    },
    store::{
        Account, WriteMode,
        error::StoreError,
        json_columns,
        row_reader::RowReader,
        schema::entity::{step, task_translation},
    },
};

/// Bytes of a stored translation's body up to which it is read and compared. A larger
/// one is written again even when it is the same.
const MAX_COMPARED_BODY_BYTES: i64 = 1024 * 1024;

impl Account {
    /// Writes automatic translations. Returns the outcome of each, in order; one that is not
    /// applied does not keep the others from being written.
    pub async fn write_translations(
        &self,
        items: Vec<AutomaticTranslation>,
    ) -> Result<Vec<TranslationOutcome>> {
        self.write(WriteTranslations(items), WriteMode::Store).await
    }
}

struct WriteTranslations(Vec<AutomaticTranslation>);

impl Operation for WriteTranslations {
    type Snapshot = TranslationSnapshot;
    type Answer = Vec<TranslationOutcome>;
    const RPC: Option<WriteRpc> = Some(WriteRpc::WriteTranslations);

    async fn read_locked(&self, tx: &Tx) -> Result<TranslationSnapshot, StoreError> {
        let mut stored = TranslationSnapshot::default();
        // The tasks of the steps are locked too: batches on one guide wait for each
        // other there, and not step by step.
        let ids: Vec<Uuid> = self.ids().collect();
        let mut locked = tx.tasks_of_steps(&ids).await?;
        locked.extend(self.ids().map(TaskId));
        let translated: Vec<Uuid> = self.ids().collect();
        for locked_task in tx.lock_tasks(&locked).await? {
            let guid = locked_task.guid.0;
            if translated.contains(&guid) {
                let rows = BTreeMap::new();
                let task = TaskTranslationSnapshot { locked_task, rows };
                stored.tasks.insert(guid, task);
            }
        }
        stored.steps = self.lock_translated_steps(tx).await?;
        self.read_task_rows(tx, &mut stored.tasks).await?;
        self.read_step_rows(tx, &mut stored.steps).await?;
        Ok(stored)
    }

    fn decide(
        &self,
        stored: TranslationSnapshot,
        context: &WriteContext,
    ) -> Result<(Changes, Vec<TranslationOutcome>)> {
        write_translations(&self.0, stored, context)
    }
}

impl WriteTranslations {
    fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.0.iter().map(|item| item.guid)
    }

    /// The languages into which these resources are translated.
    fn languages<'a, T>(&'a self, of: &'a BTreeMap<Uuid, T>) -> impl Iterator<Item = &'a str> {
        let items = self.0.iter().filter(|item| of.contains_key(&item.guid));
        items.map(|item| item.language.as_str())
    }

    /// Locks the translated steps in the order of ids, and reads their titles, the digests of
    /// their other texts, and their sizes.
    async fn lock_translated_steps(
        &self,
        tx: &Tx,
    ) -> Result<BTreeMap<Uuid, StepTranslationSnapshot>, StoreError> {
        use step::Column;
        type StepRow = (Uuid, Uuid, String, Vec<u8>, i64, i64, i64, i64);
        let rows: Vec<StepRow> = tx
            .select::<step::Entity>()
            .select_only()
            .columns([
                Column::Guid,
                Column::Task,
                Column::Title,
                Column::RestDigest,
                Column::Size,
                Column::BodySize,
                Column::LanguageCount,
                Column::Version,
            ])
            .filter(Column::Guid.is_in(self.ids()))
            .order_by_asc(Column::Guid)
            .lock_exclusive()
            .into_tuple()
            .all(&tx.db)
            .await?;
        let snapshot = |row: StepRow| {
            let (guid, task, title, content, listed, bodies, languages, version) = row;
            let step = StepTranslationSnapshot {
                task: TaskId(task),
                title,
                content_digest: json_columns::read_digest(content, "rest_digest")?,
                size: StepSize { listed, bodies },
                languages: usize::try_from(languages).unwrap_or_default(),
                version,
                rows: BTreeMap::new(),
            };
            Ok((guid, step))
        };
        rows.into_iter().map(snapshot).collect()
    }

    async fn read_task_rows(
        &self,
        tx: &Tx,
        tasks: &mut BTreeMap<Uuid, TaskTranslationSnapshot>,
    ) -> Result<(), StoreError> {
        use task_translation::{Column, Entity};
        if tasks.is_empty() {
            return Ok(());
        }
        let guids = self.ids().filter(|guid| tasks.contains_key(guid));
        let rows = tx
            .select::<Entity>()
            .filter(Column::Task.is_in(guids))
            .filter(Column::Language.is_in(self.languages(tasks)))
            .all(&tx.db)
            .await?;
        for row in rows {
            let name = row
                .name
                .map(|name| json_columns::valid(Name::parse(name), "name"));
            let stored = StoredTranslation {
                translation: TaskTranslation {
                    name: name.transpose()?,
                    locked: row.locked,
                },
                body_bytes: 0,
                source: row.translated_from_name,
            };
            if let Some(task) = tasks.get_mut(&row.task) {
                task.rows.insert(Language::stored(row.language), stored);
            }
        }
        Ok(())
    }

    async fn read_step_rows(
        &self,
        tx: &Tx,
        steps: &mut BTreeMap<Uuid, StepTranslationSnapshot>,
    ) -> Result<(), StoreError> {
        if steps.is_empty() {
            return Ok(());
        }
        let mut values = Values::new();
        let items = self.0.iter().filter(|item| steps.contains_key(&item.guid));
        let rows = list(items.map(|item| {
            let (step, language) = (values.bind(item.guid), item.language.as_str());
            format!("({step}, {})", values.bind(language))
        }));
        let sql = format!(
            "SELECT step, language, locked, title, instructions, feedback_config, translated_from_title, \
               translated_from_rest, CAST(COALESCE(octet_length(body), 0) AS bigint) AS body_bytes, \
               CASE WHEN octet_length(body) <= {MAX_COMPARED_BODY_BYTES} THEN body END AS body \
             FROM step_translations \
             WHERE account_id = $1 AND (step, language) IN (VALUES {rows})"
        );
        let statement = values.statement(sql, tx.backend(), tx.account());
        for row in tx.db.query_all_raw(statement).await? {
            let mut row = RowReader::new(&row);
            let guid: Uuid = row.take()?;
            let language = Language::stored(row.take()?);
            let stored = read_step_translation(&mut row)?;
            if let Some(step) = steps.get_mut(&guid) {
                step.rows.insert(language, stored);
            }
        }
        Ok(())
    }
}

fn read_step_translation(
    row: &mut RowReader<'_>,
) -> Result<StoredTranslation<StepTranslation, (String, SourceDigest)>, StoreError> {
    const TABLE: &str = "step_translations";
    let locked = row.take()?;
    let title: Option<String> = row.take()?;
    let title = title.map(|title| json_columns::valid(Title::parse(title), TABLE));
    let instructions = json_columns::list(row.take()?, "instructions")?;
    let feedback = json_columns::read_feedback(row.take()?)?;
    let source = (
        row.take()?,
        json_columns::read_digest(row.take()?, "translated_from_rest")?,
    );
    let body_bytes = row.take()?;
    let body: Option<String> = row.take()?;
    let body = body.map(|body| json_columns::valid(Body::parse(body), TABLE));
    Ok(StoredTranslation {
        translation: StepTranslation {
            title: title.transpose()?,
            body: body.transpose()?,
            instructions,
            feedback,
            locked,
        },
        body_bytes,
        source,
    })
}
