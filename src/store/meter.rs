//! What the database costs: how long statements, commits and waits take.

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

/// A hundred microseconds, which a cached row takes, to the longest wait for a lock.
const BUCKETS: [f64; 14] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0,
];

type Label = [(&'static str, &'static str); 1];
type Labels = [(&'static str, &'static str); 2];
type Histograms = Family<Label, Histogram, fn() -> Histogram>;

tokio::task_local! {
    /// Since when the work at hand has been waiting for a connection.
    static WAITING: Waiting;
}

/// What is measured of a store. Everything here is cheap to record.
pub(super) struct Meter {
    statements: AtomicU64,
    reads: Histogram,
    locks: Histogram,
    changes: Histogram,
    commits: Histogram,
    writes: Histogram,
    turns: Histogram,
    lost: Counter,
    by_kind: Histograms,
    waits: Histograms,
    connections: Family<Labels, Gauge>,
    connections_max: Family<Label, Gauge>,
}

impl Default for Meter {
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
            turns: histogram(),
            lost: Counter::default(),
            by_kind,
            waits: Histograms::new_with_constructor(histogram),
            connections: Family::default(),
            connections_max: Family::default(),
        }
    }
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Meter {
    /// Names everything in a registry.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("database");
        for (name, help, metric) in [
            (
                "commit",
                "Time that a COMMIT takes, after which a write is durable",
                &self.commits,
            ),
            (
                "write",
                "Time that a write takes, all waits and repetitions included",
                &self.writes,
            ),
            (
                "write_turn",
                "Time that a write waits for its turn",
                &self.turns,
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
            self.waits.clone(),
        );
        registry.register(
            "lost_writes",
            "Writes that lost against another one and were run again",
            self.lost.clone(),
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

    /// How many statements were sent so far.
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// A statement has ended.
    pub fn statement(&self, info: &Info<'_>) {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let sql = info.statement.sql.as_str();
        let (histogram, what) = if sql.ends_with("FOR UPDATE") {
            (&self.locks, "database lock")
        } else if sql.starts_with("SELECT") {
            (&self.reads, "database read")
        } else {
            (&self.changes, "database change")
        };
        histogram.observe(info.elapsed.as_secs_f64());
        CallContext::record_span(what, info.elapsed, info.failed);
    }

    /// Measures a COMMIT.
    pub async fn commit<T>(&self, commit: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let outcome = commit.await;
        self.commits.observe(begun.elapsed().as_secs_f64());
        outcome
    }

    /// Measures a write from the moment it is asked for.
    pub async fn write<T, E>(&self, write: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let begun = Instant::now();
        let outcome = write.await;
        let took = begun.elapsed();
        self.writes.observe(took.as_secs_f64());
        CallContext::record_span("database write", took, false);
        outcome
    }

    /// A write has waited so long for its turn.
    pub fn turn(&self, waited: Duration) {
        self.turns.observe(waited.as_secs_f64());
    }

    /// A write lost against another one and is run again.
    pub fn lost(&self) {
        self.lost.inc();
    }

    /// Where waits for the connections of a pool are noted.
    pub fn waits_of(&self, pool: &'static str) -> Histogram {
        self.waits.get_or_create_owned(&[("pool", pool)])
    }

    /// Looks at a pool.
    pub fn look_at(&self, pool: &'static str, connection: &DatabaseConnection) {
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
        for (state, connections) in [("idle", idle), ("in_use", (size - idle).max(0))] {
            let labels = [("pool", pool), ("state", state)];
            self.connections.get_or_create(&labels).set(connections);
        }
        let max_of = self.connections_max.get_or_create_owned(&[("pool", pool)]);
        max_of.set(i64::from(max));
    }
}

/// A wait for a connection, which ends when there is one, or without one.
struct Waiting {
    since: Cell<Option<Instant>>,
    noted: Histogram,
}

impl Waiting {
    fn end(&self) {
        if let Some(since) = self.since.take() {
            self.noted.observe(since.elapsed().as_secs_f64());
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end();
    }
}

/// Does what begins with a wait for a connection.
pub(super) async fn waiting<T>(noted: &Histogram, work: impl Future<Output = T>) -> T {
    let waiting = Waiting {
        since: Cell::new(Some(Instant::now())),
        noted: noted.clone(),
    };
    WAITING.scope(waiting, work).await
}

/// The work at hand has its connection.
pub(super) fn has_connection() {
    let _ = WAITING.try_with(Waiting::end);
}
