//! `/healthz` and `/readyz`.

use std::{
    fs, io,
    time::{Duration, Instant},
};

use futures_util::{future::join_all, stream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::oneshot,
};

use super::begin_get_task;
use crate::{
    kit::{
        deadline,
        postgres::{Cluster, Stop, execute},
        scratch::Scratch,
        server::{TestServer, http_get, with_metrics},
    },
    prelude::*,
};

#[tokio::test]
async fn a_server_that_serves_is_alive_and_ready() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let at = server.metrics_address();
    for path in ["/healthz", "/livez"] {
        assert_eq!(http_get(at, path).await, (200, "alive\n".to_owned()));
    }
    assert_eq!(http_get(at, "/readyz").await, (200, "ready\n".to_owned()));
    assert_eq!(server.metrics().await.sum("expertise_ready", &[]), 1.0);
}

#[tokio::test]
async fn idle_connections_do_not_block_probes() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let at = server.metrics_address();
    let mut silent = Vec::new();
    // Each has begun a request.
    let connect = async || {
        let mut connection = tokio::net::TcpStream::connect(at).await?;
        connection.write_all(b"G").await.map(|()| connection)
    };
    for _ in 0..100 {
        silent.push(connect().await.expect("it listens"));
    }
    let alive = deadline::in_time("an answer", http_get(at, "/healthz")).await;
    assert_eq!(alive, (200, "alive\n".to_owned()));
    let open = silent[0].try_read(&mut [0]).expect_err("it is still open");
    assert_eq!(open.kind(), io::ErrorKind::WouldBlock);

    // More than 128 wait until others end.
    deadline::until("the limit is logged", async || {
        for _ in 0..30 {
            silent.push(connect().await.expect("it listens"));
        }
        let log = server.log();
        let full = "too many connections: new ones must wait";
        (log.contains(full) && log.contains("\"max\":128")).then_some(())
    })
    .await;
    drop(silent);
    assert_eq!(http_get(at, "/healthz").await.0, 200);
}

#[tokio::test]
async fn connections_without_a_whole_request_are_closed() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let closed = ["", "G"].map(async |sent| {
        let at = server.metrics_address();
        let mut connection = tokio::net::TcpStream::connect(at).await?;
        connection.write_all(sent.as_bytes()).await?;
        connection.read_to_end(&mut Vec::new()).await
    });
    deadline::in_time("their end", join_all(closed)).await;
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

#[tokio::test]
async fn a_call_in_progress_is_answered_during_a_shutdown() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let (at, client) = (server.metrics_address(), server.client());
    let guide = client.given_task(task("Guide")).await;
    let (send, message) = oneshot::channel();
    let messages = stream::once(async { message.await.expect("a message") });
    let mut grpc = tonic::client::Grpc::new(client.authenticated());
    let call = tokio::spawn(async move {
        grpc.ready().await.expect("a connection");
        let codec = tonic_prost::ProstCodec::<GetTaskRequest, GetTaskResponse>::default();
        let path = http::uri::PathAndQuery::from_static("/expertise.v1.TaskService/GetTask");
        let request = tonic::Request::new(messages);
        grpc.client_streaming(request, path, codec).await
    });
    server
        .wait_for_metrics("a call in flight", |metrics| {
            metrics.sum("expertise_calls_in_flight", &[]) == 1.0
        })
        .await;
    let serving = server.begin_shutdown();
    until_ready_code(at, 503).await;
    let guid = guide.guid.clone();
    send.send(GetTaskRequest { guid })
        .expect("it is waited for");
    let answer = deadline::in_time("the answer", call).await;
    let found = answer.expect("no panic").accepted();
    assert_eq!(found.into_inner().task, Some(guide));
    serving.await.expect("without a panic").expect("it served");
}

#[tokio::test]
async fn without_grace_a_shutdown_cuts_calls_in_progress_at_once() {
    let settings = with_metrics("sqlite::memory:").set("EXPERTISE_SHUTDOWN_GRACE", "0s");
    let server = TestServer::start(settings).await;
    let call = begin_get_task(&server.client());
    server
        .wait_for_metrics("a call in flight", |metrics| {
            metrics.sum("expertise_calls_in_flight", &[]) == 1.0
        })
        .await;
    let begun = Instant::now();
    server.shut_down().await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    let ended = deadline::in_time("the end of the call", call).await;
    ended.expect("no panic").expect_err("it is cut");
}

#[tokio::test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_server_without_its_database_is_alive_and_not_ready() {
    let mut cluster = Cluster::start("readiness.cluster", &["fsync=off"]);
    let server = TestServer::start(with_metrics(&cluster.url())).await;
    let at = server.metrics_address();
    assert_eq!(http_get(at, "/readyz").await.0, 200);
    cluster.stop(Stop::Immediate);
    let unready = until_ready_code(at, 503).await;
    assert_eq!(unready, "the database does not respond\n");
    let began = Instant::now();
    let failure = server.client().create_task(task("Away")).await.refused();
    failure.is(Code::Unavailable, "STORE_UNAVAILABLE");
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "it is refused immediately"
    );
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

#[tokio::test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_new_password_is_read_from_its_file_without_a_restart() {
    let mut cluster = Cluster::start("new_password.cluster", &["fsync=off"]);
    execute(&cluster.url(), "CREATE ROLE ann LOGIN PASSWORD 'former'");
    execute(&cluster.url(), "CREATE DATABASE guides OWNER ann");
    let rules = cluster.data().join("pg_hba.conf");
    let trusting = fs::read_to_string(&rules).expect("the rules");
    fs::write(
        &rules,
        format!("host all ann all scram-sha-256\n{trusting}"),
    )
    .expect("a file");
    cluster.stop(Stop::Fast);
    cluster.start_again();

    let file = tempfile::NamedTempFile::new().expect("a file of mode 600");
    let set_password = |password| {
        fs::write(file.path(), format!("*:*:*:ann:{password}\n")).expect("a file");
    };
    set_password("former");
    let url = cluster.url_of("guides").replace("postgres@", "ann@");
    let settings = with_metrics(&url).set("PGPASSFILE", file.path().display());
    let server = TestServer::start(settings).await;
    let client = server.client();
    client.given_task(task("Pump")).await;

    execute(&cluster.url(), "ALTER ROLE ann PASSWORD 'new'");
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ann'";
    execute(&cluster.url(), end);
    until_ready_code(server.metrics_address(), 503).await;
    set_password("new");
    until_ready_code(server.metrics_address(), 200).await;
    client.given_task(task("Valve")).await;
}
