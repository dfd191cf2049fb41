//! Metrics that are sampled when they are requested.

use std::time::SystemTime;

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use super::{MetricSources, seconds_since_epoch};
use crate::server::health::HealthState;

type SourceLabel = [(&'static str, &'static str); 1];
/// Seconds since 1970.
type TimestampGauge = Gauge<f64, std::sync::atomic::AtomicU64>;

#[derive(Default)]
pub struct SampledMetrics {
    ready: Gauge,
    connections: Gauge,
    connections_max: Gauge,
    inflight_bytes: Gauge,
    calls_in_work: Gauge,
    calls_waiting: Gauge,
    keys_read: Family<SourceLabel, TimestampGauge>,
}

impl SampledMetrics {
    /// Registers the metrics that a server with these sources has.
    pub fn register(&self, registry: &mut Registry, sources: &MetricSources) {
        registry.register(
            "ready",
            "1 if the server is ready, else 0",
            self.ready.clone(),
        );
        registry.register(
            "connections",
            "Open connections of clients",
            self.connections.clone(),
        );
        registry.register(
            "connections_max",
            "Most connections of clients at once",
            self.connections_max.clone(),
        );
        registry.register_with_unit(
            "inflight",
            "Bytes of messages in memory",
            Unit::Bytes,
            self.inflight_bytes.clone(),
        );
        registry.register(
            "calls_in_work",
            "Calls that are worked on: their messages have arrived and they have a permit",
            self.calls_in_work.clone(),
        );
        registry.register(
            "calls_waiting",
            "Calls that wait in the queue for a permit",
            self.calls_waiting.clone(),
        );
        if let Some(expiry) = sources.certificate_expiry {
            register_certificate_expiry(registry, expiry);
        }
        if sources.middleware.keys_read().is_some() {
            registry.register_with_unit(
                "token_keys_read_timestamp",
                "When the keys that verify tokens were read, in seconds since 1970",
                Unit::Seconds,
                self.keys_read.clone(),
            );
        }
    }

    pub fn sample(&self, sources: &MetricSources) {
        let load = sources.middleware.current_load();
        for (gauge, value) in [
            (&self.connections, sources.connections.count()),
            (&self.connections_max, sources.connections.max()),
            (&self.inflight_bytes, load.inflight_bytes),
            (&self.calls_in_work, load.calls_in_work),
            (&self.calls_waiting, load.calls_waiting),
        ] {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        let is_ready = sources.health.state() == HealthState::Serving;
        self.ready.set(i64::from(is_ready));
        if let Some(read) = sources.middleware.keys_read() {
            let gauge = self
                .keys_read
                .get_or_create_owned(&[("source", read.source)]);
            gauge.set(seconds_since_epoch(read.at));
        }
    }
}

/// Registers a constant, as the certificate is read only at the start.
fn register_certificate_expiry(registry: &mut Registry, expiry: SystemTime) {
    let gauge = TimestampGauge::default();
    gauge.set(seconds_since_epoch(expiry));
    registry.register_with_unit(
        "tls_certificate_expiry_timestamp",
        "When the certificate of the server expires, in seconds since 1970",
        Unit::Seconds,
        gauge,
    );
}
