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
    /// An expression for a symbol of the number `n`, which belongs to no name.
    symbol: &'static str,
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
    symbol: "unhex(printf('%032x', n))",
    fast_writes: "PRAGMA cache_size = -262144",
};

const POSTGRES: Dialect = Dialect {
    columns: "SELECT column_name::text FROM information_schema.columns \
              WHERE table_name = '{table}' ORDER BY ordinal_position",
    numbers: |count| format!("generate_series(1, {count}) g(n)"),
    id: |n| format!("('0100' || lpad(to_hex({n}), 12, '0') || '8000000000000000')::uuid"),
    symbol: "lpad(to_hex(n), 32, '0')::uuid",
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
    let copies = |dialect: &Dialect| {
        let id = dialect.id;
        let task = id(&format!("((n - 1) / {steps_per_task} + 1)"));
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
                replaced: vec![("guid", id("n")), ("task", task), ("position", position)],
            },
        ]
    };
    add(database, copies).await;
}

/// Adds accounts with a task of `steps` steps each.
pub async fn add_accounts(database: &str, accounts: usize, steps: usize) {
    let copies = |dialect: &Dialect| {
        let id = dialect.id;
        let account = |number: &str| format!("'account' || {number}");
        let task_number = format!("((n - 1) / {steps} + 1)");
        let position = format!("((n - 1) % {steps} + 1) * {GAP}");
        vec![
            Copies {
                table: "tasks",
                count: accounts,
                replaced: vec![("account_id", account("n")), ("guid", id("n"))],
            },
            Copies {
                table: "steps",
                count: accounts * steps,
                replaced: vec![
                    ("account_id", account(&task_number)),
                    ("guid", id("n")),
                    ("task", id(&task_number)),
                    ("position", position),
                ],
            },
        ]
    };
    add(database, copies).await;
}

/// Adds a row to the index of names for each of the first `steps` added steps, each with
/// another symbol.
pub async fn add_symbols(database: &str, steps: usize) {
    let copies = |dialect: &Dialect| {
        let replaced = vec![
            ("symbol", dialect.symbol.to_owned()),
            ("step", (dialect.id)("n")),
        ];
        vec![Copies {
            table: "step_symbols",
            count: steps,
            replaced,
        }]
    };
    add(database, copies).await;
}

/// Copies the conditions and answers of each step of the service to the floor's step at the
/// same place, as the floor's import leaves them out. Each database has one task, with the
/// same number of steps.
pub async fn copy_conditions(service: &str, floor: &str) {
    match service.strip_prefix("sqlite:") {
        Some(_) => copy_conditions_over(&mut sqlite(service).await, &mut sqlite(floor).await).await,
        None => {
            let mut service = PgConnection::connect(service).await.expect("a database");
            let mut floor = PgConnection::connect(floor).await.expect("a database");
            copy_conditions_over(&mut service, &mut floor).await;
        }
    }
}

async fn copy_conditions_over<C>(service: &mut C, floor: &mut C)
where
    C: Connection,
    for<'e> &'e mut C: Executor<'e, Database = C::Database>,
    for<'r> Option<String>: sqlx::Decode<'r, C::Database> + sqlx::Type<C::Database>,
    for<'q> Option<String>: sqlx::Encode<'q, C::Database>,
    for<'r> i64: sqlx::Decode<'r, C::Database> + sqlx::Type<C::Database>,
    for<'q> i64: sqlx::Encode<'q, C::Database>,
    usize: sqlx::ColumnIndex<<C::Database as sqlx::Database>::Row>,
    <C::Database as sqlx::Database>::Arguments: sqlx::IntoArguments<C::Database>,
{
    let read = "SELECT dependencies, feedback_config FROM steps ORDER BY position";
    let rows = service.fetch_all(read).await.expect("the steps");
    let positions = "SELECT position FROM steps ORDER BY position";
    let positions = floor.fetch_all(positions).await.expect("the steps");
    assert_eq!(rows.len(), positions.len(), "both have as many steps");
    let write = "UPDATE steps SET dependencies = $1, feedback_config = $2 WHERE position = $3";
    for (row, position) in rows.iter().zip(&positions) {
        let update = sqlx::query(write)
            .bind(row.get::<Option<String>, _>(0))
            .bind(row.get::<Option<String>, _>(1))
            .bind(position.get::<i64, _>(0));
        update.execute(&mut *floor).await.expect("it is written");
    }
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
