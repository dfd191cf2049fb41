//! Builds statements that write.

use sea_orm::{
    ActiveModelTrait, DbBackend, EntityName, EntityTrait, Iden, Iterable, Statement, Value,
};

use crate::domain::ids::AccountId;

pub use crate::store::values::{Values, list};

/// What an effect of a [`Script`] reads from in place of its guard.
pub const GUARD: &str = "{guard}";
/// The column with the account of a row.
const ACCOUNT: &str = "account_id";
/// Rows of one statement.
const MAX_ROWS: usize = 1_000;

/// Rows to insert or upsert into one table.
pub struct Upsert {
    table: String,
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    /// `ON CONFLICT …`, or nothing.
    on_conflict: String,
}

impl Upsert {
    /// Rows that are new.
    pub fn new<A: ActiveModelTrait>(rows: Vec<A>) -> Self {
        let mut columns = Vec::new();
        let rows = rows.into_iter().map(|mut row| {
            let columns_of = <A::Entity as EntityTrait>::Column::iter();
            let cells =
                columns_of.filter_map(|column| Some((column, row.take(column).into_value()?)));
            let (names, cells): (Vec<String>, Vec<Value>) = cells
                .map(|(column, value)| (column.to_string(), value))
                .unzip();
            columns = names;
            cells
        });
        let rows = rows.collect();
        Self {
            table: A::Entity::default().table_name().to_owned(),
            columns,
            rows,
            on_conflict: String::new(),
        }
    }

    /// Updates a row that exists: on a conflict on `key`, sets the columns for which
    /// `changes` is true.
    pub fn or_update(self, key: &[&str], changes: impl Fn(&str) -> bool) -> Self {
        let changed = self.columns.iter().filter(|column| changes(column));
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
        let Self {
            table,
            columns,
            rows,
            on_conflict: _,
        } = self;
        let names = columns.join(", ");
        let cells = list(rows.into_iter().map(|row| values.bind_all(row)));
        format!("INSERT INTO {table} ({names}) SELECT {cells} WHERE true")
    }

    /// Splits the rows, so that those of one statement are within the limits of values and
    /// rows.
    fn batches(self) -> Vec<Self> {
        /// Values of one statement: SQLite takes 32,766.
        const MAX_VALUES: usize = 32_000;
        let Self {
            table,
            columns,
            rows,
            on_conflict,
        } = self;
        let at_once = (MAX_VALUES / columns.len().max(1)).min(MAX_ROWS);
        let batch = |rows| Self {
            table: table.clone(),
            columns: columns.clone(),
            rows,
            on_conflict: on_conflict.clone(),
        };
        batches(rows, at_once).into_iter().map(batch).collect()
    }

    /// One INSERT of all rows.
    fn insert(self, values: &mut Values) -> String {
        let Self {
            table,
            columns,
            rows,
            on_conflict,
        } = self;
        let names = columns.join(", ");
        let rows = list(rows.into_iter().map(|row| values.bind_row(row)));
        format!("INSERT INTO {table} ({names}) VALUES {rows}{on_conflict}")
    }

    /// Splits the rows into INSERTs within the limits of values and rows.
    pub fn statements(self) -> Vec<(String, Values)> {
        let statement = |batch: Self| {
            let mut values = Values::in_order();
            (batch.insert(&mut values), values)
        };
        self.batches().into_iter().map(statement).collect()
    }

    /// One statement that inserts the rows when the guard has changed a row; none for no
    /// rows. `replaced` are columns of a single row that take an expression over the
    /// guard's row.
    pub fn insert_if_guarded(
        self,
        values: &mut Values,
        replaced: &[(&str, &str)],
    ) -> Option<String> {
        let Self {
            table,
            columns,
            mut rows,
            on_conflict,
        } = self;
        let names = columns.join(", ");
        let last = rows.pop()?;
        // SQLite needs the WHERE to tell ON CONFLICT from a join.
        if rows.is_empty() {
            let cell = |(column, value): (&String, Value)| {
                let replaced = replaced.iter().find(|(name, _)| name == column);
                match replaced {
                    Some((_, expression)) => (*expression).to_owned(),
                    None => values.bind(value),
                }
            };
            let cells = list(columns.iter().zip(last).map(cell));
            return Some(format!(
                "INSERT INTO {table} ({names}) SELECT {cells} FROM {GUARD} WHERE true{on_conflict}"
            ));
        }
        rows.push(last);
        let mut given = 0;
        let cells = columns.iter().map(|column| match column.as_str() {
            ACCOUNT => "$1".to_owned(),
            _ => {
                given += 1;
                format!("column{given}")
            }
        });
        let cells = list(cells);
        let row = |row: Vec<Value>| {
            let cells = columns.iter().zip(row);
            let cells = cells.filter(|(column, _)| *column != ACCOUNT);
            values.bind_row(cells.map(|(_, value)| value))
        };
        let rows = list(rows.into_iter().map(row));
        Some(format!(
            "INSERT INTO {table} ({names}) SELECT {cells} FROM {GUARD}, (VALUES {rows}) AS given \
             WHERE true{on_conflict}"
        ))
    }
}

/// Rows to delete from one table of the account.
pub struct Deletion {
    /// The table.
    pub table: &'static str,
    /// The columns that name a row within the account.
    pub key: [&'static str; 3],
    /// Their values, for each row.
    pub rows: Vec<[Value; 3]>,
}

impl Deletion {
    /// Splits the rows, so that those of one statement are within the limit.
    fn batches(self) -> Vec<Self> {
        let Self { table, key, rows } = self;
        let batch = |rows| Self { table, key, rows };
        batches(rows, MAX_ROWS).into_iter().map(batch).collect()
    }

    /// One DELETE of all rows. `account` is the placeholder of the account.
    fn delete(self, account: &str, values: &mut Values) -> String {
        let Self { table, key, rows } = self;
        let rows = list(rows.into_iter().map(|row| values.bind_row(row)));
        format!(
            "DELETE FROM {table} WHERE account_id = {account} AND ({}) IN (VALUES {rows})",
            key.join(", ")
        )
    }
}

/// Rows that are put into a table or deleted from it.
pub enum RowChange {
    /// They are put.
    Put(Upsert),
    /// They are deleted.
    Delete(Deletion),
}

impl RowChange {
    /// Splits the rows, so that those of one statement are within the limits.
    pub fn batches(self) -> Vec<Self> {
        match self {
            Self::Put(rows) => rows.batches().into_iter().map(Self::Put).collect(),
            Self::Delete(rows) => rows.batches().into_iter().map(Self::Delete).collect(),
        }
    }

    /// One statement of all rows, whose values are used in their order.
    pub fn statement(self, account: &AccountId, values: &mut Values) -> String {
        match self {
            Self::Put(rows) => rows.insert(values),
            Self::Delete(rows) => {
                let account = values.bind(account.as_str());
                rows.delete(&account, values)
            }
        }
    }

    /// One statement that takes place when the guard of a script has changed a row; none
    /// for no rows.
    pub fn if_guarded(self, values: &mut Values) -> Option<String> {
        match self {
            Self::Put(rows) => rows.insert_if_guarded(values, &[]),
            Self::Delete(rows) if rows.rows.is_empty() => None,
            Self::Delete(rows) => {
                let delete = rows.delete("$1", values);
                Some(format!("{delete} AND EXISTS (SELECT 1 FROM {GUARD})"))
            }
        }
    }
}

/// Splits rows into batches.
fn batches<T>(rows: Vec<T>, at_once: usize) -> Vec<Vec<T>> {
    let mut rows = rows.into_iter().peekable();
    let mut batches = Vec::new();
    while rows.peek().is_some() {
        batches.push(rows.by_ref().take(at_once).collect());
    }
    batches
}

/// The columns of a row that an UPDATE sets, as `column = $n`.
pub fn assignments<A: ActiveModelTrait>(
    mut row: A,
    values: &mut Values,
    changes: impl Fn(&str) -> bool,
) -> String {
    let columns = <A::Entity as EntityTrait>::Column::iter();
    let columns = columns.filter(|column| changes(&column.to_string()));
    list(columns.filter_map(|column| {
        let value = row.take(column).into_value()?;
        Some(format!("{} = {}", column.to_string(), values.bind(value)))
    }))
}

/// A write that is sent at once: one statement on PostgreSQL, one hand-over to the
/// connection's thread on SQLite.
///
/// *Invariant:* the guard changes one row or none; when it changes none, no effect takes
/// place. It needs no lock held before: on PostgreSQL it waits for whoever changes the
/// row and then sees the row as that one has left it. The guard must check everything that
/// the write relies on; otherwise the effects must be [verified](Script::verified).
pub struct Script {
    /// An INSERT, UPDATE or DELETE with its condition.
    pub guard: String,
    /// The columns of the guard's row that the effects and the answer use.
    pub returning: &'static str,
    /// The FROM and WHERE that find the guard's row again.
    pub guard_row: String,
    /// Statements that read from [`GUARD`]. On SQLite each runs only if the one before has
    /// changed a row, so only the last one may change none.
    pub effects: Vec<String>,
    /// Fail and roll back when an effect changes no row.
    pub verified: bool,
    /// The values of all statements.
    pub values: Values,
}

impl Script {
    /// The script as a database takes it.
    pub fn statement(self, backend: DbBackend, account: &AccountId) -> Statement {
        let sql = match backend {
            DbBackend::Sqlite => self.for_sqlite(),
            _ => self.for_postgres(),
        };
        self.values.statement(&sql, backend, account)
    }

    fn for_sqlite(&self) -> String {
        // `changes()` counts the rows of the statement before. Nobody else writes
        // meanwhile, so there is nothing to verify.
        let Self {
            guard,
            returning,
            guard_row,
            effects,
            verified: _,
            values: _,
        } = self;
        let changed = format!("(SELECT {returning} {guard_row} AND changes() > 0) AS guard");
        let mut sql = format!("{guard} RETURNING {returning}");
        for effect in effects {
            sql.push_str("; ");
            sql.push_str(&effect.replace(GUARD, &changed));
        }
        sql
    }

    fn for_postgres(&self) -> String {
        let Self {
            guard,
            returning,
            guard_row: _,
            effects,
            verified,
            values: _,
        } = self;
        let mut sql = format!("WITH guard AS ({guard} RETURNING {returning})");
        let mut answer = String::from(*returning);
        for (index, effect) in effects.iter().enumerate() {
            let effect = effect.replace(GUARD, "guard");
            let returned = if *verified { " RETURNING 1" } else { "" };
            sql.push_str(&format!(", effect{index} AS ({effect}{returned})"));
            if *verified {
                // A division by zero (SQLSTATE 22012) rolls the statement back.
                answer.push_str(&format!(", 1 / (SELECT count(*) FROM effect{index})"));
            }
        }
        format!("{sql} SELECT {answer} FROM guard")
    }
}
