//! The metric of calls that were refused for want of capacity, by cause.

use std::fmt;

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{MetricType, counter::Counter},
    registry::Registry,
};

use super::admission::{MemoryBudget, WorkQueue};

/// Counters that belong to the limits that refuse calls, as one metric.
#[derive(Debug)]
struct RejectedCalls([(&'static str, Counter); 3]);

/// Registers the calls that these limits refuse.
pub fn register(registry: &mut Registry, memory: &MemoryBudget, queue: &WorkQueue) {
    registry.register(
        "rejected_calls",
        "Calls that were refused with OVERLOADED, by the limit that was reached",
        RejectedCalls([
            ("memory", memory.refused_calls()),
            ("queue_full", queue.calls_refused_when_full()),
            ("queue_timeout", queue.calls_refused_late()),
        ]),
    );
}

impl EncodeMetric for RejectedCalls {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        let Self(causes) = self;
        for (cause, count) in causes {
            count.encode(encoder.encode_family(&[("cause", *cause)])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
