//! Reading tasks. One statement each, so that what a caller sees is one state.

use sea_orm::{DbBackend, DbErr, FromQueryResult, QueryResult, Value};
use uuid::Uuid;

use super::{
    Account, backend,
    cells::Cells,
    fault::Fault,
    row,
    transaction::{Tx, statement},
};
use crate::domain::{
    Error, Result,
    ids::{AccountId, StepId, TaskId},
    page::{PAGE_BYTES, Page, PageSize},
    task::{IndexState, Managed, Published, Task, TaskFilter},
    text::Name,
    time::Timestamp,
};

/// Bytes that a step adds to its task on the wire.
pub(super) const STEP_GUID_BYTES: i64 = 38;
/// The contract's number of a managed task's type.
pub(super) const LINKED: i32 = 1;

/// A task with its list of steps and its translations.
pub(super) struct TaskRow {
    guid: Uuid,
    name: String,
    product: i64,
    kind: i32,
    published: i32,
    roles: String,
    dependencies: Option<String>,
    parent: Option<Uuid>,
    idx: i32,
    epoch: i64,
    last_position: i64,
    version: i64,
    dirty: bool,
    indexed: bool,
    index_version: i64,
    index_info: String,
    index_at: Option<i64>,
    created: i64,
    modified: i64,
    step_guids: Option<String>,
    translations: Option<String>,
}

/// The columns that [`TaskRow`] begins with, in the order of its fields.
const COLUMNS: &str = "t.guid, t.name, t.product_id, t.kind, t.published, t.roles, \
     t.dependencies, t.parent_guid, t.idx, t.order_epoch, t.last_position, t.version, t.dirty_record, \
     t.mvn_indexed, t.mvn_version, t.mvn_info, t.mvn_ts, t.created_ts, t.modified_ts";

/// How a task's steps are numbered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbering {
    /// Grows with each new numbering.
    pub epoch: i64,
    /// The number behind which no step stands.
    pub last_position: i64,
}

impl TaskRow {
    fn take(cells: &mut Cells<'_>) -> Result<Self, DbErr> {
        Ok(Self {
            guid: cells.take()?,
            name: cells.take()?,
            product: cells.take()?,
            kind: cells.take()?,
            published: cells.take()?,
            roles: cells.take()?,
            dependencies: cells.take()?,
            parent: cells.take()?,
            idx: cells.take()?,
            epoch: cells.take()?,
            last_position: cells.take()?,
            version: cells.take()?,
            dirty: cells.take()?,
            indexed: cells.take()?,
            index_version: cells.take()?,
            index_info: cells.take()?,
            index_at: cells.take()?,
            created: cells.take()?,
            modified: cells.take()?,
            step_guids: cells.take()?,
            translations: cells.take()?,
        })
    }
}

impl FromQueryResult for TaskRow {
    fn from_query_result(row: &QueryResult, _: &str) -> Result<Self, DbErr> {
        Self::take(&mut Cells::of(row))
    }
}

struct ListedRow {
    row: TaskRow,
    found: i64,
}

impl FromQueryResult for ListedRow {
    fn from_query_result(row: &QueryResult, _: &str) -> Result<Self, DbErr> {
        let mut cells = Cells::of(row);
        Ok(Self {
            row: TaskRow::take(&mut cells)?,
            found: cells.take()?,
        })
    }
}

/// What is selected of a task `t` for a [`TaskRow`].
pub(super) fn columns(backend: DbBackend) -> String {
    let (guid, rows) = match backend {
        DbBackend::Sqlite => (
            "hex(s.guid)",
            "json_group_array(json_array(l.language, l.locked, l.name))",
        ),
        _ => (
            "s.guid::text",
            "json_agg(json_build_array(l.language, l.locked, l.name))::text",
        ),
    };
    format!(
        "{COLUMNS}, \
         (SELECT string_agg({guid}, ',' ORDER BY s.position, s.fraction) FROM steps s \
          WHERE s.account_id = t.account_id AND s.task = t.guid) AS step_guids, \
         (SELECT {rows} FROM task_translations l \
          WHERE l.account_id = t.account_id AND l.task = t.guid) AS translations"
    )
}

fn get(backend: DbBackend, account: &AccountId, guid: TaskId) -> sea_orm::Statement {
    let columns = columns(backend);
    let sql = format!("SELECT {columns} FROM tasks t WHERE t.account_id = $1 AND t.guid = $2");
    statement(backend, account, sql, [Value::from(guid.0)])
}

impl Tx {
    /// A task as it is now; the caller holds its lock.
    pub async fn read_task(&self, guid: TaskId) -> Result<Task, Fault> {
        let statement = get(backend(&self.db), &self.account, guid);
        let row = TaskRow::find_by_statement(statement).one(&self.db).await?;
        row.ok_or(Error::TaskNotFound(guid))?.read(&self.account)
    }
}

impl Account {
    /// A task with its list of steps.
    pub async fn get_task(&self, guid: TaskId) -> Result<Task> {
        let db = self.reader();
        let row = TaskRow::find_by_statement(get(backend(db), &self.id, guid))
            .one(db)
            .await
            .map_err(Fault::from)?;
        Ok(row.ok_or(Error::TaskNotFound(guid))?.read(&self.id)?)
    }

    /// The account's tasks in the order of their creation, which is that of
    /// their ids. A page holds about [`PAGE_BYTES`], or one task.
    pub async fn list_tasks(
        &self,
        filter: TaskFilter,
        after: Option<TaskId>,
        size: PageSize,
    ) -> Result<Page<Task>> {
        let db = &self.lagging();
        let limit = size.get() as usize;
        let mut values = vec![
            Value::from(after.map_or(Uuid::nil(), |task| task.0)),
            Value::from(i64::from(size.get()) + 1),
        ];
        let conditions = conditions(&filter, &mut values);
        let columns = columns(backend(db));
        // The innermost query finds the page; around it, the bytes before each
        // task are counted; and only what fits is read whole.
        let sql = format!(
            "SELECT {columns}, p.found FROM ( \
               SELECT guid, CAST(SUM(bytes) OVER (ORDER BY guid) - bytes AS bigint) AS before, \
                      COUNT(*) OVER () AS found \
               FROM (SELECT guid, size + step_count * {STEP_GUID_BYTES} AS bytes FROM tasks \
                     WHERE account_id = $1 AND guid > $2{conditions} \
                     ORDER BY guid LIMIT $3) f \
             ) p JOIN tasks t ON t.account_id = $1 AND t.guid = p.guid \
             WHERE p.before < {PAGE_BYTES} ORDER BY t.guid"
        );
        let rows = ListedRow::find_by_statement(statement(backend(db), &self.id, sql, values))
            .all(db)
            .await
            .map_err(Fault::from)?;
        let found = rows.first().map_or(0, |row| row.found);
        let items: Vec<Task> = rows
            .into_iter()
            .take(limit)
            .map(|listed| listed.row.read(&self.id))
            .collect::<Result<_, Fault>>()?;
        let more = usize::try_from(found).is_ok_and(|found| found > items.len());
        Ok(Page { items, more })
    }
}

/// The filters as conditions, their values appended.
fn conditions(filter: &TaskFilter, values: &mut Vec<Value>) -> String {
    let TaskFilter {
        product,
        published,
        role,
        managed,
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
        Some(true) => add(" AND kind = ?", LINKED.into()),
        Some(false) => add(" AND kind <> ?", LINKED.into()),
        None => {}
    }
    sql
}

impl TaskRow {
    /// What the row says of the order of the task's steps.
    pub fn numbering(&self) -> Numbering {
        Numbering {
            epoch: self.epoch,
            last_position: self.last_position,
        }
    }

    /// The task.
    pub fn read(self, account: &AccountId) -> Result<Task, Fault> {
        let Self {
            guid,
            name,
            product,
            kind,
            published,
            roles,
            dependencies,
            parent,
            idx,
            epoch: _,
            last_position: _,
            version,
            dirty,
            indexed,
            index_version,
            index_info,
            index_at,
            created,
            modified,
            step_guids,
            translations,
        } = self;
        let managed = match (kind, parent) {
            (LINKED, Some(parent)) => Some(Managed {
                parent: TaskId(parent),
                idx,
            }),
            _ => None,
        };
        let guids = row::read_guids(step_guids.as_deref())?;
        Ok(Task {
            guid: TaskId(guid),
            account: account.clone(),
            name: row::text(Name::parse(name), "name")?,
            product: row::product(product)?,
            dependencies: row::read_dependencies(dependencies)?,
            published: Published::new(published).ok_or(Fault::Corrupt("published"))?,
            roles: row::read_roles(&roles)?,
            translations: row::read_task_translations(translations)?,
            managed,
            steps: guids.into_iter().map(StepId).collect(),
            version,
            dirty,
            index: IndexState {
                indexed,
                version: index_version,
                info: index_info,
                at: index_at.map(Timestamp),
            },
            created: Timestamp(created),
            modified: Timestamp(modified),
        })
    }
}
