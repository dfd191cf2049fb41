//! Metrics of the database: how long statements, commits and waits take.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use sea_orm::{DatabaseConnection, DbBackend};
use sqlx::{Database, Pool};

use crate::telemetry;

/// Upper bounds in seconds, from the read of a cached row to the longest wait for a lock.
const BUCKETS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 15.0,
];

type Labels<const N: usize> = [(&'static str, &'static str); N];

pub struct StoreMetrics {
    statements: Family<Labels<1>, Histogram, fn() -> Histogram>,
    commits: Histogram,
    writes: Histogram,
    write_waits: Histogram,
    connections: Family<Labels<2>, Gauge>,
    connections_max: Family<Labels<1>, Gauge>,
    /// Writes that are retried because of a concurrent write.
    pub write_conflicts: Counter,
    /// Entries of the change feed that got a position.
    pub sequenced_changes: Counter,
    /// Entries of the change feed that were deleted.
    pub pruned_changes: Counter,
    waiting_calls: Gauge,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        let statements: Family<_, _, fn() -> _> = Family::new_with_constructor(histogram);
        for kind in ["read", "lock", "write"] {
            // Exposed from the start.
            drop(statements.get_or_create(&[("kind", kind)]));
        }
        Self {
            statements,
            commits: histogram(),
            writes: histogram(),
            write_waits: histogram(),
            connections: Family::default(),
            connections_max: Family::default(),
            write_conflicts: Counter::default(),
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
    pub fn register(&self, registry: &mut Registry) {
        let help = "Calls of ListChanges that wait for changes";
        registry.register("waiting_calls", help, self.waiting_calls.clone());
        let help = "Writes that were retried because of a concurrent write";
        registry.register("write_conflicts", help, self.write_conflicts.clone());
        let help = "Changes that this server sequenced";
        registry.register("sequenced_changes", help, self.sequenced_changes.clone());
        let help = "Changes that were deleted after their retention";
        registry.register("pruned_changes", help, self.pruned_changes.clone());
        let (name, help) = ("write_queue_wait", "Time that a write waits to begin");
        registry.register_with_unit(name, help, Unit::Seconds, self.write_waits.clone());
        let registry = registry.sub_registry_with_prefix("database");
        let help = "Time that a COMMIT takes, after which a write is durable";
        registry.register_with_unit("commit", help, Unit::Seconds, self.commits.clone());
        let help = "Time that a write takes, with all waits and retries";
        registry.register_with_unit("write", help, Unit::Seconds, self.writes.clone());
        let help = "Time that a statement takes, by what it does";
        registry.register_with_unit("statement", help, Unit::Seconds, self.statements.clone());
        let help = "Connections of a pool, by whether they are in use";
        registry.register("connections", help, self.connections.clone());
        let help = "Maximum connections of a pool";
        registry.register("connections_max", help, self.connections_max.clone());
    }

    /// Records the statements of a connection from now on.
    pub fn measure(self: &Arc<Self>, db: &mut DatabaseConnection) {
        let metrics = Arc::clone(self);
        db.set_metric_callback(move |info| {
            let kind = statement_kind(&info.statement.sql);
            let histogram = metrics.statements.get_or_create(&[("kind", kind)]);
            histogram.observe(info.elapsed.as_secs_f64());
            let span = match kind {
                "lock" => "database lock",
                "read" => "database read",
                _ => "database change",
            };
            telemetry::record_span(span, info.elapsed, info.failed);
        });
    }

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
        telemetry::record_span("database write", took, outcome.is_err());
        outcome
    }

    pub fn record_write_wait(&self, waited: Duration) {
        self.write_waits.observe(waited.as_secs_f64());
    }

    pub fn sample_waiting_calls(&self, count: usize) {
        self.waiting_calls.set(gauged(count));
    }

    pub fn sample_pool(&self, pool: &'static str, db: &DatabaseConnection) {
        let [open, idle, max] = match db.get_database_backend() {
            DbBackend::Sqlite => pool_size(db.get_sqlite_connection_pool()),
            _ => pool_size(db.get_postgres_connection_pool()),
        };
        for (state, connections) in [("idle", idle), ("in_use", (open - idle).max(0))] {
            let labels = [("pool", pool), ("state", state)];
            self.connections.get_or_create(&labels).set(connections);
        }
        let limit = self.connections_max.get_or_create(&[("pool", pool)]);
        limit.set(max);
    }
}

/// The numbers of open and idle connections of a pool, and the maximum.
fn pool_size<D: Database>(pool: &Pool<D>) -> [i64; 3] {
    let max = pool.options().get_max_connections();
    [pool.size().into(), gauged(pool.num_idle()), max.into()]
}

fn gauged(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The kind of a statement: `read`, `lock` if it locks the rows that it reads, or `write`.
fn statement_kind(sql: &str) -> &'static str {
    let writes = ["INSERT INTO ", "UPDATE ", "DELETE FROM "]
        .iter()
        .any(|verb| sql.contains(verb));
    match sql {
        _ if sql.contains(" FOR UPDATE") => "lock",
        _ if sql.starts_with("SELECT") || (sql.starts_with("WITH ") && !writes) => "read",
        _ => "write",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_reads_locks_or_writes() {
        for (sql, kind) in [
            ("SELECT name FROM tasks", "read"),
            ("WITH a AS (SELECT 1) SELECT * FROM a", "read"),
            ("SELECT name FROM tasks FOR UPDATE", "lock"),
            ("DELETE FROM tasks", "write"),
            ("WITH a AS (UPDATE tasks SET x = 1) SELECT 1", "write"),
        ] {
            assert_eq!(statement_kind(sql), kind, "{sql}");
        }
    }
}
