//! `/healthz` and `/readyz`.

use std::fs;

use super::begin_get_task;
use crate::kit::{
    deadline,
    postgres::{Cluster, Stop},
    scratch::Scratch,
    server::{TestServer, http_get, with_metrics},
};

#[tokio::test]
async fn a_server_that_serves_is_alive_and_ready() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let at = server.metrics_address();
    assert_eq!(http_get(at, "/healthz").await, (200, "alive\n".to_owned()));
    assert_eq!(http_get(at, "/readyz").await, (200, "ready\n".to_owned()));
    assert_eq!(server.metrics().await.sum("expertise_ready", &[]), 1.0);
}

#[tokio::test]
async fn idle_connections_do_not_block_probes() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let at = server.metrics_address();
    let mut silent = Vec::new();
    for _ in 0..100 {
        let connection = tokio::net::TcpStream::connect(at).await;
        silent.push(connection.expect("it listens"));
    }
    let bound = std::time::Duration::from_secs(5);
    let alive = tokio::time::timeout(bound, http_get(at, "/healthz")).await;
    assert_eq!(alive.expect("at once"), (200, "alive\n".to_owned()));
}

#[tokio::test]
async fn a_server_that_shuts_down_is_alive_and_not_ready() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let at = server.metrics_address();
    // The call in flight delays the shutdown.
    let call = begin_get_task(&server.client());
    server
        .wait_for_metrics("a call in flight", |metrics| {
            metrics.sum("expertise_calls_in_flight", &[]) == 1.0
        })
        .await;
    let serving = server.begin_shutdown();
    assert_eq!(until_ready_code(at, 503).await, "shutting down\n");
    let (_, metrics) = http_get(at, "/metrics").await;
    assert!(metrics.contains("\nexpertise_ready 0\n"), "{metrics}");
    assert_eq!(http_get(at, "/healthz").await.0, 200);
    call.abort();
    serving.await.expect("without a panic").expect("it served");
}

// Stopping PostgreSQL blocks the thread of the test, so the server needs others.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_server_without_its_database_is_alive_and_not_ready() {
    let mut cluster = Cluster::start("readiness.cluster", &["fsync=off"]);
    let server = TestServer::start(with_metrics(&cluster.url())).await;
    let at = server.metrics_address();
    assert_eq!(http_get(at, "/readyz").await.0, 200);
    cluster.stop(Stop::Immediate);
    let unready = until_ready_code(at, 503).await;
    assert_eq!(unready, "the database does not answer\n");
    assert_eq!(http_get(at, "/healthz").await.0, 200);
    assert_eq!(http_get(at, "/metrics").await.0, 200);
    cluster.start_again();
    until_ready_code(at, 200).await;
    server.shut_down().await;
}

#[tokio::test]
async fn a_server_whose_file_was_replaced_is_not_ready() {
    let scratch = Scratch::of_this_run();
    let (path, aside) = (scratch.path("replaced.db"), scratch.path("aside.db"));
    let url = format!("sqlite:{}", path.display());
    let server = TestServer::start(with_metrics(&url)).await;
    let at = server.metrics_address();
    assert_eq!(http_get(at, "/readyz").await.0, 200);
    fs::rename(&path, &aside).expect("it is moved");
    until_ready_code(at, 503).await;
    fs::copy(&aside, &path).expect("another one is there");
    until_ready_code(at, 503).await;
    fs::rename(&aside, &path).expect("it is moved back");
    until_ready_code(at, 200).await;
    server.shut_down().await;
}

/// Waits until `/readyz` answers with this code; the body.
async fn until_ready_code(at: std::net::SocketAddr, code: u16) -> String {
    deadline::until("the code", async || {
        let (now, body) = http_get(at, "/readyz").await;
        (now == code).then_some(body)
    })
    .await
}
