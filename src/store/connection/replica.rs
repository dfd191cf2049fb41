//! A replica of the database, while there is one that serves.
//!
//! Nothing depends on it: whatever keeps a replica from answering sends its reads
//! to the primary, and so does what is not there yet where its absence would be
//! told as a fact.

use std::{future::Future, sync::Arc, time::Duration};

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement, TransactionOptions,
    prelude::async_trait,
};
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{sleep, timeout},
};
use tracing::{debug, info, warn};

use super::{
    Database, OpenError, advice, epoch::ConnectionEpoch, page_key, pending, postgres,
    probe::HealthProbe,
};
use crate::{
    config::PostgresUrl,
    domain::Outage,
    store::{error::StoreError, metrics::StoreMetrics},
};

/// How long a replica may take to show that it is one.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(3);
/// How often one that serves is asked whether it still does.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// How long one that does not serve is left alone.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// A replica, and whoever looks after it for as long as this is held.
pub struct Replica {
    here: watch::Sender<Option<Serving>>,
    watcher: AbortHandle,
}

/// A replica that serves, as far as is known.
#[derive(Clone)]
struct Serving {
    database: Database,
    /// Tells it from those of the same address before and after it.
    number: u64,
}

/// The replica that a read has found.
pub struct ReplicaReader<'a> {
    replica: &'a Replica,
    serving: Serving,
}

/// Where reads go that may lag: to the replica while it serves, else to the
/// primary. Nothing that matters may be decided by what they find.
pub struct ReplicaOrPrimary<'a> {
    pub primary: &'a Database,
    pub replica: Option<ReplicaReader<'a>>,
}

/// What a replica is reached and recognised by.
#[derive(Clone)]
pub struct ReplicaSettings {
    /// Where it is.
    pub url: PostgresUrl,
    /// The secret that it shares with its primary.
    pub page_key: [u8; 32],
    /// Connections at most.
    pub max_connections: u32,
    /// Where its use is recorded.
    pub metrics: Arc<StoreMetrics>,
}

/// Why a replica does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    Unreachable,
    Foreign,
    OtherSchema,
    Gone,
}

impl Replica {
    /// Looks for the replica, and from now on again and again. One that is not
    /// there is no error.
    pub async fn follow(settings: ReplicaSettings) -> Self {
        let here = watch::Sender::new(None);
        let first = admitted(&settings).await;
        if let Ok(found) = &first {
            found.serve(&here, 0);
        }
        let watcher = tokio::spawn(watch_over(settings, here.clone(), first)).abort_handle();
        Self { here, watcher }
    }

    /// The replica, if it serves.
    pub fn current(&self) -> Option<ReplicaReader<'_>> {
        let serving = self.here.borrow().clone()?;
        Some(ReplicaReader {
            replica: self,
            serving,
        })
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.watcher.abort();
        if let Some(Serving { database, .. }) = self.here.send_replace(None) {
            database.close().await;
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// A replica that has shown what it is.
struct Found {
    database: Database,
    probe: HealthProbe,
}

impl Found {
    fn serve(&self, here: &watch::Sender<Option<Serving>>, number: u64) {
        let database = self.database.clone();
        here.send_replace(Some(Serving { database, number }));
    }
}

/// Looks after a replica for ever.
async fn watch_over(
    settings: ReplicaSettings,
    here: watch::Sender<Option<Serving>>,
    mut found: Result<Found, Absence>,
) {
    let replica = settings.url.place();
    let mut told = None;
    for number in 1.. {
        let absence = match found {
            Ok(found) => {
                info!(replica, "reads that may lag go to the replica");
                told = None;
                until_gone(&found.probe, &here).await;
                here.send_replace(None);
                Absence::Gone
            }
            Err(absence) => absence,
        };
        // One that is gone is not told of again when it cannot be reached.
        let known = told == Some(absence)
            || (told == Some(Absence::Gone) && absence == Absence::Unreachable);
        if !known {
            told = Some(absence);
            warn!(
                replica,
                "{}: reads that may lag go to the primary",
                absence.told()
            );
        }
        sleep(RETRY_INTERVAL).await;
        found = admitted(&settings).await;
        if let Ok(found) = &found {
            found.serve(&here, number);
        }
    }
}

/// Waits until a call has found the replica gone, or it does not answer.
async fn until_gone(probe: &HealthProbe, here: &watch::Sender<Option<Serving>>) {
    let mut here = here.subscribe();
    loop {
        tokio::select! {
            _ = here.wait_for(Option::is_none) => return,
            () = sleep(PROBE_INTERVAL) => {}
        }
        if !probe.answers().await {
            return;
        }
    }
}

/// Reaches the replica and finds that it is one: it holds the primary's secret, and
/// the schema of this version.
async fn admitted(settings: &ReplicaSettings) -> Result<Found, Absence> {
    timeout(ADMISSION_TIMEOUT, async {
        let found = reached(settings).await.map_err(|error| {
            debug!(%error, "the replica cannot be reached");
            Absence::Unreachable
        })?;
        match page_key(&found.database).await {
            Ok(key) if key == settings.page_key => {}
            Ok(_) => return Err(Absence::Foreign),
            Err(_) => return Err(Absence::OtherSchema),
        }
        let look = found.database.begin(TransactionOptions::default());
        let look = look.await.map_err(|_| Absence::Unreachable)?;
        let pending = pending(&look).await;
        let _ = look.rollback().await;
        match pending {
            Ok(0) => Ok(found),
            Ok(_) | Err(_) => Err(Absence::OtherSchema),
        }
    })
    .await
    .unwrap_or(Err(Absence::Unreachable))
}

async fn reached(settings: &ReplicaSettings) -> Result<Found, OpenError> {
    let options = postgres::options(&settings.url)?;
    let place = settings.url.place();
    let refused = |err| advice::of_postgres(&place, &err);
    let link = postgres::link(options, settings.url.pgbouncer()).await;
    let (options, link) = link.map_err(refused)?;
    let epoch = Arc::new(ConnectionEpoch::new());
    let pool = postgres::open(options.clone(), link, settings.max_connections, &epoch).await;
    let mut database = pool.map_err(refused)?;
    database.measure("replica", &settings.metrics);
    let probe = HealthProbe::of_postgres(options, database.clone());
    Ok(Found { database, probe })
}

impl Absence {
    fn told(self) -> &'static str {
        match self {
            Self::Unreachable => "the replica cannot be reached",
            Self::Foreign => "what is called the replica is none of this database",
            Self::OtherSchema => "the schema of the replica is not the one of this version",
            Self::Gone => "the replica does not answer any more",
        }
    }
}

impl ReplicaReader<'_> {
    /// Its connections.
    pub fn database(&self) -> &Database {
        &self.serving.database
    }

    /// The outcome of a read of the replica; `None` when it failed, for whatever
    /// reason, or when the replica has gone meanwhile: the primary is to be asked.
    pub async fn ask<T, E>(&self, read: impl Future<Output = Result<T, E>>) -> Option<T>
    where
        StoreError: From<E>,
    {
        let mut here = self.replica.here.subscribe();
        tokio::select! {
            outcome = read => outcome.map_err(|err| self.failed(&StoreError::from(err))).ok(),
            _ = here.wait_for(|current| !self.is(current.as_ref())) => None,
        }
    }

    fn is(&self, current: Option<&Serving>) -> bool {
        current.map(|serving| serving.number) == Some(self.serving.number)
    }

    /// One that has ended its connections is not asked by others any more. Anything
    /// else may be the matter of one read, such as of rows that the replica had to
    /// let go to keep up.
    fn failed(&self, fault: &StoreError) {
        if matches!(fault, StoreError::Unavailable(Outage::Away)) {
            self.replica.here.send_if_modified(|current| {
                let ended = self.is(current.as_ref());
                if ended {
                    *current = None;
                }
                ended
            });
        }
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for ReplicaOrPrimary<'_> {
    fn get_database_backend(&self) -> DbBackend {
        self.primary.get_database_backend()
    }

    // What writes is the primary's.
    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.primary.execute_raw(statement).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.primary.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        if let Some(replica) = &self.replica {
            let read = replica.database().query_one_raw(statement.clone());
            if let Some(row) = replica.ask(read).await {
                return Ok(row);
            }
        }
        self.primary.query_one_raw(statement).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        if let Some(replica) = &self.replica {
            let read = replica.database().query_all_raw(statement.clone());
            if let Some(rows) = replica.ask(read).await {
                return Ok(rows);
            }
        }
        self.primary.query_all_raw(statement).await
    }
}
