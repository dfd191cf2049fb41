//! Lists the accounts of a database, and deletes one.

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbErr, ExprTrait, Iterable, PrimaryKeyToColumn,
    QueryFilter, QuerySelect, QueryTrait, Select, SqlErr, Statement, sea_query::Expr,
};

use super::{WholeDatabaseError, open};
use crate::{
    config::DatabaseUrl,
    domain::{account::AccountSummary, ids::AccountId, time::Timestamp},
    store::{
        account::Scope,
        entity::{
            AccountEntity, account, change, change_feed, deleted_step, deleted_step_translation,
            index_deletion, name_use, request_outcome, revision_alias, role, step,
            step_translation, task, task_history, task_revision, task_translation,
        },
        schema::{self, SchemaTable},
    },
};

/// The number of rows that one transaction deletes.
const DELETED_ROWS: u64 = 500;

/// All accounts that have rows in the database, by id.
pub async fn accounts(database: &DatabaseUrl) -> Result<Vec<AccountSummary>, WholeDatabaseError> {
    let connections = open(database, false).await?;
    let accounts = list_accounts(&connections.pools.reader).await;
    connections.close().await;
    Ok(accounts?)
}

pub(super) async fn list_accounts(db: &DatabaseConnection) -> Result<Vec<AccountSummary>, DbErr> {
    let statement = Statement::from_string(db.get_database_backend(), list_accounts_sql());
    let rows = db.query_all_raw(statement).await?;
    let summaries = rows.iter().map(|row| {
        let (account, tasks, steps, bytes, last_change) = row.try_get_many_by_index()?;
        let last_change: Option<i64> = last_change;
        Ok(AccountSummary {
            account,
            tasks,
            steps,
            bytes,
            last_change: last_change.map(Timestamp),
        })
    });
    summaries.collect()
}

/// One row per account: the numbers of tasks and steps, the bytes of tasks, steps, deleted steps
/// and revisions, and the time of the last change. It is written in SQL because it is a union over
/// all tables, whose names come from the schema. It reads the rows of all accounts.
fn list_accounts_sql() -> String {
    let tables = schema::tables().filter(|table| table.belongs_to_accounts);
    let parts = tables.map(|SchemaTable { name, .. }| {
        let [tasks, steps, bytes, ts] = match name {
            "tasks" => ["count(*)", "0", "sum(size)", "max(modified_ts)"],
            "steps" => ["0", "count(*)", "sum(size + body_size)", "max(modified_ts)"],
            "deleted_steps" => ["0", "0", "sum(size + body_size)", "max(deleted_ts)"],
            "task_revisions" => ["0", "0", "sum(size)", "max(created_ts)"],
            "task_histories" => ["0", "0", "0", "max(deleted_ts)"],
            _ => ["0", "0", "0", "CAST(NULL AS bigint)"],
        };
        // Name the columns in each part: Citus loses aliases of the union's columns.
        format!(
            "SELECT account_id, {tasks} AS tasks, {steps} AS steps, {bytes} AS bytes, {ts} AS ts \
             FROM {name} GROUP BY account_id"
        )
    });
    format!(
        "WITH parts AS ({}) SELECT account_id, CAST(sum(tasks) AS bigint), \
         CAST(sum(steps) AS bigint), CAST(sum(bytes) AS bigint), max(ts) \
         FROM parts GROUP BY account_id ORDER BY account_id",
        parts.collect::<Vec<_>>().join(" UNION ALL ")
    )
}

/// Deletes all rows of an account, in transactions of at most `DELETED_ROWS` rows, and returns
/// how many it deleted. It can be repeated after a failure.
pub async fn delete_account(
    database: &DatabaseUrl,
    account: &AccountId,
) -> Result<u64, WholeDatabaseError> {
    let connections = open(database, false).await?;
    let db = &connections.pools.writer;
    let deleted = delete_all(Scope { db, account }).await;
    connections.close().await;
    deleted.map_err(|error| match error.sql_err() {
        Some(SqlErr::ForeignKeyConstraintViolation(_)) => WholeDatabaseError::Refused(
            "calls wrote to the account meanwhile, so part of it remains: stop those calls, and \
             repeat the command"
                .to_owned(),
        ),
        _ => error.into(),
    })
}

/// Deletes the account's rows from all tables, each before the tables that it refers to.
async fn delete_all(scope: Scope<'_, DatabaseConnection>) -> Result<u64, DbErr> {
    Ok(delete_table::<index_deletion::Entity>(scope).await?
        + delete_table::<deleted_step_translation::Entity>(scope).await?
        + delete_table::<deleted_step::Entity>(scope).await?
        + delete_table::<change_feed::Entity>(scope).await?
        + delete_table::<change::Entity>(scope).await?
        + delete_table::<revision_alias::Entity>(scope).await?
        + delete_table::<task_revision::Entity>(scope).await?
        + delete_table::<task_history::Entity>(scope).await?
        + delete_table::<name_use::Entity>(scope).await?
        + delete_table::<step_translation::Entity>(scope).await?
        + delete_table::<step::Entity>(scope).await?
        + delete_table::<task_translation::Entity>(scope).await?
        + delete_rows(scope, tasks_without_managed_tasks(scope)).await?
        + delete_table::<request_outcome::Entity>(scope).await?
        + delete_table::<role::Entity>(scope).await?
        + delete_table::<account::Entity>(scope).await?)
}

async fn delete_table<E: AccountEntity>(
    scope: Scope<'_, DatabaseConnection>,
) -> Result<u64, DbErr> {
    delete_rows(scope, scope.find::<E>()).await
}

/// Deletes the selected rows in batches until there are none left.
async fn delete_rows<E: AccountEntity>(
    scope: Scope<'_, DatabaseConnection>,
    rows: Select<E>,
) -> Result<u64, DbErr> {
    let key = || E::PrimaryKey::iter().map(PrimaryKeyToColumn::into_column);
    let some = rows.select_only().columns(key()).limit(DELETED_ROWS);
    let some = Expr::tuple(key().map(Expr::col)).in_subquery(some.into_query());
    let delete = scope.delete::<E>().filter(some);
    let mut deleted = 0;
    loop {
        match delete.clone().exec(scope.db).await?.rows_affected {
            0 => return Ok(deleted),
            rows => deleted += rows,
        }
    }
}

/// Managed tasks refer to the tasks that manage them, so they are deleted first.
fn tasks_without_managed_tasks(scope: Scope<'_, DatabaseConnection>) -> Select<task::Entity> {
    scope.find().filter(Expr::cust_with_values(
        "NOT EXISTS (SELECT 1 FROM tasks managed \
         WHERE managed.account_id = $1 AND managed.parent_guid = tasks.guid)",
        [scope.account.as_str()],
    ))
}
