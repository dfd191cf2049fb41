//! Writes that are sent at once: one statement on PostgreSQL, one hand-over to
//! the connection's thread on SQLite. What a write costs is how often it waits,
//! not what it does then.

use sea_orm::{ConnectionTrait, DbBackend, DbErr, QueryResult, Value};

use super::{
    backend,
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
/// that the script relies on.
pub(super) struct Script<'a> {
    /// An UPDATE with its condition.
    pub decides: &'a str,
    /// The columns of the changed row that the other statements use.
    pub columns: &'a str,
    /// The FROM and WHERE that find the row again.
    pub row: &'a str,
    /// Statements that read from [`CHANGED`], each of which changes at least one
    /// row.
    pub then: &'a [&'a str],
}

impl Script<'_> {
    /// The script in the words of a database.
    pub fn sql(&self, backend: DbBackend) -> String {
        let Self {
            decides,
            columns,
            row,
            then,
        } = self;
        match backend {
            DbBackend::Sqlite => {
                // True when the statement before has changed something.
                let changed = format!("(SELECT {columns} {row} AND changes() > 0) AS changed");
                let mut sql = format!("{decides} RETURNING {columns}");
                for statement in *then {
                    sql.push_str("; ");
                    sql.push_str(&statement.replace(CHANGED, &changed));
                }
                sql
            }
            _ => {
                let mut sql = format!("WITH changed AS ({decides} RETURNING {columns})");
                for (index, statement) in then.iter().enumerate() {
                    let statement = statement.replace(CHANGED, "changed");
                    sql.push_str(&format!(", then{index} AS ({statement})"));
                }
                sql.push_str(" SELECT * FROM changed");
                sql
            }
        }
    }
}

/// A script in the words of both databases.
pub(super) struct Words {
    sqlite: String,
    postgres: String,
}

impl Words {
    pub fn of(script: &Script<'_>) -> Self {
        Self {
            sqlite: script.sql(DbBackend::Sqlite),
            postgres: script.sql(DbBackend::Postgres),
        }
    }

    /// For the database of a write.
    pub fn for_database_of(&self, tx: &Tx) -> &str {
        match backend(&tx.db) {
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

    const SCRIPT: Script = Script {
        decides: "UPDATE tasks SET last_position = last_position + $2 WHERE guid = $1",
        columns: "last_position",
        row: "FROM tasks WHERE guid = $1",
        then: &["INSERT INTO steps SELECT $3, last_position FROM {changed}"],
    };

    #[test]
    fn a_script_is_one_statement_on_postgres() {
        assert_eq!(
            SCRIPT.sql(DbBackend::Postgres),
            "WITH changed AS (UPDATE tasks SET last_position = last_position + $2 \
             WHERE guid = $1 RETURNING last_position), \
             then0 AS (INSERT INTO steps SELECT $3, last_position FROM changed) \
             SELECT * FROM changed"
        );
    }

    #[test]
    fn on_sqlite_each_statement_depends_on_the_one_before() {
        assert_eq!(
            SCRIPT.sql(DbBackend::Sqlite),
            "UPDATE tasks SET last_position = last_position + $2 WHERE guid = $1 \
             RETURNING last_position; \
             INSERT INTO steps SELECT $3, last_position FROM \
             (SELECT last_position FROM tasks WHERE guid = $1 AND changes() > 0) AS changed"
        );
    }
}
