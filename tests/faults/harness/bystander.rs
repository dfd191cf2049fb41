//! The database as somebody sees it who is not the server.

use std::time::Duration;

use sqlx::{
    Connection, PgConnection, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

/// How long a lock that the server holds is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

const OPEN: &str = "SELECT coalesce(string_agg(state || ' after ' || query, '; '), '') \
    FROM pg_stat_activity WHERE application_name = 'expertise' AND state <> 'idle'";
const TASKS: &str = "SELECT CAST(count(*) AS TEXT) FROM tasks";
/// Each write changes some of these.
const SUMMARY: &str = "SELECT \
    CAST((SELECT count(*) FROM tasks) AS TEXT) || ' ' || \
    CAST((SELECT coalesce(sum(version), 0) FROM tasks) AS TEXT) || ' ' || \
    CAST((SELECT count(*) FROM steps) AS TEXT) || ' ' || \
    CAST((SELECT coalesce(sum(version), 0) FROM steps) AS TEXT) || ' ' || \
    CAST((SELECT count(*) FROM step_translations) AS TEXT) || ' ' || \
    CAST((SELECT coalesce(sum(id), 0) FROM roles) AS TEXT)";

/// What the server has open: its transactions on PostgreSQL, the lock to write
/// on SQLite. Empty when that is nothing.
pub async fn held(database: &str) -> String {
    if !database.starts_with("sqlite:") {
        return ask(database, OPEN).await;
    }
    let mut connection = sqlite(database).await;
    let begun = sqlx::query("BEGIN IMMEDIATE").execute(&mut connection);
    let refused = begun.await.err().map(|error| error.to_string());
    connection.close().await.expect("it is closed");
    refused.unwrap_or_default()
}

/// How many tasks there are.
pub async fn tasks(database: &str) -> usize {
    ask(database, TASKS).await.parse().expect("a count")
}

/// Another text after each write.
pub async fn summary(database: &str) -> String {
    ask(database, SUMMARY).await
}

async fn ask(database: &str, question: &'static str) -> String {
    let answer = if database.starts_with("sqlite:") {
        let mut connection = sqlite(database).await;
        sqlx::query_scalar(question)
            .fetch_one(&mut connection)
            .await
    } else {
        let connection = PgConnection::connect(database).await;
        let mut connection = connection.expect("the database");
        sqlx::query_scalar(question)
            .fetch_one(&mut connection)
            .await
    };
    answer.expect("an answer")
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
