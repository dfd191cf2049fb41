//! The database as a session beside the server sees it.

use std::time::Duration;

use sqlx::{
    Connection, PgConnection, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

/// How long to wait for a lock that the server holds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

const OPEN_TRANSACTIONS: &str = "SELECT \
    coalesce(string_agg(state || ' after ' || query, '; '), '') \
    FROM pg_stat_activity WHERE application_name = 'expertise' AND state <> 'idle'";
/// Each write changes some of these numbers.
const SUMMARY: &str = "SELECT \
    CAST((SELECT count(*) FROM tasks) AS TEXT) || ' ' || \
    CAST((SELECT coalesce(sum(version), 0) FROM tasks) AS TEXT) || ' ' || \
    CAST((SELECT count(*) FROM steps) AS TEXT) || ' ' || \
    CAST((SELECT coalesce(sum(version), 0) FROM steps) AS TEXT) || ' ' || \
    CAST((SELECT count(*) FROM step_translations) AS TEXT) || ' ' || \
    CAST((SELECT coalesce(sum(id), 0) FROM roles) AS TEXT)";

/// The open transactions of the server on PostgreSQL, or that there is one on SQLite. Empty when there
/// is none.
pub async fn open_transactions(database: &str) -> String {
    if !database.starts_with("sqlite:") {
        return query(database, OPEN_TRANSACTIONS).await;
    }
    let mut connection = sqlite(database).await;
    // It needs the lock of writes, and that no transaction reads from the log.
    let checkpoint = sqlx::query_scalar("PRAGMA wal_checkpoint(TRUNCATE)");
    let is_busy: i64 = checkpoint
        .fetch_one(&mut connection)
        .await
        .expect("a checkpoint");
    connection.close().await.expect("it is closed");
    match is_busy {
        0 => String::new(),
        _ => "a transaction of the server prevents a checkpoint".to_owned(),
    }
}

/// A text that each write changes.
pub async fn summary(database: &str) -> String {
    query(database, SUMMARY).await
}

async fn query(database: &str, sql: &'static str) -> String {
    let value = if database.starts_with("sqlite:") {
        let mut connection = sqlite(database).await;
        sqlx::query_scalar(sql).fetch_one(&mut connection).await
    } else {
        let connection = PgConnection::connect(database).await;
        let mut connection = connection.expect("the database");
        sqlx::query_scalar(sql).fetch_one(&mut connection).await
    };
    value.expect("a value")
}

async fn sqlite(database: &str) -> SqliteConnection {
    let path = database.trim_start_matches("sqlite:");
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(LOCK_TIMEOUT);
    let connection = SqliteConnection::connect_with(&options).await;
    connection.expect("the file")
}
