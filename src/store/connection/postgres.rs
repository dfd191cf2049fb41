//! The pool of connections to PostgreSQL.

use std::{str::FromStr, sync::Arc, time::Duration};

use sqlx::{
    ConnectOptions, Connection, Executor, PgConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;
use tracing::info;

use super::{
    OpenError,
    database::{Database, Pooling},
    driver::DriverPool,
    message,
    pool::{Generation, UNCHECKED_IDLE_TIME},
    pooler,
};
use crate::config::PostgresUrl;

/// How long a call waits for a connection before it answers UNAVAILABLE. Connections are
/// opened and held for milliseconds, so a longer wait means that the database is down or
/// that all connections are in use. sqlx retries refused connections every fifth of it.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the first connections may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A write that waits longer than `lock_timeout` is retried while its caller waits. Without
/// `idle_in_transaction_session_timeout`, locks would stay for hours after the network is cut.
/// To compile a statement takes a hundred times as long as to run it, and PostgreSQL does so
/// when its statistics are older than many imports.
const SESSION_SETTINGS: &str =
    "SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '10s'; SET jit = off";
/// Prepared statements on partitioned tables are planned once, for all values. PostgreSQL
/// believes that this plan reads every partition, and would otherwise plan each call anew, which
/// takes longer than the call.
const ONE_PLAN_ON_PARTITIONS: &str = "SELECT \
     set_config('plan_cache_mode', 'force_generic_plan', false) FROM pg_class \
     WHERE oid = to_regclass('steps') AND relkind = 'p'";
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

/// Connects, detects PgBouncer, and opens a pool.
pub async fn open(
    url: &PostgresUrl,
    max_connections: u32,
) -> Result<(PgConnectOptions, Database), OpenError> {
    let options = options(url)?;
    let connecting = timeout(CONNECT_TIMEOUT, is_pooled(&options, url.pgbouncer()));
    let connected = connecting.await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    let is_pooled = connected.map_err(|err| message::postgres_error(url, &options, &err))?;
    let (options, pooling) = match is_pooled {
        true => (options.statement_cache_capacity(0), Pooling::Transaction),
        false => (options, Pooling::Session),
    };
    let database = open_pool(options.clone(), pooling, max_connections);
    Ok((options, database))
}

/// A pool of connections, of which none is opened yet.
pub fn open_pool(options: PgConnectOptions, pooling: Pooling, max_connections: u32) -> Database {
    let generation = Arc::new(Generation::new());
    let (acquired_from, released_to) = (Arc::clone(&generation), Arc::clone(&generation));
    let pool = PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                match pooling {
                    Pooling::Session => {
                        connection.execute(SESSION_SETTINGS).await?;
                        // Without this setting calls are slower. If the connection is broken,
                        // its first statement reports it.
                        connection.execute(ONE_PLAN_ON_PARTITIONS).await.ok();
                        Ok(())
                    }
                    // A session setting would stay on PgBouncer's connection, so each
                    // transaction has its own.
                    Pooling::Transaction => Ok(()),
                }
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
    Database::new(DriverPool::Postgres(pool), pooling, generation)
}

/// Connects, and returns whether PgBouncer is between the service and the database. `setting`
/// is the URL's parameter `pgbouncer`; without it two connections are compared.
async fn is_pooled(options: &PgConnectOptions, setting: Option<bool>) -> Result<bool, sqlx::Error> {
    if let Some(pgbouncer) = setting {
        PgConnection::connect_with(options).await?.close().await?;
        return Ok(pgbouncer);
    }
    let pooled = pooler::is_pooled(options).await?;
    if pooled {
        info!("a connection pooler is between the service and PostgreSQL");
    }
    Ok(pooled)
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
