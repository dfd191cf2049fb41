//! `/healthz` and `/readyz`.

use crate::harness::service::{Service, config, get};

#[tokio::test]
async fn a_server_that_serves_is_alive_and_ready() {
    let service = Service::start(config("sqlite::memory:")).await;
    let at = service.metrics_address();
    assert_eq!(get(at, "/healthz").await, (200, "alive\n".to_owned()));
    assert_eq!(get(at, "/readyz").await, (200, "ready\n".to_owned()));
}

#[tokio::test]
async fn connections_that_ask_for_nothing_keep_nobody_from_an_answer() {
    let service = Service::start(config("sqlite::memory:")).await;
    let at = service.metrics_address();
    let mut silent = Vec::new();
    for _ in 0..100 {
        let connection = tokio::net::TcpStream::connect(at).await;
        silent.push(connection.expect("it listens"));
    }
    let bound = std::time::Duration::from_secs(5);
    let alive = tokio::time::timeout(bound, get(at, "/healthz")).await;
    assert_eq!(alive.expect("at once"), (200, "alive\n".to_owned()));
}

#[tokio::test]
async fn a_server_that_shuts_down_is_alive_and_not_ready() {
    let service = Service::start(config("sqlite::memory:")).await;
    let at = service.metrics_address();
    // The call at hand keeps the server from ending at once.
    let call = service.client().get_task_that_never_comes();
    service
        .until("a call in flight", |metrics| {
            metrics.sum("expertise_calls_in_flight", &[]) == 1.0
        })
        .await;
    let serving = service.begin_to_stop();
    let ready = loop {
        let ready = get(at, "/readyz").await;
        if ready.0 != 200 {
            break ready;
        }
    };
    assert_eq!(ready, (503, "shutting down\n".to_owned()));
    assert_eq!(get(at, "/healthz").await.0, 200);
    call.abort();
    serving.await.expect("without a panic");
}

#[tokio::test]
async fn a_server_without_its_database_is_alive_and_not_ready() {
    use crate::harness::{
        absent::report_missing,
        cluster::{Cluster, Stop},
    };
    let Some(mut cluster) = Cluster::start("readiness.cluster", &["fsync=off"]) else {
        return report_missing("PostgreSQL", "EXPERTISE_REQUIRE_POSTGRES");
    };
    let service = Service::start(config(&cluster.url())).await;
    let at = service.metrics_address();
    assert_eq!(get(at, "/readyz").await.0, 200);
    cluster.stop(Stop::Immediate);
    let unready = until(at, 503).await;
    assert_eq!(unready, "the database does not answer\n");
    assert_eq!(get(at, "/healthz").await.0, 200);
    assert_eq!(get(at, "/metrics").await.0, 200);
    cluster.start_again();
    until(at, 200).await;
    service.stop().await;
}

/// Waits for this code; the body.
async fn until(at: std::net::SocketAddr, code: u16) -> String {
    let waited = async {
        loop {
            let (now, body) = get(at, "/readyz").await;
            if now == code {
                return body;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(crate::harness::service::BOUND, waited).await;
    waited.expect("the code in time")
}
