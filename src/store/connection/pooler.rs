//! Detects a pooler that uses another connection for each transaction, such as PgBouncer.
//! Behind one, a prepared statement of another client could run under the same name.

use sqlx::{
    Connection, PgConnection, Row, SqlSafeStr,
    postgres::{PgConnectOptions, PgRow},
};

/// How often the server processes of two connections are compared. A pooler that uses the
/// last free connection, or each in turn, shows in the first rounds or never.
const COMPARISONS: usize = 3;

/// Whether two of our connections share a server process, or one of them changes it.
/// Without a pooler neither happens; a pooler that is busy with other clients may stay
/// undetected.
pub async fn is_pooled(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let mut one = PgConnection::connect_with(options).await?;
    // The role or the server may have no second connection left.
    let Ok(mut other) = PgConnection::connect_with(options).await else {
        return Ok(false);
    };
    let first = server_process(&mut one).await?;
    let mut is_pooled = false;
    for _ in 0..COMPARISONS {
        let now = server_process(&mut other).await?;
        is_pooled |= now == first || server_process(&mut one).await? != first;
    }
    one.close().await?;
    other.close().await?;
    Ok(is_pooled)
}

/// The server process of a connection, read without a prepared statement.
async fn server_process(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    let sql = sqlx::raw_sql("SELECT pg_backend_pid()".into_sql_str());
    let row: PgRow = sql.fetch_one(connection).await?;
    row.try_get_unchecked(0)
}
