//! Metrics of the database: how long statements, commits and waits take.

use std::{
    cell::Cell,
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use sea_orm::{DatabaseConnection, DbBackend, metric::Info};

use crate::call_context::CallContext;

/// Seconds: from a read of a cached row to the longest wait for a lock.
const BUCKETS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 15.0,
];

type OneLabel = [(&'static str, &'static str); 1];
type TwoLabels = [(&'static str, &'static str); 2];
type Histograms = Family<OneLabel, Histogram, fn() -> Histogram>;

tokio::task_local! {
    /// The current task's wait for a connection.
    static CONNECTION_WAIT: ConnectionWait;
}

pub struct StoreMetrics {
    statements: AtomicU64,
    reads: Histogram,
    locks: Histogram,
    changes: Histogram,
    commits: Histogram,
    writes: Histogram,
    write_waits: Histogram,
    write_conflicts: Counter,
    by_kind: Histograms,
    connection_waits: Histograms,
    connections: Family<TwoLabels, Gauge>,
    connections_max: Family<OneLabel, Gauge>,
    replica_in_use: Gauge,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        let by_kind = Histograms::new_with_constructor(histogram);
        let kind = |kind| by_kind.get_or_create_owned(&[("kind", kind)]);
        Self {
            statements: AtomicU64::new(0),
            reads: kind("read"),
            locks: kind("lock"),
            changes: kind("write"),
            commits: histogram(),
            writes: histogram(),
            write_waits: histogram(),
            write_conflicts: Counter::default(),
            by_kind,
            connection_waits: Histograms::new_with_constructor(histogram),
            connections: Family::default(),
            connections_max: Family::default(),
            replica_in_use: Gauge::default(),
        }
    }
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl StoreMetrics {
    /// Registers all metrics, those of statements and connections under the prefix
    /// `database`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "write_queue_wait",
            "Time that a write waits to begin",
            Unit::Seconds,
            self.write_waits.clone(),
        );
        registry.register(
            "write_conflicts",
            "Writes that were retried because of a concurrent write",
            self.write_conflicts.clone(),
        );
        let registry = registry.sub_registry_with_prefix("database");
        for (name, help, metric) in [
            (
                "commit",
                "Time that a COMMIT takes, after which a write is durable",
                &self.commits,
            ),
            (
                "write",
                "Time that a write takes, with all waits and retries",
                &self.writes,
            ),
        ] {
            registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
        }
        registry.register_with_unit(
            "statement",
            "Time that a statement takes, by what it does",
            Unit::Seconds,
            self.by_kind.clone(),
        );
        registry.register_with_unit(
            "connection_wait",
            "Time until a connection of a pool can be used",
            Unit::Seconds,
            self.connection_waits.clone(),
        );
        registry.register(
            "connections",
            "Connections of a pool, by whether they are in use",
            self.connections.clone(),
        );
        registry.register(
            "connections_max",
            "Most connections of a pool",
            self.connections_max.clone(),
        );
    }

    /// Registers the metric of a replica, for a server that has one.
    pub fn register_replica(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("database");
        registry.register(
            "replica_in_use",
            "1 while reads that may be stale go to the replica, else 0",
            self.replica_in_use.clone(),
        );
    }

    /// How many statements have ended so far.
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Records a statement that has ended.
    pub fn record_statement(&self, info: &Info<'_>) {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let sql = info.statement.sql.as_str();
        let (histogram, span) = if sql.ends_with("FOR UPDATE") {
            (&self.locks, "database lock")
        } else if sql.starts_with("SELECT") {
            (&self.reads, "database read")
        } else {
            (&self.changes, "database change")
        };
        histogram.observe(info.elapsed.as_secs_f64());
        CallContext::record_span(span, info.elapsed, info.failed);
    }

    /// Records how long a COMMIT takes.
    pub async fn measure_commit<T>(&self, commit: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let outcome = commit.await;
        self.commits.observe(begun.elapsed().as_secs_f64());
        outcome
    }

    /// Records how long a write takes, with its waits and retries.
    pub async fn measure_write<T, E>(
        &self,
        write: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let begun = Instant::now();
        let outcome = write.await;
        let took = begun.elapsed();
        self.writes.observe(took.as_secs_f64());
        CallContext::record_span("database write", took, false);
        outcome
    }

    /// Records how long a write waited to begin.
    pub fn record_write_wait(&self, waited: Duration) {
        self.write_waits.observe(waited.as_secs_f64());
    }

    /// Counts a write that is retried because of a concurrent write.
    pub fn count_write_conflict(&self) {
        self.write_conflicts.inc();
    }

    /// The histogram of waits for a connection of a pool.
    pub fn connection_waits(&self, pool: &'static str) -> Histogram {
        self.connection_waits.get_or_create_owned(&[("pool", pool)])
    }

    /// Records whether reads go to a replica.
    pub fn sample_replica(&self, in_use: bool) {
        self.replica_in_use.set(i64::from(in_use));
    }

    /// Records the size and use of a pool.
    pub fn sample_pool(&self, pool: &'static str, connection: &DatabaseConnection) {
        let (size, idle, max) = match connection.get_database_backend() {
            DbBackend::Sqlite => {
                let pool = connection.get_sqlite_connection_pool();
                (
                    pool.size(),
                    pool.num_idle(),
                    pool.options().get_max_connections(),
                )
            }
            DbBackend::Postgres => {
                let pool = connection.get_postgres_connection_pool();
                (
                    pool.size(),
                    pool.num_idle(),
                    pool.options().get_max_connections(),
                )
            }
            _ => return,
        };
        let (size, idle) = (i64::from(size), i64::try_from(idle).unwrap_or(i64::MAX));
        self.set_connections(pool, idle, (size - idle).max(0));
        let max_gauge = self.connections_max.get_or_create_owned(&[("pool", pool)]);
        max_gauge.set(i64::from(max));
    }

    /// Records that a pool has no connections at present.
    pub fn sample_closed_pool(&self, pool: &'static str) {
        self.set_connections(pool, 0, 0);
    }

    fn set_connections(&self, pool: &'static str, idle: i64, in_use: i64) {
        for (state, connections) in [("idle", idle), ("in_use", in_use)] {
            let labels = [("pool", pool), ("state", state)];
            self.connections.get_or_create(&labels).set(connections);
        }
    }
}

/// A wait for a connection, recorded when the connection is there or the wait is given up.
struct ConnectionWait {
    since: Cell<Option<Instant>>,
    histogram: Histogram,
}

impl ConnectionWait {
    fn end(&self) {
        if let Some(since) = self.since.take() {
            self.histogram.observe(since.elapsed().as_secs_f64());
        }
    }
}

impl Drop for ConnectionWait {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs work that begins with a wait for a connection, and records the wait.
pub async fn measure_wait<T>(histogram: &Histogram, work: impl Future<Output = T>) -> T {
    let wait = ConnectionWait {
        since: Cell::new(Some(Instant::now())),
        histogram: histogram.clone(),
    };
    CONNECTION_WAIT.scope(wait, work).await
}

/// Ends the wait of the current task: it has its connection.
pub fn end_connection_wait() {
    let _ = CONNECTION_WAIT.try_with(ConnectionWait::end);
}
