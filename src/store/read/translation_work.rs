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

use super::{group_by_id, read_by_ids, steps::step_bytes};
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
        if let Some(task) = filter.task {
            // Fails if the task does not exist.
            self.order_epoch(task).await?;
        }
        self.read_snapshot(|snapshot, max_bytes| async move {
            let scope = snapshot.scope();
            let page = find_work(scope, filter, after, size).await?;
            // A page has about `PAGE_BYTES`, except that a single source may be larger.
            if page.bytes > LARGE_PAGE_BYTES {
                max_bytes.check(page.bytes)?;
            }
            let items = read_sources(scope, filter, page.found).await?;
            let next = page.next;
            Ok(TranslationWorkPage { items, next })
        })
        .await
    }
}

/// A page of work before the sources are read.
#[derive(Default)]
struct FoundPage {
    found: Vec<FoundWork>,
    /// The bytes of the sources.
    bytes: i64,
    /// Where the next page starts; `None` at the end.
    next: Option<TranslationWorkCursor>,
}

/// A missing or outdated translation, before the source is read.
struct FoundWork {
    cursor: TranslationWorkCursor,
    /// The index of the requested language.
    language: usize,
    state: TranslationState,
    /// The name of the task, or the title of the step.
    title: String,
}

/// Finds the work of a page, and where the next one begins.
async fn find_work(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    after: Option<TranslationWorkCursor>,
    size: PageSize,
) -> Result<FoundPage, StoreError> {
    let mut page = FoundPage::default();
    let mut cursor = after.unwrap_or(TranslationWorkCursor::START);
    for _ in 0..MAX_BATCHES {
        let resources = examine(scope, filter, cursor).await?;
        let is_last = resources.len() < BATCH_ROWS;
        for resource in resources {
            let is_resumed = cursor.guid == resource.guid;
            let done = if is_resumed { cursor.languages } else { 0 };
            for (language, tag) in filter.languages.iter().enumerate().skip(done) {
                let state = resource.translation_state(tag.as_str());
                let here = TranslationWorkCursor {
                    guid: resource.guid,
                    languages: language + 1,
                    ..cursor
                };
                if let Some(state) = state {
                    let bytes = page.bytes.saturating_add(resource.bytes);
                    let fits = bytes <= PAGE_BYTES as i64 || page.found.is_empty();
                    if page.found.len() >= size.get() as usize || !fits {
                        page.next = Some(cursor);
                        return Ok(page);
                    }
                    page.bytes = bytes;
                    page.found.push(FoundWork {
                        cursor: here,
                        language,
                        state,
                        title: resource.title.clone(),
                    });
                }
                cursor = here;
            }
        }
        if is_last && cursor.steps {
            return Ok(page);
        }
        if is_last {
            cursor = TranslationWorkCursor {
                steps: true,
                ..TranslationWorkCursor::START
            };
        }
    }
    page.next = Some(cursor);
    Ok(page)
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
    /// Its translations into the requested languages.
    #[sea_orm(skip)]
    translations: Vec<StoredTranslation>,
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
    fn translation_state(&self, language: &str) -> Option<TranslationState> {
        let mut translations = self.translations.iter();
        match translations.find(|translation| translation.language == language) {
            Some(translation) => {
                let is_fresh = translation.from_title == self.title
                    && translation.from_rest == self.rest_digest;
                let is_outdated = !translation.locked && !is_fresh;
                is_outdated.then_some(TranslationState::Outdated)
            }
            None => {
                let count = usize::try_from(self.language_count).unwrap_or_default();
                (count < MAX_LANGUAGES).then_some(TranslationState::Missing)
            }
        }
    }
}

/// Reads the next tasks or steps after a cursor.
async fn examine(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    cursor: TranslationWorkCursor,
) -> Result<Vec<Resource>, StoreError> {
    let mut resources = if cursor.steps {
        use step::Column;
        let steps = scope
            .find::<step::Entity>()
            .select_only()
            .columns([Column::Guid, Column::LanguageCount])
            .expr_as(step_bytes(), "bytes")
            .columns([Column::Title, Column::RestDigest]);
        let steps = match filter.task {
            // To order or limit them by id would tempt SQLite to look at all steps of the account.
            Some(task) => steps.filter(Column::Task.eq(task.0)),
            None => batch(steps, Column::Guid, cursor),
        };
        steps.into_model::<Resource>().all(scope.db).await?
    } else {
        use task::Column;
        let tasks = scope
            .find::<task::Entity>()
            .select_only()
            .columns([Column::Guid, Column::LanguageCount])
            .column_as(Column::Size, "bytes")
            .column_as(Column::Name, "title");
        let tasks = match filter.task {
            Some(task) => tasks.filter(Column::Guid.eq(task.0)),
            None => batch(tasks, Column::Guid, cursor),
        };
        tasks.into_model().all(scope.db).await?
    };
    // A resource is skipped once all its languages are examined.
    let is_examined = cursor.languages >= filter.languages.len();
    resources.retain(|resource| {
        resource.guid > cursor.guid || (resource.guid == cursor.guid && !is_examined)
    });
    resources.sort_unstable_by_key(|resource| resource.guid);
    resources.truncate(BATCH_ROWS);
    let translated = resources.iter().filter(|row| row.language_count > 0);
    let translated: Vec<Uuid> = translated.map(|row| row.guid).collect();
    let translations = read_translations(scope, filter, cursor.steps, translated).await?;
    let mut by_resource = group_by_id(translations, |translation| translation.resource);
    for resource in &mut resources {
        resource.translations = by_resource.remove(&resource.guid).unwrap_or_default();
    }
    Ok(resources)
}

/// The next rows after a cursor, and the cursor's own row.
fn batch<E: EntityTrait>(
    rows: Select<E>,
    guid: E::Column,
    cursor: TranslationWorkCursor,
) -> Select<E> {
    rows.filter(guid.gte(cursor.guid))
        .order_by_asc(guid)
        .limit(BATCH_ROWS as u64 + 1)
}

/// The translations of tasks, or of steps, into the requested languages.
async fn read_translations(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    of_steps: bool,
    resources: Vec<Uuid>,
) -> Result<Vec<StoredTranslation>, StoreError> {
    let languages = filter.languages.iter().map(|language| language.as_str());
    if of_steps {
        use step_translation::Column;
        let translations = scope
            .find::<step_translation::Entity>()
            .select_only()
            .column_as(Column::Step, "resource")
            .columns([Column::Language, Column::Locked])
            .column_as(Column::TranslatedFromTitle, "from_title")
            .column_as(Column::TranslatedFromRest, "from_rest")
            .filter(Column::Language.is_in(languages));
        read_by_ids(scope, translations, Column::Step, resources).await
    } else {
        use task_translation::Column;
        let translations = scope
            .find::<task_translation::Entity>()
            .select_only()
            .column_as(Column::Task, "resource")
            .columns([Column::Language, Column::Locked])
            .column_as(Column::TranslatedFromName, "from_title")
            .filter(Column::Language.is_in(languages));
        read_by_ids(scope, translations, Column::Task, resources).await
    }
}

/// Adds the source texts to the work found.
async fn read_sources(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    found: Vec<FoundWork>,
) -> Result<Vec<(TranslationWork, TranslationWorkCursor)>, StoreError> {
    let steps = found.iter().filter(|found| found.cursor.steps);
    let mut steps: Vec<Uuid> = steps.map(|found| found.cursor.guid).collect();
    steps.dedup();
    let mut sources: HashMap<Uuid, (SourceTexts, SourceDigest)> = HashMap::new();
    let rows = scope.find::<step::Entity>();
    let rows: Vec<step::Model> = read_by_ids(scope, rows, step::Column::Guid, steps).await?;
    for row in rows {
        let rest = read_digest(row.rest_digest, "rest_digest")?;
        let digest = SourceDigest::of_step(&row.title, rest);
        let source = SourceTexts::Step {
            title: row.title,
            body: valid(row.body.map(Body::parse).transpose(), "body")?,
            instructions: row.content.0.instructions,
            feedback: row.content.0.question,
        };
        sources.insert(row.guid, (source, digest));
    }
    let work = found.into_iter().filter_map(|found| {
        let guid = found.cursor.guid;
        let (resource, (source, digest)) = if found.cursor.steps {
            (ResourceId::Step(StepId(guid)), sources.get(&guid)?.clone())
        } else {
            let digest = SourceDigest::of_task(&found.title);
            let source = SourceTexts::Task { name: found.title };
            (ResourceId::Task(TaskId(guid)), (source, digest))
        };
        let work = TranslationWork {
            resource,
            language: filter.languages.get(found.language)?.clone(),
            state: found.state,
            source,
            digest,
        };
        Some((work, found.cursor))
    });
    Ok(work.collect())
}
