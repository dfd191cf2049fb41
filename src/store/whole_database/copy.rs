//! Copies a database into an empty one, of the same kind or of the other. A copy spans all accounts,
//! and the command ends after it, so that a cancelled BEGIN harms nobody.
#![allow(clippy::disallowed_methods)]

use std::mem;

use futures_util::TryStreamExt;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseConnection, DatabaseTransaction,
    DbBackend, DbErr, EntityName, EntityTrait, ExprTrait, IntoActiveModel, Iterable, QueryFilter,
    QuerySelect, QueryTrait, Select, Statement, TransactionTrait, Value,
    sea_query::{Alias, Asterisk, Expr, Func, Query},
};
use tracing::info;

use super::{WholeDatabaseError, open};
use crate::{
    config::DatabaseUrl,
    store::{
        account::begin_snapshot,
        connect::{Connections, mark_unfinished_copy},
        entity::{
            account, change, change_feed, index_deletion, name_use, request_outcome,
            revision_alias, role, server_key, step, step_translation, task, task_history,
            task_revision, task_translation,
        },
        schema::{self, CHANGES_SEQUENCE},
    },
};

/// The maximum number of rows of a batch, which is one transaction.
const BATCH_ROWS: usize = 500;
/// A batch ends with the row that reaches this size.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// PostgreSQL waits while a batch is written.
const WITHOUT_TIMEOUTS: &str =
    "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0";

/// What was copied.
pub struct CopiedTable {
    /// The name of the table.
    pub name: &'static str,
    /// The number of its rows.
    pub rows: u64,
}

/// Copies all rows of one state of a database, including keys of servers, into one without data,
/// and counts them there. Creates the schema of the target if it is missing. Nobody else may
/// write to the target.
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
        return Err(WholeDatabaseError::Failed(
            "--from names a database that is distributed over several nodes, which have no common \
             state to copy: move its accounts with `export --all` and `apply`"
                .to_owned(),
        ));
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
    source: &Connections,
    target: &Connections,
) -> Result<Vec<CopiedTable>, WholeDatabaseError> {
    for table in schema::tables().filter(|table| table.is_of_accounts) {
        if count(&target.pools.writer, table.name).await? > 0 {
            let name = table.name;
            return Err(WholeDatabaseError::Failed(format!(
                "the table {name} has rows already: copy into a new database"
            )));
        }
    }
    let snapshot = begin_snapshot(&source.pools.reader).await?;
    if snapshot.get_database_backend() == DbBackend::Postgres {
        snapshot.execute_unprepared(WITHOUT_TIMEOUTS).await?;
    }
    mark_unfinished_copy(&target.pools.writer).await?;
    let copy = Copy {
        source: &snapshot,
        target: &target.pools.writer,
        copied: Vec::new(),
    };
    copy.run().await
}

async fn count(db: &impl ConnectionTrait, table: &'static str) -> Result<u64, DbErr> {
    let count = Query::select()
        .expr(Func::count(Expr::col(Asterisk)))
        .from(Alias::new(table))
        .to_owned();
    let row = db.query_one(&count).await?;
    let count: i64 = row.map_or(Ok(0), |row| row.try_get_by_index(0))?;
    Ok(count.unsigned_abs())
}

/// A copy in progress.
struct Copy<'a> {
    /// One state of the source.
    source: &'a DatabaseTransaction,
    target: &'a DatabaseConnection,
    copied: Vec<CopiedTable>,
}

impl Copy<'_> {
    /// Copies all tables. A table refers only to itself and tables before it.
    async fn run(mut self) -> Result<Vec<CopiedTable>, WholeDatabaseError> {
        self.copy_table::<account::Entity>().await?;
        self.copy_table::<role::Entity>().await?;
        self.copy_table::<request_outcome::Entity>().await?;
        self.copy_tasks().await?;
        self.copy_table::<task_translation::Entity>().await?;
        self.copy_table::<step::Entity>().await?;
        self.copy_table::<step_translation::Entity>().await?;
        self.copy_table::<name_use::Entity>().await?;
        self.copy_table::<task_history::Entity>().await?;
        self.copy_table::<task_revision::Entity>().await?;
        self.copy_table::<revision_alias::Entity>().await?;
        self.copy_table::<change::Entity>().await?;
        self.advance_sequence().await?;
        self.copy_table::<change_feed::Entity>().await?;
        self.copy_table::<index_deletion::Entity>().await?;
        // They replace the mark of an unfinished copy.
        self.replace_server_keys().await?;
        Ok(self.copied)
    }

    async fn copy_table<E>(&mut self) -> Result<(), WholeDatabaseError>
    where
        E: EntityTrait,
        E::Model: IntoActiveModel<E::ActiveModel>,
    {
        self.copy_rows(E::find()).await?;
        self.finish_table(E::default().table_name()).await
    }

    /// Copies managed tasks after the tasks that manage them. It copies one level at a time, and there
    /// are at most [`MAX_NESTED_DOCUMENTS`](crate::domain::nesting::MAX_NESTED_DOCUMENTS).
    async fn copy_tasks(&mut self) -> Result<(), WholeDatabaseError> {
        use task::{Column, Entity};
        let mut level = Entity::find().filter(Column::ParentGuid.is_null());
        while self.copy_rows(level.clone()).await? > 0 {
            let parents = level
                .select_only()
                .columns([Column::AccountId, Column::Guid]);
            let parent = Expr::tuple([Column::AccountId, Column::ParentGuid].map(Expr::col));
            level = Entity::find().filter(parent.in_subquery(parents.into_query()));
        }
        self.finish_table(Entity.table_name()).await
    }

    /// Copies rows in batches, and returns how many.
    async fn copy_rows<E>(&self, rows: Select<E>) -> Result<u64, DbErr>
    where
        E: EntityTrait,
        E::Model: IntoActiveModel<E::ActiveModel>,
    {
        let mut rows = std::pin::pin!(rows.stream(self.source).await?);
        let (mut count, mut batch, mut batch_bytes) = (0, Vec::new(), 0);
        while let Some(row) = rows.try_next().await? {
            let row = row.into_active_model();
            count += 1;
            batch_bytes += bytes(&row);
            batch.push(row);
            if batch.len() >= BATCH_ROWS || batch_bytes >= BATCH_BYTES {
                self.insert::<E>(mem::take(&mut batch)).await?;
                batch_bytes = 0;
            }
        }
        self.insert::<E>(batch).await?;
        Ok(count)
    }

    /// Inserts rows in one transaction, that of the statement.
    async fn insert<E: EntityTrait>(&self, rows: Vec<E::ActiveModel>) -> Result<(), DbErr> {
        let insert = E::insert_many(rows);
        insert.exec_without_returning(self.target).await.map(drop)
    }

    /// Advances PostgreSQL's sequence beyond the copied changes.
    async fn advance_sequence(&self) -> Result<(), DbErr> {
        if self.target.get_database_backend() != DbBackend::Postgres {
            return Ok(());
        }
        // Without changes the sequence stays as it is, as `setval` ignores NULL.
        let advance = format!("SELECT setval('{CHANGES_SEQUENCE}', max(seq)) FROM changes");
        let advance = Statement::from_string(DbBackend::Postgres, advance);
        self.target.query_one_raw(advance).await.map(drop)
    }

    /// Copies the keys of servers in place of those that the target was created with.
    async fn replace_server_keys(&mut self) -> Result<(), WholeDatabaseError> {
        use server_key::Entity;
        let keys = Entity::find().all(self.source).await?;
        let keys = keys.into_iter().map(IntoActiveModel::into_active_model);
        let transaction = self.target.begin().await?;
        Entity::delete_many().exec(&transaction).await?;
        Entity::insert_many(keys)
            .exec_without_returning(&transaction)
            .await?;
        transaction.commit().await?;
        self.finish_table(Entity.table_name()).await
    }

    /// Checks that all rows of a table were copied.
    async fn finish_table(&mut self, name: &'static str) -> Result<(), WholeDatabaseError> {
        let rows = count(self.source, name).await?;
        let found = count(self.target, name).await?;
        if found != rows {
            return Err(WholeDatabaseError::Failed(format!(
                "the table {name} should have {rows} rows after the copy and has {found}: stop all \
                 servers on the new database, and repeat the copy into an empty one"
            )));
        }
        info!(table = name, rows, "copied");
        self.copied.push(CopiedTable { name, rows });
        Ok(())
    }
}

/// The approximate size of a row.
fn bytes<A: ActiveModelTrait>(row: &A) -> usize {
    let columns = <A::Entity as EntityTrait>::Column::iter();
    let values = columns.map(|column| match row.get(column).into_value() {
        Some(Value::String(Some(text))) => text.len(),
        Some(Value::Bytes(Some(bytes))) => bytes.len(),
        _ => size_of::<Value>(),
    });
    values.sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use super::*;

    #[tokio::test]
    async fn every_table_is_copied() {
        let memory = DatabaseUrl::SqliteMemory;
        let copied = copy(&memory, &memory, true).await.expect("a copy");
        let mut copied: Vec<&str> = copied.iter().map(|table| table.name).collect();
        let mut tables: Vec<&str> = schema::tables().map(|table| table.name).collect();
        copied.sort_unstable();
        tables.sort_unstable();
        assert_eq!(copied, tables);
    }
}
