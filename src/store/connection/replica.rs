//! Reads from a replica of the database, with the primary as fallback.
//!
//! *Invariant:* no call fails because of the replica. A read that fails there is repeated
//! on the primary, and so is one whose answer would be NOT_FOUND.

use std::{future::Future, sync::Arc, time::Duration};

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement, prelude::async_trait,
};
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use super::{
    Database, OpenError, TransactionMode,
    message::{NO_ANSWER, schema_error},
    migrations::pending_migrations,
    page_key, postgres,
    postgres_server::{NeededPermissions, check_permissions, warn_if_not_standby},
    probe::HealthProbe,
};
use crate::{
    config::PostgresUrl,
    domain::{Outage, ids::AccountId},
    store::{error::StoreError, metrics::StoreMetrics},
};

/// The label of the replica's connections in metrics.
const POOL: &str = "replica";
/// How long connecting to a replica and checking it may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a replica in use is checked.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// The pause before a lost or unusable replica is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// A replica and the task that keeps it connected until this is dropped.
pub struct Replica {
    current: watch::Sender<Option<ReplicaConnection>>,
    monitor: AbortHandle,
}

/// Connections to a replica that passed its checks.
#[derive(Clone)]
struct ReplicaConnection {
    database: Database,
    /// Counts reconnections, so that a read of a lost connection does not take its successor
    /// out of use.
    number: u64,
}

/// Reads from the replica that was connected when the read began.
pub struct ReplicaReader<'a> {
    replica: &'a Replica,
    connection: ReplicaConnection,
}

/// Runs reads that may be stale on the replica if one is connected, else on the primary.
/// No write may depend on what they return.
pub struct ReplicaOrPrimary<'a> {
    pub primary: &'a Database,
    pub replica: Option<ReplicaReader<'a>>,
}

/// How a replica is reached and recognised.
#[derive(Clone)]
pub struct ReplicaSettings {
    pub url: PostgresUrl,
    /// The primary's secret, which a replica has too.
    pub page_key: [u8; 32],
    pub max_connections: u32,
    pub metrics: Arc<StoreMetrics>,
}

/// Why a replica is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum ReplicaError {
    #[error("the replica cannot be reached: {0}")]
    Unreachable(String),
    #[error("the replica cannot be used: {0}")]
    Unusable(String),
    #[error("EXPERTISE_DATABASE_READ_URL is not a replica of the database")]
    OtherDatabase,
    #[error("the schema of the replica is not the one of this version")]
    OtherSchema,
    #[error("the replica stopped answering")]
    ConnectionLost,
}

impl From<OpenError> for ReplicaError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Unreachable { why, .. } => Self::Unreachable(why),
            OpenError::Connect { why, .. } => Self::Unusable(why),
            OpenError::Permissions { missing } => {
                Self::Unusable(format!("its user lacks permissions: grant it {missing}"))
            }
            OpenError::Lost => Self::ConnectionLost,
            OpenError::UnknownSchema
            | OpenError::NoSchema
            | OpenError::OldSchema { .. }
            | OpenError::Schema(_) => Self::OtherSchema,
            OpenError::InvalidUrl
            | OpenError::UnfinishedCopy
            | OpenError::Path { .. }
            | OpenError::File { .. }
            | OpenError::NoFile { .. }
            | OpenError::OldServer { .. }
            | OpenError::Encoding { .. }
            | OpenError::LayoutOfSqlite(_)
            | OpenError::OtherLayout { .. }
            | OpenError::NoCitus => Self::Unusable(error.to_string()),
        }
    }
}

impl Replica {
    /// Connects to the replica, and keeps reconnecting in the background. An unreachable
    /// replica is no error.
    pub async fn start(settings: ReplicaSettings) -> Self {
        let current = watch::Sender::new(None);
        let first = connect(&settings).await;
        if let Ok(replica) = &first {
            replica.publish(&current, 0);
        }
        let monitor = tokio::spawn(monitor(settings, current.clone(), first)).abort_handle();
        Self { current, monitor }
    }

    /// A reader of the replica for an account, if it is connected.
    pub fn reader(&self, account: &AccountId) -> Option<ReplicaReader<'_>> {
        let ReplicaConnection { database, number } = self.current.borrow().clone()?;
        let database = database.for_account(account);
        Some(ReplicaReader {
            replica: self,
            connection: ReplicaConnection { database, number },
        })
    }

    /// Records the size and use of the replica's pool, and whether reads go there.
    pub fn sample(&self, metrics: &StoreMetrics) {
        let current = self.current.borrow();
        let pool = current.as_ref().map(|current| &current.database.pool);
        match pool {
            Some(pool) => metrics.sample_pool(POOL, &pool.size()),
            None => metrics.sample_closed_pool(POOL),
        }
        metrics.sample_replica(pool.is_some());
    }

    pub async fn close(&self) {
        self.monitor.abort();
        if let Some(ReplicaConnection { database, .. }) = self.current.send_replace(None) {
            database.close().await;
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.monitor.abort();
    }
}

/// A replica that passed its checks.
struct CheckedReplica {
    database: Database,
    probe: HealthProbe,
}

impl CheckedReplica {
    /// Has reads use the replica from now on.
    fn publish(&self, current: &watch::Sender<Option<ReplicaConnection>>, number: u64) {
        let database = self.database.clone();
        current.send_replace(Some(ReplicaConnection { database, number }));
    }
}

/// Checks the replica in use and reconnects to a lost one, forever.
async fn monitor(
    settings: ReplicaSettings,
    current: watch::Sender<Option<ReplicaConnection>>,
    mut connected: Result<CheckedReplica, ReplicaError>,
) {
    let address = settings.url.address();
    // The last error, while the replica is not used.
    let mut logged = None;
    for number in 1.. {
        let error = match connected {
            Ok(replica) => {
                info!(
                    replica = address,
                    "reads that may be stale go to the replica"
                );
                logged = None;
                wait_until_lost(&replica.probe, &current).await;
                current.send_replace(None);
                ReplicaError::ConnectionLost
            }
            Err(error) => error,
        };
        if logged.is_none() {
            warn!(
                replica = address,
                "{error}; reads that may be stale go to the primary"
            );
        } else if logged.as_ref() != Some(&error) {
            // Reads go to the primary already; only the error is new.
            warn!(replica = address, "{error}");
        }
        logged = Some(error);
        sleep(RETRY_INTERVAL).await;
        connected = connect(&settings).await;
        if let Ok(replica) = &connected {
            replica.publish(&current, number);
        }
    }
}

/// Waits until a read has lost the connection, or a check fails.
async fn wait_until_lost(probe: &HealthProbe, current: &watch::Sender<Option<ReplicaConnection>>) {
    let mut current = current.subscribe();
    loop {
        tokio::select! {
            _ = current.wait_for(Option::is_none) => return,
            () = sleep(PROBE_INTERVAL) => {}
        }
        if probe.check().await.is_err() {
            return;
        }
    }
}

/// Connects to the replica and checks that it has the primary's secret and the schema of
/// this version.
async fn connect(settings: &ReplicaSettings) -> Result<CheckedReplica, ReplicaError> {
    timeout(CONNECT_TIMEOUT, async {
        let opened = postgres::open(&settings.url, settings.max_connections).await;
        let (options, mut database) = opened?;
        database.measure(POOL, &settings.metrics);
        check_permissions(&database, NeededPermissions::Read).await?;
        if page_key(&database).await? != settings.page_key {
            return Err(ReplicaError::OtherDatabase);
        }
        let warned = warn_if_not_standby(&database).await;
        warned.map_err(|_| ReplicaError::ConnectionLost)?;
        let transaction = database
            .begin_seaorm_transaction(TransactionMode::Snapshot)
            .await;
        let transaction = transaction.map_err(|_| ReplicaError::ConnectionLost)?;
        let pending = pending_migrations(&transaction).await;
        let _ = transaction.rollback().await;
        match pending {
            Ok(0) => Ok(CheckedReplica {
                probe: HealthProbe::postgres(options, database.clone()),
                database,
            }),
            Ok(_) => Err(ReplicaError::OtherSchema),
            Err(error) => Err(schema_error(&error).into()),
        }
    })
    .await
    .unwrap_or_else(|_| Err(ReplicaError::Unreachable(NO_ANSWER.to_owned())))
}

impl ReplicaReader<'_> {
    /// The connections to the replica.
    pub fn database(&self) -> &Database {
        &self.connection.database
    }

    /// Runs a read on the replica. `None` if it failed or the connection was lost
    /// meanwhile: the caller then reads from the primary.
    pub async fn run<T, E>(&self, read: impl Future<Output = Result<T, E>>) -> Option<T>
    where
        StoreError: From<E>,
    {
        let mut current = self.replica.current.subscribe();
        tokio::select! {
            outcome = read => outcome.map_err(|err| self.handle_error(&StoreError::from(err))).ok(),
            _ = current.wait_for(|current| !self.uses(current.as_ref())) => None,
        }
    }

    fn uses(&self, current: Option<&ReplicaConnection>) -> bool {
        current.map(|connection| connection.number) == Some(self.connection.number)
    }

    /// Takes the replica out of use if it is away or refuses connections. Any other error may
    /// concern this read alone, such as a conflict with the replay of the primary's changes.
    fn handle_error(&self, error: &StoreError) {
        let is_lost = matches!(
            error,
            StoreError::Unavailable(Outage::Unreachable) | StoreError::Refused(_)
        );
        if is_lost {
            self.replica.current.send_if_modified(|current| {
                let lost = self.uses(current.as_ref());
                if lost {
                    *current = None;
                }
                lost
            });
        }
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for ReplicaOrPrimary<'_> {
    fn get_database_backend(&self) -> DbBackend {
        self.primary.get_database_backend()
    }

    // Only the primary takes writes.
    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.primary.execute_raw(statement).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.primary.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        if let Some(replica) = &self.replica {
            let read = replica.database().query_one_raw(statement.clone());
            if let Some(row) = replica.run(read).await {
                return Ok(row);
            }
        }
        self.primary.query_one_raw(statement).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        if let Some(replica) = &self.replica {
            let read = replica.database().query_all_raw(statement.clone());
            if let Some(rows) = replica.run(read).await {
                return Ok(rows);
            }
        }
        self.primary.query_all_raw(statement).await
    }
}
