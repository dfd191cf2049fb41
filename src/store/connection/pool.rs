//! A pool over the driver's, which keeps connections for the next call.
//!
//! When a connection is returned to the driver's pool, the driver asks the database whether it
//! still works, and nobody else can use it meanwhile. After a statement that has ended this tells
//! nothing new, and takes about as long as a small statement.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sea_orm::{
    ConnAcquireErr, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, Statement,
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};

use super::{
    driver::{DriverConnection, DriverPool, PoolSize},
    epoch::ConnectionEpoch,
};

/// How long a connection may be used before it is returned to the driver's pool, whose checks
/// close old and invalidated ones.
const MAX_LEASE: Duration = Duration::from_secs(1);
/// How long a connection is kept unused. One that was idle for longer may have been cut.
pub const UNCHECKED_IDLE_TIME: Duration = Duration::from_millis(500);

/// A pool of connections of either driver.
///
/// A connection goes back to the driver's pool after an error, a cancelled statement or an open
/// transaction, when all connections have been invalidated, and otherwise after [`MAX_LEASE`] or
/// [`UNCHECKED_IDLE_TIME`].
#[derive(Clone)]
pub struct Pool {
    pub driver: DriverPool,
    kept: Arc<KeptConnections>,
    /// One for each connection that may be in use. There are never more in use and kept than the
    /// driver's pool may have, so that whoever has a permit finds a connection in either.
    permits: Arc<Semaphore>,
}

/// A connection taken from the driver's pool.
struct Lease {
    connection: DriverConnection,
    begun: Instant,
    /// [`ConnectionEpoch::number`] when it was taken.
    epoch: u64,
}

/// Connections between two uses.
struct KeptConnections {
    epoch: Arc<ConnectionEpoch>,
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
    /// Whether every statement has ended, and without an error.
    all_ended: bool,
    in_transaction: bool,
    kept: Arc<KeptConnections>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub fn new(driver: DriverPool, epoch: &Arc<ConnectionEpoch>) -> Self {
        let permits = driver.size().max as usize;
        Self {
            driver,
            kept: Arc::new(KeptConnections {
                epoch: Arc::clone(epoch),
                state: Mutex::default(),
            }),
            permits: Arc::new(Semaphore::new(permits)),
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

    /// Waits for a connection.
    pub async fn acquire(&self) -> Result<PooledConnection, DbErr> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok();
        let kept = permit.as_ref().and_then(|_| self.kept.take());
        let (lease, permit) = match (kept, permit) {
            // The usual case, without a timer.
            (Some(lease), Some(permit)) => (lease, permit),
            (_, permit) => {
                let waited = timeout(self.driver.acquire_timeout(), self.wait(permit)).await;
                waited.unwrap_or(Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)))?
            }
        };
        Ok(PooledConnection {
            lease: Some(lease),
            all_ended: true,
            in_transaction: false,
            kept: Arc::clone(&self.kept),
            _permit: permit,
        })
    }

    /// Waits for a permit, unless one is given, and for a connection.
    async fn wait(
        &self,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<(Lease, OwnedSemaphorePermit), DbErr> {
        let permit = match permit {
            Some(permit) => permit,
            None => {
                let permit = Arc::clone(&self.permits).acquire_owned().await;
                permit.map_err(|_| closed())?
            }
        };
        let lease = match self.kept.take() {
            Some(lease) => lease,
            None => Lease {
                epoch: self.kept.epoch.number(),
                connection: self.driver.acquire().await?,
                begun: Instant::now(),
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
        lease.begun.elapsed() < MAX_LEASE && lease.epoch == self.epoch.number()
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

    /// Begins a transaction. `sql` is its BEGIN and the statements, if any, that are sent with it.
    pub async fn begin(&mut self, sql: String) -> Result<(), DbErr> {
        self.in_transaction = true;
        self.run(async |connection| connection.begin(sql).await)
            .await
    }

    pub async fn commit(&mut self) -> Result<(), DbErr> {
        self.run(async |connection| connection.commit().await)
            .await?;
        self.in_transaction = false;
        Ok(())
    }

    pub async fn rollback(&mut self) -> Result<(), DbErr> {
        self.run(async |connection| connection.rollback().await)
            .await?;
        self.in_transaction = false;
        Ok(())
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
        let others_ended = mem::replace(&mut self.all_ended, false);
        let lease = self.lease.as_mut().ok_or_else(closed)?;
        let outcome = statement(&mut lease.connection).await;
        self.all_ended = others_ended && outcome.is_ok();
        outcome
    }
}

impl Drop for PooledConnection {
    // Before the permit is free, so that whoever gets it finds the connection.
    fn drop(&mut self) {
        let may_keep = self.all_ended && !self.in_transaction;
        if let Some(lease) = self.lease.take_if(|_| may_keep) {
            self.kept.keep(lease);
        }
    }
}

fn closed() -> DbErr {
    DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)
}

#[cfg(test)]
mod tests;
