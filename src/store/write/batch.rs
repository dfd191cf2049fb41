//! Statements of a write, joined into few round trips.
#![allow(clippy::disallowed_methods)]

use std::fmt::Write;

use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DbBackend, EntityTrait, IdenStatic, Iterable,
    PrimaryKeyToColumn, QueryTrait, Statement, Value,
    sea_query::{
        Alias, CommonTableExpression, Expr, Func, InsertStatement, OnConflict,
        PostgresQueryBuilder, Query, QueryBuilder, SqlWriterValues, SqliteQueryBuilder,
        SubQueryStatement, WithClause,
    },
};

use super::Tx;
use crate::store::error::StoreError;

/// The maximum number of values of joined statements. PostgreSQL takes 65,535.
const MAX_VALUES: usize = 60_000;
/// The maximum number of values of a statement that inserts no rows: its filter has a part of the ids.
const VALUES_OF_FILTER: usize = 1_600;
/// The maximum number of rows of one INSERT. SQLite takes 32,766 values.
const MAX_ROWS: usize = 500;
/// From this many rows on, PostgreSQL gets one array per column. The text of the statement then does not
/// grow with the rows, which halves its time.
const MIN_ROWS_IN_ARRAYS: usize = 8;

/// Statements in stages. No two statements of a stage may change the same row, because PostgreSQL runs
/// them as one statement: all see the same state, and their order is undefined.
pub struct Batch {
    parts: Vec<Part>,
    stage: usize,
    joining: Joining,
}

struct Part {
    statement: SubQueryStatement,
    /// The maximum number of values that it binds.
    values: usize,
    stage: usize,
}

/// How statements are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joining {
    /// PostgreSQL: `WITH w0 AS (…), w1 AS (…) …`. Foreign keys are checked after all of them.
    With,
    /// SQLite: `…; …`, which takes one message to the thread of the connection.
    Script,
    /// Citus would run the parts of a WITH on the coordinator.
    Separate,
}

impl Batch {
    pub fn new(tx: &Tx<'_>) -> Self {
        Self {
            parts: Vec::new(),
            stage: 0,
            joining: match tx.backend() {
                DbBackend::Sqlite => Joining::Script,
                _ if tx.is_distributed => Joining::Separate,
                _ => Joining::With,
            },
        }
    }

    /// Begins a stage. Its statements see what the earlier ones have changed.
    pub fn begin_stage(&mut self) {
        self.stage += 1;
    }

    /// Adds a statement that inserts no rows, or those that it selects.
    pub fn add(&mut self, statement: impl Into<SubQueryStatement>) {
        self.push(statement.into(), VALUES_OF_FILTER);
    }

    /// Inserts rows that set the same columns.
    pub fn insert<A: ActiveModelTrait>(&mut self, rows: Vec<A>) {
        self.insert_rows(rows, None);
    }

    /// Inserts rows that set the same columns, or sets some columns of those that exist.
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
        let columns = <A::Entity as EntityTrait>::Column::iter().count();
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let chunk: Vec<A> = rows.by_ref().take(MAX_ROWS).collect();
            let (mut insert, values) = match self.joining {
                Joining::With if chunk.len() >= MIN_ROWS_IN_ARRAYS => {
                    (insert_arrays(chunk), 2 * columns)
                }
                _ => {
                    let values = chunk.len() * columns;
                    (A::Entity::insert_many(chunk).into_query(), values)
                }
            };
            if let Some(on_conflict) = &on_conflict {
                insert.on_conflict(on_conflict.clone());
            }
            self.push(insert.into(), values);
        }
    }

    fn push(&mut self, statement: SubQueryStatement, values: usize) {
        let stage = self.stage;
        self.parts.push(Part {
            statement,
            values,
            stage,
        });
    }

    /// Sends the statements in order and empties the batch. This takes one round trip for each stage,
    /// unless its statements bind many values. SQLite needs no stages, as it runs statements in order.
    pub async fn send(&mut self, tx: &Tx<'_>) -> Result<(), StoreError> {
        let (mut joined, mut joined_values, mut stage) = (Vec::new(), 0, 0);
        for part in std::mem::take(&mut self.parts) {
            let is_full = match self.joining {
                Joining::With => part.stage != stage,
                Joining::Script => false,
                Joining::Separate => true,
            };
            if is_full || joined_values + part.values > MAX_VALUES {
                self.send_joined(std::mem::take(&mut joined), tx).await?;
                joined_values = 0;
            }
            stage = part.stage;
            joined_values += part.values;
            joined.push(part.statement);
        }
        self.send_joined(joined, tx).await
    }

    async fn send_joined(
        &self,
        statements: Vec<SubQueryStatement>,
        tx: &Tx<'_>,
    ) -> Result<(), StoreError> {
        if !statements.is_empty() {
            let (sql, values) = match self.joining {
                Joining::Script => script(&statements).into_parts(),
                Joining::With | Joining::Separate => with(statements).into_parts(),
            };
            let statement = Statement::from_sql_and_values(tx.backend(), sql, values);
            tx.db().execute_raw(statement).await?;
        }
        Ok(())
    }
}

/// The clause for rows whose key exists.
pub fn existing<A: ActiveModelTrait>() -> OnConflict {
    let key = <A::Entity as EntityTrait>::PrimaryKey::iter();
    OnConflict::columns(key.map(PrimaryKeyToColumn::into_column))
}

/// Statements for SQLite as one text. Its placeholders are not numbered, so values are bound in order.
fn script(statements: &[SubQueryStatement]) -> SqlWriterValues {
    let mut sql = SqlWriterValues::new("?", false);
    for statement in statements {
        SqliteQueryBuilder.prepare_query_statement(statement, &mut sql);
        let _ = sql.write_str("; ");
    }
    sql
}

/// Statements for PostgreSQL: the last one, with the others as its CTEs.
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
    let (mut given, mut select) = (Query::select(), Query::select());
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
            given.expr_as(unnest(flags.collect()), present.clone());
            for cell in cells.iter_mut().filter(|cell| is_null(cell)) {
                *cell = cell.dummy_value();
            }
            select.expr(Expr::case(Expr::col(present), Expr::col(name.clone())));
        } else {
            select.expr(Expr::col(name.clone()));
        }
        given.expr_as(unnest(cells), name);
    }
    select.from_subquery(given, Alias::new("given"));
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
