//! The pool of connections to PostgreSQL.

use std::{str::FromStr, sync::Arc, time::Duration};

use sqlx::{
    ConnectOptions, Connection, Executor, PgConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;

use super::{
    OpenError,
    database::Database,
    driver::DriverPool,
    message,
    pool::{Generation, UNCHECKED_IDLE_TIME},
};
use crate::config::PostgresUrl;

/// How long a call waits for a connection before it answers UNAVAILABLE. Connections are
/// opened and held for milliseconds, so a longer wait means that the database is down or
/// that all connections are in use. sqlx retries refused connections every fifth of it.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the first connections may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeouts are those of reads: a write sets its own
/// ([`TransactionMode::begin_sql`](super::TransactionMode::begin_sql)). Compiling a statement takes
/// a hundred times as long as running it, and PostgreSQL does so when its statistics are older than
/// many imports.
const SESSION_SETTINGS: &str =
    "SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '10s'; SET jit = off";
/// How long the check of an idle connection may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a connection may take to finish a cancelled statement. It is longer than
/// `lock_timeout`.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The driver's options for a URL.
fn options(url: &PostgresUrl) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url.for_the_driver());
    Ok(options
        .map_err(|_| OpenError::InvalidUrl)?
        .application_name("expertise")
        // PgBouncer refuses this parameter, and no column is a float.
        .extra_float_digits(None)
        .disable_statement_logging())
}

/// Connects once, so that an error is reported, and opens a pool.
pub async fn open(
    url: &PostgresUrl,
    max_connections: u32,
) -> Result<(PgConnectOptions, Database), OpenError> {
    let options = options(url)?;
    let connecting = timeout(CONNECT_TIMEOUT, try_to_connect(&options));
    let connected = connecting.await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    connected.map_err(|err| message::postgres_error(url, &options, &err))?;
    let database = open_pool(options.clone(), max_connections);
    Ok((options, database))
}

/// A pool of connections, of which none is opened yet.
fn open_pool(options: PgConnectOptions, max_connections: u32) -> Database {
    let generation = Arc::new(Generation::new());
    let (acquired_from, released_to) = (Arc::clone(&generation), Arc::clone(&generation));
    let pool = PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async {
                connection.execute(SESSION_SETTINGS).await?;
                Ok(())
            })
        })
        .before_acquire(move |connection, about| {
            let usable = acquired_from.includes(about.age);
            let recent = about.idle_for < UNCHECKED_IDLE_TIME;
            Box::pin(async move { Ok(usable && (recent || rolls_back(connection).await)) })
        })
        .after_release(move |connection, about| {
            let usable = released_to.includes(about.age);
            Box::pin(async move {
                let keep = usable && finishes_cancelled_statements(connection).await;
                connection.shrink_buffers();
                Ok(keep)
            })
        })
        .connect_lazy_with(options);
    Database::new(DriverPool::Postgres(pool), generation)
}

async fn try_to_connect(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    PgConnection::connect_with(options).await?.close().await
}

/// Ends a transaction that may be open, and returns whether the connection works. The pair
/// of statements causes no warning when none is open.
async fn rolls_back(connection: &mut PgConnection) -> bool {
    let ended = timeout(CHECK_TIMEOUT, connection.execute("BEGIN; ROLLBACK")).await;
    matches!(ended, Ok(Ok(_)))
}

/// Waits until cancelled statements have ended, and returns whether they did in time. sqlx
/// has no time-out of its own for a host that stopped answering.
async fn finishes_cancelled_statements(connection: &mut PgConnection) -> bool {
    matches!(timeout(FLUSH_TIMEOUT, connection.flush()).await, Ok(Ok(())))
}
