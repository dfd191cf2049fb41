//! Fills the service's tables by SQL, as a million steps through the wire would
//! take longer than everything else: rows that are there are copied under new ids.

use std::str::FromStr;

use sqlx::{
    AssertSqlSafe, Connection, Executor, PgConnection, Row, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};

/// What differs between the two databases.
struct Dialect {
    /// The columns of a table.
    columns: &'static str,
    /// Numbers from 1, as `g(n)`.
    numbers: fn(usize) -> String,
    /// The id of a number, before all that the service makes.
    id: fn(&str) -> String,
    /// What makes writing quick where nothing can be lost.
    quick: &'static str,
}

const SQLITE: Dialect = Dialect {
    columns: "SELECT name FROM pragma_table_info('{table}')",
    numbers: |count| {
        format!(
            "(WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {count}) \
             SELECT n FROM g) g"
        )
    },
    id: |n| format!("unhex(printf('0100%012x8000000000000000', {n}))"),
    quick: "PRAGMA cache_size = -262144",
};

const POSTGRES: Dialect = Dialect {
    columns: "SELECT column_name::text FROM information_schema.columns \
              WHERE table_name = '{table}' ORDER BY ordinal_position",
    numbers: |count| format!("generate_series(1, {count}) g(n)"),
    id: |n| format!("('0100' || lpad(to_hex({n}), 12, '0') || '8000000000000000')::uuid"),
    quick: "SET session_replication_role = replica; SET synchronous_commit = off",
};

/// Adds this many steps to a database, in tasks of `each`.
pub async fn to(database: &str, steps: usize, each: usize) {
    match database.strip_prefix("sqlite:") {
        Some(_) => swell(&mut sqlite(database).await, &SQLITE, steps, each).await,
        None => {
            let connection = PgConnection::connect(database).await;
            swell(&mut connection.expect("it"), &POSTGRES, steps, each).await;
        }
    }
}

async fn sqlite(database: &str) -> SqliteConnection {
    let options = SqliteConnectOptions::from_str(database)
        .expect("a path")
        .foreign_keys(false)
        .synchronous(SqliteSynchronous::Off);
    let connection = SqliteConnection::connect_with(&options).await;
    connection.expect("it")
}

async fn swell<'c, C>(connection: &'c mut C, dialect: &Dialect, steps: usize, each: usize)
where
    C: Connection,
    for<'e> &'e mut C: Executor<'e, Database = C::Database>,
    for<'r> String: sqlx::Decode<'r, C::Database> + sqlx::Type<C::Database>,
    usize: sqlx::ColumnIndex<<C::Database as sqlx::Database>::Row>,
{
    let id = dialect.id;
    let task = format!("((n - 1) / {each} + 1)");
    let position = format!("((n - 1) % {each} + 1) * 1048576");
    let copies = [
        ("tasks", steps / each, vec![("guid", id("n"))]),
        (
            "steps",
            steps,
            vec![
                ("guid", id("n")),
                ("task", id(&task)),
                ("position", position),
            ],
        ),
        ("step_bodies", steps, vec![("step", id("n"))]),
    ];
    let quick = connection.execute(dialect.quick).await;
    quick.expect("it is set");
    for (table, count, replaced) in copies {
        let columns = dialect.columns.replace("{table}", table);
        let columns = connection.fetch_all(AssertSqlSafe(columns)).await;
        let columns: Vec<String> = columns
            .expect("its columns")
            .iter()
            .map(|row| row.get(0))
            .collect();
        let values: Vec<String> = columns
            .iter()
            .map(|column| {
                let new = replaced.iter().find(|(name, _)| name == column);
                new.map_or_else(|| format!("s.{column}"), |(_, value)| value.clone())
            })
            .collect();
        let sql = format!(
            "INSERT INTO {table} ({}) SELECT {} FROM (SELECT * FROM {table} LIMIT 1) s \
             CROSS JOIN {}",
            columns.join(", "),
            values.join(", "),
            (dialect.numbers)(count)
        );
        connection
            .execute(AssertSqlSafe(sql))
            .await
            .expect("copies");
    }
}
