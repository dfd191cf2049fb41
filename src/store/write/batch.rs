//! Statements of a write that do not depend on each other.
#![allow(clippy::disallowed_methods)]

use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DbBackend, EntityTrait, IdenStatic, Iterable, QueryTrait,
    Value,
    sea_query::{
        Alias, CommonTableExpression, DeleteStatement, Expr, Func, InsertStatement, OnConflict,
        Query, UpdateStatement, WithClause,
    },
};

use super::Tx;
use crate::store::error::StoreError;

/// The maximum number of values of one statement. SQLite takes 32,766.
const MAX_VALUES: usize = 30_000;
/// The maximum number of rows of one INSERT.
const MAX_ROWS: usize = 500;
/// From so many rows on, PostgreSQL gets an array for each column. The text of the statement then does not
/// grow with the rows, and it takes half the time.
const MIN_ROWS_IN_ARRAYS: usize = 8;

/// Statements that do not depend on each other, of which no two change the same row: PostgreSQL runs
/// them as one statement, on the same state.
pub struct Batch {
    statements: Vec<(Statement, usize)>,
    /// Whether statements are joined, and rows come in arrays: PostgreSQL without Citus.
    is_joined: bool,
}

enum Statement {
    Insert(InsertStatement),
    Update(UpdateStatement),
    Delete(DeleteStatement),
}

impl Batch {
    pub fn new(tx: &Tx<'_>) -> Self {
        Self {
            statements: Vec::new(),
            is_joined: tx.backend() == DbBackend::Postgres && !tx.is_distributed,
        }
    }

    /// `values` is the maximum number of values that the statement binds.
    pub fn insert(&mut self, insert: InsertStatement, values: usize) {
        self.statements.push((Statement::Insert(insert), values));
    }

    pub fn update(&mut self, update: UpdateStatement, values: usize) {
        self.statements.push((Statement::Update(update), values));
    }

    pub fn delete(&mut self, delete: DeleteStatement, values: usize) {
        self.statements.push((Statement::Delete(delete), values));
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
            let (mut insert, values) = match self.is_joined && chunk.len() >= MIN_ROWS_IN_ARRAYS {
                true => (insert_arrays(chunk), 2 * columns),
                false => {
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

    /// Sends the statements in their order, and leaves none: on PostgreSQL in one round trip, if they do not
    /// have too many values.
    pub async fn send(&mut self, tx: &Tx<'_>) -> Result<(), StoreError> {
        let mut joined = Vec::new();
        let mut joined_values = 0;
        for (statement, values) in std::mem::take(&mut self.statements) {
            if !joined.is_empty() && (!self.is_joined || joined_values + values > MAX_VALUES) {
                send_joined(std::mem::take(&mut joined), tx).await?;
                joined_values = 0;
            }
            joined.push(statement);
            joined_values += values;
        }
        send_joined(joined, tx).await
    }
}

/// Sends statements as `WITH w0 AS (…), w1 AS (…) …`. Foreign keys are checked after all of them.
async fn send_joined(mut statements: Vec<Statement>, tx: &Tx<'_>) -> Result<(), StoreError> {
    let Some(last) = statements.pop() else {
        return Ok(());
    };
    let db = tx.db();
    if statements.is_empty() {
        match last {
            Statement::Insert(insert) => db.execute(&insert).await?,
            Statement::Update(update) => db.execute(&update).await?,
            Statement::Delete(delete) => db.execute(&delete).await?,
        };
        return Ok(());
    }
    let mut with = WithClause::new();
    for (index, statement) in statements.into_iter().enumerate() {
        let mut part = CommonTableExpression::new();
        part.table_name(format!("w{index}"));
        match statement {
            Statement::Insert(insert) => part.query(insert),
            Statement::Update(update) => part.query(update),
            Statement::Delete(delete) => part.query(delete),
        };
        with.cte(part);
    }
    let query = match last {
        Statement::Insert(insert) => with.query(insert),
        Statement::Update(update) => with.query(update),
        Statement::Delete(delete) => with.query(delete),
    };
    db.execute(&query).await?;
    Ok(())
}

/// An INSERT of rows that set the same columns, as `SELECT … FROM (SELECT unnest($1) …)`. The driver's arrays
/// hold no NULL, so that a column with NULL has an array of flags, too.
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
