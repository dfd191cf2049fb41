//! Metrics of calls by rpc: how many, how they ended and how long they took. Those that
//! every gRPC server has are named `grpc_server_…`, as dashboards expect; their only other label
//! is the `reason` of the contract.
//!
//! *Invariant:* labels come from the contract, never from a request, so that callers
//! cannot add time series.

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

/// Seconds, from what the cheapest calls take to the default request timeout.
const BUCKETS: [f64; 15] = [
    0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0,
];
/// The outcomes that alerts are about. Every rpc has their counters from the start, at 0: a
/// rate would miss the increment with which a series begins.
const INITIAL_OUTCOMES: [(Code, ErrorReason); 4] = [
    (Code::Internal, ErrorReason::Internal),
    (Code::Unavailable, ErrorReason::StoreUnavailable),
    (Code::Unauthenticated, ErrorReason::CredentialsMissing),
    (Code::Unauthenticated, ErrorReason::CredentialsInvalid),
];
/// Stands for every rpc that is not in the contract.
const UNKNOWN_RPC: &str = "unknown";
/// The type of every rpc of the contract.
const UNARY: &str = "unary";

type LabelValue = Cow<'static, str>;
type RpcLabels = [(&'static str, LabelValue); 1];
type MethodLabels = [(&'static str, LabelValue); 3];
type OutcomeLabels = [(&'static str, LabelValue); 5];

/// Metrics of all calls.
pub struct CallMetrics {
    rpcs: HashMap<String, RpcMetrics>,
    unknown: RpcMetrics,
    families: Families,
}

/// The time series of all rpcs.
#[derive(Clone)]
struct Families {
    in_flight: Family<RpcLabels, Gauge>,
    started: Family<MethodLabels, Counter>,
    handled: Family<OutcomeLabels, Counter>,
    seconds: Family<MethodLabels, Histogram, fn() -> Histogram>,
}

/// Metrics of an rpc. Counters of other outcomes than `ok` are looked up when a call ends.
pub struct RpcMetrics {
    rpc: LabelValue,
    families: Families,
    ok: Counter,
    in_flight: Gauge,
    started: Counter,
    seconds: Histogram,
}

impl CallMetrics {
    pub fn new() -> Self {
        let families = Families {
            in_flight: Family::default(),
            started: Family::default(),
            handled: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        };
        let rpcs = grpc::rpcs().into_iter().map(|rpc| {
            let path = format!("/{rpc}");
            (path, families.rpc(LabelValue::Owned(rpc)))
        });
        Self {
            rpcs: rpcs.collect(),
            unknown: families.rpc(LabelValue::Borrowed(UNKNOWN_RPC)),
            families,
        }
    }

    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "calls_in_flight",
            "Calls that have started and not ended",
            self.families.in_flight.clone(),
        );
    }

    /// Registers the metrics that every gRPC server has.
    pub fn register_grpc(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("grpc_server");
        registry.register(
            "started",
            "Calls that have started",
            self.families.started.clone(),
        );
        registry.register(
            "handled",
            "Calls that have ended, by code and reason",
            self.families.handled.clone(),
        );
        registry.register_with_unit(
            "handling",
            "Time from a call's headers to the last byte of its answer",
            Unit::Seconds,
            self.families.seconds.clone(),
        );
    }

    /// Counts a call that starts.
    pub fn begin(&self, path: &str) -> &RpcMetrics {
        let rpc = self.rpcs.get(path).unwrap_or(&self.unknown);
        rpc.in_flight.inc();
        rpc.started.inc();
        rpc
    }
}

impl Families {
    fn rpc(&self, rpc: LabelValue) -> RpcMetrics {
        let method = method_labels(&rpc);
        for (code, reason) in INITIAL_OUTCOMES {
            self.outcome(&rpc, code, status::reason_name(reason));
        }
        RpcMetrics {
            ok: self.outcome(&rpc, Code::Ok, ""),
            in_flight: self.in_flight.get_or_create_owned(&[("rpc", rpc.clone())]),
            started: self.started.get_or_create_owned(&method),
            seconds: self.seconds.get_or_create_owned(&method),
            families: self.clone(),
            rpc,
        }
    }

    fn outcome(&self, rpc: &LabelValue, code: Code, reason: &'static str) -> Counter {
        let [kind, service, method] = method_labels(rpc);
        let code = ("grpc_code", code_label(code));
        let reason = ("reason", LabelValue::Borrowed(reason));
        self.handled
            .get_or_create_owned(&[kind, service, method, code, reason])
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
                self.families.outcome(&self.rpc, code, reason).inc()
            }
        };
        self.in_flight.dec();
    }
}

/// The labels that the metrics of every gRPC server have.
fn method_labels(rpc: &LabelValue) -> MethodLabels {
    let (service, method) = rpc.split_once('/').unwrap_or((UNKNOWN_RPC, UNKNOWN_RPC));
    [
        ("grpc_type", LabelValue::Borrowed(UNARY)),
        ("grpc_service", LabelValue::Owned(service.to_owned())),
        ("grpc_method", LabelValue::Owned(method.to_owned())),
    ]
}

/// A code as `grpc_code` has it, which is how Go spells it.
fn code_label(code: Code) -> LabelValue {
    match code {
        Code::Ok => LabelValue::Borrowed("OK"),
        Code::Cancelled => LabelValue::Borrowed("Canceled"),
        code => LabelValue::Owned(format!("{code:?}")),
    }
}
