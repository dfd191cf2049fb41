//! Reads tasks. What is returned comes from one statement, so it is one state of the database;
//! large tasks are read a second time, under a permit.

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Value};
use uuid::Uuid;

use super::cached_sql::CachedSql;
use crate::{
    domain::{
        Error, Result,
        ids::{AccountId, StepId, TaskId},
        order::Numbering,
        page::{PAGE_BYTES, Page, PageSize},
        row_version::RowVersion,
        size::STEP_ID_BYTES,
        task::{IndexState, ManagedBy, Published, Task, TaskContent, TaskFilter},
        text::Name,
        time::Timestamp,
    },
    store::{
        Account, backend,
        error::StoreError,
        json_columns::{self, json_functions},
        row_reader::RowReader,
        statement,
    },
};

/// The number of the contract's `TASK_TYPE_LINKED`, stored in `kind`.
pub const KIND_LINKED: i32 = 1;

/// Tasks that have more bytes together are large: they are read under a permit.
const LARGE_TASK_BYTES: usize = 1024 * 1024;

/// Whether a statement reads large dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskTexts {
    /// No: [`read_tasks`] then fails with [`StoreError::NeedsLargeReadPermit`].
    Small,
    /// Yes, under a permit.
    All,
}

/// The bytes by which tasks are large, and the columns of a task `t` in the order in which
/// [`read_task`] takes them, without the list of steps and the translations, which follow.
fn own_columns(texts: TaskTexts, aggregate: &str) -> String {
    let bytes = format!("{aggregate}(t.size) OVER ()");
    let dependencies = match texts {
        TaskTexts::All => "t.dependencies".to_owned(),
        TaskTexts::Small => {
            format!("CASE WHEN {bytes} <= {LARGE_TASK_BYTES} THEN t.dependencies END")
        }
    };
    let columns = columns_of_task(&dependencies);
    format!("CAST({bytes} AS bigint), {columns}")
}

fn columns_of_task(dependencies: &str) -> String {
    format!(
        "t.guid, t.name, t.product_id, t.kind, t.published, t.roles, {dependencies}, \
         t.external_id, t.parent_guid, t.idx, t.order_epoch, t.last_position, t.version, t.dirty_record, \
         t.mvn_indexed, t.mvn_version, t.mvn_info, t.mvn_ts, t.created_ts, t.modified_ts"
    )
}

/// A column without a value.
const NULL_COLUMN: &str = "CAST(NULL AS text)";

/// A task that is not large and has no translations, as most are. Without the subquery for translations
/// PostgreSQL takes less time ([`ExpectedTranslations`](super::ExpectedTranslations)).
static UNTRANSLATED_TASK: CachedSql = CachedSql::new(|backend| {
    let (columns, step_ids) = (columns_of_task("t.dependencies"), step_ids_sql(backend));
    format!(
        "SELECT t.size, {columns}, {step_ids} AS step_guids, {NULL_COLUMN} AS translations \
         FROM tasks t WHERE t.account_id = $1 AND t.guid = $2 AND t.language_count = 0 \
         AND t.size <= {LARGE_TASK_BYTES}"
    )
});

/// A task, without its dependencies if it is large.
static SMALL_TASK: CachedSql = CachedSql::new(|backend| {
    let dependencies = format!("CASE WHEN t.size <= {LARGE_TASK_BYTES} THEN t.dependencies END");
    task_sql(backend, &dependencies)
});

/// A task of any size.
static ANY_TASK: CachedSql = CachedSql::new(|backend| task_sql(backend, "t.dependencies"));

fn task_sql(backend: DbBackend, dependencies: &str) -> String {
    let columns = columns_with(
        backend,
        &columns_of_task(dependencies),
        &step_ids_sql(backend),
    );
    format!("SELECT t.size, {columns} FROM tasks t WHERE t.account_id = $1 AND t.guid = $2")
}

/// All columns of tasks `t` for [`read_tasks`]. They are large by the `SUM` or the `MAX` of
/// their bytes.
pub fn columns(backend: DbBackend, texts: TaskTexts, aggregate: &str) -> String {
    columns_with(
        backend,
        &own_columns(texts, aggregate),
        &step_ids_sql(backend),
    )
}

/// The columns of a task `t` for [`read_task`], without its list of steps.
pub fn columns_without_steps(backend: DbBackend) -> String {
    columns_with(backend, &columns_of_task("t.dependencies"), NULL_COLUMN)
}

/// SQL for the ids of the steps of a task `t` in their order, with commas between them.
fn step_ids_sql(backend: DbBackend) -> String {
    let guid = match backend {
        DbBackend::Sqlite => "hex(s.guid)",
        _ => "s.guid::text",
    };
    format!(
        "(SELECT string_agg({guid}, ',' ORDER BY s.position, s.fraction) FROM steps s \
          WHERE s.account_id = $1 AND s.task = t.guid)"
    )
}

fn columns_with(backend: DbBackend, own: &str, step_ids: &str) -> String {
    let (array, aggregate, cast) = json_functions(backend);
    format!(
        "{own}, {step_ids} AS step_guids, \
         CASE WHEN t.language_count > 0 THEN \
           (SELECT {aggregate}({array}(l.language, l.locked, l.name)){cast} FROM task_translations l \
            WHERE l.account_id = $1 AND l.task = t.guid) END AS translations"
    )
}

/// Reads a task with its list of steps. Fails with [`StoreError::NeedsLargeReadPermit`] if it is
/// large and only [`TaskTexts::Small`] may be read.
pub async fn find(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: TaskId,
    texts: TaskTexts,
) -> Result<Option<Task>, StoreError> {
    let sql = match texts {
        TaskTexts::Small => &SMALL_TASK,
        TaskTexts::All => &ANY_TASK,
    };
    find_by(sql, db, account, guid, texts).await
}

async fn find_by(
    sql: &CachedSql,
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: TaskId,
    texts: TaskTexts,
) -> Result<Option<Task>, StoreError> {
    let backend = backend(db);
    let statement = statement(backend, account, sql.of(backend), [Value::from(guid.0)]);
    let row = db.query_one_raw(statement).await?;
    let tasks = read_tasks(row.as_slice(), 0, texts, account)?;
    Ok(tasks.into_iter().next())
}

/// Reads the tasks of rows whose columns of [`columns`] begin at this one. Fails with
/// [`StoreError::NeedsLargeReadPermit`] if they are large and only [`TaskTexts::Small`] may be
/// read.
pub fn read_tasks(
    rows: &[QueryResult],
    column: usize,
    texts: TaskTexts,
    account: &AccountId,
) -> Result<Vec<Task>, StoreError> {
    let mut tasks = Vec::with_capacity(rows.len());
    for row in rows {
        let mut row = RowReader::at(row, column);
        let bytes: i64 = row.take()?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if texts == TaskTexts::Small && bytes > LARGE_TASK_BYTES {
            return Err(StoreError::NeedsLargeReadPermit(bytes));
        }
        tasks.push(read_task(&mut row, account)?);
    }
    Ok(tasks)
}

impl Account {
    /// Reads a task with its list of steps. A large one is read again under a permit.
    pub async fn get_task(&self, guid: TaskId) -> Result<Task> {
        let db = self.reader();
        let (expected, texts) = (self.expected_translations(), TaskTexts::Small);
        if !expected.of(&self.id)
            && let Some(task) = find_by(&UNTRANSLATED_TASK, db, &self.id, guid, texts).await?
        {
            return Ok(task);
        }
        let task = match find(db, &self.id, guid, texts).await {
            Err(StoreError::NeedsLargeReadPermit(bytes)) => {
                let _permit = self.large_read_permit(bytes).await?;
                find(db, &self.id, guid, TaskTexts::All).await?
            }
            task => task?,
        };
        let task = task.ok_or_else(|| Error::task_not_found(guid, "guid"))?;
        expected.note(&self.id, !task.content.translations.is_empty());
        Ok(task)
    }

    /// A page of the account's tasks in the order of their ids, which is that of creation.
    /// A page has about [`PAGE_BYTES`], but at least one task. A large page is read again under
    /// a permit.
    pub async fn list_tasks(
        &self,
        filter: TaskFilter,
        after: Option<TaskId>,
        size: PageSize,
    ) -> Result<Page<Task>> {
        let texts = TaskTexts::Small;
        match self.list_tasks_of(&filter, after, size, texts).await {
            Err(StoreError::NeedsLargeReadPermit(bytes)) => {
                let _permit = self.large_read_permit(bytes).await?;
                let page = self.list_tasks_of(&filter, after, size, TaskTexts::All);
                Ok(page.await?)
            }
            page => Ok(page?),
        }
    }

    /// The ids of at most so many tasks, in the same order.
    pub async fn list_task_ids(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<TaskId>> {
        let db = self.reader();
        let mut values = vec![
            Value::from(after.map_or(Uuid::nil(), |task| task.0)),
            Value::from(i64::from(limit)),
        ];
        let conditions = conditions(filter, &mut values);
        let sql = format!(
            "SELECT guid FROM tasks WHERE account_id = $1 AND guid > $2{conditions} \
             ORDER BY guid LIMIT $3"
        );
        let statement = statement(backend(db), &self.id, sql, values);
        let rows = db
            .query_all_raw(statement)
            .await
            .map_err(StoreError::from)?;
        let ids = rows
            .iter()
            .map(|row| RowReader::new(row).take().map(TaskId));
        let ids: Result<_, _> = ids.collect();
        Ok(ids.map_err(StoreError::from)?)
    }

    async fn list_tasks_of(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        size: PageSize,
        texts: TaskTexts,
    ) -> Result<Page<Task>, StoreError> {
        let db = self.reader();
        let mut values = vec![
            Value::from(after.map_or(Uuid::nil(), |task| task.0)),
            Value::from(i64::from(size.get()) + 1),
        ];
        let conditions = conditions(filter, &mut values);
        // A page has a bounded number of bytes, but for one task.
        let columns = columns(backend(db), texts, "MAX");
        // The innermost query finds the page, the next one sums the bytes before each
        // task, and the outer one reads the tasks that fit.
        let sql = format!(
            "SELECT p.found, {columns} FROM ( \
               SELECT guid, CAST(SUM(bytes) OVER (ORDER BY guid) - bytes AS bigint) AS before, \
                      ROW_NUMBER() OVER (ORDER BY guid) AS number, COUNT(*) OVER () AS found \
               FROM (SELECT guid, size + step_count * {STEP_ID_BYTES} AS bytes FROM tasks \
                     WHERE account_id = $1 AND guid > $2{conditions} \
                     ORDER BY guid LIMIT $3) f \
             ) p JOIN tasks t ON t.account_id = $1 AND t.guid = p.guid \
             WHERE p.before < {PAGE_BYTES} AND p.number < $3 ORDER BY t.guid"
        );
        let statement = statement(backend(db), &self.id, sql, values);
        let rows = db.query_all_raw(statement).await?;
        let found: i64 = rows
            .first()
            .map_or(Ok(0), |row| RowReader::new(row).take())?;
        let items = read_tasks(&rows, 1, texts, &self.id)?;
        let more = usize::try_from(found).is_ok_and(|found| found > items.len());
        Ok(Page { items, more })
    }
}

/// The filter as SQL conditions. Their values are appended to `values`.
fn conditions(filter: &TaskFilter, values: &mut Vec<Value>) -> String {
    let TaskFilter {
        product,
        published,
        role,
        managed,
        external_id,
        name,
    } = filter;
    let mut sql = String::new();
    let mut add = |condition: &str, value: Value| {
        values.push(value);
        // `$1` is the account.
        let number = values.len() + 1;
        sql.push_str(&condition.replace('?', &format!("${number}")));
    };
    if let Some(product) = product {
        add(" AND product_id = ?", product.get().into());
    }
    if let Some(published) = published {
        add(" AND published = ?", published.get().into());
    }
    if let Some(role) = role {
        add(" AND role_bits & ? <> 0", role.bit().into());
    }
    match managed {
        Some(true) => add(" AND kind = ?", KIND_LINKED.into()),
        Some(false) => add(" AND kind <> ?", KIND_LINKED.into()),
        None => {}
    }
    if let Some(id) = external_id {
        add(" AND external_id = ?", id.as_str().into());
    }
    if let Some(name) = name {
        add(" AND name = ?", name.as_str().into());
    }
    sql
}

/// Reads the columns of a task.
pub fn read_task(row: &mut RowReader<'_>, account: &AccountId) -> Result<Task, StoreError> {
    let guid = TaskId(row.take()?);
    let name = json_columns::valid(Name::parse(row.take()?), "name")?;
    let product = json_columns::product(row.take()?)?;
    let kind: i32 = row.take()?;
    let published = Published::new(row.take()?).ok_or(StoreError::Corrupt("published"))?;
    let roles = json_columns::read_roles(row.take()?)?;
    let dependencies = json_columns::optional(row.take()?, "dependencies")?;
    let external_id = json_columns::external_id(row.take()?)?;
    let parent: Option<Uuid> = row.take()?;
    let idx = row.take()?;
    let numbering = Numbering {
        epoch: row.take()?,
        last_position: row.take()?,
    };
    let (version, dirty) = (row.take()?, row.take()?);
    let index = IndexState {
        indexed: row.take()?,
        version: row.take()?,
        info: row.take()?,
        at: row.take::<Option<i64>>()?.map(Timestamp),
    };
    let row_version = RowVersion {
        version,
        dirty,
        created: Timestamp(row.take()?),
        modified: Timestamp(row.take()?),
    };
    let steps = json_columns::read_guids(row.take()?)?;
    let managed = parent.filter(|_| kind == KIND_LINKED);
    Ok(Task {
        guid,
        account: account.clone(),
        name,
        product,
        content: TaskContent {
            dependencies,
            published,
            roles,
            external_id,
            translations: json_columns::read_task_translations(row.take()?)?,
        },
        managed: managed.map(|parent| ManagedBy {
            parent: TaskId(parent),
            idx,
        }),
        steps: steps.into_iter().map(StepId).collect(),
        numbering,
        index,
        row_version,
    })
}
