//! The connections to PostgreSQL.

use std::time::{Duration, Instant};

use sea_orm::{DatabaseConnection, SqlxPostgresConnector};
use sqlx::{
    ConnectOptions as _, Connection, Executor, PgConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::{sync::watch, time::timeout};

use super::{OpenError, Pools, connect_failure::connect_error, probe::HealthProbe};
use crate::config::PostgresUrl;

/// How long a call waits for a connection before it fails with UNAVAILABLE. Connections are opened
/// and held for milliseconds, so a longer wait means that the database is down or that all
/// connections are in use. sqlx retries refused connections at intervals of a fifth of this time.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the first connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum age of a connection. After a failover, older connections still go to the former
/// primary.
const MAX_LIFETIME: Duration = Duration::from_secs(60);
/// A write that waits longer than `lock_timeout` is retried while its caller waits. Without
/// `idle_in_transaction_session_timeout`, locks would be held for hours after a network failure.
/// JIT compilation of a statement takes a hundred times as long as running it. Writes need READ
/// COMMITTED: their statements must see what was committed while they waited for a lock.
const SESSION_SETTINGS: &str = "SET lock_timeout = '2s'; \
    SET idle_in_transaction_session_timeout = '10s'; SET jit = off; \
    SET default_transaction_isolation = 'read committed'";
/// A connection that was idle for less time than this is used without a check. PostgreSQL takes
/// longer to restart.
const UNCHECKED_IDLE_TIME: Duration = Duration::from_millis(100);
/// How long the check of an idle connection may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a connection may take to finish a canceled statement. It is longer than `lock_timeout`.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// The minimum time between two refusals that count. While the database is a standby, every write
/// is refused, and each refusal would close all connections.
const MIN_REFUSAL_INTERVAL: Duration = Duration::from_millis(500);

/// When a write was last refused because its server is a standby or read-only. Connections that
/// were open at that time are closed: a new connection may reach a server that accepts writes.
#[derive(Clone, Default)]
pub struct Refusals(watch::Sender<Option<Instant>>);

impl Refusals {
    /// Returns whether connections are closed for this refusal.
    pub fn record(&self) -> bool {
        self.0.send_if_modified(|last| {
            let closes = last.is_none_or(|last| last.elapsed() >= MIN_REFUSAL_INTERVAL);
            if closes {
                *last = Some(Instant::now());
            }
            closes
        })
    }

    /// Whether a connection of this age was opened after the last refusal.
    fn allow(&self, age: Duration) -> bool {
        self.0.borrow().is_none_or(|last| age < last.elapsed())
    }
}

/// Checks that the database can be reached, and creates a pool that opens connections on demand.
pub async fn open(url: &PostgresUrl, max_connections: u32) -> Result<Pools, OpenError> {
    let options = options(url);
    let connecting = async { PgConnection::connect_with(&options).await?.close().await };
    timeout(CONNECT_TIMEOUT, connecting)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))
        .map_err(|err| connect_error(url, &options, &err))?;
    let refusals = Refusals::default();
    let pool = pool(options, max_connections, &refusals);
    Ok(Pools {
        writer: pool.clone(),
        reader: pool.clone(),
        // One connection is left for reads while writes wait for locks.
        max_writes: (max_connections as usize).saturating_sub(1).max(1),
        refusals,
        probe: HealthProbe::Postgres {
            url: url.clone(),
            pool,
        },
    })
}

pub fn options(url: &PostgresUrl) -> PgConnectOptions {
    url.options()
        .application_name("expertise")
        // PgBouncer refuses this parameter, and no column is a float.
        .extra_float_digits(None)
        .disable_statement_logging()
}

/// A pool that opens connections on demand. It wraps a pool of the driver, because
/// `Database::connect` takes a URL and logs it with its password.
fn pool(
    options: PgConnectOptions,
    max_connections: u32,
    refusals: &Refusals,
) -> DatabaseConnection {
    let (acquired, released) = (refusals.clone(), refusals.clone());
    let pool = PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .max_lifetime(MAX_LIFETIME)
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(SESSION_SETTINGS).await.map(drop) })
        })
        .before_acquire(move |connection, about| {
            let is_allowed = acquired.allow(about.age);
            let is_recent = about.idle_for < UNCHECKED_IDLE_TIME;
            Box::pin(async move {
                Ok(is_allowed && (is_recent || in_time(CHECK_TIMEOUT, connection.ping()).await))
            })
        })
        .after_release(move |connection, about| {
            let is_allowed = released.allow(about.age);
            Box::pin(async move {
                let keep = is_allowed && in_time(FLUSH_TIMEOUT, connection.flush()).await;
                connection.shrink_buffers();
                Ok(keep)
            })
        })
        .connect_lazy_with(options);
    SqlxPostgresConnector::from_sqlx_postgres_pool(pool)
}

/// Whether a check succeeds in time. sqlx has no timeout for a host that stopped answering.
async fn in_time(limit: Duration, check: impl Future<Output = Result<(), sqlx::Error>>) -> bool {
    matches!(timeout(limit, check).await, Ok(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_lives_a_minute_at_most() {
        let pool = pool(PgConnectOptions::new(), 1, &Refusals::default());
        let options = pool.get_postgres_connection_pool().options();
        assert_eq!(options.get_max_lifetime(), Some(Duration::from_secs(60)));
    }
}
