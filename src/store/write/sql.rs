//! Builds statements. Placeholders are numbered as values are bound.

use sea_orm::{
    ActiveModelTrait, DbBackend, EntityName, EntityTrait, Iden, Iterable, Statement, Value,
};

use crate::{domain::ids::AccountId, store::statement};

/// What an effect of a [`Script`] reads from in place of its guard.
pub const GUARD: &str = "{guard}";

/// Values of one statement or script.
pub struct Values {
    values: Vec<Value>,
    /// Whether `$1` is the account. Otherwise each value is used once, in its order.
    with_account: bool,
}

impl Values {
    /// No values but the account, which is `$1`.
    pub fn new() -> Self {
        Self {
            values: Vec::new(),
            with_account: true,
        }
    }

    /// No values. Each that is bound must be used once, in its order.
    fn in_order() -> Self {
        Self {
            values: Vec::new(),
            with_account: false,
        }
    }

    /// Binds a value and returns its placeholder.
    pub fn bind(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len() + usize::from(self.with_account))
    }

    /// The statement that has these values.
    pub fn statement(self, sql: &str, backend: DbBackend, account: &AccountId) -> Statement {
        match (self.with_account, backend) {
            (true, _) => statement(backend, account, sql, self.values),
            // SQLite looks up `$n` by name, linearly: 30,000 of them take seconds.
            (false, DbBackend::Sqlite) => {
                Statement::from_sql_and_values(backend, unnumbered(sql), self.values)
            }
            (false, _) => Statement::from_sql_and_values(backend, sql, self.values),
        }
    }
}

/// A statement with `?` in place of `$n`.
fn unnumbered(sql: &str) -> String {
    let mut parts = sql.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push('?');
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

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

    /// Splits the rows into INSERTs within the limits of values and rows.
    pub fn statements(self) -> Vec<(String, Values)> {
        /// Values of one statement: SQLite takes 32,766.
        const MAX_VALUES: usize = 32_000;
        /// Rows of one statement.
        const MAX_ROWS: usize = 1_000;
        let Self {
            table,
            columns,
            rows,
            on_conflict,
        } = self;
        let at_once = (MAX_VALUES / columns.len().max(1)).min(MAX_ROWS);
        let names = columns.join(", ");
        let mut rows = rows.into_iter().peekable();
        let mut statements = Vec::new();
        while rows.peek().is_some() {
            let mut values = Values::in_order();
            let batch = rows.by_ref().take(at_once);
            let batch = batch.map(|row| format!("({})", values.bind_all(row)));
            let batch = list(batch);
            let sql = format!("INSERT INTO {table} ({names}) VALUES {batch}{on_conflict}");
            statements.push((sql, values));
        }
        statements
    }

    /// A statement for each row that inserts it when the guard has changed a row.
    /// `replaced` are columns that take an expression over the guard's row.
    pub fn insert_if_guarded(self, values: &mut Values, replaced: &[(&str, &str)]) -> Vec<String> {
        let Self {
            table,
            columns,
            rows,
            on_conflict,
        } = self;
        let names = columns.join(", ");
        let cell = |(column, value): (&String, Value), values: &mut Values| {
            let replaced = replaced.iter().find(|(name, _)| name == column);
            match replaced {
                Some((_, expression)) => (*expression).to_owned(),
                None => values.bind(value),
            }
        };
        let statement = |row: Vec<Value>| {
            let cells = columns.iter().zip(row);
            let cells = list(cells.map(|each| cell(each, values)));
            // SQLite needs the WHERE to tell ON CONFLICT from a join.
            format!(
                "INSERT INTO {table} ({names}) SELECT {cells} FROM {GUARD} WHERE true{on_conflict}"
            )
        };
        rows.into_iter().map(statement).collect()
    }
}

impl Values {
    /// Binds values and returns their placeholders as a list.
    pub fn bind_all<V: Into<Value>>(&mut self, values: impl IntoIterator<Item = V>) -> String {
        list(values.into_iter().map(|value| self.bind(value)))
    }
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

/// Names, values or the like with commas between them.
pub fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
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
