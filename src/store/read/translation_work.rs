//! Lists the texts that an automatic translator has to translate.
//!
//! A call examines a bounded number of resources in the order of their ids. So its cost is
//! bounded even when nearly everything is translated.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, QueryFilter, QueryResult, QuerySelect, QueryTrait,
};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    domain::{
        Result,
        ids::{StepId, TaskId},
        page::{PAGE_BYTES, PageSize},
        text::Body,
        translation::MAX_LANGUAGES,
        translation_work::{
            ResourceId, SourceDigest, SourceTexts, TranslationState, TranslationWork,
            TranslationWorkCursor, TranslationWorkFilter, TranslationWorkPage,
        },
    },
    store::{
        Account, backend,
        error::StoreError,
        json_columns::{self, json_functions},
        row_reader::RowReader,
        schema::entity::{step, task},
        values::Values,
    },
};

/// Resources that one statement examines.
const BATCH_ROWS: i64 = 500;
/// If the sources of a page have more bytes, they are read under a permit.
const LARGE_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Most statements of one call that examine resources.
const MAX_BATCHES: usize = 4;

/// A resource and its translations into the requested languages.
struct ExaminedRow {
    guid: Uuid,
    bytes: i64,
    /// How many languages it has, requested or not; at most [`MAX_LANGUAGES`].
    languages: i64,
    /// Its translations into the requested languages, as JSON.
    translations: Option<String>,
}

/// A language, whether its translation is locked, and whether it was made from the current
/// source.
#[derive(Deserialize)]
struct StoredTranslation(String, json_columns::JsonBool, json_columns::JsonBool);

/// A missing or outdated translation, before the source is read.
struct FoundWork {
    cursor: TranslationWorkCursor,
    /// The index of the requested language.
    language: usize,
    state: TranslationState,
}

/// Collects the work of a page.
struct WorkPageBuilder {
    found: Vec<FoundWork>,
    bytes: usize,
    size: usize,
    /// Where the next page begins.
    cursor: TranslationWorkCursor,
    full: bool,
}

impl Account {
    /// A page of work in the order of ids, tasks first.
    pub async fn list_work(
        &self,
        filter: &TranslationWorkFilter,
        after: Option<TranslationWorkCursor>,
        size: PageSize,
    ) -> Result<TranslationWorkPage> {
        if let Some(task) = filter.task {
            // Fails if the task does not exist.
            self.order_epoch(task).await?;
        }
        let (page, next) = self.find_work(filter, after, size).await?;
        // A page ends at about `PAGE_BYTES`, but for one source.
        let permit = match page.bytes > LARGE_PAGE_BYTES {
            true => Some(self.large_read_permit(page.bytes).await?),
            false => None,
        };
        let items = self.read_sources(filter, page.found).await?;
        drop(permit);
        Ok(TranslationWorkPage { items, next })
    }

    /// Finds the work of a page, and where the next one begins, without reading sources.
    async fn find_work(
        &self,
        filter: &TranslationWorkFilter,
        after: Option<TranslationWorkCursor>,
        size: PageSize,
    ) -> Result<(WorkPageBuilder, Option<TranslationWorkCursor>), StoreError> {
        let mut page = WorkPageBuilder {
            found: Vec::new(),
            bytes: 0,
            size: size.get() as usize,
            cursor: after.unwrap_or(TranslationWorkCursor::START),
            full: false,
        };
        let mut ended = false;
        for _ in 0..MAX_BATCHES {
            let examined = self.examine(filter, page.cursor).await?;
            let is_last = examined.len() < usize::try_from(BATCH_ROWS).unwrap_or(usize::MAX);
            for resource in examined {
                page.add(resource, filter)?;
                if page.full {
                    break;
                }
            }
            if page.full {
                break;
            }
            if is_last && page.cursor.steps {
                ended = true;
                break;
            }
            if is_last {
                page.cursor = TranslationWorkCursor {
                    steps: true,
                    ..TranslationWorkCursor::START
                };
            }
        }
        let next = (!ended).then_some(page.cursor);
        Ok((page, next))
    }

    /// Reads the next resources after a cursor.
    async fn examine(
        &self,
        filter: &TranslationWorkFilter,
        from: TranslationWorkCursor,
    ) -> Result<Vec<ExaminedRow>, StoreError> {
        let db = self.reader();
        let count = filter.languages.len();
        // A resource is skipped once all its languages are examined.
        let after = if from.languages < count { ">=" } else { ">" };
        let mut values = Values::new();
        let mut condition = format!("r.guid {after} {}", values.bind(from.guid));
        if let Some(task) = filter.task {
            let column = if from.steps { "task" } else { "guid" };
            let task = values.bind(task.0);
            condition.push_str(&format!(" AND r.{column} = {task}"));
        }
        let languages = values.bind_all(filter.languages.iter().map(|tag| tag.as_str()));
        let sql = examine_sql(backend(db), from.steps, &condition, &languages);
        let statement = values.statement(sql, backend(db), &self.id);
        let examined = |row| {
            let mut row = RowReader::new(row);
            Ok(ExaminedRow {
                guid: row.take()?,
                bytes: row.take()?,
                languages: row.take()?,
                translations: row.take()?,
            })
        };
        let rows = db.query_all_raw(statement).await?;
        rows.iter().map(examined).collect()
    }

    /// Reads the source texts of the work found.
    async fn read_sources(
        &self,
        filter: &TranslationWorkFilter,
        found: Vec<FoundWork>,
    ) -> Result<Vec<(TranslationWork, TranslationWorkCursor)>, StoreError> {
        let ids = |steps: bool| -> Vec<Uuid> {
            let of_kind = found.iter().filter(|found| found.cursor.steps == steps);
            let mut ids: Vec<Uuid> = of_kind.map(|found| found.cursor.guid).collect();
            ids.dedup();
            ids
        };
        let mut sources: BTreeMap<(bool, Uuid), (SourceTexts, SourceDigest)> = BTreeMap::new();
        for (guid, name) in self.task_sources(ids(false)).await? {
            let digest = SourceDigest::of_task(&name);
            sources.insert((false, guid), (SourceTexts::Task { name }, digest));
        }
        for (guid, source) in self.step_sources(ids(true)).await? {
            sources.insert((true, guid), source);
        }
        let work = |found: FoundWork| {
            let TranslationWorkCursor { steps, guid, .. } = found.cursor;
            // The resource may have been deleted meanwhile.
            let (source, digest) = sources.get(&(steps, guid))?.clone();
            let work = TranslationWork {
                resource: if steps {
                    ResourceId::Step(StepId(guid))
                } else {
                    ResourceId::Task(TaskId(guid))
                },
                language: filter.languages.get(found.language)?.clone(),
                state: found.state,
                source,
                digest,
            };
            Some((work, found.cursor))
        };
        Ok(found.into_iter().filter_map(work).collect())
    }

    /// Reads the names of tasks.
    async fn task_sources(&self, ids: Vec<Uuid>) -> Result<Vec<(Uuid, String)>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let tasks = self
            .select::<task::Entity>()
            .select_only()
            .columns([task::Column::Guid, task::Column::Name])
            .filter(task::Column::Guid.is_in(ids))
            .into_tuple();
        Ok(tasks.all(self.reader()).await?)
    }

    /// Reads the texts of steps, with the digests of what is translated.
    async fn step_sources(
        &self,
        ids: Vec<Uuid>,
    ) -> Result<Vec<(Uuid, (SourceTexts, SourceDigest))>, StoreError> {
        use step::Column;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let db = self.reader();
        let steps = self.select::<step::Entity>().select_only().columns([
            Column::Guid,
            Column::Title,
            Column::Instructions,
            Column::FeedbackConfig,
            Column::RestDigest,
            Column::Body,
        ]);
        let statement = steps.filter(Column::Guid.is_in(ids)).build(backend(db));
        let rows = db.query_all_raw(statement).await?;
        rows.iter().map(read_step_source).collect()
    }
}

/// SQL for at most [`BATCH_ROWS`] tasks or steps `r`, each with its translations into `languages`, a
/// list of placeholders.
fn examine_sql(backend: DbBackend, steps: bool, condition: &str, languages: &str) -> String {
    let (array, aggregate, cast) = json_functions(backend);
    let (table, translations, key, bytes, fresh) = if steps {
        (
            "steps",
            "step_translations",
            "step",
            "r.size + r.body_size",
            "l.translated_from_title = r.title AND l.translated_from_rest = r.rest_digest",
        )
    } else {
        (
            "tasks",
            "task_translations",
            "task",
            "r.size",
            "l.translated_from_name = r.name",
        )
    };
    format!(
        "SELECT r.guid, {bytes} AS bytes, r.language_count AS languages, \
           CASE WHEN r.language_count > 0 THEN \
             (SELECT {aggregate}({array}(l.language, l.locked, {fresh})){cast} FROM {translations} l \
              WHERE l.account_id = $1 AND l.{key} = r.guid AND l.language IN ({languages})) \
           END AS translations \
         FROM {table} r WHERE r.account_id = $1 AND {condition} \
         ORDER BY r.guid LIMIT {BATCH_ROWS}"
    )
}

impl WorkPageBuilder {
    /// Adds the missing and outdated translations of a resource while the page has room.
    fn add(
        &mut self,
        examined: ExaminedRow,
        filter: &TranslationWorkFilter,
    ) -> Result<(), StoreError> {
        let ExaminedRow {
            guid,
            bytes,
            languages,
            translations,
        } = examined;
        let is_at_language_limit =
            usize::try_from(languages).is_ok_and(|count| count >= MAX_LANGUAGES);
        let translations: Vec<StoredTranslation> =
            json_columns::list(translations.as_deref(), "translations")?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let resumed = self.cursor.guid == guid;
        let done = if resumed { self.cursor.languages } else { 0 };
        for (index, language) in filter.languages.iter().enumerate().skip(done) {
            let stored = translations.iter().find(|row| row.0 == language.as_str());
            let state = match stored {
                None if is_at_language_limit => None,
                None => Some(TranslationState::Missing),
                Some(StoredTranslation(_, locked, fresh)) if !locked.get() && !fresh.get() => {
                    Some(TranslationState::Outdated)
                }
                Some(_) => None,
            };
            let room = PAGE_BYTES.saturating_sub(self.bytes);
            if state.is_some()
                && (self.found.len() >= self.size || (bytes > room && !self.found.is_empty()))
            {
                self.full = true;
                return Ok(());
            }
            self.cursor = TranslationWorkCursor {
                steps: self.cursor.steps,
                guid,
                languages: index + 1,
            };
            if let Some(state) = state {
                self.bytes = self.bytes.saturating_add(bytes);
                self.found.push(FoundWork {
                    cursor: self.cursor,
                    language: index,
                    state,
                });
            }
        }
        Ok(())
    }
}

fn read_step_source(row: &QueryResult) -> Result<(Uuid, (SourceTexts, SourceDigest)), StoreError> {
    let mut row = RowReader::new(row);
    let (guid, title): (Uuid, String) = (row.take()?, row.take()?);
    let instructions = json_columns::list(row.take()?, "instructions")?;
    let feedback = json_columns::read_feedback(row.take()?)?;
    let rest = json_columns::read_digest(row.take()?, "rest_digest")?;
    let body: Option<String> = row.take()?;
    let body = body.map(|body| json_columns::valid(Body::parse(body), "body"));
    let digest = SourceDigest::of_step(&title, rest);
    let source = SourceTexts::Step {
        title,
        body: body.transpose()?,
        instructions,
        feedback,
    };
    Ok((guid, (source, digest)))
}
