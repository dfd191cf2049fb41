//! Statements of a write that do not depend on each other.
#![allow(clippy::disallowed_methods)]

use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DbBackend, EntityTrait, IdenStatic, Iterable, QueryTrait,
    Statement, Value,
    sea_query::{
        Alias, CommonTableExpression, DeleteStatement, Expr, Func, InsertStatement, OnConflict,
        Query, UpdateStatement, WithClause, WithQuery,
    },
};

use super::Tx;
use crate::store::error::StoreError;

/// The maximum number of values of one statement. SQLite takes 32,766.
const MAX_VALUES: usize = 30_000;
/// The maximum number of rows of one INSERT.
const MAX_ROWS: usize = 500;
/// From this many rows on, PostgreSQL gets one array per column. The text of the statement then does not
/// grow with the rows, which halves its time.
const MIN_ROWS_IN_ARRAYS: usize = 8;

/// The maximum number of statements that are joined.
const MAX_JOINED: usize = 50;

/// Independent statements. No two of them may change the same row, because PostgreSQL runs them as one
/// statement: all see the same state, and their order is undefined.
pub struct Batch {
    parts: Vec<(Part, usize)>,
    joining: Joining,
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

enum Part {
    Insert(InsertStatement),
    Update(UpdateStatement),
    Delete(DeleteStatement),
}

impl Batch {
    pub fn new(tx: &Tx<'_>) -> Self {
        Self {
            parts: Vec::new(),
            joining: match tx.backend() {
                DbBackend::Sqlite => Joining::Script,
                _ if tx.is_distributed => Joining::Separate,
                _ => Joining::With,
            },
        }
    }

    /// `values` is the maximum number of values that the statement binds.
    pub fn insert(&mut self, insert: InsertStatement, values: usize) {
        self.parts.push((Part::Insert(insert), values));
    }

    pub fn update(&mut self, update: UpdateStatement, values: usize) {
        self.parts.push((Part::Update(update), values));
    }

    pub fn delete(&mut self, delete: DeleteStatement, values: usize) {
        self.parts.push((Part::Delete(delete), values));
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
            self.insert(insert, values);
        }
    }

    /// Sends the statements in order and empties the batch. This takes one round trip, unless they are many
    /// or bind many values.
    pub async fn send(&mut self, tx: &Tx<'_>) -> Result<(), StoreError> {
        let (mut joined, mut joined_values) = (Vec::new(), 0);
        for (part, values) in std::mem::take(&mut self.parts) {
            let is_full = self.joining == Joining::Separate
                || joined.len() == MAX_JOINED
                || joined_values + values > MAX_VALUES;
            if is_full && !joined.is_empty() {
                self.send_joined(std::mem::take(&mut joined), tx).await?;
                joined_values = 0;
            }
            joined.push(part);
            joined_values += values;
        }
        self.send_joined(joined, tx).await
    }

    async fn send_joined(&self, mut parts: Vec<Part>, tx: &Tx<'_>) -> Result<(), StoreError> {
        let Some(last) = parts.pop() else {
            return Ok(());
        };
        let statement = match self.joining {
            _ if parts.is_empty() => last.build(tx.backend()),
            Joining::With => tx.backend().build(&last.after(parts)),
            Joining::Script | Joining::Separate => script(parts.into_iter().chain([last])),
        };
        tx.db().execute_raw(statement).await?;
        Ok(())
    }
}

impl Part {
    fn build(self, backend: DbBackend) -> Statement {
        match self {
            Self::Insert(insert) => backend.build(&insert),
            Self::Update(update) => backend.build(&update),
            Self::Delete(delete) => backend.build(&delete),
        }
    }

    /// This statement with others as its CTEs.
    fn after(self, parts: Vec<Self>) -> WithQuery {
        let mut with = WithClause::new();
        for (index, part) in parts.into_iter().enumerate() {
            let mut cte = CommonTableExpression::new();
            cte.table_name(format!("w{index}"));
            match part {
                Self::Insert(insert) => cte.query(insert),
                Self::Update(update) => cte.query(update),
                Self::Delete(delete) => cte.query(delete),
            };
            with.cte(cte);
        }
        match self {
            Self::Insert(insert) => with.query(insert),
            Self::Update(update) => with.query(update),
            Self::Delete(delete) => with.query(delete),
        }
    }
}

/// Statements for SQLite as one text. Its placeholders are not numbered, so values are bound in order.
fn script(parts: impl Iterator<Item = Part>) -> Statement {
    let (mut sql, mut values) = (String::new(), Vec::new());
    for part in parts {
        let statement = part.build(DbBackend::Sqlite);
        sql.push_str(&statement.sql);
        sql.push_str("; ");
        values.extend(statement.values.into_iter().flat_map(|values| values.0));
    }
    Statement::from_sql_and_values(DbBackend::Sqlite, sql, values)
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
