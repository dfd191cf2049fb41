//! Why a pool of connections to PostgreSQL had none in time.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use sqlx::{Connection, PgConnection, PgPool, postgres::PgConnectOptions};
use tokio::time::timeout;
use tracing::warn;

use super::advice::{self, Advice};

/// How often the cause is looked for and logged.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// How long the connection that finds the cause may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

const ALL_IN_USE: &str = "all connections of this server are in use, or all for writes: check what uses \
    them, or raise EXPERTISE_DATABASE_MAX_CONNECTIONS";

/// Logs why the pool had no connection in time. The driver's pool does not keep the error of
/// its last attempt to open one, so the cause is found by opening another.
#[derive(Clone, Default)]
pub struct NoConnectionLog {
    last: Arc<Mutex<Option<Instant>>>,
}

impl NoConnectionLog {
    /// Finds and logs the cause in the background, at most once in [`LOG_INTERVAL`].
    pub fn report(&self, pool: &PgPool) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|at| at.elapsed() < LOG_INTERVAL) {
            return;
        }
        *last = Some(Instant::now());
        let options = pool.connect_options();
        tokio::spawn(async move {
            let cause = find_cause(&options).await;
            warn!("no connection to the database within two seconds: {cause}");
        });
    }
}

async fn find_cause(options: &PgConnectOptions) -> Advice {
    match timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options)).await {
        Ok(Ok(connection)) => {
            let _ = connection.close().await;
            ALL_IN_USE.into()
        }
        Ok(Err(err)) => advice::connect_advice(options, &err),
        Err(_) => advice::NO_ANSWER.into(),
    }
}
