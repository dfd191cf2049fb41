//! Metrics of what a server is: its process, connections, certificate and keys.

use std::{
    fmt::Display,
    time::{SystemTime, UNIX_EPOCH},
};

use super::authentication::{
    TokenClient,
    certificates::Authority,
    key_server::KeyServer,
    tokens::{Signer, claims, key_set},
};
use crate::{
    kit::{
        deadline::until,
        server::{TestServer, with_metrics},
    },
    prelude::*,
};

const KEYS_READ: &str = "expertise_token_keys_read_timestamp_seconds";

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs_f64()
}

#[tokio::test]
async fn the_process_is_described_by_the_usual_names() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let metrics = server.metrics().await;
    for (name, least, most) in [
        ("process_resident_memory_bytes", 1e6, 1e11),
        ("process_virtual_memory_bytes", 1e6, 1e15),
        ("process_threads", 2.0, 1e5),
        ("process_open_fds", 3.0, 1e6),
        ("process_max_fds", 3.0, 1e10),
        ("process_cpu_seconds_total", 0.0, 1e6),
        ("process_start_time_seconds", now() - 1e5, now()),
    ] {
        let value = metrics.sum(name, &[]);
        assert!((least..=most).contains(&value), "{name}: {value}");
    }
}

#[tokio::test]
async fn open_connections_are_counted() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let open = |count| {
        move |metrics: &crate::ops::exposition::Exposition| {
            metrics.sum("expertise_connections", &[]) == count
        }
    };
    let (one, other) = (server.client(), server.client());
    one.given_task(task("one")).await;
    other.given_task(task("other")).await;
    let metrics = server.wait_for_metrics("two connections", open(2.0)).await;
    assert!(metrics.sum("expertise_connections_max", &[]) >= 2.0);
    drop((one, other));
    server.wait_for_metrics("no connection", open(0.0)).await;
}

#[tokio::test]
async fn the_expiry_of_the_certificate_is_known() {
    let directory = tempfile::tempdir().expect("a directory");
    let tls = Authority::new().files(directory.path());
    let server = TestServer::start(with_metrics("sqlite::memory:").tls(&tls)).await;
    let metrics = server.metrics().await;
    let expiry = metrics.sum("expertise_tls_certificate_expiry_timestamp_seconds", &[]);
    // The default of the tests' certificates.
    let expected = rcgen::date_time_ymd(4096, 1, 1).unix_timestamp();
    assert_eq!(expiry as i64, expected);
}

async fn start_with_keys(keys: &str, value: impl Display) -> TestServer {
    TestServer::start(with_metrics("sqlite::memory:").jwt(keys, value)).await
}

#[tokio::test]
async fn the_time_of_the_last_fetch_of_keys_is_known() {
    let issuer = KeyServer::start(&key_set(&[Signer::es256().jwk("one")])).await;
    let before = now();
    let server = start_with_keys("EXPERTISE_JWT_JWKS_URL", issuer.url()).await;
    let keys_read = async || server.metrics().await.sum(KEYS_READ, &[("source", "url")]);
    let read = keys_read().await;
    assert!((before..=now()).contains(&read), "{read}");

    // A set without keys does not count as newer, so the alert about old keys must fire.
    issuer.set_body(&key_set(&[]));
    let client = TokenClient::of(&server);
    let unknown = Signer::es256().token_by("other", &claims());
    client.read(&unknown).await.expect_err("an unknown key");
    assert_eq!(issuer.fetches(), 2);
    assert_eq!(keys_read().await, read);
}

#[tokio::test]
async fn keys_of_a_file_are_as_old_as_their_last_change() {
    let (old, new) = (Signer::es256(), Signer::ed25519());
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    std::fs::write(&path, key_set(&[old.jwk("old")])).expect("a file");
    let server = start_with_keys("EXPERTISE_JWT_JWKS_FILE", path.display()).await;
    let client = TokenClient::of(&server);
    let before = now();
    let first = server.metrics().await.sum(KEYS_READ, &[("source", "file")]);
    assert!(first <= before, "{first}");
    let by_old = old.token_by("old", &claims());
    client.read(&by_old).await.expect("the old key holds");
    let read = server.metrics().await.sum(KEYS_READ, &[]);
    assert_eq!(read, first, "the file has not changed");

    std::fs::write(&path, key_set(&[new.jwk("new")])).expect("a file");
    let by_new = new.token_by("new", &claims());
    until("the new key", async || client.read(&by_new).await.ok()).await;
    let read = server.metrics().await.sum(KEYS_READ, &[]);
    assert!((before..=now()).contains(&read), "{read}");
}

#[tokio::test]
async fn without_tls_and_tokens_there_are_no_metrics_of_them() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let families = server.metrics().await.families();
    assert!(!families.keys().any(|name| name.contains("tls")));
    assert!(!families.contains_key(KEYS_READ));
}
