//! Administration of a PostgreSQL beside the service.

use sqlx::{AssertSqlSafe, Connection, PgConnection, raw_sql};

/// A session.
pub async fn session(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("a session")
}

/// Runs statements in a session.
pub async fn run(session: &mut PgConnection, sql: &str) {
    let done = raw_sql(AssertSqlSafe(sql)).execute(session).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Runs statements in a new session.
pub async fn once(url: &str, sql: &str) {
    let mut session = session(url).await;
    run(&mut session, sql).await;
    session.close().await.expect("it is closed");
}

/// The number that a query counts.
pub async fn count(session: &mut PgConnection, sql: &'static str) -> i64 {
    let count = sqlx::query_scalar(sql).fetch_one(session).await;
    count.expect("a count")
}

/// Ends the sessions of the service in the same database.
pub const END_SESSIONS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
     WHERE application_name = 'expertise' AND datname = current_database()";
