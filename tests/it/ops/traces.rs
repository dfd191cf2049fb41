//! Spans for a collector, and the trace context of callers.

use std::{collections::BTreeMap, time::Instant};

use futures_util::{StreamExt, future::ready, stream};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};

use super::collector::{Collector, attributes, hex};
use crate::{
    command::{Says, command},
    kit::{
        postgres::free_port,
        server::{Settings, TestServer, with_metrics},
    },
    prelude::*,
};

const CREATE: &str = "expertise.v1.TaskService/CreateTask";
const GET: &str = "expertise.v1.TaskService/GetTask";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
const ABSENT: &str = "01a1fdaf-d221-7557-a852-5dd7d6531c2e";

async fn traced(collector: &Collector) -> TestServer {
    TestServer::start(sending_to(&collector.url(), "sqlite::memory:")).await
}

fn sending_to(endpoint: &str, database: &str) -> Settings {
    with_metrics(database).set("EXPERTISE_OTLP_ENDPOINT", endpoint)
}

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

#[tokio::test]
async fn a_call_is_a_span_of_its_callers_trace() {
    let mut collector = Collector::start();
    let server = traced(&collector).await;
    let client = server.client().with_metadata("traceparent", &parent("01"));
    let client = client.with_metadata("tracestate", "vendor=7");
    client.given_task(task("one")).await;
    let spans = collector.spans_of(CREATE, 1).await;
    let [span] = spans.as_slice() else {
        panic!("one span: {spans:?}");
    };
    assert_eq!(hex(&span.trace_id), TRACE);
    assert_eq!(hex(&span.parent_span_id), PARENT);
    assert_eq!(span.trace_state, "vendor=7");
    assert_eq!(span.kind, i32::from(SpanKind::Server));
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
    let mut attributes = attributes(&span.attributes);
    let id = attributes.remove("expertise.request_id").expect("an id");
    uuid::Uuid::parse_str(&id).expect("an id");
    let expected = [
        ("expertise.account", "demo"),
        ("rpc.grpc.status_code", "0"),
        ("rpc.method", "CreateTask"),
        ("rpc.service", "expertise.v1.TaskService"),
        ("rpc.system", "grpc"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(attributes, expected.into());
    server.shut_down().await;
}

#[tokio::test]
async fn the_standard_variables_name_the_service_and_choose_what_is_sampled() {
    let mut collector = Collector::start();
    let settings = sending_to(&collector.url(), "sqlite::memory:")
        .set("OTEL_SERVICE_NAME", "guides")
        .set("OTEL_TRACES_SAMPLER", "parentbased_always_off");
    let server = TestServer::start(settings).await;
    let client = server.client();
    client.given_task(task("one")).await;
    let sampled = client.with_metadata("traceparent", &parent("01"));
    sampled.given_task(task("two")).await;
    let spans = collector.spans_of(CREATE, 1).await;
    assert_eq!(hex(&spans[0].trace_id), TRACE);
    for request in collector.requests() {
        let resource = request.resource_spans[0].resource.clone().expect("it");
        assert_eq!(attributes(&resource.attributes)["service.name"], "guides");
    }
    server.shut_down().await;
}

/// Labels of a metric.
type Labels = &'static [(&'static str, &'static str)];

/// The child spans of a call, and the metrics that count the same.
const CHILD_SPANS: [(&str, &str, Labels); 4] = [
    ("database read", STATEMENTS, &[("kind", "read")]),
    ("database lock", STATEMENTS, &[("kind", "lock")]),
    ("database change", STATEMENTS, &[("kind", "write")]),
    (
        "database write",
        "expertise_database_write_seconds_count",
        &[],
    ),
];
const STATEMENTS: &str = "expertise_database_statement_seconds_count";

/// The number of child spans of a call, by name.
type SpanCounts = BTreeMap<&'static str, usize>;

/// Calls that each have their own trace.
struct TracedCalls {
    server: TestServer,
    /// For each call, its method and what the metrics have counted during it.
    counted: Vec<(&'static str, SpanCounts)>,
}

impl TracedCalls {
    /// Makes one call of this method.
    async fn make<T>(&mut self, method: &'static str, call: impl AsyncFnOnce(Client) -> T) -> T {
        let trace = format!("00-{:032x}-{PARENT}-01", self.counted.len() + 1);
        let client = self.server.client().with_metadata("traceparent", &trace);
        let before = self.server.metrics().await;
        let answer = call(client).await;
        let after = self.server.metrics().await;
        let count = |(span, metric, labels)| {
            let count = after.sum(metric, labels) - before.sum(metric, labels);
            (span, count as usize)
        };
        let counted = CHILD_SPANS.map(count).into_iter();
        self.counted
            .push((method, counted.filter(|(_, count)| *count > 0).collect()));
        answer
    }

    /// Shuts the server down and compares the spans of each call with its metrics.
    async fn assert_each_is_in_its_trace(self, collector: &Collector) {
        self.server.shut_down().await;
        let spans = collector.spans();
        for ((method, counted), trace) in self.counted.iter().zip(1_u128..) {
            let of_trace = |span: &&Span| span.trace_id == trace.to_be_bytes();
            let is_call = |span: &&Span| span.kind == i32::from(SpanKind::Server);
            let (calls, below): (Vec<&Span>, Vec<&Span>) =
                spans.iter().filter(of_trace).partition(is_call);
            let [call] = calls.as_slice() else {
                panic!("{method} has one span: {calls:?}");
            };
            assert!(call.name.ends_with(method), "{method}: {call:?}");
            let mut found = SpanCounts::new();
            for span in below {
                let name = CHILD_SPANS.iter().find(|(name, ..)| *name == span.name);
                *found.entry(name.expect("a known name").0).or_default() += 1;
                assert_eq!(span.parent_span_id, call.span_id);
                assert!(span.start_time_unix_nano >= call.start_time_unix_nano);
                assert!(span.end_time_unix_nano <= call.end_time_unix_nano);
                assert!(span.attributes.is_empty(), "{span:?}");
            }
            assert_eq!(found, *counted, "{method}");
        }
    }

    /// How many spans of the name all calls must have.
    fn counted(&self, name: &str) -> usize {
        let counts = self
            .counted
            .iter()
            .filter_map(|(_, counts)| counts.get(name));
        counts.sum()
    }
}

/// Small and large reads, reads of a whole guide, and writes without and under locks. Each
/// statement and each write that the metrics count is a span of its call.
#[apply(on_both_databases)]
async fn the_work_of_a_call_in_the_database_is_below_its_span(url: String) {
    let collector = Collector::start();
    let has_locks = url.starts_with("postgres");
    let mut calls = TracedCalls {
        server: TestServer::start(sending_to(&collector.url(), &url)).await,
        counted: Vec::new(),
    };
    let task = task("one");
    let create = async |client: Client| client.given_task(task).await;
    let task = calls.make("CreateTask", create).await;
    let step = information_step(&task, "large").with_body("x".repeat(2_000_000));
    let create = async |client: Client| client.given_step(step).await.guid;
    let step = calls.make("CreateStep", create).await;
    let guid = task.guid.as_str();
    let get = async |client: Client| client.get_task(guid).await.expect("the task");
    calls.make("GetTask", get).await;
    let get = async |client: Client| client.get_step(&step).await.expect("the step");
    calls.make("GetStep", get).await;
    let list = async |client: Client| client.steps_of(guid, 10).await;
    calls.make("ListSteps", list).await;
    let export = async |client: Client| client.exported(guid).await;
    calls.make("ExportTask", export).await;
    let preview = async |client: Client| client.previewed(preview_of(guid)).await;
    calls.make("PreviewTask", preview).await;
    let validate = async |client: Client| client.validated(validation_of(guid)).await;
    calls.make("ValidateTask", validate).await;
    let task = task_of(guid).named("renamed");
    let rename = async |client: Client| client.updated_task(task, &["name"]).await;
    calls.make("UpdateTask", rename).await;
    for (name, ..) in CHILD_SPANS {
        let is_expected = has_locks || name != "database lock";
        assert_eq!(calls.counted(name) > 0, is_expected, "{name}");
    }
    calls.assert_each_is_in_its_trace(&collector).await;
}

#[tokio::test]
async fn unsampled_calls_are_not_exported() {
    let mut collector = Collector::start();
    let server = traced(&collector).await;
    let client = server.client();
    let unsampled = client.with_metadata("traceparent", &parent("00"));
    unsampled.given_task(task("unsampled")).await;
    // Spans are sent in their order.
    client.get_task(ABSENT).await.expect_err("no task");
    collector.spans_of(GET, 1).await;
    server.shut_down().await;
    let names: Vec<_> = collector
        .spans()
        .into_iter()
        .map(|span| span.name)
        .collect();
    assert!(!names.iter().any(|name| name == CREATE), "{names:?}");
}

#[tokio::test]
async fn a_malformed_trace_context_starts_a_new_trace() {
    let mut collector = Collector::start();
    let server = traced(&collector).await;
    let malformed = [
        "",
        "00",
        "nonsense",
        &parent("0g"),
        &parent("01-00"),
        &parent("01").to_uppercase(),
        &parent("01").replace('-', "_"),
        &parent("01").replacen("00", "ff", 1),
        &parent("01").replacen("00", "0g", 1),
        &(parent("01").replacen("00", "cc", 1) + ".more"),
        &parent("01").replace(TRACE, &"0".repeat(32)),
    ];
    for malformed in malformed {
        let client = server.client().with_metadata("traceparent", malformed);
        client.given_task(task("one")).await;
    }
    let spans = collector.spans_of(CREATE, malformed.len()).await;
    for span in spans {
        assert_ne!(hex(&span.trace_id), TRACE);
        assert!(span.parent_span_id.is_empty(), "{span:?}");
    }
    server.shut_down().await;
}

#[tokio::test]
async fn a_refused_call_says_its_code_and_reason() {
    let mut collector = Collector::start();
    let server = traced(&collector).await;
    server.client().get_task(ABSENT).await.expect_err("no task");
    let spans = collector.spans_of(GET, 1).await;
    let attributes = attributes(&spans[0].attributes);
    assert_eq!(attributes["rpc.grpc.status_code"], "5");
    assert_eq!(attributes["expertise.reason"], "TASK_NOT_FOUND");
    // Not found is an answer, not a failure of the server.
    assert_eq!(spans[0].status.as_ref().map_or(0, |status| status.code), 0);
    server.shut_down().await;
}

#[tokio::test]
async fn a_failure_of_the_server_is_an_error_of_its_span() {
    let mut collector = Collector::start();
    let server = traced(&collector).await;
    let client = server.client().with_metadata("grpc-timeout", "1n");
    // The client may give up a call before it is sent.
    for _ in 0..20 {
        client.get_task(ABSENT).await.expect_err("no time");
    }
    let spans = collector.spans_of(GET, 1).await;
    let attributes = attributes(&spans[0].attributes);
    assert_eq!(attributes["rpc.grpc.status_code"], "4");
    let status = spans[0].status.as_ref().expect("a status");
    assert_eq!(status.code, StatusCode::Error as i32);
    server.shut_down().await;
}

#[tokio::test]
async fn the_last_spans_are_sent_before_shutdown() {
    let collector = Collector::start();
    let server = traced(&collector).await;
    for _ in 0..10 {
        server.client().get_task(ABSENT).await.expect_err("no task");
    }
    server.shut_down().await;
    let sent = collector
        .spans()
        .into_iter()
        .filter(|span| span.name == GET);
    assert_eq!(sent.count(), 10);
}

/// Each has two spans: more than the export queue holds.
const CALLS: usize = 2_500;

/// A collector that accepts connections but never responds, and an unreachable one.
#[tokio::test]
async fn a_dead_collector_delays_neither_calls_nor_shutdown() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_url = format!("http://{}", silent.local_addr().expect("its address"));
    let gone_url = format!("http://127.0.0.1:{}", free_port());
    let check = async |url: &str, count: usize| {
        let settings = sending_to(url, "sqlite::memory:").set("EXPERTISE_SHUTDOWN_GRACE", "2s");
        let server = TestServer::start(settings).await;
        let client = server.client();
        let calls = stream::iter(0..count).map(|_| client.get_task(ABSENT));
        let refused = calls.buffer_unordered(50).filter(|it| ready(it.is_err()));
        assert_eq!(refused.count().await, count);
        server
            .wait_for_metrics("every call", |metrics| {
                let not_found = [("grpc_code", "NotFound")];
                metrics.sum("grpc_server_handled_total", &not_found) == count as f64
            })
            .await;
        let begun = Instant::now();
        server.shut_down().await;
        // Far below the sum of the collector's time-outs.
        assert!(begun.elapsed() < std::time::Duration::from_secs(30));
    };
    // More than one export, and more than the queue holds.
    tokio::join!(check(&gone_url, 500), check(&silent_url, CALLS));
}

#[tokio::test]
async fn the_log_says_why_spans_do_not_reach_the_collector() {
    let endpoint = format!("http://127.0.0.1:{}", free_port());
    let args = ["--listen=127.0.0.1:0", "--log=warn"];
    let server = command(&args)
        .env("EXPERTISE_DATABASE_URL", "sqlite::memory:")
        .env("EXPERTISE_OTLP_ENDPOINT", &endpoint)
        .start();
    let client = Client::at(server.address()).with_account("demo");
    client.get_task(ABSENT).await.expect_err("no task");
    assert!(server.next_error_line().contains("Export.Failed.Exhausted"));
    let line = server.next_error_line();
    line.says(&["BatchSpanProcessor.ExportError", "Connection refused"]);
}
