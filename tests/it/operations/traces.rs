//! Spans for a collector, and the trace context of callers.

use std::time::Instant;

use expertise::config::Config;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};

use crate::kit::{
    collector::{Collector, attributes, hex},
    command::command,
    deadline::until,
    postgres::free_port,
    prelude::*,
    server::{TestServer, with_metrics},
};

const CREATE: &str = "expertise.v1.TaskService/CreateTask";
const GET: &str = "expertise.v1.TaskService/GetTask";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
const ABSENT: &str = "01a1fdaf-d221-7557-a852-5dd7d6531c2e";

async fn traced(collector: &Collector) -> TestServer {
    TestServer::start(sending_to(&collector.url())).await
}

fn sending_to(endpoint: &str) -> Config {
    Config {
        otlp_endpoint: Some(endpoint.parse().expect("a URL")),
        ..with_metrics("sqlite::memory:")
    }
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
async fn database_spans_are_children_of_the_calls_span() {
    let mut collector = Collector::start();
    let server = traced(&collector).await;
    let client = server.client();
    let task = client.given_task(task("one")).await;
    client.get_task(&task.guid).await.expect("the task");
    let calls = [(CREATE, "database write"), (GET, "database read")];
    for (call, below) in calls {
        let [call] = <[Span; 1]>::try_from(collector.spans_of(call, 1).await).expect("one span");
        let spans = collector.spans();
        let below = spans
            .iter()
            .find(|span| span.name == below && span.trace_id == call.trace_id)
            .unwrap_or_else(|| panic!("no {below}: {spans:?}"));
        assert_eq!(below.parent_span_id, call.span_id);
        assert!(below.start_time_unix_nano >= call.start_time_unix_nano);
        assert!(below.end_time_unix_nano <= call.end_time_unix_nano);
        assert!(below.attributes.is_empty(), "{below:?}");
    }
    server.shut_down().await;
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
        &parent("01-"),
        &parent("01").to_uppercase(),
        &parent("01").replace('-', "_"),
        &parent("01").replacen("00", "ff", 1),
        &parent("01").replacen("00", "0g", 1),
        &(parent("01").replacen("00", "cc", 1) + ".more"),
        &parent("01").replace(TRACE, &"0".repeat(32)),
        &parent("01").replace(TRACE, &format!("+{}", &TRACE[1..])),
        &parent("01").replace(TRACE, &TRACE[1..]),
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

/// A collector that takes connections and says nothing, and one that is not there.
#[tokio::test]
async fn a_dead_collector_delays_neither_calls_nor_shutdown() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_url = format!("http://{}", silent.local_addr().expect("its address"));
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let gone_url = format!("http://{}", gone.local_addr().expect("its address"));
    drop(gone);
    for url in [silent_url, gone_url] {
        let config = Config {
            shutdown_grace: std::time::Duration::from_secs(2),
            ..sending_to(&url)
        };
        let server = TestServer::start(config).await;
        let client = server.client();
        for _ in 0..CALLS {
            client.get_task(ABSENT).await.expect_err("no task");
        }
        let metrics = server.metrics().await;
        assert_eq!(
            metrics.sum("expertise_calls_total", &[("code", "NOT_FOUND")]),
            CALLS as f64
        );
        assert_eq!(metrics.sum("expertise_spans_exported_total", &[]), 0.0);
        let begun = Instant::now();
        server.shut_down().await;
        // Far below the sum of the collector's time-outs.
        assert!(begun.elapsed() < std::time::Duration::from_secs(30));
    }
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
    let line = server.next_error_line();
    let part = "are lost: it refuses the connection: start it, or check host and port";
    assert!(line.contains(part), "{line}");
}

#[tokio::test]
async fn a_late_collector_gets_later_spans() {
    let address = {
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        port.local_addr().expect("its address")
    };
    let server = TestServer::start(sending_to(&format!("http://{address}"))).await;
    let client = server.client();
    client.get_task(ABSENT).await.expect_err("no task");
    server
        .wait_for_metrics("a lost span", |metrics| {
            metrics.sum("expertise_spans_lost_total", &[]) > 0.0
        })
        .await;
    let mut collector = Collector::at(address);
    client.given_task(task("one")).await;
    // The transport may take a moment to try again.
    until("spans", async || {
        client.get_task(ABSENT).await.expect_err("no task");
        (!collector.spans().is_empty()).then_some(())
    })
    .await;
    collector.spans_of(GET, 1).await;
    server.shut_down().await;
}
