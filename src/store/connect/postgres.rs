//! The pool of connections to PostgreSQL.

use std::{sync::Arc, time::Duration};

use sea_orm::{DatabaseConnection, SqlxPostgresConnector};
use sqlx::{
    Connection, Executor, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::{Instant, timeout};

use super::{OpenError, cause, freshness::Freshness};

/// How long a call waits for a connection before it answers UNAVAILABLE. One is
/// opened in milliseconds and held for milliseconds, so a longer wait means that
/// the database is away or that something holds every connection, which a caller
/// should hear while it can still do something else. What is away for less goes by
/// unnoticed. sqlx asks a database that refuses connections each fifth of this time.
pub(super) const ACQUIRE: Duration = Duration::from_secs(2);
/// How long the start waits for a database that starts too.
const START: Duration = Duration::from_secs(10);
/// How long a statement waits for a lock. Transactions here hold theirs for
/// milliseconds; what does not come free takes the connection with it. The write
/// is run again while its caller waits.
const LOCK: &str = "SET lock_timeout = '2s'";
/// How long a connection may take to show that it lives.
const CHECK: Duration = Duration::from_secs(1);
/// How long a connection may take to end what was cancelled on it, longer than
/// the wait for a lock.
const SETTLE: Duration = Duration::from_secs(5);

/// A pool, once the database was reached.
pub(super) async fn open(
    options: PgConnectOptions,
    max_connections: u32,
    freshness: &Arc<Freshness>,
) -> Result<DatabaseConnection, OpenError> {
    let at_hand = Arc::clone(freshness);
    let given_back = Arc::clone(freshness);
    let pool = PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE)
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(LOCK).await.map(drop) })
        })
        .before_acquire(move |connection, about| {
            let fresh = at_hand.includes(about.age);
            Box::pin(async move { Ok(fresh && is_clean(connection).await) })
        })
        .after_release(move |connection, about| {
            let fresh = given_back.includes(about.age);
            Box::pin(async move { Ok(fresh && is_settled(connection).await) })
        })
        .connect_lazy_with(options);
    reach(&pool).await?;
    Ok(SqlxPostgresConnector::from_sqlx_postgres_pool(pool))
}

/// Ends what may be open on a connection, and says whether it lives.
///
/// A `begin()` that was cancelled half-way leaves a connection in a transaction
/// that sqlx does not know of; the next write would be acknowledged and never
/// committed. This pair ends any such transaction and is silent when there is none.
async fn is_clean(connection: &mut PgConnection) -> bool {
    let ended = timeout(CHECK, connection.execute("BEGIN; ROLLBACK")).await;
    matches!(ended, Ok(Ok(_)))
}

/// Whether nothing that was cancelled goes on. Costs nothing where nothing was;
/// sqlx alone would wait for ever on a host that fell silent.
async fn is_settled(connection: &mut PgConnection) -> bool {
    matches!(timeout(SETTLE, connection.flush()).await, Ok(Ok(())))
}

async fn reach(pool: &PgPool) -> Result<(), OpenError> {
    let begun = Instant::now();
    loop {
        match pool.acquire().await {
            Ok(_) => return Ok(()),
            Err(sqlx::Error::PoolTimedOut) if begun.elapsed() < START => {}
            Err(err) => return Err(OpenError::Connect(cause(&err))),
        }
    }
}
