//! Metrics of calls by rpc: their number, outcome and duration. Standard metrics are named
//! `grpc_server_…`, as dashboards expect; their only additional label is the `reason` of the API.
//!
//! *Invariant:* labels come from the API, never from a request, so callers cannot add time series.

use std::{borrow::Cow, collections::HashMap, time::Duration};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tonic::Code;

use crate::{
    grpc::{self, status},
    proto::v1::ErrorReason,
};

/// In seconds, from the duration of the cheapest calls to the default request timeout.
const BUCKETS: [f64; 15] = [
    0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0,
];
/// The outcomes that alerts use. Their counters exist for every rpc from the start, at 0, because a
/// rate misses the first increment of a new series.
const INITIAL_OUTCOMES: [(Code, ErrorReason); 5] = [
    (Code::DeadlineExceeded, ErrorReason::DeadlineExceeded),
    (Code::Internal, ErrorReason::Internal),
    (Code::Unavailable, ErrorReason::StoreUnavailable),
    (Code::Unauthenticated, ErrorReason::CredentialsMissing),
    (Code::Unauthenticated, ErrorReason::CredentialsInvalid),
];
/// The label of every rpc that is not in the API.
const UNKNOWN_RPC: &str = "unknown";
/// The type of every rpc of the API.
const UNARY: &str = "unary";

type LabelValue = Cow<'static, str>;
type RpcLabels = [(&'static str, LabelValue); 1];
type MethodLabels = [(&'static str, LabelValue); 3];
type OutcomeLabels = [(&'static str, LabelValue); 5];

/// Metrics of all calls.
pub struct CallMetrics {
    rpcs: HashMap<String, RpcMetrics>,
    unknown: RpcMetrics,
    pub registry: Registry,
}

/// Metrics of an rpc. Counters of outcomes other than `ok` are looked up when a call ends.
pub struct RpcMetrics {
    method: MethodLabels,
    handled: Family<OutcomeLabels, Counter>,
    ok: Counter,
    in_flight: Gauge,
    started: Counter,
    seconds: Histogram,
}

impl CallMetrics {
    pub fn new() -> Self {
        let in_flight = Family::<RpcLabels, Gauge>::default();
        let started = Family::<MethodLabels, Counter>::default();
        let handled = Family::<OutcomeLabels, Counter>::default();
        let seconds: Family<MethodLabels, _, fn() -> _> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let mut registry = Registry::default();
        let help = "Calls that have started and not ended";
        registry.register("expertise_calls_in_flight", help, in_flight.clone());
        let grpc_server = registry.sub_registry_with_prefix("grpc_server");
        grpc_server.register("started", "Calls that have started", started.clone());
        let help = "Calls that have ended, by code and reason";
        grpc_server.register("handled", help, handled.clone());
        let help = "Time from a call's headers to the last byte of its response";
        grpc_server.register_with_unit("handling", help, Unit::Seconds, seconds.clone());
        let rpc = |rpc: &str| {
            let method = method_labels(rpc);
            for (code, reason) in INITIAL_OUTCOMES {
                let labels = outcome_labels(&method, code, status::reason_name(reason));
                drop(handled.get_or_create(&labels));
            }
            RpcMetrics {
                handled: handled.clone(),
                ok: handled.get_or_create_owned(&outcome_labels(&method, Code::Ok, "")),
                in_flight: in_flight.get_or_create_owned(&[("rpc", rpc.to_owned().into())]),
                started: started.get_or_create_owned(&method),
                seconds: seconds.get_or_create_owned(&method),
                method,
            }
        };
        let rpcs = grpc::rpcs().into_iter();
        Self {
            rpcs: rpcs.map(|name| (format!("/{name}"), rpc(&name))).collect(),
            unknown: rpc(UNKNOWN_RPC),
            registry,
        }
    }

    /// Counts a call that starts.
    pub fn begin(&self, path: &str) -> &RpcMetrics {
        let rpc = self.rpcs.get(path).unwrap_or(&self.unknown);
        rpc.in_flight.inc();
        rpc.started.inc();
        rpc
    }
}

impl RpcMetrics {
    /// Counts a call that ends.
    pub fn end(&self, code: Code, reason: &str, duration: Duration) {
        self.seconds.observe(duration.as_secs_f64());
        match code {
            Code::Ok => self.ok.inc(),
            _ => {
                let reason = status::known_reason_name(reason);
                let labels = outcome_labels(&self.method, code, reason);
                self.handled.get_or_create(&labels).inc()
            }
        };
        self.in_flight.dec();
    }
}

/// The labels that the metrics of every gRPC server have.
fn method_labels(rpc: &str) -> MethodLabels {
    let (service, method) = rpc.split_once('/').unwrap_or((UNKNOWN_RPC, UNKNOWN_RPC));
    [
        ("grpc_type", UNARY.into()),
        ("grpc_service", service.to_owned().into()),
        ("grpc_method", method.to_owned().into()),
    ]
}

/// The labels of a method's calls with this outcome. `grpc_code` is the code as Go spells it.
fn outcome_labels(method: &MethodLabels, code: Code, reason: &'static str) -> OutcomeLabels {
    let [kind, service, method] = method.clone();
    let code = match code {
        Code::Ok => "OK".into(),
        Code::Cancelled => "Canceled".into(),
        code => format!("{code:?}").into(),
    };
    [
        kind,
        service,
        method,
        ("grpc_code", code),
        ("reason", reason.into()),
    ]
}
