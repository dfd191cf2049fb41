//! Lists the texts that an automatic translator has to translate.
//!
//! A call examines a bounded number of resources in the order of their ids. So its cost is bounded even
//! if almost everything is translated.

use std::collections::{BTreeMap, HashMap};

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect, Select, SelectModel, Selector,
};
use uuid::Uuid;

use super::{Texts, steps::step_bytes};
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
        json::Json,
        rows::{StepFields, read_digest, valid},
    },
};

/// The number of resources in a batch.
const BATCH_ROWS: usize = 500;
/// The maximum number of batches that a call examines.
const MAX_BATCHES: usize = 4;
/// If the sources of a page have more bytes, they are read under a permit.
const LARGE_PAGE_BYTES: usize = 4 * 1024 * 1024;

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
        let filter = filter.clone();
        self.read_snapshot(move |snapshot, texts| {
            let filter = filter.clone();
            async move { list(snapshot.scope(), &filter, after, size, texts).await }
        })
        .await
    }
}

async fn list(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    after: Option<TranslationWorkCursor>,
    size: PageSize,
    texts: Texts,
) -> Result<TranslationWorkPage, StoreError> {
    let (page, next) = find_work(scope, filter, after, size).await?;
    // A page has about `PAGE_BYTES`, except that a single source may be larger.
    if texts == Texts::Small && page.bytes > LARGE_PAGE_BYTES {
        return Err(StoreError::NeedsLargeReadPermit(page.bytes));
    }
    let items = read_sources(scope, filter, page.found).await?;
    Ok(TranslationWorkPage { items, next })
}

/// Finds the work of a page, and where the next one begins, without reading sources.
async fn find_work(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    after: Option<TranslationWorkCursor>,
    size: PageSize,
) -> Result<(WorkPageBuilder, Option<TranslationWorkCursor>), StoreError> {
    let mut page = WorkPageBuilder {
        found: Vec::new(),
        bytes: 0,
        size: size.get() as usize,
        cursor: after.unwrap_or(TranslationWorkCursor::START),
    };
    for _ in 0..MAX_BATCHES {
        let resources = examine(scope, filter, page.cursor).await?;
        let has_room = resources.iter().all(|resource| page.add(resource, filter));
        if !has_room {
            break;
        }
        let is_last = resources.len() < BATCH_ROWS;
        if is_last && page.cursor.steps {
            return Ok((page, None));
        }
        if is_last {
            page.cursor = TranslationWorkCursor {
                steps: true,
                ..TranslationWorkCursor::START
            };
        }
    }
    let next = page.cursor;
    Ok((page, Some(next)))
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

/// Reads the next tasks or steps after a cursor.
async fn examine(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    cursor: TranslationWorkCursor,
) -> Result<Vec<Resource>, StoreError> {
    let resources = if cursor.steps {
        steps(scope, filter, cursor)
    } else {
        tasks(scope, filter, cursor)
    };
    let mut resources = resources.all(scope.db).await?;
    // A resource is skipped once all its languages are examined.
    let is_examined = cursor.languages >= filter.languages.len();
    resources.retain(|resource| {
        resource.guid > cursor.guid || (resource.guid == cursor.guid && !is_examined)
    });
    resources.sort_unstable_by_key(|resource| resource.guid);
    resources.truncate(BATCH_ROWS);
    let translated: Vec<Uuid> = resources
        .iter()
        .filter(|resource| resource.language_count > 0)
        .map(|resource| resource.guid)
        .collect();
    if translated.is_empty() {
        return Ok(resources);
    }
    let translations = if cursor.steps {
        step_translations(scope, filter, translated)
    } else {
        task_translations(scope, filter, translated)
    };
    let mut by_resource: HashMap<Uuid, Vec<StoredTranslation>> = HashMap::new();
    for translation in translations.all(scope.db).await? {
        let of_resource = by_resource.entry(translation.resource).or_default();
        of_resource.push(translation);
    }
    for resource in &mut resources {
        resource.translations = by_resource.remove(&resource.guid).unwrap_or_default();
    }
    Ok(resources)
}

fn tasks(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    cursor: TranslationWorkCursor,
) -> Selector<SelectModel<Resource>> {
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
    tasks.into_model()
}

fn steps(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    cursor: TranslationWorkCursor,
) -> Selector<SelectModel<Resource>> {
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
    steps.into_model()
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

/// The translations of tasks into the requested languages.
fn task_translations(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    tasks: Vec<Uuid>,
) -> Selector<SelectModel<StoredTranslation>> {
    use task_translation::Column;
    scope
        .find::<task_translation::Entity>()
        .select_only()
        .column_as(Column::Task, "resource")
        .columns([Column::Language, Column::Locked])
        .column_as(Column::TranslatedFromName, "from_title")
        .filter(Column::Task.is_in(tasks))
        .filter(Column::Language.is_in(tags(filter)))
        .into_model()
}

/// The translations of steps into the requested languages.
fn step_translations(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    steps: Vec<Uuid>,
) -> Selector<SelectModel<StoredTranslation>> {
    use step_translation::Column;
    scope
        .find::<step_translation::Entity>()
        .select_only()
        .column_as(Column::Step, "resource")
        .columns([Column::Language, Column::Locked])
        .column_as(Column::TranslatedFromTitle, "from_title")
        .column_as(Column::TranslatedFromRest, "from_rest")
        .filter(Column::Step.is_in(steps))
        .filter(Column::Language.is_in(tags(filter)))
        .into_model()
}

fn tags(filter: &TranslationWorkFilter) -> impl Iterator<Item = &str> {
    filter.languages.iter().map(|language| language.as_str())
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

/// Collects the work of a page.
struct WorkPageBuilder {
    found: Vec<FoundWork>,
    bytes: usize,
    size: usize,
    /// Where the next page begins.
    cursor: TranslationWorkCursor,
}

impl WorkPageBuilder {
    /// Adds the missing and outdated translations of a resource. Returns false if the page has no room
    /// for one of them.
    fn add(&mut self, resource: &Resource, filter: &TranslationWorkFilter) -> bool {
        let bytes = resource.bytes();
        let resumed = self.cursor.guid == resource.guid;
        let done = if resumed { self.cursor.languages } else { 0 };
        for (index, language) in filter.languages.iter().enumerate().skip(done) {
            let state = resource.translation_state(language.as_str());
            let room = PAGE_BYTES.saturating_sub(self.bytes);
            let is_full = self.found.len() >= self.size || (bytes > room && !self.found.is_empty());
            if state.is_some() && is_full {
                return false;
            }
            self.cursor = TranslationWorkCursor {
                steps: self.cursor.steps,
                guid: resource.guid,
                languages: index + 1,
            };
            if let Some(state) = state {
                self.bytes = self.bytes.saturating_add(bytes);
                self.found.push(FoundWork {
                    cursor: self.cursor,
                    language: index,
                    state,
                    title: resource.title.clone(),
                });
            }
        }
        true
    }
}

impl Resource {
    fn bytes(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

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

/// Adds the source texts to the work found.
async fn read_sources(
    scope: Scope<'_, impl ConnectionTrait>,
    filter: &TranslationWorkFilter,
    found: Vec<FoundWork>,
) -> Result<Vec<(TranslationWork, TranslationWorkCursor)>, StoreError> {
    let steps = found.iter().filter(|found| found.cursor.steps);
    let mut steps: Vec<Uuid> = steps.map(|found| found.cursor.guid).collect();
    steps.dedup();
    let steps = read_step_sources(scope, steps).await?;
    let work = |found: FoundWork| {
        let guid = found.cursor.guid;
        let (resource, source, digest) = if found.cursor.steps {
            let (source, digest) = steps.get(&guid)?.clone();
            (ResourceId::Step(StepId(guid)), source, digest)
        } else {
            let digest = SourceDigest::of_task(&found.title);
            let source = SourceTexts::Task { name: found.title };
            (ResourceId::Task(TaskId(guid)), source, digest)
        };
        let work = TranslationWork {
            resource,
            language: filter.languages.get(found.language)?.clone(),
            state: found.state,
            source,
            digest,
        };
        Some((work, found.cursor))
    };
    Ok(found.into_iter().filter_map(work).collect())
}

async fn read_step_sources(
    scope: Scope<'_, impl ConnectionTrait>,
    steps: Vec<Uuid>,
) -> Result<BTreeMap<Uuid, (SourceTexts, SourceDigest)>, StoreError> {
    use step::Column;
    if steps.is_empty() {
        return Ok(BTreeMap::new());
    }
    type SourceRow = (Uuid, String, Vec<u8>, Json<StepFields>, Option<String>);
    let rows: Vec<SourceRow> = scope
        .find::<step::Entity>()
        .select_only()
        .columns([
            Column::Guid,
            Column::Title,
            Column::RestDigest,
            Column::Content,
            Column::Body,
        ])
        .filter(Column::Guid.is_in(steps))
        .into_tuple()
        .all(scope.db)
        .await?;
    let sources = rows
        .into_iter()
        .map(|(guid, title, rest, Json(fields), body)| {
            let digest = SourceDigest::of_step(&title, read_digest(rest, "rest_digest")?);
            let source = SourceTexts::Step {
                title,
                body: valid(body.map(Body::parse).transpose(), "body")?,
                instructions: fields.instructions,
                feedback: fields.question,
            };
            Ok((guid, (source, digest)))
        });
    sources.collect()
}
