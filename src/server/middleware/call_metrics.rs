//! Metrics of calls by rpc: how many, how they ended and how long they took.
//!
//! *Invariant:* labels come from the contract, never from a request, so that callers
//! cannot add time series.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tonic::Code;

use crate::{
    grpc::{self, status},
    proto::code_name,
};

/// Seconds, from what the cheapest calls take to the default request timeout.
const BUCKETS: [f64; 15] = [
    0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0,
];
/// Stands for every rpc that is not in the contract.
const UNKNOWN_RPC: &str = "unknown";

type LabelValue = Cow<'static, str>;
type RpcLabels = [(&'static str, LabelValue); 1];
type OutcomeLabels = [(&'static str, LabelValue); 3];

/// Metrics of all calls.
pub struct CallMetrics {
    rpcs: HashMap<String, Arc<RpcMetrics>>,
    unknown: Arc<RpcMetrics>,
    ended: Family<OutcomeLabels, Counter>,
    seconds: Family<RpcLabels, Histogram, fn() -> Histogram>,
    in_flight: Family<RpcLabels, Gauge>,
}

/// Metrics of an rpc, resolved once for each call.
pub struct RpcMetrics {
    rpc: LabelValue,
    ok: Counter,
    shed: Counter,
    ended: Family<OutcomeLabels, Counter>,
    seconds: Histogram,
    in_flight: Gauge,
}

impl CallMetrics {
    pub fn new() -> Self {
        let ended = Family::default();
        let seconds = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> _);
        let in_flight = Family::default();
        let rpc_metrics = |rpc: LabelValue| {
            let labels = [("rpc", rpc.clone())];
            let shed = outcome_labels(&rpc, Code::ResourceExhausted, "OVERLOADED");
            Arc::new(RpcMetrics {
                ok: ended.get_or_create_owned(&outcome_labels(&rpc, Code::Ok, "")),
                shed: ended.get_or_create_owned(&shed),
                ended: ended.clone(),
                seconds: seconds.get_or_create_owned(&labels),
                in_flight: in_flight.get_or_create_owned(&labels),
                rpc,
            })
        };
        let rpcs = grpc::calls().into_iter();
        let rpcs = rpcs.map(|rpc| (format!("/{rpc}"), rpc_metrics(LabelValue::Owned(rpc))));
        Self {
            rpcs: rpcs.collect(),
            unknown: rpc_metrics(LabelValue::Borrowed(UNKNOWN_RPC)),
            ended,
            seconds,
            in_flight,
        }
    }

    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "calls",
            "Calls that have ended, by rpc, code and reason",
            self.ended.clone(),
        );
        registry.register_with_unit(
            "call",
            "Time from a call's headers to the last byte of its answer",
            Unit::Seconds,
            self.seconds.clone(),
        );
        registry.register(
            "calls_in_flight",
            "Calls that have started and not ended",
            self.in_flight.clone(),
        );
    }

    /// Counts a call that starts.
    pub fn begin(&self, path: &str) -> Arc<RpcMetrics> {
        let rpc = Arc::clone(self.rpcs.get(path).unwrap_or(&self.unknown));
        rpc.in_flight.inc();
        rpc
    }

    /// Counts a call that is refused by load shedding. False when the rpc is unknown.
    pub fn count_shed(&self, path: &str) -> bool {
        let Some(rpc) = self.rpcs.get(path) else {
            return false;
        };
        rpc.shed.inc();
        true
    }
}

impl RpcMetrics {
    /// Counts a call that ends.
    pub fn end(&self, code: Code, reason: &str, duration: Duration) {
        self.seconds.observe(duration.as_secs_f64());
        match code {
            Code::Ok => self.ok.inc(),
            _ => {
                let labels = outcome_labels(&self.rpc, code, status::reason(reason));
                self.ended.get_or_create(&labels).inc()
            }
        };
        self.in_flight.dec();
    }
}

fn outcome_labels(rpc: &LabelValue, code: Code, reason: &'static str) -> OutcomeLabels {
    [
        ("rpc", rpc.clone()),
        ("code", LabelValue::Borrowed(code_name(code))),
        ("reason", LabelValue::Borrowed(reason)),
    ]
}
