//! Metrics of the database: how long statements, commits and waits take.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::call_context::CallContext;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use sea_orm::DatabaseConnection;

/// Upper bounds in seconds, from the read of a cached row to the longest wait for a lock.
const BUCKETS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 15.0,
];

type OneLabel = [(&'static str, &'static str); 1];
type TwoLabels = [(&'static str, &'static str); 2];
type Histograms = Family<OneLabel, Histogram, fn() -> Histogram>;

pub struct StoreMetrics {
    reads: Histogram,
    locks: Histogram,
    changes: Histogram,
    commits: Histogram,
    writes: Histogram,
    write_waits: Histogram,
    write_conflicts: Counter,
    by_kind: Histograms,
    connections: Family<TwoLabels, Gauge>,
    connections_max: Family<OneLabel, Gauge>,
    sequenced_changes: Counter,
    pruned_changes: Counter,
    waiting_calls: Gauge,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        let by_kind = Histograms::new_with_constructor(histogram);
        let kind = |kind| by_kind.get_or_create_owned(&[("kind", kind)]);
        Self {
            reads: kind("read"),
            locks: kind("lock"),
            changes: kind("write"),
            commits: histogram(),
            writes: histogram(),
            write_waits: histogram(),
            write_conflicts: Counter::default(),
            by_kind,
            connections: Family::default(),
            connections_max: Family::default(),
            sequenced_changes: Counter::default(),
            pruned_changes: Counter::default(),
            waiting_calls: Gauge::default(),
        }
    }
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl StoreMetrics {
    /// Registers all metrics. The prefix `database` is added to those that
    /// are registered after it.
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
        registry.register(
            "waiting_calls",
            "Calls of ListChanges that wait for changes",
            self.waiting_calls.clone(),
        );
        registry.register(
            "sequenced_changes",
            "Changes that this server sequenced",
            self.sequenced_changes.clone(),
        );
        registry.register(
            "pruned_changes",
            "Changes that were deleted after their retention",
            self.pruned_changes.clone(),
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
        registry.register(
            "connections",
            "Connections of a pool, by whether they are in use",
            self.connections.clone(),
        );
        registry.register(
            "connections_max",
            "Maximum connections of a pool",
            self.connections_max.clone(),
        );
    }

    /// Counts entries of the change feed that got a position.
    pub fn count_sequenced_changes(&self, count: u64) {
        self.sequenced_changes.inc_by(count);
    }

    /// Counts entries of the change feed that were deleted.
    pub fn count_pruned_changes(&self, count: u64) {
        self.pruned_changes.inc_by(count);
    }

    /// Notes how many calls wait for changes.
    pub fn set_waiting_calls(&self, count: usize) {
        self.waiting_calls
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Records the statements of a connection from now on.
    pub fn measure(self: &Arc<Self>, db: &mut DatabaseConnection) {
        let metrics = Arc::clone(self);
        db.set_metric_callback(move |info| {
            let kind = StatementKind::of(&info.statement.sql);
            metrics.record_statement(kind, info.elapsed, info.failed);
        });
    }

    /// Records a statement that has ended.
    fn record_statement(&self, kind: StatementKind, took: Duration, failed: bool) {
        let (histogram, span) = match kind {
            StatementKind::Lock => (&self.locks, "database lock"),
            StatementKind::Read => (&self.reads, "database read"),
            StatementKind::Change => (&self.changes, "database change"),
        };
        histogram.observe(took.as_secs_f64());
        CallContext::record_span(span, took, failed);
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
        CallContext::record_span("database write", took, outcome.is_err());
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

    /// Records the size and use of a pool.
    pub fn sample_pool(&self, pool: &'static str, size: &PoolSize) {
        let (open, idle) = (i64::from(size.open), i64::try_from(size.idle));
        let idle = idle.unwrap_or(i64::MAX);
        self.set_connections(pool, idle, (open - idle).max(0));
        let max_gauge = self.connections_max.get_or_create_owned(&[("pool", pool)]);
        max_gauge.set(i64::from(size.max));
    }

    fn set_connections(&self, pool: &'static str, idle: i64, in_use: i64) {
        for (state, connections) in [("idle", idle), ("in_use", in_use)] {
            let labels = [("pool", pool), ("state", state)];
            self.connections.get_or_create(&labels).set(connections);
        }
    }
}

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// It reads.
    Read,
    /// It locks rows and reads them.
    Lock,
    /// It writes.
    Change,
}

impl StatementKind {
    /// What this SQL does.
    pub fn of(sql: &str) -> Self {
        let verbs = ["INSERT INTO ", "UPDATE ", "DELETE FROM "];
        let writes = || verbs.iter().any(|verb| sql.contains(verb));
        if sql.contains(" FOR UPDATE") {
            Self::Lock
        } else if sql.starts_with("SELECT") || (sql.starts_with("WITH ") && !writes()) {
            Self::Read
        } else {
            Self::Change
        }
    }
}

/// How many connections a pool has.
pub struct PoolSize {
    /// Connections that are open.
    pub open: u32,
    /// Open connections that are not in use.
    pub idle: usize,
    /// The maximum.
    pub max: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_reads_locks_or_writes() {
        for (sql, kind) in [
            ("SELECT name FROM tasks", StatementKind::Read),
            ("WITH a AS (SELECT 1) SELECT * FROM a", StatementKind::Read),
            ("SELECT name FROM tasks FOR UPDATE", StatementKind::Lock),
            ("INSERT INTO tasks VALUES ($1)", StatementKind::Change),
            ("UPDATE tasks SET name = $1", StatementKind::Change),
            ("DELETE FROM tasks", StatementKind::Change),
            (
                "WITH a AS (UPDATE tasks SET name = $1 RETURNING name) SELECT * FROM a",
                StatementKind::Change,
            ),
        ] {
            assert_eq!(StatementKind::of(sql), kind, "{sql}");
        }
    }
}
