//! Copies a database into an empty one, within or between SQLite and PostgreSQL. A copy spans all
//! accounts. A canceled BEGIN is harmless here, because the process ends after the copy.
#![allow(clippy::disallowed_methods)]

use std::mem;

use futures_util::TryStreamExt;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseConnection, DatabaseTransaction,
    DbBackend, DbErr, EntityTrait, ExprTrait, IntoActiveModel, Iterable, PaginatorTrait,
    QueryFilter, QuerySelect, QueryTrait, Select, Statement, TransactionTrait, Value,
    sea_query::Expr,
};
use tracing::info;

use super::{WholeDatabaseError, accounts::list_accounts, open};
use crate::{
    config::DatabaseUrl,
    store::{
        account::begin_snapshot,
        connect::{self, Connections, mark_unfinished_copy},
        entity::{
            account, change, change_feed, deleted_step, deleted_step_translation, index_deletion,
            name_use, request_outcome, revision_alias, role, server_key, step, step_translation,
            task, task_history, task_revision, task_translation,
        },
        schema::CHANGES_SEQUENCE,
    },
};

/// The maximum number of rows of a batch, which is one transaction.
const BATCH_ROWS: usize = 500;
/// A batch ends with the row that reaches this size.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Turns off timeouts for a transaction on PostgreSQL that is idle while a batch is written.
const DISABLE_TIMEOUTS_SQL: &str =
    "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0";

pub struct CopiedTable {
    pub name: &'static str,
    /// The number of its rows.
    pub rows: u64,
}

/// Copies all rows from a snapshot of a database, including the server keys, into an empty
/// database, and counts them there. Creates the schema of the target if it is missing. No other
/// process may write to the target.
pub async fn copy(
    from: &DatabaseUrl,
    to: &DatabaseUrl,
    migrate: bool,
) -> Result<Vec<CopiedTable>, WholeDatabaseError> {
    if connect::is_used(from).await {
        return Err(WholeDatabaseError::Refused(
            "--from names a file that a server has open, so the copy could miss its writes: stop \
             the server first"
                .to_owned(),
        ));
    }
    if connect::is_used(to).await {
        return Err(WholeDatabaseError::Refused(
            "EXPERTISE_DATABASE_URL names a file that a server has open, and the server's writes \
             would mix with the copied rows: stop the server first"
                .to_owned(),
        ));
    }
    let source = open(from, false)
        .await
        .map_err(WholeDatabaseError::Source)?;
    let copied = copy_from(&source, to, migrate).await;
    source.close().await;
    copied
}

async fn copy_from(
    source: &Connections,
    to: &DatabaseUrl,
    migrate: bool,
) -> Result<Vec<CopiedTable>, WholeDatabaseError> {
    if source.is_distributed {
        return Err(WholeDatabaseError::Refused(
            "--from names a database that is distributed over several nodes, which have no common \
             snapshot to copy: move its accounts with `export --all` and `apply`"
                .to_owned(),
        ));
    }
    let target = open(to, migrate).await?;
    let copied = copy_tables(&source.pools.reader, &target.pools.writer).await;
    target.close().await;
    copied
}

/// Copies tables in the order of their foreign keys.
async fn copy_tables(
    source: &DatabaseConnection,
    target: &DatabaseConnection,
) -> Result<Vec<CopiedTable>, WholeDatabaseError> {
    if let Some(found) = list_accounts(target).await?.first() {
        return Err(WholeDatabaseError::Refused(format!(
            "the account {} has rows already: copy into a new database",
            found.account
        )));
    }
    let source = &begin_snapshot(source).await?;
    if source.get_database_backend() == DbBackend::Postgres {
        source.execute_unprepared(DISABLE_TIMEOUTS_SQL).await?;
    }
    mark_unfinished_copy(target).await?;
    let copy = Copy { source, target };
    Ok(vec![
        copy.table::<account::Entity>().await?,
        copy.table::<role::Entity>().await?,
        copy.table::<request_outcome::Entity>().await?,
        copy.tasks().await?,
        copy.table::<task_translation::Entity>().await?,
        copy.table::<step::Entity>().await?,
        copy.table::<step_translation::Entity>().await?,
        copy.table::<name_use::Entity>().await?,
        copy.table::<task_history::Entity>().await?,
        copy.table::<task_revision::Entity>().await?,
        copy.table::<revision_alias::Entity>().await?,
        copy.table::<change::Entity>().await?,
        copy.table::<change_feed::Entity>().await?,
        copy.table::<index_deletion::Entity>().await?,
        copy.table::<deleted_step::Entity>().await?,
        copy.table::<deleted_step_translation::Entity>().await?,
        copy.sequence_and_server_keys().await?,
    ])
}

/// A copy in progress.
struct Copy<'a> {
    /// A snapshot of the source.
    source: &'a DatabaseTransaction,
    target: &'a DatabaseConnection,
}

impl Copy<'_> {
    async fn table<E>(&self) -> Result<CopiedTable, WholeDatabaseError>
    where
        E: EntityTrait,
        E::Model: IntoActiveModel<E::ActiveModel> + Sync,
    {
        let rows = self.rows(E::find()).await?;
        self.check::<E>(rows).await
    }

    /// Copies managed tasks after the tasks that manage them. It copies one level at a time, and there
    /// are at most [`MAX_NESTED_DOCUMENTS`](crate::domain::nesting::MAX_NESTED_DOCUMENTS).
    async fn tasks(&self) -> Result<CopiedTable, WholeDatabaseError> {
        use task::{Column, Entity};
        let mut level = Entity::find().filter(Column::ParentGuid.is_null());
        let mut rows = 0;
        loop {
            match self.rows(level.clone()).await? {
                0 => return self.check::<Entity>(rows).await,
                more => rows += more,
            }
            let parents = level
                .select_only()
                .columns([Column::AccountId, Column::Guid]);
            let parent = Expr::tuple([Column::AccountId, Column::ParentGuid].map(Expr::col));
            level = Entity::find().filter(parent.in_subquery(parents.into_query()));
        }
    }

    /// Copies rows in batches, and returns how many.
    async fn rows<E>(&self, rows: Select<E>) -> Result<u64, DbErr>
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

    /// Inserts rows with a single statement, which is its own transaction.
    async fn insert<E: EntityTrait>(&self, rows: Vec<E::ActiveModel>) -> Result<(), DbErr> {
        let insert = E::insert_many(rows);
        insert.exec_without_returning(self.target).await.map(drop)
    }

    /// Advances PostgreSQL's sequence beyond the copied changes, and copies the server keys. They
    /// replace the keys that the target was created with, and the mark of an unfinished copy.
    async fn sequence_and_server_keys(&self) -> Result<CopiedTable, WholeDatabaseError> {
        use server_key::Entity;
        let keys = Entity::find().all(self.source).await?;
        let keys = keys.into_iter().map(IntoActiveModel::into_active_model);
        let transaction = self.target.begin().await?;
        if transaction.get_database_backend() == DbBackend::Postgres {
            // If there are no changes, the sequence stays as it is, because `setval` ignores NULL.
            let advance = format!("SELECT setval('{CHANGES_SEQUENCE}', max(seq)) FROM changes");
            let advance = Statement::from_string(DbBackend::Postgres, advance);
            transaction.query_one_raw(advance).await?;
        }
        Entity::delete_many().exec(&transaction).await?;
        let rows = keys.len() as u64;
        let insert = Entity::insert_many(keys);
        insert.exec_without_returning(&transaction).await?;
        transaction.commit().await?;
        self.check::<Entity>(rows).await
    }

    /// Checks that the table has exactly this many rows in the target.
    async fn check<E>(&self, rows: u64) -> Result<CopiedTable, WholeDatabaseError>
    where
        E: EntityTrait,
        E::Model: Sync,
    {
        let name = E::default().table_name();
        let found = E::find().count(self.target).await?;
        if found != rows {
            return Err(WholeDatabaseError::Refused(format!(
                "the table {name} should have {rows} rows after the copy and has {found}: stop all \
                 servers on the new database, and repeat the copy into an empty one"
            )));
        }
        info!(table = name, rows, "copied");
        Ok(CopiedTable { name, rows })
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
    use crate::store::schema;

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
