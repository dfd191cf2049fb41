//! Finds out whether a pooler that nobody told us of hands out another connection
//! for each transaction. Prepared statements would then meet those of others under
//! the same name and run in their place, so it must not go unnoticed.

use sqlx::{
    Connection, PgConnection, Row, SqlSafeStr,
    postgres::{PgConnectOptions, PgRow},
};

/// How often the two connections are asked. Poolers give away the connection
/// that was free last, or one after the other; both show at once or never.
const ROUNDS: usize = 3;

/// Whether two connections of ours are ever the same one of PostgreSQL, or one of
/// ours is not always the same. Neither can be without a pooler; a pooler that
/// serves many others at the moment may stay unseen.
pub async fn is_between(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let mut one = PgConnection::connect_with(options).await?;
    // A role or a server may have no connection left to compare with.
    let Ok(mut other) = PgConnection::connect_with(options).await else {
        return Ok(false);
    };
    let first = process(&mut one).await?;
    let mut seen = false;
    for _ in 0..ROUNDS {
        let now = process(&mut other).await?;
        seen |= now == first || process(&mut one).await? != first;
    }
    one.close().await?;
    other.close().await?;
    Ok(seen)
}

/// The process of PostgreSQL that serves a connection. Nothing is prepared.
async fn process(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    let sql = sqlx::raw_sql("SELECT pg_backend_pid()".into_sql_str());
    let row: PgRow = sql.fetch_one(connection).await?;
    row.try_get_unchecked(0)
}
