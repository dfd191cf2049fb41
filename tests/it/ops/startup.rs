//! A server that starts before its database.

use std::{
    io::Read,
    net::{SocketAddr, TcpListener},
    thread,
};

use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    command::{RunningCommand, Says, command},
    kit::{
        deadline::until,
        postgres::{Cluster, Stop, free_port, shared_cluster},
        relay::Relay,
        server::http_get,
    },
    prelude::*,
};
use rustix::process::Signal;

/// A server on a database that is not there. It cannot say yet where it listens.
struct WaitingServer {
    process: RunningCommand,
    address: SocketAddr,
    metrics: SocketAddr,
}

impl WaitingServer {
    /// Starts it, and waits until it is alive.
    async fn start(url: &str, args: &[&str]) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let metrics = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let process = command(args)
            .env("EXPERTISE_DATABASE_URL", url)
            .env("EXPERTISE_LISTEN", &address.to_string())
            .env("EXPERTISE_METRICS_LISTEN", &metrics.to_string())
            .start();
        until("it listens", async || {
            tokio::net::TcpStream::connect(metrics).await.ok()
        })
        .await;
        Self {
            process,
            address,
            metrics,
        }
    }

    async fn readiness(&self) -> (u16, String) {
        http_get(self.metrics, "/readyz").await
    }

    async fn health(&self) -> ServingStatus {
        let mut health = HealthClient::new(Client::at(self.address).channel());
        let answer = health.check(HealthCheckRequest::default()).await;
        answer.accepted().into_inner().status()
    }
}

/// A cluster that is stopped, and its address with a password.
fn stopped_cluster(name: &str) -> (Cluster, String) {
    let mut cluster = Cluster::start(name, &["fsync=off"]);
    cluster.stop(Stop::Fast);
    let url = cluster.url().replace("postgres@", "postgres:secret@");
    (cluster, url)
}

#[tokio::test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_server_serves_as_soon_as_its_database_is_there() {
    let (mut cluster, url) = stopped_cluster("late.cluster");
    let server = WaitingServer::start(&url, &[]).await;
    let client = Client::at(server.address).with_account("demo");
    assert_eq!(http_get(server.metrics, "/healthz").await.0, 200);
    assert_eq!(http_get(server.metrics, "/metrics").await.0, 200);
    let starting = (503, "the server is starting\n".to_owned());
    assert_eq!(server.readiness().await, starting);
    assert_eq!(server.health().await, ServingStatus::NotServing);
    let failure = client.create_task(task("Pump")).await.refused();
    failure.is(Code::Unavailable, "STORE_UNAVAILABLE");
    assert_eq!(failure.message, "the server is starting");
    // Credentials are checked before.
    let malformed = Client::at(server.address).with_account("a b");
    let failure = malformed.create_task(task("Pump")).await.refused();
    failure.is(Code::Unauthenticated, "CREDENTIALS_INVALID");

    cluster.start_again();
    let line = server.process.start_line();
    assert!(line.contains(&server.address.to_string()), "{line}");
    assert_eq!(server.readiness().await.0, 200);
    assert_eq!(server.health().await, ServingStatus::Serving);
    let (_, metrics) = http_get(server.metrics, "/metrics").await;
    metrics.says(&["expertise_database_connections"]);
    client.given_task(task("Pump")).await;
    server.process.signal(Signal::TERM);
    assert_eq!(server.process.end().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_call_that_comes_before_the_database_is_answered_once_it_is_there() {
    let url = shared_cluster().make_database("early_call");
    let migrate = command(&["migrate"]).env("EXPERTISE_DATABASE_URL", &url);
    migrate.run().succeeded();
    let relay = Relay::to_database(&url);
    relay.hold();
    let server = WaitingServer::start(&relay.url(&url), &[]).await;
    let client = Client::at(server.address).with_account("demo");
    let early = tokio::spawn(async move { client.given_task(task("Early")).await });
    until("the call waits", async || {
        let (_, metrics) = http_get(server.metrics, "/metrics").await;
        let waits = metrics.contains("\nexpertise_calls_waiting 1\n");
        waits.then_some(())
    })
    .await;
    assert!(!early.is_finished());
    relay.resume();
    early.await.expect("it is answered");
}

#[tokio::test]
async fn a_server_that_waits_says_so_again_and_again_without_the_password() {
    let port = free_port();
    let url = format!("postgres://ann:secret@127.0.0.1:{port}/e");
    let server = WaitingServer::start(&url, &["--log-format=text"]).await;
    for _ in 0..2 {
        let line = server.process.next_error_line();
        line.says(&[
            "waiting for the database",
            &format!("postgres://127.0.0.1:{port}/e"),
            "the connection is refused: start PostgreSQL",
        ]);
        assert!(!line.contains("secret"), "{line}");
    }
}

#[tokio::test]
async fn a_server_that_waits_ends_with_0_after_sigterm() {
    let url = format!("postgres://ann@127.0.0.1:{}/e", free_port());
    let server = WaitingServer::start(&url, &[]).await;
    server.process.signal(Signal::TERM);
    let output = server.process.end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(output.stdout, "");
}

#[tokio::test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_missing_schema_is_refused_when_the_database_is_there() {
    let (mut cluster, url) = stopped_cluster("late_schema.cluster");
    let args = ["--migrate=false", "--log=off"];
    let server = WaitingServer::start(&url, &args).await;
    cluster.start_again();
    let line = server.process.end().failure(1);
    let empty = "the database is empty: run `expertise migrate`";
    assert!(line.contains(empty), "{line}");
}

#[tokio::test]
async fn a_host_that_has_no_address_yet_is_waited_for() {
    let url = "postgres://ann:secret@no-such-host.invalid/e";
    let server = WaitingServer::start(url, &["--log-format=text"]).await;
    let line = server.process.next_error_line();
    assert!(line.contains("the host name has no address"), "{line}");
}

#[tokio::test]
async fn a_proxy_whose_database_is_down_is_waited_for() {
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = proxy.local_addr().expect("its address").port();
    thread::spawn(move || {
        for mut connection in proxy.incoming().flatten() {
            // Reads what has arrived, and closes the connection without a response.
            let _ = connection.read(&mut [0; 1024]);
        }
    });
    for parameters in ["", "?sslmode=disable", "?sslmode=require"] {
        let url = format!("postgres://ann:secret@127.0.0.1:{port}/e{parameters}");
        let server = WaitingServer::start(&url, &["--log-format=text"]).await;
        let line = server.process.next_error_line();
        let part = "which cannot be reached: it closes the connection";
        assert!(line.contains(part), "{parameters}: {line}");
    }
}
