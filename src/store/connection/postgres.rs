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
    OpenError,
    database::{Database, Link},
    epoch::ConnectionEpoch,
    pooler,
};
use crate::{config::PostgresUrl, store::metrics};

/// How long a call waits for a connection before it answers UNAVAILABLE. One is
/// opened in milliseconds and held for milliseconds, so a longer wait means that
/// the database is away or that something holds every connection, which a caller
/// should hear while it can still do something else. What is away for less goes by
/// unnoticed. sqlx asks a database that refuses connections each fifth of this time.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the start waits for a database that starts too.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it is asked meanwhile.
const START_RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// How long a statement waits for a lock. Transactions here hold theirs for
/// milliseconds; what does not come free takes the connection with it. The write
/// is run again while its caller waits.
///
/// And how long the database keeps a transaction of which it hears nothing: when
/// the network between us has gone, it would hold its locks for hours.
const SESSION_SETTINGS: &str =
    "SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '10s'";
/// How long a connection is trusted after its last use. One that has rested longer
/// may have been cut unnoticed, and is asked before a call relies on it.
const TRUSTED_IDLE_TIME: Duration = Duration::from_millis(500);
/// How long a connection may take to show that it lives.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a connection may take to end what was cancelled on it, longer than
/// the wait for a lock.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// How to connect to an address.
pub fn options(url: &PostgresUrl) -> Result<PgConnectOptions, OpenError> {
    let parameters = url.unknown_parameters();
    if parameters > 0 {
        warn!(
            parameters,
            "the database's URL has parameters that mean nothing here"
        );
    }
    let options = PgConnectOptions::from_str(url.for_the_driver());
    Ok(options
        .map_err(|_| OpenError::Address)?
        .application_name("expertise")
        // PgBouncer refuses the parameter, and nothing here prints floats.
        .extra_float_digits(None)
        .disable_statement_logging())
}

/// A pool, once the database was reached.
pub async fn open(
    options: PgConnectOptions,
    link: Link,
    max_connections: u32,
    epoch: &Arc<ConnectionEpoch>,
) -> Result<Database, sqlx::Error> {
    let at_hand = Arc::clone(epoch);
    let given_back = Arc::clone(epoch);
    let pool = PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            metrics::has_connection();
            Box::pin(async move {
                match link {
                    Link::Direct => connection.execute(SESSION_SETTINGS).await.map(drop),
                    // It would stay with a connection of PgBouncer's: each
                    // transaction sets its own.
                    Link::PgBouncer => Ok(()),
                }
            })
        })
        .before_acquire(move |connection, about| {
            let usable = at_hand.includes(about.age);
            let hot = about.idle_for < TRUSTED_IDLE_TIME;
            if usable {
                metrics::has_connection();
            }
            Box::pin(async move { Ok(usable && (hot || is_clean(connection).await)) })
        })
        .after_release(move |connection, about| {
            let fresh = given_back.includes(about.age);
            Box::pin(async move {
                let keep = fresh && is_settled(connection).await;
                // A body of megabytes leaves buffers of its size.
                connection.shrink_buffers();
                Ok(keep)
            })
        })
        .connect_lazy_with(options.clone());
    reach(&pool, &options).await?;
    Ok(Database {
        connection: SqlxPostgresConnector::from_sqlx_postgres_pool(pool),
        link,
        epoch: Arc::clone(epoch),
        pool: "unmeasured",
        metrics: None,
    })
}

/// What is between us and the database, and options that fit it: as the address
/// says, or as two connections show.
pub async fn link(
    options: PgConnectOptions,
    named: Option<bool>,
) -> Result<(PgConnectOptions, Link), sqlx::Error> {
    let pgbouncer = match named {
        Some(pgbouncer) => pgbouncer,
        None => is_pooled(&options).await?,
    };
    if pgbouncer {
        Ok((options.statement_cache_capacity(0), Link::PgBouncer))
    } else {
        Ok((options, Link::Direct))
    }
}

/// Looks for a pooler, once the database was reached.
async fn is_pooled(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let begun = Instant::now();
    loop {
        match pooler::is_between(options).await {
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

/// Whether the database may be there in a moment: it refuses connections, or says
/// that it starts (SQLSTATE cannot_connect_now).
fn is_starting(err: &sqlx::Error) -> bool {
    match err {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(err) => err.code().as_deref() == Some("57P03"),
        _ => false,
    }
}

/// Ends what may be open on a connection, and says whether it lives. The pair is
/// silent when nothing is open.
async fn is_clean(connection: &mut PgConnection) -> bool {
    let ended = timeout(CHECK_TIMEOUT, connection.execute("BEGIN; ROLLBACK")).await;
    matches!(ended, Ok(Ok(_)))
}

/// Whether nothing that was cancelled goes on. Costs nothing where nothing was;
/// sqlx alone would wait for ever on a host that fell silent.
async fn is_settled(connection: &mut PgConnection) -> bool {
    matches!(
        timeout(SETTLE_TIMEOUT, connection.flush()).await,
        Ok(Ok(()))
    )
}

async fn reach(pool: &PgPool, options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let begun = Instant::now();
    loop {
        match pool.acquire().await {
            Ok(_) => return Ok(()),
            Err(sqlx::Error::PoolTimedOut) if begun.elapsed() < START_TIMEOUT => {}
            // The pool does not say why; a connection of its own does.
            Err(sqlx::Error::PoolTimedOut) => {
                let alone = timeout(ACQUIRE_TIMEOUT, PgConnection::connect_with(options)).await;
                return Err(match alone {
                    Ok(Err(err)) => err,
                    Ok(Ok(_)) | Err(_) => sqlx::Error::PoolTimedOut,
                });
            }
            Err(err) => return Err(err),
        }
    }
}
