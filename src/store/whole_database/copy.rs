//! Copies a database into an empty one, of the same kind or of the other.

use std::mem;

use futures_util::TryStreamExt;
use sea_orm::{
    ColumnType, ConnectionTrait, DbBackend, DbErr, QueryResult, Statement, Value,
    sea_query::{Alias, Expr, Query},
};
use tracing::info;
use uuid::Uuid;

use super::{WholeDatabaseError, open};
use crate::{
    config::DatabaseUrl,
    store::{
        backend,
        connection::{self, Database, DatabaseConnections, Transaction, TransactionMode},
        schema::{self, entity::TableColumns},
    },
};

/// Rows of a batch, which is one transaction.
const BATCH_ROWS: usize = 500;
/// A batch ends with the row that reaches this size.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// What was copied.
pub struct CopiedTable {
    /// The name of the table.
    pub name: &'static str,
    /// How many rows it has.
    pub rows: u64,
}

/// Copies all rows of one state of a database, keys of servers included, into one without data,
/// and counts them there. The schema of the second one is made if it is missing. Nobody else may
/// write to it.
pub async fn copy(
    from: &DatabaseUrl,
    to: &DatabaseUrl,
    migrate: bool,
) -> Result<Vec<CopiedTable>, WholeDatabaseError> {
    let source = open(from, false)
        .await
        .map_err(WholeDatabaseError::Source)?;
    if source.is_distributed {
        source.close().await;
        return Err(WholeDatabaseError::DistributedSource);
    }
    let copied = match open(to, migrate).await {
        Ok(target) => {
            let copied = copy_tables(&source, &target).await;
            target.close().await;
            copied
        }
        Err(error) => Err(error.into()),
    };
    source.close().await;
    copied
}

async fn copy_tables(
    source: &DatabaseConnections,
    target: &DatabaseConnections,
) -> Result<Vec<CopiedTable>, WholeDatabaseError> {
    let mut tables = schema::columns();
    // The keys of servers come last, and replace the mark of an unfinished copy.
    tables.sort_by_key(|table| !table.is_of_accounts);
    for table in tables.iter().filter(|table| table.is_of_accounts) {
        if count(&target.writer, table.name).await? > 0 {
            return Err(WholeDatabaseError::NotEmpty(table.name));
        }
    }
    let mut snapshot = source.reader.begin(TransactionMode::Snapshot).await?;
    if backend(&snapshot) == DbBackend::Postgres {
        // PostgreSQL waits while a batch is written.
        let without_limits = "SET LOCAL idle_in_transaction_session_timeout = 0; \
                              SET LOCAL statement_timeout = 0";
        snapshot.execute_unprepared(without_limits).await?;
    }
    connection::mark_unfinished_copy(&target.writer).await?;
    let mut copied = Vec::new();
    for table in &tables {
        if !table.is_of_accounts && backend(&target.writer) == DbBackend::Postgres {
            advance_sequences(&target.writer, &copied).await?;
        }
        let rows = copy_table(&mut snapshot, &target.writer, table).await?;
        let found = count(&target.writer, table.name).await?;
        if found != rows {
            return Err(WholeDatabaseError::OtherCount {
                table: table.name,
                expected: rows,
                found,
            });
        }
        let name = table.name;
        info!(table = name, rows, "copied");
        copied.push(CopiedTable { name, rows });
    }
    Ok(copied)
}

/// The sequences of PostgreSQL that give columns their defaults, each with its table and column.
const SEQUENCES: &str = "SELECT s.relname::text, t.relname::text, a.attname::text FROM pg_depend d \
    JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S' \
    JOIN pg_attrdef f ON f.oid = d.objid AND d.classid = 'pg_attrdef'::regclass \
    JOIN pg_class t ON t.oid = f.adrelid \
    JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum \
    WHERE t.relnamespace = current_schema()::regnamespace";

/// Has each sequence go on behind the values that were copied.
async fn advance_sequences(target: &Database, copied: &[CopiedTable]) -> Result<(), DbErr> {
    let sequences = Statement::from_string(DbBackend::Postgres, SEQUENCES);
    for row in target.query_all_raw(sequences).await? {
        let sequence: String = row.try_get_by_index(0)?;
        let table: String = row.try_get_by_index(1)?;
        let column: String = row.try_get_by_index(2)?;
        if copied.iter().any(|it| it.name == table && it.rows > 0) {
            let set = format!("SELECT setval('{sequence}', max({column})) FROM {table}");
            target
                .query_one_raw(Statement::from_string(DbBackend::Postgres, set))
                .await?;
        }
    }
    Ok(())
}

/// Copies a table, and returns how many rows it has.
async fn copy_table(
    snapshot: &mut Transaction,
    target: &Database,
    table: &TableColumns,
) -> Result<u64, WholeDatabaseError> {
    let select = Statement::from_string(backend(snapshot), select_sql(table));
    let mut rows = snapshot.rows(select)?;
    let (mut count, mut batch, mut batch_bytes) = (0, Vec::new(), 0);
    while let Some(row) = rows.try_next().await? {
        let row = cells(&row, table)?;
        count += 1;
        batch_bytes += row.iter().map(bytes).sum::<usize>();
        batch.push(row);
        if batch.len() >= BATCH_ROWS || batch_bytes >= BATCH_BYTES {
            write_batch(target, table, mem::take(&mut batch)).await?;
            batch_bytes = 0;
        }
    }
    write_batch(target, table, batch).await?;
    Ok(count)
}

/// Selects all rows. Where rows refer to others of the table, these come first: a row has one
/// more row above it than the one that it refers to. This statement looks across accounts.
fn select_sql(table: &TableColumns) -> String {
    let name = table.name;
    let names: Vec<&str> = table.columns.iter().map(|(column, _)| *column).collect();
    let order = schema::own_reference(name).map(|column| {
        format!(
            " ORDER BY (WITH RECURSIVE above (account_id, guid) AS (\
             SELECT {name}.account_id, {name}.{column} UNION SELECT other.account_id, other.{column} \
             FROM {name} AS other JOIN above ON other.account_id = above.account_id \
             AND other.guid = above.guid) SELECT count(*) FROM above)"
        )
    });
    format!(
        "SELECT {} FROM {name}{}",
        names.join(", "),
        order.unwrap_or_default()
    )
}

/// Writes rows in a transaction. The keys of servers replace those that the new database was made
/// with.
async fn write_batch(
    target: &Database,
    table: &TableColumns,
    rows: Vec<Vec<Value>>,
) -> Result<(), DbErr> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut insert = Query::insert();
    insert
        .into_table(Alias::new(table.name))
        .columns(table.columns.iter().map(|(column, _)| Alias::new(*column)));
    for row in rows {
        let row = insert.values(row.into_iter().map(Expr::value));
        row.map_err(|error| DbErr::Custom(error.to_string()))?;
    }
    let transaction = target.begin(TransactionMode::Write).await?;
    if !table.is_of_accounts {
        let delete = format!("DELETE FROM {}", table.name);
        transaction.execute_unprepared(&delete).await?;
    }
    transaction.execute(&insert).await?;
    transaction.commit().await
}

fn bytes(value: &Value) -> usize {
    match value {
        Value::String(Some(text)) => text.len(),
        Value::Bytes(Some(bytes)) => bytes.len(),
        _ => size_of::<Value>(),
    }
}

/// The values of a row, each of the type that its column has in both databases.
fn cells(row: &QueryResult, table: &TableColumns) -> Result<Vec<Value>, DbErr> {
    let columns = table.columns.iter().enumerate();
    let cells = columns.map(|(index, (name, column_type))| {
        Ok(match column_type {
            ColumnType::BigInteger => row.try_get_by_index::<Option<i64>>(index)?.into(),
            ColumnType::SmallInteger => row.try_get_by_index::<Option<i16>>(index)?.into(),
            ColumnType::Integer => row.try_get_by_index::<Option<i32>>(index)?.into(),
            ColumnType::Boolean => row.try_get_by_index::<Option<bool>>(index)?.into(),
            ColumnType::Uuid => row.try_get_by_index::<Option<Uuid>>(index)?.into(),
            ColumnType::String(_) | ColumnType::Text => {
                row.try_get_by_index::<Option<String>>(index)?.into()
            }
            ColumnType::VarBinary(_) | ColumnType::Binary(_) | ColumnType::Blob => {
                row.try_get_by_index::<Option<Vec<u8>>>(index)?.into()
            }
            _ => return Err(DbErr::Type(format!("{}.{name}", table.name))),
        })
    });
    cells.collect()
}

async fn count(db: &Database, table: &str) -> Result<u64, DbErr> {
    let sql = format!("SELECT count(*) FROM {table}");
    let row = db.query_one_raw(Statement::from_string(backend(db), sql));
    let count: i64 = row.await?.map_or(Ok(0), |row| row.try_get_by_index(0))?;
    Ok(count.unsigned_abs())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use super::*;
    use crate::store::Account;

    #[tokio::test]
    async fn every_column_of_every_table_is_copied() {
        let account = Account::for_tests().await;
        let db = account.writer();
        for (table, described) in schema::tables().zip(schema::columns()) {
            let pragma = format!("SELECT name FROM pragma_table_info('{}')", table.name);
            let rows = db.query_all_raw(Statement::from_string(backend(db), pragma));
            let rows = rows.await.expect("the columns");
            let stored = rows.iter().map(|row| row.try_get_by_index(0));
            let mut stored: Vec<String> = stored.collect::<Result<_, _>>().expect("names");
            let mut copied: Vec<String> = described
                .columns
                .iter()
                .map(|(name, _)| (*name).to_owned())
                .collect();
            stored.sort();
            copied.sort();
            assert_eq!((described.name, copied), (table.name, stored));
            let of_type = db.query_one_raw(Statement::from_string(
                backend(db),
                format!(
                    "SELECT {} FROM (SELECT 1) LEFT JOIN {} ON false",
                    select_list(&described),
                    table.name
                ),
            ));
            let row = of_type.await.expect("a row").expect("a row of NULL");
            cells(&row, &described).expect("a type that can be copied");
        }
    }

    fn select_list(table: &TableColumns) -> String {
        let names: Vec<&str> = table.columns.iter().map(|(column, _)| *column).collect();
        names.join(", ")
    }
}
