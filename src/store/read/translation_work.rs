//! Lists the texts that an automatic translator has to translate.
//!
//! A call examines a bounded number of resources in the order of their ids. So its cost is bounded even
//! if almost everything is translated.

use std::collections::HashMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect, Select,
};
use uuid::Uuid;

use super::{
    join_translations, read_by_ids,
    steps::{get_order_epoch, step_bytes},
};
use crate::{
    domain::{
        Result,
        ids::{StepId, TaskId},
        page::{PAGE_BYTES, PageSize},
        text::Body,
        translation::{Language, MAX_LANGUAGES},
        translation_work::{
            ResourceId, SourceDigest, SourceTexts, TranslationState, TranslationWork,
            TranslationWorkCursor, TranslationWorkFilter, TranslationWorkPage,
        },
    },
    store::{
        Account,
        account::Scope,
        entity::{step, step_translation, task, task_translation},
        error::StoreError,
        rows::{read_digest, valid},
    },
};

/// The number of resources in a batch.
const BATCH_ROWS: usize = 500;
/// The maximum number of batches that a call examines.
const MAX_BATCHES: usize = 4;
/// If the sources of a page have more bytes, they are read under a permit.
const LARGE_PAGE_BYTES: i64 = 4 * 1024 * 1024;

impl Account {
    /// A page of work in the order of ids, tasks first.
    pub async fn list_work(
        &self,
        filter: &TranslationWorkFilter,
        after: Option<TranslationWorkCursor>,
        size: PageSize,
    ) -> Result<TranslationWorkPage> {
        self.read_snapshot(|snapshot, max_bytes| async move {
            let scope = snapshot.scope();
            if let Some(task) = filter.task {
                // Fails if the task does not exist.
                get_order_epoch(scope, task).await?;
            }
            let (found, next) = find_work(scope, filter, after, size).await?;
            // A page has about `PAGE_BYTES`, except that a single source may be larger.
            let bytes = found.iter().map(|found| found.bytes).sum();
            if bytes > LARGE_PAGE_BYTES {
                max_bytes.check(bytes)?;
            }
            let items = read_sources(scope, found).await?;
            Ok(TranslationWorkPage { items, next })
        })
        .await
    }
}

/// A missing or outdated translation, before the source is read.
struct FoundWork {
    cursor: TranslationWorkCursor,
    language: Language,
    state: TranslationState,
    /// The name of the task, or the title of the step.
    title: String,
    /// The bytes of the source.
    bytes: i64,
}

/// Finds the work of a page, and where the next one begins.
async fn find_work(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    after: Option<TranslationWorkCursor>,
    size: PageSize,
) -> Result<(Vec<FoundWork>, Option<TranslationWorkCursor>), StoreError> {
    let (mut page, mut page_bytes) = (Vec::new(), 0_i64);
    let mut cursor = after.unwrap_or(TranslationWorkCursor::START);
    for _ in 0..MAX_BATCHES {
        let resources = examine(scope, filter, cursor).await?;
        let is_last = resources.len() < BATCH_ROWS;
        for (resource, translations) in resources {
            let is_resumed = cursor.guid == resource.guid;
            let done = if is_resumed { cursor.languages } else { 0 };
            for (index, language) in filter.languages.iter().enumerate().skip(done) {
                let here = TranslationWorkCursor {
                    guid: resource.guid,
                    languages: index + 1,
                    ..cursor
                };
                if let Some(state) = resource.translation_state(&translations, language) {
                    page_bytes = page_bytes.saturating_add(resource.bytes);
                    let is_full =
                        page.len() >= size.get() as usize || page_bytes > PAGE_BYTES as i64;
                    if is_full && !page.is_empty() {
                        return Ok((page, Some(cursor)));
                    }
                    page.push(FoundWork {
                        cursor: here,
                        language: language.clone(),
                        state,
                        title: resource.title.clone(),
                        bytes: resource.bytes,
                    });
                }
                cursor = here;
            }
        }
        if is_last && cursor.steps {
            return Ok((page, None));
        }
        if is_last {
            cursor = TranslationWorkCursor {
                steps: true,
                ..TranslationWorkCursor::START
            };
        }
    }
    Ok((page, Some(cursor)))
}

/// A task or step without its texts.
#[derive(FromQueryResult)]
struct Resource {
    guid: Uuid,
    bytes: i64,
    /// How many languages it has, requested or not; at most [`MAX_LANGUAGES`].
    language_count: i64,
    /// The name of a task, or the title of a step.
    title: String,
    /// The digest of a step's other texts; `None` for a task.
    rest_digest: Option<Vec<u8>>,
}

/// A translation without its texts.
#[derive(FromQueryResult)]
struct StoredTranslation {
    /// The task or step.
    resource: Uuid,
    language: String,
    locked: bool,
    /// The `title` of the resource when the translation was written.
    from_title: String,
    /// The `rest_digest` of the resource when the translation was written.
    from_rest: Option<Vec<u8>>,
}

impl Resource {
    /// Why it needs a translation into a requested language; `None` if it needs none, or has as many
    /// languages as it may have.
    fn translation_state(
        &self,
        translations: &[StoredTranslation],
        language: &Language,
    ) -> Option<TranslationState> {
        let mut translations = translations.iter();
        match translations.find(|translation| translation.language == language.as_str()) {
            Some(translation) => {
                let is_fresh = translation.from_title == self.title
                    && translation.from_rest == self.rest_digest;
                (!translation.locked && !is_fresh).then_some(TranslationState::Outdated)
            }
            None => {
                let has_room = self.language_count < MAX_LANGUAGES as i64;
                has_room.then_some(TranslationState::Missing)
            }
        }
    }
}

/// Reads the next tasks or steps after a cursor, with their translations into the requested languages.
async fn examine(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    cursor: TranslationWorkCursor,
) -> Result<Vec<(Resource, Vec<StoredTranslation>)>, StoreError> {
    let languages = filter.languages.iter().map(Language::as_str);
    let (resources, translations) = if cursor.steps {
        use step::Column;
        let steps = scope
            .find::<step::Entity>()
            .select_only()
            .columns([Column::Guid, Column::LanguageCount])
            .columns([Column::Title, Column::RestDigest])
            .expr_as(step_bytes(), "bytes");
        let steps = list(scope, steps, Column::Guid, Column::Task, filter, cursor).await?;
        use step_translation::Column as Translation;
        let translations = scope
            .find::<step_translation::Entity>()
            .select_only()
            .column_as(Translation::Step, "resource")
            .columns([Translation::Language, Translation::Locked])
            .column_as(Translation::TranslatedFromTitle, "from_title")
            .column_as(Translation::TranslatedFromRest, "from_rest")
            .filter(Translation::Language.is_in(languages));
        let ids = translated(&steps);
        let translations = read_by_ids(scope, translations, Translation::Step, ids).await?;
        (steps, translations)
    } else {
        use task::Column;
        let tasks = scope
            .find::<task::Entity>()
            .select_only()
            .columns([Column::Guid, Column::LanguageCount])
            .column_as(Column::Size, "bytes")
            .column_as(Column::Name, "title");
        let tasks = list(scope, tasks, Column::Guid, Column::Guid, filter, cursor).await?;
        use task_translation::Column as Translation;
        let translations = scope
            .find::<task_translation::Entity>()
            .select_only()
            .column_as(Translation::Task, "resource")
            .columns([Translation::Language, Translation::Locked])
            .column_as(Translation::TranslatedFromName, "from_title")
            .filter(Translation::Language.is_in(languages));
        let ids = translated(&tasks);
        let translations = read_by_ids(scope, translations, Translation::Task, ids).await?;
        (tasks, translations)
    };
    let owner = |translation: &StoredTranslation| translation.resource;
    let id = |resource: &Resource| resource.guid;
    Ok(join_translations(resources, id, translations, owner).collect())
}

/// The next rows of a table after a cursor. If the filter names a task, only rows whose `task` column
/// matches.
async fn list<E: EntityTrait>(
    scope: Scope<'_, impl ConnectionTrait>,
    rows: Select<E>,
    guid: E::Column,
    task: E::Column,
    filter: &TranslationWorkFilter,
    cursor: TranslationWorkCursor,
) -> Result<Vec<Resource>, StoreError> {
    let rows = match filter.task {
        // If this ordered or limited them by id, SQLite might scan all steps of the account.
        Some(id) => rows.filter(task.eq(id.0)),
        None => rows
            .filter(guid.gte(cursor.guid))
            .order_by_asc(guid)
            .limit(BATCH_ROWS as u64 + 1),
    };
    let mut rows: Vec<Resource> = rows.into_model().all(scope.db).await?;
    // A resource is skipped once all its languages are examined.
    let is_examined = cursor.languages >= filter.languages.len();
    rows.retain(|row| row.guid > cursor.guid || (row.guid == cursor.guid && !is_examined));
    rows.sort_unstable_by_key(|row| row.guid);
    rows.truncate(BATCH_ROWS);
    Ok(rows)
}

/// Ids of resources with translations.
fn translated(resources: &[Resource]) -> impl Iterator<Item = Uuid> {
    let translated = resources.iter().filter(|row| row.language_count > 0);
    translated.map(|row| row.guid)
}

/// Adds the source texts to the work found.
async fn read_sources(
    scope: Scope<'_, impl ConnectionTrait>,
    found: Vec<FoundWork>,
) -> Result<Vec<(TranslationWork, TranslationWorkCursor)>, StoreError> {
    let steps = found.iter().filter(|found| found.cursor.steps);
    let mut steps: Vec<Uuid> = steps.map(|found| found.cursor.guid).collect();
    steps.dedup();
    let rows = scope.find::<step::Entity>();
    let rows = read_by_ids(scope, rows, step::Column::Guid, steps).await?;
    let sources = rows.into_iter().map(step_source);
    let sources: HashMap<_, _> = sources.collect::<Result<_, StoreError>>()?;
    let work = found.into_iter().filter_map(|found| {
        let guid = found.cursor.guid;
        let (resource, (source, digest)) = if found.cursor.steps {
            (ResourceId::Step(StepId(guid)), sources.get(&guid)?.clone())
        } else {
            let digest = SourceDigest::for_task(&found.title);
            let source = SourceTexts::Task { name: found.title };
            (ResourceId::Task(TaskId(guid)), (source, digest))
        };
        let work = TranslationWork {
            resource,
            language: found.language,
            state: found.state,
            source,
            digest,
        };
        Some((work, found.cursor))
    });
    Ok(work.collect())
}

fn step_source(row: step::Model) -> Result<(Uuid, (SourceTexts, SourceDigest)), StoreError> {
    let rest = read_digest(row.rest_digest, "rest_digest")?;
    let digest = SourceDigest::for_step(&row.title, rest);
    let source = SourceTexts::Step {
        title: row.title,
        body: valid(row.body.map(Body::parse).transpose(), "body")?,
        instructions: row.content.0.content.instructions,
        feedback: row.content.0.question,
    };
    Ok((row.guid, (source, digest)))
}
