//! What is kept of calls for those who run the service: counts and times by rpc,
//! and spans.
//!
//! *Invariant:* labels come from the contract, never from a request: whatever
//! callers send, there are no more of them.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use opentelemetry::trace::SpanContext;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tonic::Code;
use uuid::Uuid;

use crate::{
    grpc::{self, status},
    telemetry::{CallSpan, Tracer},
};

/// A quarter of a millisecond, which the cheapest calls take, to the longest that a
/// call may take by default.
const BUCKETS: [f64; 15] = [
    0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0,
];
/// How a call ends that is refused at the door.
const SHED: (Code, &str) = (Code::ResourceExhausted, "OVERLOADED");
/// Stands for each rpc that is none of the contract's.
const UNKNOWN: &str = "unknown";

type Name = Cow<'static, str>;
type ByRpc = [(&'static str, Name); 1];
type ByOutcome = [(&'static str, Name); 3];

/// What watches calls.
pub(super) struct Watch {
    rpcs: HashMap<String, Arc<Rpc>>,
    unknown: Arc<Rpc>,
    ended: Family<ByOutcome, Counter>,
    seconds: Family<ByRpc, Histogram, fn() -> Histogram>,
    in_flight: Family<ByRpc, Gauge>,
    tracer: Option<Tracer>,
}

/// What is counted of an rpc, found once for each call.
pub(super) struct Rpc {
    name: Name,
    well: Counter,
    shed: Counter,
    ended: Family<ByOutcome, Counter>,
    seconds: Histogram,
    in_flight: Gauge,
}

impl Watch {
    /// Counts, and traces where there is something to trace with.
    pub fn with(tracer: Option<Tracer>) -> Self {
        let ended = Family::default();
        let seconds = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> _);
        let in_flight = Family::default();
        let rpc = |name: Name| {
            let by_rpc = [("rpc", name.clone())];
            Arc::new(Rpc {
                well: ended.get_or_create_owned(&outcome(&name, Code::Ok, "")),
                shed: ended.get_or_create_owned(&outcome(&name, SHED.0, SHED.1)),
                ended: ended.clone(),
                seconds: seconds.get_or_create_owned(&by_rpc),
                in_flight: in_flight.get_or_create_owned(&by_rpc),
                name,
            })
        };
        let calls = grpc::calls().into_iter();
        let rpcs = calls.map(|call| (format!("/{call}"), rpc(Name::Owned(call))));
        Self {
            rpcs: rpcs.collect(),
            unknown: rpc(Name::Borrowed(UNKNOWN)),
            ended,
            seconds,
            in_flight,
            tracer,
        }
    }

    /// Names what is counted in a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "calls",
            "Calls that have ended, by how they did",
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
            "Calls that have begun and not ended",
            self.in_flight.clone(),
        );
    }

    /// A call of this path begins.
    pub fn begin(&self, path: &str) -> Arc<Rpc> {
        let rpc = Arc::clone(self.rpcs.get(path).unwrap_or(&self.unknown));
        rpc.in_flight.inc();
        rpc
    }

    /// A call of this path is refused at the door. Not so when the path is none of the
    /// contract's.
    pub fn shed(&self, path: &str) -> bool {
        let Some(rpc) = self.rpcs.get(path) else {
            return false;
        };
        rpc.shed.inc();
        true
    }

    /// The span of a call that begins, if there are spans.
    pub fn span(&self, rpc: &str, id: Uuid, parent: Option<SpanContext>) -> Option<CallSpan> {
        let tracer = self.tracer.as_ref()?;
        Some(tracer.call(rpc, id, parent))
    }

    /// What makes spans, if anything does.
    pub fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_ref()
    }
}

impl Rpc {
    /// A call has ended.
    pub fn end(&self, code: Code, reason: &str, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
        match code {
            Code::Ok => self.well.inc(),
            _ => {
                let outcome = outcome(&self.name, code, status::reason(reason));
                self.ended.get_or_create(&outcome).inc()
            }
        };
        self.in_flight.dec();
    }
}

fn outcome(rpc: &Name, code: Code, reason: &'static str) -> ByOutcome {
    [
        ("rpc", rpc.clone()),
        ("code", Name::Borrowed(super::call::name(code))),
        ("reason", Name::Borrowed(reason)),
    ]
}
