//! The accounts of a database, and the deletion of one.

use sea_orm::{ConnectionTrait, Statement};

use super::{WholeDatabaseError, open};
use crate::{
    config::DatabaseUrl,
    domain::{account::AccountSummary, ids::AccountId, time::Timestamp},
    store::{
        backend,
        connection::Database,
        row_reader::RowReader,
        schema::{self, entity::TableColumns},
        statement,
    },
};

/// Rows that one transaction deletes.
const DELETED_ROWS: usize = 500;

/// All accounts that have rows in the database, by id.
pub async fn accounts(database: &DatabaseUrl) -> Result<Vec<AccountSummary>, WholeDatabaseError> {
    let connections = open(database, false).await?;
    let accounts = list(&connections.reader).await;
    connections.close().await;
    accounts
}

async fn list(db: &Database) -> Result<Vec<AccountSummary>, WholeDatabaseError> {
    let statement = Statement::from_string(backend(db), list_sql());
    let rows = db.query_all_raw(statement).await?;
    let summaries = rows.iter().map(|row| {
        let mut row = RowReader::new(row);
        Ok(AccountSummary {
            account: row.take()?,
            tasks: row.take()?,
            steps: row.take()?,
            bytes: row.take()?,
            last_change: row.take::<Option<i64>>()?.map(Timestamp),
        })
    });
    summaries.collect()
}

/// A row for each account: tasks, steps, bytes of both and of revisions, and the last change. This
/// statement looks across accounts.
fn list_sql() -> String {
    let tables = schema::tables().filter(|table| table.is_of_accounts);
    let parts = tables.map(|table| {
        let columns = match table.name {
            "tasks" => ["count(*)", "0", "sum(size)", "max(modified_ts)"],
            "steps" => ["0", "count(*)", "sum(size + body_size)", "max(modified_ts)"],
            "task_revisions" => ["0", "0", "sum(size)", "max(created_ts)"],
            "task_histories" => ["0", "0", "0", "max(deleted_ts)"],
            _ => ["0", "0", "0", "CAST(NULL AS bigint)"],
        };
        let [tasks, steps, bytes, ts] = columns;
        let name = table.name;
        // Citus loses names that are given to the columns of the union.
        format!(
            "SELECT account_id, {tasks} AS tasks, {steps} AS steps, {bytes} AS bytes, {ts} AS ts \
             FROM {name} GROUP BY account_id"
        )
    });
    let parts: Vec<String> = parts.collect();
    format!(
        "WITH parts AS ({}) SELECT account_id, CAST(sum(tasks) AS bigint), \
         CAST(sum(steps) AS bigint), CAST(sum(bytes) AS bigint), max(ts) \
         FROM parts GROUP BY account_id ORDER BY account_id",
        parts.join(" UNION ALL ")
    )
}

/// Deletes all rows of an account, in transactions of some hundred rows, and returns how many. It
/// can be repeated after a failure.
pub async fn delete_account(
    database: &DatabaseUrl,
    account: &AccountId,
) -> Result<u64, WholeDatabaseError> {
    let connections = open(database, false).await?;
    let deleted = delete_rows(&connections.writer, account).await;
    connections.close().await;
    deleted
}

async fn delete_rows(db: &Database, account: &AccountId) -> Result<u64, WholeDatabaseError> {
    let mut tables = schema::columns();
    tables.retain(|table| table.is_of_accounts);
    let mut deleted = 0;
    // A table refers to those before it.
    for table in tables.iter().rev() {
        loop {
            let delete = statement(backend(db), account, delete_sql(table), []);
            match db.execute_raw(delete).await?.rows_affected() {
                0 => break,
                rows => deleted += rows,
            }
        }
    }
    Ok(deleted)
}

/// Deletes some rows of the account. Of rows that refer to others of the table, these come later.
fn delete_sql(table: &TableColumns) -> String {
    let name = table.name;
    let keys = table.keys.iter().filter(|key| **key != "account_id");
    let keys: Vec<&str> = keys.copied().collect();
    if keys.is_empty() {
        return format!("DELETE FROM {name} WHERE account_id = $1");
    }
    let keys = keys.join(", ");
    let unreferenced = schema::own_reference(name).map(|column| {
        format!(
            " AND NOT EXISTS (SELECT 1 FROM {name} AS other WHERE other.account_id = $1 \
             AND other.{column} = {name}.guid)"
        )
    });
    format!(
        "DELETE FROM {name} WHERE account_id = $1 AND ({keys}) IN (SELECT {keys} FROM {name} \
         WHERE account_id = $1{} LIMIT {DELETED_ROWS})",
        unreferenced.unwrap_or_default()
    )
}
