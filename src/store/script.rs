//! Writes that are sent at once: one statement on PostgreSQL, one hand-over to
//! the connection's thread on SQLite. What a write costs is how often it waits,
//! not what it does then.

use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DbBackend, DbErr, EntityName, EntityTrait, Iden, Iterable,
    QueryResult, Value,
};

use super::{
    fault::Fault,
    transaction::{Connection, Tx},
};

/// What the other statements read from in place of [`Script::decides`].
pub(super) const CHANGED: &str = "{changed}";

/// A write whose first statement decides whether anything is done.
///
/// *Invariant:* it changes one row or none; when it changes none, nothing of the
/// script is done. It has no need of a lock held before: on PostgreSQL it waits
/// for whoever changes the row, and then sees the row as that one has left it.
/// What it does not look at may have changed since, so the row must stand for all
/// that the script relies on, or the script must be [`wary`](Script::wary).
pub(super) struct Script {
    /// An INSERT, or an UPDATE with its condition.
    pub decides: String,
    /// The columns of the changed row that the other statements use.
    pub columns: &'static str,
    /// The FROM and WHERE that find the row again.
    pub row: &'static str,
    /// Statements that read from [`CHANGED`], each of which changes at least one
    /// row; the last may change none, unless the script is wary.
    pub then: Vec<String>,
    /// Whether the rows of `then` may change while the script waits for the first:
    /// it fails when one of them is not found, and with it all is taken back.
    pub wary: bool,
}

impl Script {
    /// The script in the words of a database.
    pub fn sql(&self, backend: DbBackend) -> String {
        match backend {
            DbBackend::Sqlite => self.for_sqlite(),
            _ => self.for_postgres(),
        }
    }

    fn for_sqlite(&self) -> String {
        let Self {
            decides,
            columns,
            row,
            then,
            // Nobody else writes meanwhile.
            wary: _,
        } = self;
        // True when the statement before has changed something.
        let changed = format!("(SELECT {columns} {row} AND changes() > 0) AS changed");
        let mut sql = format!("{decides} RETURNING {columns}");
        for statement in then {
            sql.push_str("; ");
            sql.push_str(&statement.replace(CHANGED, &changed));
        }
        sql
    }

    fn for_postgres(&self) -> String {
        let Self {
            decides,
            columns,
            row: _,
            then,
            wary,
        } = self;
        let mut sql = format!("WITH changed AS ({decides} RETURNING {columns})");
        let mut shown = "*".to_owned();
        for (index, statement) in then.iter().enumerate() {
            let statement = statement.replace(CHANGED, "changed");
            let returning = if *wary { " RETURNING 1" } else { "" };
            sql.push_str(&format!(", then{index} AS ({statement}{returning})"));
            if *wary {
                // There is no other way to fail: see the class of 22012.
                shown.push_str(&format!(", 1 / (SELECT count(*) FROM then{index})"));
            }
        }
        format!("{sql} SELECT {shown} FROM changed")
    }
}

/// What a script does besides: statements and their values, which are numbered from
/// a first one on.
pub(super) struct Besides {
    first: usize,
    /// The statements.
    pub then: Vec<String>,
    /// Their values.
    pub values: Vec<Value>,
}

impl Besides {
    pub fn from(first: usize) -> Self {
        Self {
            first,
            then: Vec::new(),
            values: Vec::new(),
        }
    }

    /// The placeholder of a value.
    pub fn value(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        placeholder(self.first + self.values.len() - 1)
    }

    /// Adds a row, or does `otherwise`: an ON CONFLICT, or nothing.
    pub fn insert<A>(&mut self, row: &A, otherwise: &str)
    where
        A: ActiveModelTrait,
    {
        let entity = A::Entity::default();
        let columns = || <A::Entity as EntityTrait>::Column::iter();
        let names = list(columns().map(|column| column.to_string()));
        let values: Vec<String> = columns()
            .filter_map(|column| row.get(column).into_value())
            .map(|value| self.value(value))
            .collect();
        self.then.push(format!(
            "INSERT INTO {} ({names}) SELECT {} FROM {CHANGED} WHERE true {otherwise}",
            entity.table_name(),
            values.join(", "),
        ));
    }
}

/// What is done with a row that is there already: the columns that take what was to
/// be inserted.
pub(super) fn upsert<C: Iden>(key: &[C], change: &[C]) -> String {
    let key = list(key.iter().map(Iden::to_string));
    let change = change.iter().map(|column| {
        let column = column.to_string();
        format!("{column} = excluded.{column}")
    });
    format!("ON CONFLICT ({key}) DO UPDATE SET {}", list(change))
}

/// A script in the words of both databases.
pub(super) struct Words {
    sqlite: String,
    postgres: String,
}

impl Words {
    pub fn of(script: &Script) -> Self {
        Self {
            sqlite: script.sql(DbBackend::Sqlite),
            postgres: script.sql(DbBackend::Postgres),
        }
    }

    /// For the database of a write.
    pub fn for_database_of(&self, tx: &Tx) -> &str {
        match tx.backend() {
            DbBackend::Sqlite => &self.sqlite,
            _ => &self.postgres,
        }
    }
}

/// The value of this number.
pub(super) fn placeholder(number: usize) -> String {
    format!("${number}")
}

/// A list of names or values.
pub(super) fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

impl Tx {
    /// Runs a script in the words of this database. The changed row, if there is
    /// one.
    pub async fn run(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Option<QueryResult>, Fault> {
        let rows = self.db.query_all_raw(self.statement(sql, values)).await;
        let rows = rows.map_err(|err| self.fault(err))?;
        Ok(rows.into_iter().next())
    }
}

impl Tx {
    /// What it means when a statement that writes fails.
    pub fn fault(&self, err: DbErr) -> Fault {
        match &self.db {
            // It is its own COMMIT.
            Connection::Alone(_) => Fault::of_commit(err),
            Connection::Within(_) => Fault::from(err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(wary: bool) -> Script {
        Script {
            decides: "UPDATE tasks SET last_position = last_position + $2 WHERE guid = $1"
                .to_owned(),
            columns: "last_position",
            row: "FROM tasks WHERE guid = $1",
            then: vec!["INSERT INTO steps SELECT $3, last_position FROM {changed}".to_owned()],
            wary,
        }
    }

    #[test]
    fn a_script_is_one_statement_on_postgres() {
        assert_eq!(
            script(false).sql(DbBackend::Postgres),
            "WITH changed AS (UPDATE tasks SET last_position = last_position + $2 \
             WHERE guid = $1 RETURNING last_position), \
             then0 AS (INSERT INTO steps SELECT $3, last_position FROM changed) \
             SELECT * FROM changed"
        );
    }

    #[test]
    fn on_sqlite_each_statement_depends_on_the_one_before() {
        assert_eq!(
            script(false).sql(DbBackend::Sqlite),
            "UPDATE tasks SET last_position = last_position + $2 WHERE guid = $1 \
             RETURNING last_position; \
             INSERT INTO steps SELECT $3, last_position FROM \
             (SELECT last_position FROM tasks WHERE guid = $1 AND changes() > 0) AS changed"
        );
    }

    #[test]
    fn a_wary_script_fails_where_a_row_is_not_found() {
        let sql = script(true).sql(DbBackend::Postgres);
        let end =
            "FROM changed RETURNING 1) SELECT *, 1 / (SELECT count(*) FROM then0) FROM changed";
        assert!(sql.ends_with(end), "{sql}");
    }
}
