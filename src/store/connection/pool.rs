//! A pool over the driver's, which keeps connections for the next call.
//!
//! When a connection is returned to the driver's pool, the driver asks the database whether it
//! still works, and nobody else can use it meanwhile. After a statement that has ended this tells
//! nothing new, and takes about as long as a small statement.

use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{self, Duration},
};

use sea_orm::{
    ConnAcquireErr, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, Statement,
};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout},
};

use super::driver::{DriverConnection, DriverPool, PoolSize, Rows};
use crate::{
    domain::ids::AccountId,
    turns::{FairPermit, FairSemaphore},
};

/// How long a connection may be used before it is returned to the driver's pool, whose checks
/// close old ones.
const MAX_LEASE: Duration = Duration::from_secs(1);
/// How long a connection is kept unused. One that was idle for longer may have been cut.
pub const UNCHECKED_IDLE_TIME: Duration = Duration::from_millis(500);
/// The least time between two generations. Without it, every write would open a new
/// connection while the database is a standby, where all are read-only.
const MIN_GENERATION_TIME: Duration = Duration::from_millis(500);

/// A pool of connections of either driver.
///
/// | After use, a connection | becomes of it |
/// |---|---|
/// | whose BEGIN was cancelled | it is closed |
/// | with an open transaction, or with a statement that failed or was cancelled | it returns to the driver's pool, which ends what is open |
/// | older than the [`Generation`] | it returns to the driver's pool, which closes it |
/// | taken [`MAX_LEASE`] ago, or unused for [`UNCHECKED_IDLE_TIME`] | it returns to the driver's pool, which checks it |
/// | otherwise | it is kept for the next use |
#[derive(Clone)]
pub struct Pool {
    pub driver: DriverPool,
    kept: Arc<KeptConnections>,
    /// One permit for each connection that may be in use. Accounts take them in turns. There are never more
    /// in use and kept than the driver's pool may have, so that whoever has a permit finds a
    /// connection in either.
    permits: Arc<FairSemaphore>,
}

/// A connection taken from the driver's pool.
struct Lease {
    connection: DriverConnection,
    /// When it was asked for.
    begun: Instant,
}

/// The connections that may be used: those opened since the last expiry. Sessions of others may
/// stay read-only when the database no longer is, or lead to a server that became a standby.
pub struct Generation {
    start: time::Instant,
    /// When the last expiry was, in microseconds of [`Generation::now`]; 0 before the first.
    expired: AtomicU64,
}

/// Connections between two uses.
struct KeptConnections {
    generation: Arc<Generation>,
    state: Mutex<KeptState>,
}

#[derive(Default)]
struct KeptState {
    /// Each with the time of its last use, in the order of these times.
    leases: Vec<(Lease, Instant)>,
    /// Whether [`KeptConnections::return_idle`] runs.
    returns_idle: bool,
    /// The runtime that it was started in.
    runtime: Option<Handle>,
    closed: bool,
}

/// A connection in use, which returns to its pool when it is dropped.
pub struct PooledConnection {
    /// `None` only while it is dropped.
    lease: Option<Lease>,
    state: ConnectionState,
    kept: Arc<KeptConnections>,
    _permit: FairPermit,
}

/// What runs on a connection, as far as it matters for its next use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// Every statement and transaction has ended without an error.
    Free,
    /// A BEGIN has not ended. If it is cancelled, sqlx does not know of the transaction, in which
    /// the next write would be acknowledged and never committed.
    Beginning,
    InTransaction,
    /// A statement has failed or was cancelled.
    Failed,
}

impl Generation {
    pub fn new() -> Self {
        Self {
            start: time::Instant::now(),
            expired: AtomicU64::new(0),
        }
    }

    /// Has every connection that is open now be closed instead of used. Does nothing and returns
    /// `false` within [`MIN_GENERATION_TIME`] after the last time.
    pub fn expire(&self) -> bool {
        let now = micros(self.now());
        let min_time = micros(MIN_GENERATION_TIME);
        let moved = |last| (last == 0 || now >= last + min_time).then_some(now);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        self.expired.fetch_update(set, read, moved).is_ok()
    }

    /// Whether a connection of this age may be used.
    pub fn includes(&self, age: Duration) -> bool {
        let opened = self.now().saturating_sub(age);
        micros(opened) >= self.expired.load(Ordering::Relaxed)
    }

    /// What a clock shows that began a microsecond before `start`, so that it is never 0.
    fn now(&self) -> Duration {
        self.start.elapsed() + Duration::from_micros(1)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Pool {
    pub fn new(driver: DriverPool, generation: Arc<Generation>) -> Self {
        let permits = driver.size().max as usize;
        Self {
            driver,
            kept: Arc::new(KeptConnections {
                generation,
                state: Mutex::default(),
            }),
            permits: FairSemaphore::new(permits),
        }
    }

    pub fn backend(&self) -> DbBackend {
        self.driver.backend()
    }

    pub fn size(&self) -> PoolSize {
        let mut size = self.driver.size();
        size.idle += self.kept.lock().leases.len();
        size
    }

    /// The driver's pool as SeaORM's migrations need it. Connections that are kept here return
    /// to it.
    pub fn for_migrations(&self) -> DatabaseConnection {
        self.kept.return_all();
        self.driver.for_migrations()
    }

    /// Waits until all connections are returned, and closes them.
    pub async fn close(&self) {
        self.kept.lock().closed = true;
        self.kept.return_all();
        self.driver.close().await;
    }

    /// See [`Generation::expire`].
    pub fn expire(&self) -> bool {
        self.kept.generation.expire()
    }

    /// Waits for a connection for an account.
    pub async fn acquire(&self, account: &AccountId) -> Result<PooledConnection, DbErr> {
        let permit = self.permits.try_acquire(account);
        let kept = permit.as_ref().and_then(|_| self.kept.take());
        let (lease, permit) = match (kept, permit) {
            // The usual case, without a timer.
            (Some(lease), Some(permit)) => (lease, permit),
            (_, permit) => {
                let waited =
                    timeout(self.driver.acquire_timeout(), self.wait(account, permit)).await;
                waited.unwrap_or(Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)))?
            }
        };
        Ok(PooledConnection {
            lease: Some(lease),
            state: ConnectionState::Free,
            kept: Arc::clone(&self.kept),
            _permit: permit,
        })
    }

    /// Waits for a permit, unless one is given, and for a connection.
    async fn wait(
        &self,
        account: &AccountId,
        permit: Option<FairPermit>,
    ) -> Result<(Lease, FairPermit), DbErr> {
        let permit = match permit {
            Some(permit) => permit,
            None => self.permits.acquire(account).await,
        };
        let lease = match self.kept.take() {
            Some(lease) => lease,
            None => Lease {
                begun: Instant::now(),
                connection: self.driver.acquire().await?,
            },
        };
        Ok((lease, permit))
    }
}

impl KeptConnections {
    /// The connection that was used last, unless the driver must check it first.
    fn take(&self) -> Option<Lease> {
        let (lease, last_used) = self.lock().leases.pop()?;
        let is_usable = last_used.elapsed() < UNCHECKED_IDLE_TIME && self.may_keep(&lease);
        is_usable.then_some(lease)
    }

    /// Keeps a connection for the next use, or returns it to the driver's pool.
    fn keep(self: &Arc<Self>, mut lease: Lease) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if !self.may_keep(&lease) {
            return;
        }
        lease.connection.shrink_buffers();
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.leases.push((lease, Instant::now()));
        if !mem::replace(&mut state.returns_idle, true) {
            runtime.spawn(Arc::clone(self).return_idle());
            state.runtime = Some(runtime);
        }
    }

    fn may_keep(&self, lease: &Lease) -> bool {
        let age = lease.begun.elapsed();
        age < MAX_LEASE && self.generation.includes(age)
    }

    /// Returns idle connections to the driver's pool until none is left.
    async fn return_idle(self: Arc<Self>) {
        loop {
            sleep(UNCHECKED_IDLE_TIME).await;
            let mut state = self.lock();
            let is_idle =
                |(_, last_used): &(Lease, Instant)| last_used.elapsed() >= UNCHECKED_IDLE_TIME;
            let idle = state.leases.partition_point(is_idle);
            state.leases.drain(..idle);
            if state.leases.is_empty() {
                state.returns_idle = false;
                return;
            }
        }
    }

    /// Returns all connections to the driver's pool.
    fn return_all(&self) {
        self.lock().leases.clear();
    }

    fn lock(&self) -> MutexGuard<'_, KeptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for KeptConnections {
    // The driver's connections panic when they are dropped outside a runtime.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _entered = state.runtime.as_ref().map(Handle::enter);
        state.leases.clear();
    }
}

impl PooledConnection {
    pub async fn execute(&mut self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.run(async |connection| connection.execute(statement).await)
            .await
    }

    /// Runs statements that have no values, without preparing them.
    pub async fn execute_unprepared(&mut self, sql: &str) -> Result<ExecResult, DbErr> {
        self.run(async |connection| connection.execute_unprepared(sql).await)
            .await
    }

    /// The first row, or `None`.
    pub async fn fetch_optional(
        &mut self,
        statement: Statement,
    ) -> Result<Option<QueryResult>, DbErr> {
        self.run(async |connection| connection.fetch_optional(statement).await)
            .await
    }

    /// All rows.
    pub async fn fetch_all(&mut self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.run(async |connection| connection.fetch_all(statement).await)
            .await
    }

    /// All rows, each as it arrives. The connection will not be kept.
    pub fn rows(&mut self, statement: Statement) -> Result<Rows<'_>, DbErr> {
        self.state = ConnectionState::Failed;
        let lease = self.lease.as_mut().ok_or_else(closed)?;
        Ok(lease.connection.rows(statement))
    }

    /// Begins a transaction. `sql` is its BEGIN and the statements, if any, that are sent with it.
    /// If it is cancelled, the connection is closed.
    pub async fn begin(&mut self, sql: String) -> Result<(), DbErr> {
        let lease = self.lease.as_mut().ok_or_else(closed)?;
        self.state = ConnectionState::Beginning;
        let begun = lease.connection.begin(sql).await;
        self.state = match begun {
            Ok(()) => ConnectionState::InTransaction,
            Err(_) => ConnectionState::Failed,
        };
        begun
    }

    pub async fn commit(&mut self) -> Result<(), DbErr> {
        self.run(async |connection| connection.commit().await)
            .await?;
        self.end_transaction();
        Ok(())
    }

    pub async fn rollback(&mut self) -> Result<(), DbErr> {
        self.run(async |connection| connection.rollback().await)
            .await?;
        self.end_transaction();
        Ok(())
    }

    /// Notes the end of a transaction. If a statement of it has failed, it stays so.
    fn end_transaction(&mut self) {
        if self.state == ConnectionState::InTransaction {
            self.state = ConnectionState::Free;
        }
    }

    /// Has the driver roll back an open transaction before it uses the connection again.
    pub fn start_rollback(&mut self) {
        if let Some(lease) = &mut self.lease {
            lease.connection.start_rollback();
        }
    }

    /// Runs a statement. If it fails or is cancelled, the connection will not be kept.
    async fn run<T>(
        &mut self,
        statement: impl AsyncFnOnce(&mut DriverConnection) -> Result<T, DbErr>,
    ) -> Result<T, DbErr> {
        let before = mem::replace(&mut self.state, ConnectionState::Failed);
        let lease = self.lease.as_mut().ok_or_else(closed)?;
        let outcome = statement(&mut lease.connection).await;
        if outcome.is_ok() {
            self.state = before;
        }
        outcome
    }
}

impl Drop for PooledConnection {
    // Before the permit is free, so that whoever gets it finds the connection.
    fn drop(&mut self) {
        let Some(mut lease) = self.lease.take() else {
            return;
        };
        match self.state {
            ConnectionState::Free => self.kept.keep(lease),
            ConnectionState::Beginning => lease.connection.close_on_drop(),
            // The driver's pool ends what is open.
            ConnectionState::InTransaction | ConnectionState::Failed => {}
        }
    }
}

fn closed() -> DbErr {
    DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)
}

#[cfg(test)]
mod tests;
