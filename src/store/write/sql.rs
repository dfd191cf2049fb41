//! Builds statements that write.

mod given;
mod script;

use std::fmt::Display;

use sea_orm::{ActiveModelTrait, DbBackend, EntityName, EntityTrait, IdenStatic, Iterable, Value};

use crate::domain::ids::AccountId;

use crate::store::values::MAX_VALUES;
pub use crate::store::values::{MAX_IDS_PER_STATEMENT, Placeholder, Values, list};
pub use given::GivenRows;
pub use script::{Effect, Script};

/// The column with the account of a row.
const ACCOUNT: &str = "account_id";
/// The most rows of one statement.
const MAX_ROWS: usize = 1_000;

/// Rows to insert or upsert into one table.
pub struct Upsert {
    table: &'static str,
    columns: Vec<ColumnCells>,
    /// `ON CONFLICT …`, or nothing.
    on_conflict: String,
    /// The number of rows that columns have room for.
    capacity: usize,
}

/// A column of the rows, with a cell for each.
struct ColumnCells {
    name: &'static str,
    cells: Vec<Value>,
}

impl ColumnCells {
    /// Takes the cell of all rows, if it is the same in each.
    fn shared(&mut self) -> Option<Value> {
        let (first, others) = self.cells.split_first()?;
        let same = others.iter().all(|cell| cell == first);
        same.then(|| self.cells.swap_remove(0))
    }
}

impl Upsert {
    /// Rows that are new. All set the same columns.
    pub fn new<A: ActiveModelTrait>(rows: Vec<A>) -> Self {
        let mut upsert = Self::with_capacity::<A>(rows.len());
        for row in rows {
            upsert.push(row);
        }
        upsert
    }

    /// No rows yet, with room for `capacity` of them.
    pub fn with_capacity<A: ActiveModelTrait>(capacity: usize) -> Self {
        Self {
            table: A::Entity::default().table_name(),
            columns: Vec::new(),
            on_conflict: String::new(),
            capacity,
        }
    }

    /// Adds a row of the table. It must set the same columns as the rows before.
    pub fn push<A: ActiveModelTrait>(&mut self, mut row: A) {
        let is_first = self.columns.is_empty();
        let mut index = 0;
        for column in <A::Entity as EntityTrait>::Column::iter() {
            let Some(cell) = row.take(column).into_value() else {
                continue;
            };
            if is_first {
                self.columns.push(ColumnCells {
                    name: column.as_str(),
                    cells: Vec::with_capacity(self.capacity),
                });
            }
            if let Some(ColumnCells { name, cells }) = self.columns.get_mut(index) {
                debug_assert_eq!(*name, column.as_str());
                cells.push(cell);
            }
            index += 1;
        }
    }

    /// The number of rows.
    fn count(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// `INSERT INTO table (columns)`, with room for a statement.
    fn insert_into(&self) -> String {
        let mut sql = String::with_capacity(1_024);
        sql.push_str("INSERT INTO ");
        sql.push_str(self.table);
        for (index, column) in self.columns.iter().enumerate() {
            sql.push_str(if index == 0 { " (" } else { ", " });
            sql.push_str(column.name);
        }
        sql.push(')');
        sql
    }

    /// Updates a row that exists: on a conflict on `key`, sets the columns for which
    /// `changes` is true.
    pub fn or_update(self, key: &[&str], changes: impl Fn(&str) -> bool) -> Self {
        let names = self.columns.iter().map(|column| column.name);
        let changed = names.filter(|column| changes(column));
        let changed = changed.map(|column| format!("{column} = excluded.{column}"));
        let on_conflict = format!(
            " ON CONFLICT ({}) DO UPDATE SET {}",
            key.join(", "),
            list(changed),
        );
        Self {
            on_conflict,
            ..self
        }
    }

    /// An INSERT of the one row for a guard. It ends in WHERE, so that conditions can be
    /// added.
    pub fn insert_as_guard(self, values: &mut Values) -> String {
        let mut sql = self.insert_into();
        sql.push_str(" SELECT ");
        let cells = self.columns.into_iter().flat_map(|column| column.cells);
        values.bind_onto(&mut sql, cells);
        sql.push_str(" WHERE true");
        sql
    }

    /// Splits the rows, so that those of one statement are within the limits of values and
    /// rows. Each batch takes no more memory than its rows need.
    fn batches(self) -> Vec<Self> {
        let count = self.count();
        let max_rows = (MAX_VALUES / self.columns.len().max(1)).min(MAX_ROWS);
        if (1..=max_rows).contains(&count) {
            return vec![self];
        }
        let columns = self.columns.into_iter();
        let mut columns: Vec<_> = columns
            .map(|ColumnCells { name, cells }| (name, cells.into_iter()))
            .collect();
        let mut batch = || {
            columns
                .iter_mut()
                .map(|(name, cells)| ColumnCells {
                    name,
                    cells: cells.by_ref().take(max_rows).collect(),
                })
                .collect()
        };
        (0..count.div_ceil(max_rows))
            .map(|_| Self {
                table: self.table,
                columns: batch(),
                on_conflict: self.on_conflict.clone(),
                capacity: max_rows,
            })
            .collect()
    }

    /// One INSERT of all rows, which uses the values in the order of binding. A column that is
    /// the same in all rows, such as the account, is bound once.
    fn insert(self, values: &mut Values, backend: DbBackend) -> String {
        let (count, mut sql) = (self.count(), self.insert_into());
        if count == 1 {
            sql.push_str(" VALUES (");
            let row = self.columns.into_iter().flat_map(|column| column.cells);
            values.bind_onto(&mut sql, row);
            sql.push(')');
        } else {
            let mut given = GivenRows::new(backend);
            let cells = self.columns.into_iter();
            let cells = list(cells.map(|mut column| match column.shared() {
                Some(value) => values.bind(value).to_string(),
                None => given.add(column.cells),
            }));
            let given = given.table(values);
            // SQLite needs the WHERE to tell ON CONFLICT from a join.
            sql.push_str(&format!(" SELECT {cells} FROM {given} WHERE true"));
        }
        sql.push_str(&self.on_conflict);
        sql
    }

    /// Splits the rows into INSERTs within the limits of values and rows.
    pub fn statements(self, backend: DbBackend) -> Vec<(String, Values)> {
        let statement = |batch: Self| {
            let mut values = Values::in_order();
            (batch.insert(&mut values, backend), values)
        };
        self.batches().into_iter().map(statement).collect()
    }

    /// Inserts the one row when the guard has changed a row. `expression`, which reads the
    /// guard's row, takes the place of the cell of `column`.
    pub fn insert_of_guard_row(
        self,
        values: &mut Values,
        column: &str,
        expression: &str,
    ) -> Effect {
        let mut sql = self.insert_into();
        for (index, ColumnCells { name, cells }) in self.columns.into_iter().enumerate() {
            sql.push_str(if index == 0 { " SELECT " } else { ", " });
            match name == column {
                true => sql.push_str(expression),
                false => values.bind_onto(&mut sql, cells),
            }
        }
        sql.push_str(" FROM ");
        Effect::insert_of_row(sql)
    }

    /// Inserts the rows when the guard has changed a row; `None` for no rows.
    pub fn insert_if_guarded(self, values: &mut Values, backend: DbBackend) -> Option<Effect> {
        let (count, mut sql) = (self.count(), self.insert_into());
        sql.push_str(" SELECT ");
        match count {
            0 => return None,
            1 => {
                let cells = self.columns.into_iter().flat_map(|column| column.cells);
                values.bind_onto(&mut sql, cells);
            }
            _ => {
                let mut given = GivenRows::new(backend);
                let cells = self.columns.into_iter().map(|column| match column.name {
                    ACCOUNT => "$1".to_owned(),
                    _ => given.add(column.cells),
                });
                sql.push_str(&list(cells));
                sql.push_str(" FROM ");
                sql.push_str(&given.table(values));
            }
        }
        Some(Effect::insert(sql, self.on_conflict))
    }
}

/// Rows to delete from one table of the account.
pub struct Deletion {
    /// The table.
    pub table: &'static str,
    /// The columns that name rows within the account.
    pub key: &'static [&'static str],
    /// Their values.
    pub rows: Vec<Vec<Value>>,
    /// Whether there may be no such rows.
    pub may_find_none: bool,
}

impl Deletion {
    /// Splits the rows, so that those of one statement are within the limit.
    fn batches(self) -> Vec<Self> {
        let mut rows = self.rows.into_iter().peekable();
        let mut batches = Vec::new();
        while rows.peek().is_some() {
            let rows = rows.by_ref().take(MAX_ROWS).collect();
            batches.push(Self { rows, ..self });
        }
        batches
    }

    /// One DELETE of all rows. `account` is the placeholder of the account.
    fn delete(self, account: impl Display, values: &mut Values) -> String {
        let Self {
            table,
            key,
            mut rows,
            may_find_none: _,
        } = self;
        if rows.len() == 1 {
            // With a list of one row, SQLite would make a temporary table for it.
            let row = rows.swap_remove(0);
            let cells = key.iter().zip(row);
            let cells = cells.map(|(column, value)| format!("{column} = {}", values.bind(value)));
            let cells: Vec<String> = cells.collect();
            let row = cells.join(" AND ");
            return format!("DELETE FROM {table} WHERE account_id = {account} AND {row}");
        }
        let rows = list(rows.into_iter().map(|row| values.bind_row(row)));
        format!(
            "DELETE FROM {table} WHERE account_id = {account} AND ({}) IN (VALUES {rows})",
            key.join(", ")
        )
    }
}

/// Rows that are inserted, updated or deleted.
pub enum RowChange {
    /// They are inserted or updated.
    Upsert(Upsert),
    /// They are deleted.
    Delete(Deletion),
}

impl RowChange {
    /// Splits the rows, so that those of one statement are within the limits.
    pub fn batches(self) -> Vec<Self> {
        match self {
            Self::Upsert(rows) => rows.batches().into_iter().map(Self::Upsert).collect(),
            Self::Delete(rows) => rows.batches().into_iter().map(Self::Delete).collect(),
        }
    }

    /// The most values that a statement of all rows has.
    pub fn value_count(&self) -> usize {
        match self {
            Self::Upsert(rows) => rows.count() * rows.columns.len(),
            // One is the account.
            Self::Delete(rows) => 1 + rows.rows.len() * rows.key.len(),
        }
    }

    /// One statement of all rows, which uses the values in the order of binding.
    pub fn statement(self, account: &AccountId, values: &mut Values, backend: DbBackend) -> String {
        match self {
            Self::Upsert(rows) => rows.insert(values, backend),
            Self::Delete(rows) => {
                let account = values.bind(account.as_str());
                rows.delete(account, values)
            }
        }
    }

    /// The change when the guard of a script has changed a row; `None` for no rows.
    pub fn if_guarded(self, values: &mut Values, backend: DbBackend) -> Option<Effect> {
        match self {
            Self::Upsert(rows) => rows.insert_if_guarded(values, backend),
            Self::Delete(rows) if rows.rows.is_empty() => None,
            Self::Delete(rows) => {
                let may_find_none = rows.may_find_none;
                let effect = Effect::delete(rows.delete("$1", values));
                Some(match may_find_none {
                    true => effect.may_change_none(),
                    false => effect,
                })
            }
        }
    }
}

/// The columns in which two states of a row differ, as `column = $n`.
pub fn assignments<A: ActiveModelTrait>(
    mut before: A,
    mut after: A,
    values: &mut Values,
) -> String {
    let mut sql = String::new();
    for column in <A::Entity as EntityTrait>::Column::iter() {
        let stored = before.take(column).into_value();
        let Some(value) = after.take(column).into_value() else {
            continue;
        };
        if stored.as_ref() != Some(&value) {
            if !sql.is_empty() {
                sql.push_str(", ");
            }
            sql.push_str(column.as_str());
            sql.push_str(" = ");
            values.bind_onto(&mut sql, [value]);
        }
    }
    sql
}

#[cfg(test)]
mod tests;
