//! The database as somebody sees it who is not the server.

use std::time::Duration;

use sqlx::{
    Connection, PgConnection, Row, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

/// How long a lock that the server holds is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

const TASKS: &str = "SELECT count(*) FROM tasks";

/// What the server has open: its transactions on PostgreSQL, the lock to write
/// on SQLite.
pub async fn held(database: &str) -> Vec<String> {
    if database.starts_with("sqlite:") {
        let mut connection = sqlite(database).await;
        let begun = sqlx::query("BEGIN IMMEDIATE").execute(&mut connection);
        let held = begun.await.err().map(|error| error.to_string());
        connection.close().await.expect("it is closed");
        return held.into_iter().collect();
    }
    let mut connection = postgres(database).await;
    let found = sqlx::query(
        "SELECT state, query FROM pg_stat_activity \
         WHERE application_name = 'expertise' AND state <> 'idle'",
    );
    let found = found.fetch_all(&mut connection).await.expect("an answer");
    connection.close().await.expect("it is closed");
    found
        .iter()
        .map(|row| format!("{} after {}", row.get::<&str, _>(0), row.get::<&str, _>(1)))
        .collect()
}

/// How many tasks there are.
pub async fn tasks(database: &str) -> usize {
    let found: i64 = if database.starts_with("sqlite:") {
        let mut connection = sqlite(database).await;
        let found = sqlx::query_scalar(TASKS).fetch_one(&mut connection).await;
        connection.close().await.expect("it is closed");
        found.expect("a count")
    } else {
        let mut connection = postgres(database).await;
        let found = sqlx::query_scalar(TASKS).fetch_one(&mut connection).await;
        connection.close().await.expect("it is closed");
        found.expect("a count")
    };
    found as usize
}

async fn sqlite(database: &str) -> SqliteConnection {
    let path = database.trim_start_matches("sqlite:");
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(PATIENCE);
    let connection = SqliteConnection::connect_with(&options).await;
    connection.expect("the file")
}

async fn postgres(database: &str) -> PgConnection {
    let connection = PgConnection::connect(database).await;
    connection.expect("the database")
}
