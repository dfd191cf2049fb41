//! Reads of steps. What is returned comes from one statement, and with large steps from one
//! transaction, so that it is one state of the database. Statements sent before it only decide
//! how it is read.

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, QueryFilter, QueryResult, QuerySelect, Value,
};

use super::{ExpectedTranslations, cached_sql::CachedSql};
use crate::{
    domain::{
        Error, Result,
        ids::{AccountId, StepId, TaskId},
        order::{Place, StepCursor},
        page::{PAGE_BYTES, Page, PageSize},
        step::Step,
        violation::{Path, Reason},
    },
    store::{
        Account, backend,
        error::StoreError,
        row_reader::{RowReader, read_all},
        schema::entity::task,
        statement,
        step_row::{StepColumns, read_step},
    },
};

/// A step with more bytes is large: it is read under a permit, by statements of its own.
pub const LARGE_STEP_BYTES: i64 = 1024 * 1024;

/// The columns of a step, without texts if it is large.
const SMALL_STEP: StepColumns = StepColumns {
    max_bytes: Some(LARGE_STEP_BYTES),
    ..StepColumns::ALL
};

/// A step that is not large and has no translations, as most are. Without the subquery for
/// translations and a condition for each large column, PostgreSQL takes a third less time
/// ([`ExpectedTranslations`](super::ExpectedTranslations)).
static PLAIN_STEP: CachedSql = CachedSql::new(|backend| {
    let selected = StepColumns {
        translations: false,
        ..StepColumns::ALL
    };
    let (columns, bytes) = (selected.columns(backend), selected.size_sql());
    format!(
        "SELECT {bytes}, {columns} FROM steps s WHERE s.account_id = $1 AND s.guid = $2 \
         AND s.language_count = 0 AND {bytes} <= {LARGE_STEP_BYTES}"
    )
});

/// The same, locked. On SQLite the transaction itself is the lock.
static LOCKED_PLAIN_STEP: CachedSql = CachedSql::new(|backend| {
    let plain = PLAIN_STEP.of(backend);
    match backend {
        DbBackend::Sqlite => plain.to_owned(),
        _ => format!("{plain} FOR UPDATE"),
    }
});

/// A row with one step, and the step's size in bytes.
struct StepRow {
    row: QueryResult,
    bytes: i64,
}

impl StepRow {
    async fn find(
        db: &impl ConnectionTrait,
        account: &AccountId,
        guid: StepId,
        selected: StepColumns,
    ) -> Result<Option<Self>, StoreError> {
        let backend = backend(db);
        let (columns, bytes) = (selected.columns(backend), selected.size_sql());
        let sql = format!(
            "SELECT {bytes}, {columns} FROM steps s WHERE s.account_id = $1 AND s.guid = $2"
        );
        Self::find_by(&sql, db, account, guid).await
    }

    async fn find_by(
        sql: &str,
        db: &impl ConnectionTrait,
        account: &AccountId,
        guid: StepId,
    ) -> Result<Option<Self>, StoreError> {
        let statement = statement(backend(db), account, sql, [Value::from(guid.0)]);
        let Some(row) = db.query_one_raw(statement).await? else {
            return Ok(None);
        };
        let bytes = RowReader::new(&row).take()?;
        Ok(Some(Self { row, bytes }))
    }

    fn read(&self, account: &AccountId) -> Result<(Step, Place), StoreError> {
        let mut row = RowReader::new(&self.row);
        row.take::<i64>()?;
        read_step(&mut row, account)
    }
}

/// Reads a step and its place. Of a large step it reads no texts, and fails with
/// [`StoreError::NeedsLargeReadPermit`].
///
/// If no translations are expected, a first statement finds only a small step without any; the
/// next one finds every step.
pub async fn find_small(
    db: &impl ConnectionTrait,
    expected: &ExpectedTranslations,
    account: &AccountId,
    guid: StepId,
) -> Result<Option<(Step, Place)>, StoreError> {
    if !expected.of(account) {
        let sql = PLAIN_STEP.of(backend(db));
        if let Some(found) = StepRow::find_by(sql, db, account, guid).await? {
            return found.read(account).map(Some);
        }
    }
    let found = match StepRow::find(db, account, guid, SMALL_STEP).await? {
        None => return Ok(None),
        Some(StepRow { bytes, .. }) if bytes > LARGE_STEP_BYTES => {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            return Err(StoreError::NeedsLargeReadPermit(bytes));
        }
        Some(found) => found.read(account)?,
    };
    expected.note(account, !found.0.content.translations.is_empty());
    Ok(Some(found))
}

/// Locks and reads a step by one statement if it is small and has no translations, and otherwise
/// does nothing.
pub async fn lock_plain(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: StepId,
) -> Result<Option<(Step, Place)>, StoreError> {
    let sql = LOCKED_PLAIN_STEP.of(backend(db));
    let found = StepRow::find_by(sql, db, account, guid).await?;
    found.map(|found| found.read(account)).transpose()
}

/// The page that a call requests.
pub(super) struct StepPageRequest {
    pub task: TaskId,
    pub bodies: bool,
    /// Whether translations are read. If they are not and a step has some, they are read by
    /// a second statement.
    translations: bool,
    after: Option<StepCursor>,
    size: i64,
}

/// The steps of a page, each with the cursor after it.
pub(super) struct StepPageRead {
    /// How many steps there are from the start of the page, at most one more than it may
    /// have.
    pub found: usize,
    pub steps: Vec<(Step, StepCursor)>,
}

impl StepPageRequest {
    /// Most bytes of a step that counts as small in this page; a large one never does. If all
    /// steps of the page and the one after it are small, they have at most twice [`PAGE_BYTES`].
    fn max_small_step_bytes(&self) -> i64 {
        (2 * PAGE_BYTES as i64 / (self.size + 1)).min(LARGE_STEP_BYTES)
    }

    /// The condition for the steps of this page and later ones, and the values from `$2`
    /// on. `$3` is the most rows to read, one more than the page has.
    pub fn condition(&self) -> (&'static str, Vec<Value>) {
        let mut values = vec![Value::from(self.task.0), Value::from(self.size + 1)];
        match &self.after {
            None => ("s.account_id = $1 AND s.task = $2", values),
            Some(StepCursor { place, .. }) => {
                values.push(place.position.into());
                values.push(place.fraction.clone().into());
                let after = "s.account_id = $1 AND s.task = $2 \
                     AND (s.position, s.fraction) > ($4, $5)";
                (after, values)
            }
        }
    }
}

/// Not NULL for a step with translations.
const TRANSLATED: &str = "CASE WHEN s.language_count > 0 THEN 1 END";

/// A row with a step of a list.
struct ListedRow {
    row: QueryResult,
    bytes: i64,
    translated: bool,
}

impl ListedRow {
    fn new(row: QueryResult) -> Result<Self, StoreError> {
        let mut columns = RowReader::new(&row);
        let bytes = columns.take()?;
        columns.take::<i64>()?;
        let translated = columns.take::<Option<i32>>()?.is_some();
        Ok(Self {
            row,
            bytes,
            translated,
        })
    }

    fn read(&self, account: &AccountId) -> Result<(Step, StepCursor), StoreError> {
        let mut row = RowReader::new(&self.row);
        row.take::<i64>()?;
        let epoch = row.take()?;
        row.take::<Option<i32>>()?;
        let (step, place) = read_step(&mut row, account)?;
        Ok((step, StepCursor { epoch, place }))
    }
}

/// How many of these steps fit into a page: about [`PAGE_BYTES`], but at least one.
fn count_fitting(rows: &[ListedRow], limit: usize) -> usize {
    let mut before = 0_i64;
    let fits = |row: &&ListedRow| {
        let starts_within = before < PAGE_BYTES as i64;
        before = before.saturating_add(row.bytes);
        starts_within
    };
    rows.iter().take(limit).take_while(fits).count()
}

impl Account {
    /// Reads a step with its body; a large one is read again, under a permit.
    pub async fn get_step(&self, guid: StepId) -> Result<Step> {
        let expected = self.expected_translations();
        let step = match find_small(self.reader(), expected, &self.id, guid).await {
            Err(StoreError::NeedsLargeReadPermit(bytes)) => {
                self.get_large_step(guid, bytes).await?
            }
            found => found?.map(|(step, _)| step),
        };
        step.ok_or_else(|| Error::step_not_found(guid, "guid"))
    }

    /// A page of a task's steps in order, each with the cursor after it. A page has about
    /// [`PAGE_BYTES`], but at least one step.
    ///
    /// The first statement is sent again if it finds translations that were not expected. A page
    /// whose steps are not all small is then read once more, under a permit. For an empty page
    /// the primary is asked whether the task exists.
    pub async fn list_steps(
        &self,
        task: TaskId,
        bodies: bool,
        after: Option<StepCursor>,
        size: PageSize,
    ) -> Result<Page<(Step, StepCursor)>> {
        let limit = size.get() as usize;
        let epoch = after.as_ref().map(|cursor| cursor.epoch);
        let expected = self.expected_translations();
        let mut page = StepPageRequest {
            task,
            bodies,
            translations: expected.of(&self.id),
            after,
            size: i64::from(size.get()),
        };
        let mut listed = self.read_listed_rows(&page).await?;
        let translated = listed.iter().any(|row| row.translated);
        if !listed.is_empty() {
            expected.note(&self.id, translated);
        }
        if translated && !page.translations {
            page.translations = true;
            listed = self.read_listed_rows(&page).await?;
        }
        let max_small_bytes = page.max_small_step_bytes();
        let found = listed.len();
        listed.truncate(count_fitting(&listed, limit));
        let largest = listed.iter().map(|row| row.bytes).max().unwrap_or_default();
        let bytes = listed.iter().map(|row| row.bytes).sum::<i64>();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let StepPageRead { found, mut steps } = if largest > LARGE_STEP_BYTES {
            self.read_page_of_large_steps(page, bytes).await?
        } else if largest > max_small_bytes {
            self.read_page(&page, bytes).await?
        } else {
            let steps = read_all(listed.iter(), |row| row.read(&self.id))?;
            StepPageRead { found, steps }
        };
        steps.truncate(limit);
        let current = match steps.first() {
            Some((_, cursor)) => cursor.epoch,
            None => self.order_epoch(task).await?,
        };
        if epoch.is_some_and(|epoch| epoch != current) {
            return Err(Error::invalid(
                &Path::root("page_token"),
                Reason::PageTokenInvalid,
                "the steps have been renumbered since; start again from the first page",
            ));
        }
        let more = found > steps.len();
        Ok(Page { items: steps, more })
    }

    /// The rows of a page and of the step after it. A step that is not small comes without large
    /// columns; then the page has to be read in another way.
    async fn read_listed_rows(&self, page: &StepPageRequest) -> Result<Vec<ListedRow>, StoreError> {
        let db = self.reader();
        let selected = StepColumns {
            bodies: page.bodies,
            max_bytes: Some(page.max_small_step_bytes()),
            translations: page.translations,
            ..StepColumns::ALL
        };
        let (columns, bytes) = (selected.columns(backend(db)), selected.size_sql());
        let (condition, values) = page.condition();
        let sql = format!(
            "SELECT {bytes}, (SELECT t.order_epoch FROM tasks t \
                              WHERE t.account_id = $1 AND t.guid = $2), \
                    {TRANSLATED}, {columns} \
             FROM steps s WHERE {condition} ORDER BY s.position, s.fraction LIMIT $3"
        );
        let statement = statement(backend(db), &self.id, sql, values);
        let rows = db.query_all_raw(statement).await?;
        read_all(rows.into_iter(), ListedRow::new)
    }

    /// The task's order epoch, or [`Error::TaskNotFound`].
    pub(in crate::store) async fn order_epoch(&self, task: TaskId) -> Result<i64> {
        let epoch: Option<i64> = self
            .select::<task::Entity>()
            .select_only()
            .column(task::Column::OrderEpoch)
            .filter(task::Column::Guid.eq(task.0))
            .into_tuple()
            .one(self.reader())
            .await
            .map_err(StoreError::from)?;
        epoch.ok_or_else(|| Error::task_not_found(task, "task"))
    }
}
