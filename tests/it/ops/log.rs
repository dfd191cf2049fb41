//! What the log of a server says of its database.

use std::{fs::File, net::SocketAddr, os::unix::fs::FileExt, time::Instant};

use futures_util::future::join_all;
use prost::Message;
use sqlx::{Connection, Executor, PgConnection, SqliteConnection};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    command::Says,
    databases::postgres,
    kit::{
        deadline::{until, until_true},
        postgres::{Cluster, Stop, execute},
        scratch::Scratch,
        server::{Settings, TestServer},
    },
    prelude::*,
};

#[tokio::test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn messages_of_postgres_stay_out_of_the_log() {
    let mut cluster = Cluster::start("messages.cluster", &["fsync=off"]);
    let url = cluster.url();
    let logs = [
        "warn",
        "info",
        "info,sqlx=warn,sqlx::postgres::notice=trace",
    ];
    let servers = logs.map(async |log| {
        let settings = Settings::new(&url).set("EXPERTISE_LOG", log);
        let server = TestServer::start(settings).await;
        server.client().given_task(task("Pump")).await;
        server
    });
    let servers = join_all(servers).await;
    // It tells every connection so.
    cluster.stop(Stop::Immediate);
    for server in servers {
        let failure = server.client().create_task(task("Pump")).await.refused();
        assert_eq!(failure.code, Code::Unavailable);
        let is_logged = || server.log().contains("the database does not respond");
        until_true("the outage is logged", is_logged).await;
        let text = server.log();
        let address = format!("(postgres://127.0.0.1:{}/postgres)", cluster.port());
        let is_named = |line: &str| line.contains(&address) || !line.contains("does not respond");
        assert!(text.lines().all(is_named), "{text}");
        assert!(server.terminate().success());
        assert!(!text.contains("terminating connection"), "{text}");
    }
}

/// As a migration by hand does, and an ALTER TABLE.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_read_that_waits_for_a_lock_is_unavailable_and_logged() {
    let url = postgres("locked_table");
    let server = TestServer::start(Settings::new(&url)).await;
    let client = server.client();
    let pump = client.given_task(task("Pump")).await;
    let mut holder = PgConnection::connect(&url).await.expect("PostgreSQL");
    let lock = "BEGIN; LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE";
    holder.execute(lock).await.expect("the lock");
    let failure = client.get_task(&pump.guid).await.refused();
    failure.is(Code::Unavailable, "STORE_UNAVAILABLE");
    assert_eq!(failure.retry_pushback, Some(1_000));
    let is_logged = || server.log().contains("a read waited too long for a lock");
    until_true("the wait is logged", is_logged).await;

    holder
        .execute("ROLLBACK")
        .await
        .expect("the end of the lock");
    assert_eq!(client.get_task(&pump.guid).await.accepted(), pump);
}

#[tokio::test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn the_cause_of_a_lost_primary_is_logged() {
    let cluster = Cluster::start("lost_primary.cluster", &["fsync=off"]);
    execute(&cluster.url(), "CREATE ROLE expertise LOGIN");
    execute(&cluster.url(), "CREATE DATABASE guides OWNER expertise");
    let url = cluster.url_of("guides").replace("postgres@", "expertise@");
    let server = TestServer::start(Settings::new(&url)).await;
    let client = server.client();
    client.given_task(task("Pump")).await;

    execute(&cluster.url(), "ALTER ROLE expertise NOLOGIN");
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'expertise'";
    let cause = "it rejects the login: check user and password";
    for line in [
        "the database does not respond",
        "the database refuses connections",
    ] {
        until(line, async || {
            // A connection that was being opened before is not seen at first, and is usable.
            execute(&cluster.url(), end);
            if let Err(status) = client.create_task(task("Pump")).await {
                Failure::from(status).is(Code::Unavailable, "STORE_UNAVAILABLE");
            }
            server
                .log()
                .contains(&format!("{line}: {cause}"))
                .then_some(())
        })
        .await;
    }
    execute(&cluster.url(), "ALTER ROLE expertise LOGIN");
    until("calls are served", async || {
        client.create_task(task("Pump")).await.ok()
    })
    .await;
    server.log().says_none_of(&["not permitted to log in"]);
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn that_all_connections_are_in_use_is_logged() {
    let url = postgres("connections_in_use");
    let settings = Settings::new(&url).set("EXPERTISE_DATABASE_MAX_CONNECTIONS", 1);
    let server = TestServer::start(settings).await;
    let client = server.client();
    let pump = client.given_task(task("Pump")).await;
    let mut holder = PgConnection::connect(&url).await.expect("PostgreSQL");
    let lock = "BEGIN; LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE";
    holder.execute(lock).await.expect("the lock");
    until("the connections in use are logged", async || {
        let read = || client.get_task(&pump.guid);
        let _ = tokio::join!(read(), read(), read(), read());
        let cause = "all connections of this server are in use";
        server.log().contains(cause).then_some(())
    })
    .await;
}

/// Each of these has calls wait for a connection until their time is over.
#[tokio::test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn why_no_connection_can_be_opened_is_logged() {
    let mut cluster = Cluster::start("no_connection.cluster", &["fsync=off"]);
    let mut admin = PgConnection::connect(&cluster.url())
        .await
        .expect("a superuser");
    for sql in [
        "CREATE ROLE narrow LOGIN",
        "CREATE DATABASE guides OWNER narrow",
    ] {
        admin.execute(sql).await.expect(sql);
    }
    let url = cluster.url_of("guides").replace("postgres@", "narrow@");
    let server = TestServer::start(Settings::new(&url)).await;
    let client = server.client();
    let pump = client.given_task(task("Pump")).await;
    admin
        .execute("ALTER ROLE narrow CONNECTION LIMIT 0")
        .await
        .expect("a limit");
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'narrow'";
    let mut unavailable_with = async |cause: &str| {
        until(cause, async || {
            // A connection that began before the limit may not have been seen the last time.
            let _ = admin.execute(end).await;
            let failure = client.get_task(&pump.guid).await.refused();
            failure.is(Code::Unavailable, "STORE_UNAVAILABLE");
            let line = format!("the database does not respond: {cause}");
            server.log().contains(&line).then_some(())
        })
        .await;
    };
    unavailable_with("its user has no free connection: raise the limit with ALTER ROLE").await;
    cluster.stop(Stop::Immediate);
    unavailable_with("the connection is refused: start PostgreSQL").await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_standby_in_place_of_the_primary_is_named_at_the_start() {
    let primary = Cluster::start("standby-start.cluster", &["fsync=off"]);
    let url = primary.url();
    let server = TestServer::start(Settings::new(&url)).await;
    let log = server.log();
    assert!(server.terminate().success());
    assert!(!log.contains("standby"), "{log}");
    let standby = primary.standby("standby-start.standby");
    let url = standby.url();
    let server = TestServer::start(Settings::new(&url)).await;
    let log = server.log();
    let lines = log
        .lines()
        .filter(|it| it.contains("the database is a standby"));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("WARN"), "{log}");
    let client = server.client();
    let failure = client.create_task(task("Pump")).await.refused();
    assert_eq!(failure.code, Code::Unavailable);
}

/// Overwrites a page of a SQLite file.
fn damage_page(file: &File, number: u64) {
    const PAGE_BYTES: usize = 4096;
    let offset = (number - 1) * PAGE_BYTES as u64;
    file.write_all_at(&[0xff; PAGE_BYTES], offset)
        .expect("it is written");
}

/// The URL of an SQLite file in which the table of tasks is damaged.
async fn damaged_database(name: &str) -> String {
    let url = Scratch::of_this_run().sqlite_url(name);
    let server = TestServer::start(Settings::new(&url)).await;
    server.shut_down().await;
    let mut database = SqliteConnection::connect(&url).await.expect("the file");
    let pages = sqlx::query_scalar("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'tasks'");
    let pages: Vec<i64> = pages.fetch_all(&mut database).await.expect("the pages");
    database.close().await.expect("it is closed");
    let path = url.trim_start_matches("sqlite:");
    let file = File::options().write(true).open(path).expect("the file");
    for page in pages {
        damage_page(&file, u64::try_from(page).expect("a page"));
    }
    url
}

#[tokio::test]
async fn the_id_of_an_internal_error_is_the_request_id_of_its_call() {
    let url = damaged_database("damaged_id").await;
    let settings = Settings::new(&url).set("EXPERTISE_LOG_FORMAT", "json");
    let server = TestServer::start(settings).await;
    let client = server.client();
    let failure = client.get_task(&unknown_guid()).await.refused();
    failure.is(Code::Internal, "INTERNAL");
    let line = line_with(&server, "/GetTask").await;
    assert_eq!(line["request_id"], *failure.metadata()["id"]);
}

#[tokio::test]
async fn a_damaged_table_is_logged_as_such() {
    let url = damaged_database("damaged").await;
    let server = TestServer::start(Settings::new(&url)).await;
    let client = server.client();
    let failure = client.get_task(&unknown_guid()).await.refused();
    failure.is(Code::Internal, "INTERNAL");
    let log = server.log();
    log.says(&["the SQLite file is damaged: restore a backup"]);
    assert!(!log.contains("malformed"), "{log}");
}

/// The fields of the first line with this text in a log in JSON.
async fn line_with(server: &TestServer, text: &str) -> serde_json::Value {
    let line = until("the call is logged", async || {
        let log = server.log();
        let line = log.lines().find(|line| line.contains(text));
        line.map(str::to_owned)
    })
    .await;
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    line.get("fields").unwrap_or(&line).clone()
}

#[tokio::test]
async fn the_line_of_a_call_has_its_peer_its_caller_its_result_and_its_sizes() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let url = Scratch::of_this_run().sqlite_url("peers");
    let settings = Settings::new(&url).set("EXPERTISE_LOG_FORMAT", "json");
    let begun = Instant::now();
    let server = TestServer::start(settings).await;
    let client = server.client().with_metadata("x-subject", "ann");
    let mut health = HealthClient::new(client.channel());
    let check = health.check(HealthCheckRequest::default());
    check.await.accepted();
    let request = create_task_request(task(&"x".repeat(100)));
    let traced = client.with_metadata("traceparent", &format!("00-{TRACE}-00f067aa0ba902b7-01"));
    let response = traced.call(request.clone()).await.accepted();
    client.get_task(&unknown_guid()).await.refused();
    let created = line_with(&server, "/CreateTask").await;
    let missing = line_with(&server, "/GetTask").await;
    for (line, rpc, code, reason) in [
        (&created, "CreateTask", "OK", ""),
        (&missing, "GetTask", "NOT_FOUND", "TASK_NOT_FOUND"),
    ] {
        let rpc = format!("expertise.v1.TaskService/{rpc}");
        let names = ["rpc", "code", "reason", "account", "subject"];
        let found = names.map(|name| line[name].as_str().expect(name));
        assert_eq!(found, [&*rpc, code, reason, "demo", "ann"]);
        let micros = line["duration_us"].as_u64().expect("a number");
        let most = begun.elapsed().as_micros();
        assert!(micros > 0 && u128::from(micros) < most, "{micros}");
        let peer = line["peer"].as_str().and_then(|peer| peer.parse().ok());
        let peer: SocketAddr = peer.expect("an address");
        let is_client = peer.ip().is_loopback() && peer != server.address();
        assert!(is_client, "{peer}");
    }
    assert_eq!(created["trace_id"], TRACE);
    assert!(missing["trace_id"].is_null(), "{missing}");
    for (name, bytes) in [
        ("bytes_in", request.encoded_len()),
        ("bytes_out", response.encoded_len()),
    ] {
        let logged = created[name].as_u64().expect("a number");
        // With the five bytes before a message, or without.
        let before = logged.checked_sub(bytes as u64);
        assert!(before.is_some_and(|it| it <= 5), "{name}: {logged}");
    }
    assert_eq!(missing["bytes_out"], 0);
    let log = server.log();
    assert!(!log.contains("grpc.health"), "{log}");
}
