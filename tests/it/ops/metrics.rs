//! `/metrics`.

use std::time::Instant;

use super::{begin_get_task, begin_get_task_with, call_unknown_path};
use crate::{
    command::Says,
    databases::postgres,
    kit::server::{TestServer, http_answer, http_get, in_memory, with_metrics},
    ops::exposition::Exposition,
    prelude::*,
};

/// What the metrics of every gRPC server call a method of TaskService.
fn grpc_labels(method: &str) -> [(&str, &str); 3] {
    [
        ("grpc_type", "unary"),
        ("grpc_service", "expertise.v1.TaskService"),
        ("grpc_method", method),
    ]
}

const HANDLED: &str = "grpc_server_handled_total";

#[tokio::test]
async fn a_call_is_counted_by_rpc_code_and_reason() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let client = server.client();
    let one = client.given_task(task("one")).await;
    client.get_task(&one.guid).await.expect("the task");
    client.get_task(&one.guid).await.expect("the task");
    let absent = "01a1fdaf-d221-7557-a852-5dd7d6531c2e";
    client.get_task(absent).await.expect_err("no task");
    client.create_task(task(" ")).await.expect_err("no name");

    // A call is counted when its response is dropped, which may be after the client has it. And a scrape
    // does not read all metrics at one moment.
    let get = grpc_labels("GetTask");
    let seconds = "grpc_server_handling_seconds";
    let ended = |metrics: &Exposition| {
        metrics.sum(HANDLED, &[]) == 5.0
            && metrics.sum(&format!("{seconds}_count"), &get) == 3.0
            && metrics.sum("expertise_calls_in_flight", &[]) == 0.0
            && metrics.sum("expertise_inflight_bytes", &[]) == 0.0
    };
    let metrics = server.wait_for_metrics("five calls", ended).await;
    for (method, code, reason, count) in [
        ("CreateTask", "OK", "", 1.0),
        ("CreateTask", "InvalidArgument", "FIELD_REQUIRED", 1.0),
        ("GetTask", "OK", "", 2.0),
        ("GetTask", "NotFound", "TASK_NOT_FOUND", 1.0),
    ] {
        let [kind, service, method] = grpc_labels(method);
        let labels = [
            kind,
            service,
            method,
            ("grpc_code", code),
            ("reason", reason),
        ];
        assert_eq!(metrics.sum(HANDLED, &labels), count, "{labels:?}");
    }
    assert_eq!(metrics.sum("grpc_server_started_total", &get), 3.0);
    assert!(metrics.sum(&format!("{seconds}_sum"), &get) > 0.0);
}

#[tokio::test]
async fn labels_do_not_grow_with_callers_or_unknown_paths() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let before = server.metrics().await;
    for number in 0..20 {
        let client = server
            .client()
            .with_metadata("x-subject", &format!("subject-{number}"));
        call_unknown_path(&client, &format!("/expertise.v1.TaskService/Rpc{number}")).await;
        call_unknown_path(&client, &format!("/service.{number}/Rpc")).await;
    }
    let unknown = ("grpc_method", "unknown");
    let metrics = server
        .wait_for_metrics("forty calls", |metrics| {
            metrics.sum(HANDLED, &[unknown]) == 40.0
        })
        .await;
    for label in ["rpc", "grpc_service", "grpc_method"] {
        assert_eq!(metrics.values(label), before.values(label));
    }
    // One series more: UNIMPLEMENTED of unknown rpcs.
    assert_eq!(metrics.len(), before.len() + 1);
}

#[tokio::test]
async fn a_call_is_in_flight_until_it_ends() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let get = ("rpc", "expertise.v1.TaskService/GetTask");
    let in_flight = |metrics: &Exposition| metrics.sum("expertise_calls_in_flight", &[get]);
    let call = begin_get_task(&server.client());
    server
        .wait_for_metrics("a call in flight", |metrics| in_flight(metrics) == 1.0)
        .await;
    call.abort();
    // A scrape does not read all metrics at one moment, so wait for both.
    let method = ("grpc_method", "GetTask");
    let canceled = [method, ("grpc_code", "Canceled")];
    let metrics = server
        .wait_for_metrics("a canceled call", |metrics| {
            metrics.sum(HANDLED, &canceled) == 1.0 && in_flight(metrics) == 0.0
        })
        .await;
    assert_eq!(metrics.sum(HANDLED, &[method]), 1.0);
}

#[tokio::test]
async fn sqlite_statements_are_measured() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite:{}", directory.path().join("e.db").display());
    let metrics = measured(&url, "reader").await;
    let commits = metrics.sum("expertise_database_commit_seconds_count", &[]);
    assert_eq!(commits, 3.0);
    let max = |pool| metrics.sum("expertise_database_connections_max", &[("pool", pool)]);
    assert_eq!(max("writer"), 1.0);
    assert!(max("reader") > 1.0);
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn postgres_statements_are_measured() {
    let url = postgres("metrics");
    let metrics = measured(&url, "shared").await;
    // Only PostgreSQL has statements that lock rows, which another transaction may hold.
    let locks = [("kind", "lock")];
    let locks = metrics.sum("expertise_database_statement_seconds_count", &locks);
    assert!(locks >= 1.0, "{metrics:?}");
}

async fn measured(url: &str, pool: &str) -> Exposition {
    let begun = Instant::now();
    let server = TestServer::start(with_metrics(url)).await;
    let client = server.client();
    let one = client.given_task(task("one")).await;
    client.given_step(information_step(&one, "first")).await;
    client.get_task(&one.guid).await.expect("the task");
    client
        .force_delete_task(&one.guid)
        .await
        .expect("it is deleted");
    let metrics = server.metrics().await;
    for (name, labels) in [
        (
            "expertise_database_statement_seconds_count",
            [("kind", "read")].as_slice(),
        ),
        (
            "expertise_database_statement_seconds_count",
            &[("kind", "write")],
        ),
        ("expertise_database_connections", &[("pool", pool)]),
        ("expertise_database_connections_max", &[("pool", pool)]),
    ] {
        assert!(metrics.sum(name, labels) >= 1.0, "{name} {labels:?}");
    }
    assert_eq!(
        metrics.sum("expertise_database_write_seconds_count", &[]),
        3.0
    );
    assert_eq!(
        metrics.sum("expertise_write_queue_wait_seconds_count", &[]),
        3.0
    );
    // Times are in seconds.
    for name in [
        "grpc_server_handling_seconds_sum",
        "expertise_database_statement_seconds_sum",
        "expertise_database_commit_seconds_sum",
        "expertise_database_write_seconds_sum",
    ] {
        let (seconds, most) = (metrics.sum(name, &[]), begun.elapsed().as_secs_f64());
        assert!(seconds < 2.0 * most, "{name}: {seconds}");
    }
    let version = ("version", env!("CARGO_PKG_VERSION"));
    assert_eq!(metrics.sum("expertise_build_info", &[version]), 1.0);
    server.shut_down().await;
    metrics
}

#[tokio::test]
async fn overloaded_calls_are_counted() {
    // Large messages have an eighth of it.
    const LIMIT: usize = 16 * 1024 * 1024;
    let settings = with_metrics("sqlite::memory:")
        .set("EXPERTISE_MAX_MESSAGE_BYTES", LIMIT)
        .set("EXPERTISE_REQUEST_TIMEOUT", "3s")
        .set("EXPERTISE_MAX_INFLIGHT_BYTES", LIMIT);
    let server = TestServer::start(settings).await;
    let metrics = server.metrics().await;
    let limit = metrics.sum("expertise_inflight_limit_bytes", &[]);
    assert_eq!(limit, LIMIT as f64);
    let held = GetTaskRequest {
        guid: "x".repeat(1_900_000),
    };
    let call = begin_get_task_with(&server.client(), vec![held]);
    server
        .wait_for_metrics("the message is held", |metrics| {
            metrics.sum("expertise_inflight_bytes", &[]) > 1_900_000.0
        })
        .await;
    // It waits for half of its time.
    let large = task(&"x".repeat(1_200_000));
    let failure = server.client().create_task(large).await.refused();
    failure.is(Code::ResourceExhausted, "OVERLOADED");
    assert_eq!(failure.retry_pushback, Some(1_000));

    let overloaded = [("grpc_code", "ResourceExhausted"), ("reason", "OVERLOADED")];
    let metrics = server
        .wait_for_metrics("an overloaded call", |metrics| {
            metrics.sum(HANDLED, &overloaded) == 1.0
        })
        .await;
    let rejected = |cause| metrics.sum("expertise_rejected_calls_total", &[("cause", cause)]);
    assert_eq!(rejected("memory"), 1.0);
    assert_eq!(rejected("queue_full"), 0.0);
    assert_eq!(rejected("queue_timeout"), 0.0);
    call.abort();
}

#[tokio::test]
async fn changes_are_counted_once_when_they_are_put_in_order() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let client = server.client();
    let cursor = client.cursor_now().await;
    for name in ["one", "two"] {
        client.given_task(task(name)).await;
    }
    for _ in 0..2 {
        let (changes, _) = client.changes_after(&cursor).await;
        assert_eq!(changes.len(), 2);
        let metrics = server.metrics().await;
        assert_eq!(metrics.sum("expertise_sequenced_changes_total", &[]), 2.0);
    }
}

/// A rate counts the first outcome only if its series exists before it.
#[tokio::test]
async fn outcomes_that_alerts_are_about_count_from_zero() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let metrics = server.metrics().await;
    for (code, reason) in [
        ("OK", ""),
        ("Internal", "INTERNAL"),
        ("Unavailable", "STORE_UNAVAILABLE"),
        ("Unauthenticated", "CREDENTIALS_MISSING"),
        ("Unauthenticated", "CREDENTIALS_INVALID"),
    ] {
        let [kind, service, method] = grpc_labels("GetTask");
        let labels = [
            kind,
            service,
            method,
            ("grpc_code", code),
            ("reason", reason),
        ];
        assert_eq!(metrics.series(HANDLED, &labels), [0.0], "{labels:?}");
    }
}

#[tokio::test]
async fn metrics_are_open_metrics_whatever_is_accepted() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    for accept in ["application/openmetrics-text", "text/plain", ",;,"] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: {accept}\r\n\r\n");
        let (head, text) = http_answer(server.metrics_address(), &request).await;
        let expected = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert!(
            head.starts_with("HTTP/1.1 200 ") && head.contains(expected),
            "{head}"
        );
        assert!(text.contains("# UNIT grpc_server_handling_seconds seconds\n"));
        assert!(text.ends_with("\n# EOF\n"), "{text}");
    }
}

#[tokio::test]
async fn the_metrics_port_serves_nothing_else() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let at = server.metrics_address();
    assert_eq!(http_get(at, "/").await.0, 404);
    assert_eq!(http_get(at, "/metrics/").await.0, 404);
    let post = "POST /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n";
    let (head, _) = http_answer(at, post).await;
    assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
    let (code, _) = http_get(at, &format!("/{}", "x".repeat(60_000))).await;
    assert!((400..500).contains(&code), "{code}");
    assert_eq!(http_get(at, "/healthz").await, (200, "alive\n".to_owned()));
}

#[tokio::test]
async fn without_the_setting_there_is_no_metrics_port() {
    let server = TestServer::start(in_memory()).await;
    assert_eq!(server.find_metrics_address(), None);
}

#[tokio::test]
async fn a_taken_metrics_port_is_a_failed_start_that_names_the_setting() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = holder.local_addr().expect("its address");
    let settings = in_memory().set("EXPERTISE_METRICS_LISTEN", address);
    let started = TestServer::try_start(settings.set("EXPERTISE_LOG", "off")).await;
    let line = started.expect_err("the port is taken");
    line.says(&[
        address.to_string().as_str(),
        "in use",
        "EXPERTISE_METRICS_LISTEN",
    ]);
    assert_eq!(line.lines().count(), 1);
}
