//! Adds rows to tables by SQL, as a million calls would take too long.

use std::str::FromStr;

use expertise::domain::order::GAP;
use sqlx::{
    AssertSqlSafe, Connection, Executor, PgConnection, Row, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};
use uuid::Uuid;

/// The SQL in which the databases differ.
struct Dialect {
    /// Selects the names of the columns of `{table}`.
    columns: &'static str,
    /// A table `g(n)` of numbers from 1.
    numbers: fn(usize) -> String,
    /// An expression for the [`id`] of the number that another expression gives. These ids
    /// sort before those of the service.
    id: fn(&str) -> String,
    /// Settings for fast writes. On PostgreSQL they turn off durability and foreign keys, as
    /// the options of [`sqlite`] do.
    fast_writes: &'static str,
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
    fast_writes: "PRAGMA cache_size = -262144",
};

const POSTGRES: Dialect = Dialect {
    columns: "SELECT column_name::text FROM information_schema.columns \
              WHERE table_name = '{table}' ORDER BY ordinal_position",
    numbers: |count| format!("generate_series(1, {count}) g(n)"),
    id: |n| format!("('0100' || lpad(to_hex({n}), 12, '0') || '8000000000000000')::uuid"),
    fast_writes: "SET session_replication_role = replica; SET synchronous_commit = off",
};

/// The id of an added step, numbered from 1.
pub fn id(number: usize) -> String {
    let id = format!("0100{number:012x}8000000000000000");
    Uuid::try_parse(&id).expect("an id").to_string()
}

/// Copies of the first row of a table.
struct Copies {
    table: &'static str,
    count: usize,
    /// The columns that differ, with an expression over the number `n` of the copy.
    replaced: Vec<(&'static str, String)>,
}

/// Adds tasks of `steps_per_task` steps, with `steps` steps in total.
pub async fn add_steps(database: &str, steps: usize, steps_per_task: usize) {
    add(database, |dialect| {
        tasks_with_steps(dialect, steps, steps_per_task)
    })
    .await;
}

fn tasks_with_steps(dialect: &Dialect, steps: usize, steps_per_task: usize) -> Vec<Copies> {
    let id = dialect.id;
    let position = format!("((n - 1) % {steps_per_task} + 1) * {GAP}");
    vec![
        Copies {
            table: "tasks",
            count: steps / steps_per_task,
            replaced: vec![("guid", id("n"))],
        },
        Copies {
            table: "steps",
            count: steps,
            replaced: vec![
                ("guid", id("n")),
                ("task", id(&nth_task(steps_per_task))),
                ("position", position),
            ],
        },
    ]
}

/// An expression for the number of the task of step `n`.
fn nth_task(steps_per_task: usize) -> String {
    format!("((n - 1) / {steps_per_task} + 1)")
}

/// Adds a row to the index of names for each of the first `steps` added steps, each with
/// another name.
pub async fn add_name_uses(database: &str, steps: usize) {
    let copies = |dialect: &Dialect| {
        let replaced = vec![
            ("name", "'name' || n".to_owned()),
            ("guid", (dialect.id)("n")),
        ];
        vec![Copies {
            table: "name_uses",
            count: steps,
            replaced,
        }]
    };
    add(database, copies).await;
}

/// Runs a statement.
pub async fn execute(database: &str, sql: &'static str) {
    let done = match database.strip_prefix("sqlite:") {
        Some(_) => sqlite(database).await.execute(sql).await.map(drop),
        None => {
            let connection = PgConnection::connect(database).await;
            connection.expect("a database").execute(sql).await.map(drop)
        }
    };
    done.expect("the statement runs");
}

async fn add(database: &str, copies: impl Fn(&Dialect) -> Vec<Copies>) {
    match database.strip_prefix("sqlite:") {
        Some(_) => insert(&mut sqlite(database).await, &SQLITE, copies(&SQLITE)).await,
        None => {
            let connection = PgConnection::connect(database).await;
            let mut connection = connection.expect("a database");
            insert(&mut connection, &POSTGRES, copies(&POSTGRES)).await;
        }
    }
}

async fn sqlite(database: &str) -> SqliteConnection {
    let options = SqliteConnectOptions::from_str(database)
        .expect("a path")
        .foreign_keys(false)
        .synchronous(SqliteSynchronous::Off);
    let connection = SqliteConnection::connect_with(&options).await;
    connection.expect("a database")
}

async fn insert<'c, C>(connection: &'c mut C, dialect: &Dialect, copies: Vec<Copies>)
where
    C: Connection,
    for<'e> &'e mut C: Executor<'e, Database = C::Database>,
    for<'r> String: sqlx::Decode<'r, C::Database> + sqlx::Type<C::Database>,
    usize: sqlx::ColumnIndex<<C::Database as sqlx::Database>::Row>,
{
    let set = connection.execute(dialect.fast_writes).await;
    set.expect("it is set");
    for Copies {
        table,
        count,
        replaced,
    } in copies
    {
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
            .expect("the statement runs");
    }
}
