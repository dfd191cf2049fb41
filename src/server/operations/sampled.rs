//! Metrics of a server that are read when they are requested.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
    registry::Unit,
};

use super::{MetricSources, seconds_since_epoch};
use crate::server::{health::HealthState, tls::ServerTls};

/// The metrics that a server with these sources has.
pub struct SampledMetrics(pub Arc<MetricSources>);

impl fmt::Debug for SampledMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SampledMetrics").finish_non_exhaustive()
    }
}

impl Collector for SampledMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let sources = &self.0;
        let limits = sources.calls.limits;
        let ready = usize::from(sources.health.state() == HealthState::Serving);
        let (open, max) = (sources.connections.open(), sources.connections.max());
        let in_work =
            "Calls that are worked on: their messages have arrived and they have a permit.";
        let waiting = "Calls that send their message or wait for a permit.";
        let bytes = Some(&Unit::Bytes);
        let held = limits.bytes();
        for (name, help, unit, value) in [
            ("ready", "1 if the server is ready, else 0.", None, ready),
            ("connections", "Open connections of clients.", None, open),
            (
                "connections_max",
                "Most connections of clients at once.",
                None,
                max,
            ),
            ("inflight", "Bytes that calls hold.", bytes, held),
            ("calls_in_work", in_work, None, limits.calls_in_work()),
            ("calls_waiting", waiting, None, limits.calls_waiting()),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)?;
        }
        let seconds = Some(&Unit::Seconds);
        let expiry = sources.tls.as_ref().and_then(ServerTls::certificate_expiry);
        if let Some(expiry) = expiry {
            let gauge = ConstGauge::new(seconds_since_epoch(expiry));
            let name = "tls_certificate_expiry_timestamp";
            let help = "When the certificate of the server expires, in seconds since 1970.";
            gauge.encode(encoder.encode_descriptor(name, help, seconds, gauge.metric_type())?)?;
        }
        if let Some(read) = sources.calls.authenticator.keys_read() {
            let gauge = ConstGauge::new(seconds_since_epoch(read.at));
            let name = "token_keys_read_timestamp";
            let help = "When the keys that verify tokens were read, in seconds since 1970.";
            let kind = gauge.metric_type();
            let mut metric = encoder.encode_descriptor(name, help, seconds, kind)?;
            gauge.encode(metric.encode_family(&[("source", read.source)])?)?;
        }
        Ok(())
    }
}
