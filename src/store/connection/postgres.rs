//! The pool of connections to PostgreSQL.

use std::{str::FromStr, sync::Arc, time::Duration};

use sea_orm::SqlxPostgresConnector;
use sqlx::{
    ConnectOptions, Connection, Executor, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::{
    OpenError, advice,
    database::{Database, Pooling},
    epoch::ConnectionEpoch,
    pooler,
};
use crate::{config::PostgresUrl, store::metrics};

/// How long a call waits for a connection before it answers UNAVAILABLE. Connections are
/// opened and held for milliseconds, so a longer wait means that the database is down or
/// that all connections are in use. sqlx retries refused connections every fifth of it.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the server's start waits for a database that is starting.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the start waits between two attempts.
const START_RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// How long a statement waits for a lock, after which the write is retried while its
/// caller waits; and how long the database keeps a silent transaction, whose locks would
/// stay for hours when the network is cut.
const SESSION_SETTINGS: &str =
    "SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '10s'";
/// How long a connection is reused without a check after its last use. One that was idle
/// for longer may have been cut.
const UNCHECKED_IDLE_TIME: Duration = Duration::from_millis(500);
/// How long the check of an idle connection may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a connection may take to finish a cancelled statement. It is longer than
/// `lock_timeout`.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The driver's options for a URL.
fn options(url: &PostgresUrl) -> Result<PgConnectOptions, OpenError> {
    let parameters = url.unknown_parameters();
    if parameters > 0 {
        warn!(
            parameters,
            "the database URL has unknown parameters, which are ignored"
        );
    }
    let options = PgConnectOptions::from_str(url.for_the_driver());
    Ok(options
        .map_err(|_| OpenError::InvalidUrl)?
        .application_name("expertise")
        // PgBouncer refuses this parameter, and no column is a float.
        .extra_float_digits(None)
        .disable_statement_logging())
}

/// Opens a pool, waits until the database takes a connection, and detects PgBouncer.
pub async fn open(
    url: &PostgresUrl,
    max_connections: u32,
    epoch: &Arc<ConnectionEpoch>,
) -> Result<(PgConnectOptions, Database), OpenError> {
    let options = options(url)?;
    let opened = async {
        let (options, pooling) = detect_pooling(options, url.pgbouncer()).await?;
        let database = open_pool(options.clone(), pooling, max_connections, epoch).await?;
        Ok((options, database))
    };
    let opened = opened.await;
    opened.map_err(|err| advice::postgres_error(&url.address(), &err))
}

async fn open_pool(
    options: PgConnectOptions,
    pooling: Pooling,
    max_connections: u32,
    epoch: &Arc<ConnectionEpoch>,
) -> Result<Database, sqlx::Error> {
    let acquire_epoch = Arc::clone(epoch);
    let release_epoch = Arc::clone(epoch);
    let pool = PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            metrics::end_connection_wait();
            Box::pin(async move {
                match pooling {
                    Pooling::Session => connection.execute(SESSION_SETTINGS).await.map(drop),
                    // A session setting would stay on PgBouncer's connection, so each
                    // transaction has its own.
                    Pooling::Transaction => Ok(()),
                }
            })
        })
        .before_acquire(move |connection, about| {
            let usable = acquire_epoch.includes(about.age);
            let recent = about.idle_for < UNCHECKED_IDLE_TIME;
            if usable {
                metrics::end_connection_wait();
            }
            Box::pin(async move { Ok(usable && (recent || is_clean(connection).await)) })
        })
        .after_release(move |connection, about| {
            let usable = release_epoch.includes(about.age);
            Box::pin(async move {
                let keep = usable && finishes_cancelled_statements(connection).await;
                // Buffers keep the size of the largest body that they held.
                connection.shrink_buffers();
                Ok(keep)
            })
        })
        .connect_lazy_with(options.clone());
    wait_until_connected(&pool, &options).await?;
    Ok(Database {
        connection: SqlxPostgresConnector::from_sqlx_postgres_pool(pool),
        pooling,
        epoch: Arc::clone(epoch),
        pool_name: "unmeasured",
        metrics: None,
    })
}

/// Whether PgBouncer is between us and the database, with options that suit it. `setting`
/// is the URL's parameter `pgbouncer`; without it two connections are compared.
async fn detect_pooling(
    options: PgConnectOptions,
    setting: Option<bool>,
) -> Result<(PgConnectOptions, Pooling), sqlx::Error> {
    let pgbouncer = match setting {
        Some(pgbouncer) => pgbouncer,
        None => is_pooled(&options).await?,
    };
    if pgbouncer {
        Ok((options.statement_cache_capacity(0), Pooling::Transaction))
    } else {
        Ok((options, Pooling::Session))
    }
}

/// Detects a pooler, retrying while the database starts.
async fn is_pooled(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let begun = Instant::now();
    loop {
        match pooler::is_pooled(options).await {
            Ok(pooled) => {
                if pooled {
                    info!("a connection pooler is between the service and PostgreSQL");
                }
                return Ok(pooled);
            }
            Err(err) if is_starting(&err) && begun.elapsed() < START_TIMEOUT => {
                sleep(START_RETRY_INTERVAL).await
            }
            Err(err) => return Err(err),
        }
    }
}

/// Whether the database may be starting: it refuses connections, or answers with the
/// SQLSTATE cannot_connect_now.
fn is_starting(err: &sqlx::Error) -> bool {
    match err {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(err) => err.code().as_deref() == Some("57P03"),
        _ => false,
    }
}

/// Ends a transaction that may be open, and returns whether the connection works. The pair
/// of statements causes no warning when none is open.
async fn is_clean(connection: &mut PgConnection) -> bool {
    let ended = timeout(CHECK_TIMEOUT, connection.execute("BEGIN; ROLLBACK")).await;
    matches!(ended, Ok(Ok(_)))
}

/// Waits until cancelled statements have ended, and returns whether they did in time. sqlx
/// has no time-out of its own for a host that stopped answering.
async fn finishes_cancelled_statements(connection: &mut PgConnection) -> bool {
    matches!(timeout(FLUSH_TIMEOUT, connection.flush()).await, Ok(Ok(())))
}

/// Waits for a first connection, for at most [`START_TIMEOUT`].
async fn wait_until_connected(
    pool: &PgPool,
    options: &PgConnectOptions,
) -> Result<(), sqlx::Error> {
    let begun = Instant::now();
    loop {
        match pool.acquire().await {
            Ok(_) => return Ok(()),
            Err(sqlx::Error::PoolTimedOut) if begun.elapsed() < START_TIMEOUT => {}
            // The pool hides the cause; a connection outside it shows the cause.
            Err(sqlx::Error::PoolTimedOut) => {
                let attempt = timeout(ACQUIRE_TIMEOUT, PgConnection::connect_with(options)).await;
                return Err(match attempt {
                    Ok(Err(err)) => err,
                    Ok(Ok(_)) | Err(_) => sqlx::Error::PoolTimedOut,
                });
            }
            Err(err) => return Err(err),
        }
    }
}
