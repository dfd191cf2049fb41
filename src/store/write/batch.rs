//! Statements of a write, joined into few round trips.
#![allow(clippy::disallowed_methods)]

use std::fmt::Write;

use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, ExprTrait, IdenStatic,
    Iterable, PrimaryKeyToColumn, QueryFilter, QueryTrait, Statement, Value,
    sea_query::{
        Alias, CommonTableExpression, Expr, Func, InsertStatement, OnConflict,
        PostgresQueryBuilder, Query, QueryBuilder, SqlWriterValues, SqliteQueryBuilder,
        SubQueryStatement, ValueTuple, WithClause,
    },
};
use uuid::Uuid;

use super::Tx;
use crate::store::{entity::AccountEntity, error::StoreError, read::MAX_IDS_PER_STATEMENT};

/// The maximum number of joined statements. PostgreSQL accepts 65,535 values, and each of these
/// statements binds at most about 1,600. Rows are bound as arrays, and ids and keys are split into
/// chunks.
const MAX_JOINED: usize = 32;
/// The maximum number of rows that one DELETE names by their keys.
const MAX_KEYS: usize = 500;
/// The maximum number of rows of one INSERT. SQLite accepts 32,766 values.
const MAX_ROWS: usize = 500;
/// From this many rows on, PostgreSQL gets one array per column. The text of the statement then does not
/// grow with the rows, which halves its time.
const MIN_ROWS_IN_ARRAYS: usize = 8;

/// Statements in stages. No two statements of a stage may change the same row, because PostgreSQL runs
/// them as one statement: all see the same state, and their order is undefined.
pub struct Batch<'t> {
    pub tx: &'t Tx<'t>,
    stages: Vec<Vec<SubQueryStatement>>,
}

impl<'t> Batch<'t> {
    pub fn new(tx: &'t Tx<'t>) -> Self {
        Self {
            tx,
            stages: vec![Vec::new()],
        }
    }

    /// Begins a stage. Its statements see what the earlier ones have changed.
    pub fn begin_stage(&mut self) {
        self.stages.push(Vec::new());
    }

    pub fn add_statement(&mut self, statement: impl Into<SubQueryStatement>) {
        if let Some(stage) = self.stages.last_mut() {
            stage.push(statement.into());
        }
    }

    /// Adds an UPDATE or DELETE.
    pub fn add(&mut self, query: impl QueryTrait<QueryStatement: Into<SubQueryStatement>>) {
        self.add_statement(query.into_query());
    }

    /// Adds an UPDATE or DELETE of the rows that have one of these ids in a column.
    pub fn add_by_ids<Q>(
        &mut self,
        query: Q,
        column: impl ColumnTrait,
        ids: impl IntoIterator<Item = Uuid>,
    ) where
        Q: QueryFilter + QueryTrait<QueryStatement: Into<SubQueryStatement>> + Clone,
    {
        let ids = Vec::from_iter(ids);
        for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
            self.add(query.clone().filter(column.is_in(ids.iter().copied())));
        }
    }

    /// Deletes the rows of the account whose `columns` equal one of `keys`.
    pub fn delete_keys<E: AccountEntity>(
        &mut self,
        columns: impl IntoIterator<Item = E::Column>,
        keys: Vec<ValueTuple>,
    ) {
        let key = Expr::tuple(columns.into_iter().map(Expr::col));
        for keys in keys.chunks(MAX_KEYS) {
            let is_named = key.clone().in_tuples(keys.to_vec());
            self.add(self.tx.scope().delete::<E>().filter(is_named));
        }
    }

    /// Inserts rows that set the same columns.
    pub fn insert<A: ActiveModelTrait>(&mut self, rows: Vec<A>) {
        self.insert_rows(rows, None);
    }

    /// Inserts rows that set the same columns, and updates `columns` of rows that exist.
    pub fn upsert<A: ActiveModelTrait>(
        &mut self,
        rows: Vec<A>,
        columns: impl IntoIterator<Item = <A::Entity as EntityTrait>::Column>,
    ) {
        let update = existing::<A>().update_columns(columns).to_owned();
        self.insert_rows(rows, Some(update));
    }

    /// Inserts rows that set the same columns, or updates the rows that exist as `on_conflict` says.
    pub fn insert_rows<A: ActiveModelTrait>(
        &mut self,
        rows: Vec<A>,
        on_conflict: Option<OnConflict>,
    ) {
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let chunk: Vec<A> = rows.by_ref().take(MAX_ROWS).collect();
            let mut insert = match self.tx.backend() {
                DbBackend::Postgres if chunk.len() >= MIN_ROWS_IN_ARRAYS => insert_arrays(chunk),
                _ => A::Entity::insert_many(chunk).into_query(),
            };
            if let Some(on_conflict) = &on_conflict {
                insert.on_conflict(on_conflict.clone());
            }
            self.add_statement(insert);
        }
    }

    /// Sends the statements in order and empties the batch. This takes one round trip for each stage,
    /// unless it has many statements.
    pub async fn send(&mut self) -> Result<(), StoreError> {
        let mut stages = std::mem::replace(&mut self.stages, vec![Vec::new()]);
        let backend = self.tx.backend();
        if backend == DbBackend::Sqlite {
            // It runs statements in order.
            stages = vec![stages.into_iter().flatten().collect()];
        }
        // Citus would run the parts of a WITH on the coordinator.
        let max_joined = if self.tx.is_distributed {
            1
        } else {
            MAX_JOINED
        };
        for stage in stages {
            let mut statements = stage.into_iter().peekable();
            while statements.peek().is_some() {
                let joined = statements.by_ref().take(max_joined);
                let (sql, values) = match backend {
                    DbBackend::Sqlite => script(joined),
                    _ => with(joined.collect()),
                }
                .into_parts();
                let statement = Statement::from_sql_and_values(backend, sql, values);
                self.tx.db().execute_raw(statement).await?;
            }
        }
        Ok(())
    }
}

/// The clause for rows whose key exists.
pub fn existing<A: ActiveModelTrait>() -> OnConflict {
    let key = <A::Entity as EntityTrait>::PrimaryKey::iter();
    OnConflict::columns(key.map(PrimaryKeyToColumn::into_column))
}

/// Joins statements for SQLite into one text, so that they take one message to the connection's
/// thread. Its placeholders are not numbered, so values are bound in order.
fn script(statements: impl Iterator<Item = SubQueryStatement>) -> SqlWriterValues {
    let mut sql = SqlWriterValues::new("?", false);
    for statement in statements {
        SqliteQueryBuilder.prepare_query_statement(&statement, &mut sql);
        let _ = sql.write_str("; ");
    }
    sql
}

/// Statements for PostgreSQL: the last one, with the others as its CTEs. Foreign keys are checked after
/// all of them.
fn with(mut statements: Vec<SubQueryStatement>) -> SqlWriterValues {
    let mut sql = SqlWriterValues::new("$", true);
    let Some(last) = statements.pop() else {
        return sql;
    };
    if statements.is_empty() {
        PostgresQueryBuilder.prepare_query_statement(&last, &mut sql);
        return sql;
    }
    let mut with = WithClause::new();
    for (index, statement) in statements.into_iter().enumerate() {
        let mut cte = CommonTableExpression::new();
        with.cte(
            cte.table_name(format!("w{index}"))
                .query(statement)
                .to_owned(),
        );
    }
    PostgresQueryBuilder.prepare_with_query(&with.query(last), &mut sql);
    sql
}

/// An INSERT of rows that set the same columns, as `SELECT … FROM (SELECT unnest($1) …)`. The driver's
/// arrays cannot hold NULL, so a column with NULLs also gets an array of flags.
fn insert_arrays<A: ActiveModelTrait>(mut rows: Vec<A>) -> InsertStatement {
    let (mut arrays, mut select) = (Query::select(), Query::select());
    let mut columns = Vec::new();
    for column in <A::Entity as EntityTrait>::Column::iter() {
        let cells = rows
            .iter_mut()
            .filter_map(|row| row.take(column).into_value());
        let mut cells: Vec<Value> = cells.collect();
        let Some(first) = cells.first() else {
            continue;
        };
        columns.push(column);
        if cells.iter().all(|cell| cell == first) {
            select.expr(Expr::value(cells.swap_remove(0)));
            continue;
        }
        let name = Alias::new(column.as_str());
        let is_null = |cell: &Value| *cell == cell.as_null();
        if cells.iter().any(is_null) {
            let present = Alias::new(format!("has_{}", column.as_str()));
            let flags = cells.iter().map(|cell| Value::from(!is_null(cell)));
            arrays.expr_as(unnest(flags.collect()), present.clone());
            for cell in cells.iter_mut().filter(|cell| is_null(cell)) {
                *cell = cell.dummy_value();
            }
            select.expr(Expr::case(Expr::col(present), Expr::col(name.clone())));
        } else {
            select.expr(Expr::col(name.clone()));
        }
        arrays.expr_as(unnest(cells), name);
    }
    select.from_subquery(arrays, Alias::new("given"));
    let mut insert = Query::insert();
    insert.into_table(A::Entity::default()).columns(columns);
    // It fails only if there are more columns than expressions.
    let _ = insert.select_from(select);
    insert
}

fn unnest(cells: Vec<Value>) -> Expr {
    let array_type = cells
        .first()
        .map_or_else(|| Value::String(None).array_type(), Value::array_type);
    let array = Value::Array(array_type, Some(Box::new(cells)));
    Func::cust("unnest").arg(Expr::value(array)).into()
}
