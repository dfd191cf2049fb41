//! Values of statements. Placeholders are numbered as values are bound.

use sea_orm::{DbBackend, Statement, Value};

use super::statement;
use crate::domain::ids::AccountId;

/// The most ids in one statement.
pub const MAX_IDS_PER_STATEMENT: usize = 1_000;

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

    /// No values, and no account. Each value must be used once, in the order of binding.
    pub fn in_order() -> Self {
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

    /// Binds values and returns their placeholders as a list.
    pub fn bind_all<V: Into<Value>>(&mut self, values: impl IntoIterator<Item = V>) -> String {
        list(values.into_iter().map(|value| self.bind(value)))
    }

    /// Binds the values of a row and returns their placeholders in parentheses.
    pub fn bind_row(&mut self, row: impl IntoIterator<Item = Value>) -> String {
        format!("({})", self.bind_all(row))
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

/// Names, values or the like with commas between them.
pub fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
