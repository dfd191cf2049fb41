//! Reading tasks. One statement each, so that what a caller sees is one state.

use sea_orm::{DbBackend, FromQueryResult, Value};

use super::{
    Account, backend,
    entity::task::Model,
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
#[derive(FromQueryResult)]
pub(super) struct TaskRow {
    #[sea_orm(nested)]
    task: Model,
    step_guids: Option<String>,
    translations: Option<String>,
}

#[derive(FromQueryResult)]
struct ListedRow {
    #[sea_orm(nested)]
    row: TaskRow,
    found: i64,
}

/// What is selected of a task `t`.
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
        "t.*, \
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
        row.ok_or(Error::TaskNotFound(guid))?.read()
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
        Ok(row.ok_or(Error::TaskNotFound(guid))?.read()?)
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
            Value::from(after.map_or(uuid::Uuid::nil(), |task| task.0)),
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
            .map(|listed| listed.row.read())
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
    /// The numbering of the task's steps.
    pub fn order_epoch(&self) -> i64 {
        self.task.order_epoch
    }

    /// The task.
    pub fn read(self) -> Result<Task, Fault> {
        let Self {
            task,
            step_guids,
            translations,
        } = self;
        let managed = match (task.kind, task.parent_guid) {
            (LINKED, Some(parent)) => Some(Managed {
                parent: TaskId(parent),
                idx: task.idx,
            }),
            _ => None,
        };
        let guids = row::read_guids(step_guids.as_deref())?;
        Ok(Task {
            guid: TaskId(task.guid),
            account: AccountId::parse(&task.account_id).ok_or(Fault::Corrupt("account_id"))?,
            name: row::text(Name::parse(task.name), "name")?,
            product: row::product(task.product_id)?,
            dependencies: row::read_dependencies(task.dependencies)?,
            published: Published::new(task.published).ok_or(Fault::Corrupt("published"))?,
            roles: row::read_roles(&task.roles)?,
            translations: row::read_task_translations(translations)?,
            managed,
            steps: guids.into_iter().map(StepId).collect(),
            version: task.version,
            dirty: task.dirty_record,
            index: IndexState {
                indexed: task.mvn_indexed,
                version: task.mvn_version,
                info: task.mvn_info,
                at: task.mvn_ts.map(Timestamp),
            },
            created: Timestamp(task.created_ts),
            modified: Timestamp(task.modified_ts),
        })
    }
}
