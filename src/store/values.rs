//! Values of statements. Placeholders are numbered as values are bound.

use std::fmt::{self, Display, Write};

use sea_orm::{DbBackend, Statement, Value, Values as BoundValues};

use crate::domain::ids::AccountId;

/// The most values of one statement. SQLite takes 32,766.
pub const MAX_VALUES: usize = 32_000;
/// The most ids in one statement.
pub const MAX_IDS_PER_STATEMENT: usize = 1_000;

/// A value in the text of a statement: `$n`.
#[derive(Clone, Copy, Debug)]
pub struct Placeholder(usize);

impl Display for Placeholder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "${}", self.0)
    }
}

/// Values of one statement or script.
pub struct Values {
    /// If `with_account`, the first is the account, which [`Values::statement`] sets.
    values: Vec<Value>,
    /// Whether `$1` is the account. Otherwise each value is used once, in its order.
    with_account: bool,
}

impl Values {
    /// No values but the account, which is `$1`.
    pub fn new() -> Self {
        Self {
            values: vec![Value::String(None)],
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

    /// Whether a statement may have so many values more.
    pub fn have_room(&self, count: usize) -> bool {
        self.values.len() + count <= MAX_VALUES
    }

    /// Binds a value and returns its placeholder.
    pub fn bind(&mut self, value: impl Into<Value>) -> Placeholder {
        self.values.push(value.into());
        Placeholder(self.values.len())
    }

    /// Binds values and appends their placeholders to a text, as a list.
    pub fn bind_onto<V: Into<Value>>(
        &mut self,
        text: &mut String,
        values: impl IntoIterator<Item = V>,
    ) {
        for (index, value) in values.into_iter().enumerate() {
            self.values.push(value.into());
            let comma = if index == 0 { "" } else { ", " };
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{comma}${}", self.values.len());
        }
    }

    /// Binds values and returns their placeholders as a list.
    pub fn bind_all<V: Into<Value>>(&mut self, values: impl IntoIterator<Item = V>) -> String {
        let mut text = String::new();
        self.bind_onto(&mut text, values);
        text
    }

    /// Binds the values of a row and returns their placeholders in parentheses.
    pub fn bind_row(&mut self, row: impl IntoIterator<Item = Value>) -> String {
        let mut text = String::from("(");
        self.bind_onto(&mut text, row);
        text.push(')');
        text
    }

    /// The statement that has these values.
    pub fn statement(
        mut self,
        sql: impl Into<String>,
        db_backend: DbBackend,
        account: &AccountId,
    ) -> Statement {
        let mut sql = sql.into();
        match self.values.first_mut() {
            Some(first) if self.with_account => *first = account.as_str().into(),
            // SQLite looks up `$n` by name, linearly: 30,000 of them take seconds.
            _ if db_backend == DbBackend::Sqlite => sql = unnumbered(&sql),
            _ => {}
        }
        Statement {
            sql,
            values: Some(BoundValues(self.values)),
            db_backend,
        }
    }
}

/// A statement with `?` in place of `$n`, which must be used once each and in their order.
fn unnumbered(sql: &str) -> String {
    let mut parts = sql.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        debug_assert!(part.starts_with(&format!("{}{rest}", index + 1)), "{sql}");
        text.push('?');
        text.push_str(rest);
    }
    text
}

/// Names, values or the like with commas between them.
pub fn list(items: impl Iterator<Item = impl Display>) -> String {
    let mut text = String::new();
    for item in items {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{comma}{item}");
    }
    text
}
