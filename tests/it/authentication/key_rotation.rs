//! Keys change while the server runs.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use tokio::time;

use expertise::{auth::KeySource, config::Config};

use super::prelude::*;
use crate::kit::{deadline::in_time, scratch::make_fifo};

/// An issuer with this key, a server that fetches its keys, and calls to it.
async fn start_with_issuer_of(signer: &Signer, id: &str) -> (KeyServer, TestServer, TokenClient) {
    let issuer = KeyServer::start(&key_set(&[signer.jwk(id)])).await;
    let server = start_with_keys_of(&issuer).await;
    let client = TokenClient::of(&server);
    (issuer, server, client)
}

/// Replaces a file atomically, as deployments do.
fn replace(path: &Path, text: &str) {
    let next = path.with_extension("next");
    fs::write(&next, text).expect("a file of our own");
    fs::rename(&next, path).expect("a file of our own");
}

#[track_caller]
fn assert_refused(outcome: Result<(), tonic::Status>) {
    assert_eq!(error_answer(outcome).reason, "CREDENTIALS_INVALID");
}

#[tokio::test]
async fn a_key_set_file_is_read_again_when_it_changes() {
    let (old, new) = (Signer::es256(), Signer::ed25519());
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    replace(&path, &key_set(&[old.jwk("old")]));
    let server = start(jwt(KeySource::KeySetFile(path.clone()))).await;
    let client = TokenClient::of(&server);
    let (by_old, by_new) = (
        old.token_by("old", &claims()),
        new.token_by("new", &claims()),
    );
    client.read(&by_old).await.expect("the old key holds");
    assert_refused(client.read(&by_new).await);

    replace(&path, &key_set(&[old.jwk("old"), new.jwk("new")]));
    client.read(&by_new).await.expect("the new key holds");
    client.read(&by_old).await.expect("the old key still holds");

    // In place, and soon after the last read.
    std::fs::write(&path, key_set(&[new.jwk("new")])).expect("a file");
    assert_refused(client.read(&by_old).await);
    client.read(&by_new).await.expect("the new key holds");
}

#[tokio::test]
async fn a_file_that_was_old_when_it_was_read_is_read_again_when_it_changes() {
    let signers = [Signer::es256(), Signer::es256()];
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    let write = |signer: &Signer, age: u64| {
        fs::write(&path, key_set(&[signer.jwk("key")])).expect("a file");
        let file = fs::File::options().write(true).open(&path);
        let modified = SystemTime::now() - Duration::from_secs(age);
        let aged = file.and_then(|file| file.set_modified(modified));
        aged.expect("a modification time");
    };
    let tokens = signers.each_ref().map(|s| s.token_by("key", &claims()));
    write(&signers[0], 3_600);
    let server = start(jwt(KeySource::KeySetFile(path.clone()))).await;
    let client = TokenClient::of(&server);
    for _ in 0..2 {
        client.read(&tokens[0]).await.expect("the old key holds");
    }
    write(&signers[1], 1_800);
    client.read(&tokens[1]).await.expect("the new key holds");
    assert_refused(client.read(&tokens[0]).await);
}

#[tokio::test]
async fn changes_in_quick_succession_are_all_seen() {
    let signers = [Signer::es256(), Signer::es256()];
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    // In place and of equal length: only the modification time differs, and within a
    // tick of the file system not even that.
    let sets = signers.each_ref().map(|s| key_set(&[s.jwk("key")]));
    let tokens = signers.each_ref().map(|s| s.token_by("key", &claims()));
    std::fs::write(&path, &sets[0]).expect("a file");
    let server = start(jwt(KeySource::KeySetFile(path.clone()))).await;
    let client = TokenClient::of(&server);
    for round in 0..50 {
        let (now, before) = (round % 2, (round + 1) % 2);
        std::fs::write(&path, &sets[now]).expect("a file");
        client.read(&tokens[now]).await.expect("the new key holds");
        assert_refused(client.read(&tokens[before]).await);
    }
}

#[tokio::test]
async fn an_unreadable_key_file_keeps_the_known_keys() {
    let signer = Signer::es256();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    let set = key_set(&[signer.jwk("key")]);
    replace(&path, &set);
    let server = start(jwt(KeySource::KeySetFile(path.clone()))).await;
    let client = TokenClient::of(&server);
    let token = signer.token_by("key", &claims());
    replace(&path, &set[..set.len() / 2]);
    client.read(&token).await.expect("the key holds");
    std::fs::remove_file(&path).expect("a file");
    client.read(&token).await.expect("the key holds");
    replace(&path, &key_set(&[]));
    client.read(&token).await.expect("the key holds");
    replace(&path, &key_set(&[Signer::es256().jwk("key")]));
    assert_refused(client.read(&token).await);
}

#[tokio::test]
async fn a_fifo_in_place_of_a_key_file_keeps_the_known_keys() {
    let signer = Signer::es256();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    replace(&path, &key_set(&[signer.jwk("key")]));
    let server = start(jwt(KeySource::KeySetFile(path.clone()))).await;
    let client = TokenClient::of(&server);
    let token = signer.token_by("key", &claims());
    std::fs::remove_file(&path).expect("a file");
    make_fifo(&path);
    for _ in 0..3 {
        let read = in_time("a call", client.read(&token));
        read.await.expect("the key holds");
    }
    let new = Signer::es256();
    replace(&path, &key_set(&[new.jwk("new")]));
    let token = new.token_by("new", &claims());
    client.read(&token).await.expect("the new key holds");
}

#[tokio::test]
async fn a_public_key_file_is_read_again_when_it_changes() {
    let (old, new) = (Signer::es256(), Signer::rsa());
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("key.pem");
    replace(&path, old.public_pem());
    let server = start(jwt(KeySource::PublicKeyFile(path.clone()))).await;
    let client = TokenClient::of(&server);
    client
        .read(&old.token(&claims()))
        .await
        .expect("the old key");
    replace(&path, new.public_pem());
    client
        .read(&new.token(&claims()))
        .await
        .expect("the new key");
    assert_refused(client.read(&old.token(&claims())).await);
}

#[tokio::test]
async fn an_unknown_key_id_has_the_set_fetched_again() {
    let (old, new) = (Signer::es256(), Signer::es256());
    let (issuer, _server, client) = start_with_issuer_of(&old, "old").await;
    let by_new = new.token_by("new", &claims());
    client
        .read(&old.token_by("old", &claims()))
        .await
        .expect("the old key");
    assert_eq!(issuer.fetches(), 1);

    issuer.set_body(&key_set(&[new.jwk("new")]));
    client.read(&by_new).await.expect("the new key");
    assert_eq!(issuer.fetches(), 2);
    // What its issuer has withdrawn is refused, and what it has added stays.
    assert_refused(client.read(&old.token_by("old", &claims())).await);
    client.read(&by_new).await.expect("the new key");
}

#[tokio::test]
async fn calls_at_once_with_a_new_key_share_one_fetch() {
    let (old, new) = (Signer::es256(), Signer::es256());
    let (issuer, _server, client) = start_with_issuer_of(&old, "old").await;
    issuer.set_body(&key_set(&[new.jwk("new")]));
    let token = new.token_by("new", &claims());
    let calls = (0..20).map(|_| client.read(&token));
    for outcome in futures_util::future::join_all(calls).await {
        outcome.expect("the new key");
    }
    assert_eq!(issuer.fetches(), 2);
}

#[tokio::test]
async fn made_up_key_ids_do_not_flood_the_issuer() {
    let signer = Signer::es256();
    let (issuer, _server, client) = start_with_issuer_of(&signer, "key").await;
    let begun = Instant::now();
    for round in 0..20 {
        let calls = (0..10).map(|call| {
            let token = signer.token_by(&format!("{round}.{call}"), &claims());
            let client = client.clone();
            async move { client.read(&token).await }
        });
        for outcome in futures_util::future::join_all(calls).await {
            assert_refused(outcome);
        }
    }
    // One at start, one at once, and one each ten seconds.
    let most = 3 + begun.elapsed().as_secs() / 10;
    let fetches = issuer.fetches() as u64;
    assert!((2..=most).contains(&fetches), "{fetches} fetches");
    let token = signer.token_by("key", &claims());
    client.read(&token).await.expect("the key holds");
}

#[tokio::test]
async fn a_failing_issuer_keeps_the_known_keys() {
    let signer = Signer::es256();
    let (issuer, _server, client) = start_with_issuer_of(&signer, "key").await;
    issuer.set_status("503 Service Unavailable");
    assert_refused(client.read(&signer.token_by("new", &claims())).await);
    assert_eq!(issuer.fetches(), 2);
    let token = signer.token_by("key", &claims());
    client.read(&token).await.expect("the key holds");
}

#[tokio::test]
async fn an_issuer_with_an_empty_set_keeps_the_known_keys() {
    let (old, new) = (Signer::es256(), Signer::es256());
    let (issuer, server, client) = start_with_issuer_of(&old, "old").await;
    let (by_old, by_new) = (
        old.token_by("old", &claims()),
        new.token_by("new", &claims()),
    );
    issuer.set_body(&key_set(&[]));
    assert_refused(client.read(&by_new).await);
    assert_eq!(issuer.fetches(), 2);
    client.read(&by_old).await.expect("the old key holds");

    issuer.set_body(&key_set(&[new.jwk("new")]));
    advance_clock(Duration::from_secs(11)).await;
    let client = TokenClient::of(&server);
    client.read(&by_new).await.expect("the new key holds");
    assert_refused(client.read(&by_old).await);
}

#[tokio::test]
async fn waiting_for_keys_ends_at_the_time_limit() {
    let signer = Signer::es256();
    let issuer = KeyServer::start(&key_set(&[signer.jwk("key")])).await;
    let server = TestServer::start(Config {
        auth: jwt(KeySource::KeySetUrl(issuer.url())),
        request_timeout: Duration::from_millis(50),
        ..in_memory()
    })
    .await;
    issuer.fall_silent();
    let client = TokenClient::of(&server);
    let answer = error_answer(client.read(&signer.token_by("new", &claims())).await);
    assert_eq!(answer.reason, "DEADLINE_EXCEEDED");
}

/// Moves the clock of the server, which shares this thread's.
async fn advance_clock(duration: Duration) {
    time::pause();
    time::advance(duration).await;
    time::resume();
}

/// Waits until the keys were fetched this often.
async fn wait_for_fetches(issuer: &KeyServer, times: usize) {
    let asked = async {
        while issuer.fetches() < times {
            tokio::task::yield_now().await;
        }
    };
    in_time("an answer", asked).await;
}

#[tokio::test]
async fn old_keys_are_fetched_again_without_an_unknown_key_id() {
    let signer = Signer::es256();
    let (issuer, server, _) = start_with_issuer_of(&signer, "key").await;
    let token = signer.token_by("key", &claims());
    TokenClient::of(&server)
        .read(&token)
        .await
        .expect("the key holds");
    advance_clock(Duration::from_secs(9 * 60)).await;
    TokenClient::of(&server)
        .read(&token)
        .await
        .expect("the key holds");
    assert_eq!(issuer.fetches(), 1, "they are not old yet");

    // The issuer replaces the key, and no token names the new one.
    issuer.set_body(&key_set(&[Signer::es256().jwk("other")]));
    advance_clock(Duration::from_secs(2 * 60)).await;
    let client = TokenClient::of(&server);
    let withdrawn = async { while client.read(&token).await.is_ok() {} };
    in_time("an answer", withdrawn).await;
    assert_eq!(issuer.fetches(), 2);
}

#[tokio::test]
async fn calls_with_known_keys_do_not_wait_for_an_issuer_that_hangs() {
    let signer = Signer::es256();
    let (issuer, server, client) = start_with_issuer_of(&signer, "key").await;
    issuer.fall_silent();
    let unknown = signer.token_by("new", &claims());
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.read(&unknown).await }
    });
    wait_for_fetches(&issuer, 2).await;
    let token = signer.token_by("key", &claims());
    for _ in 0..20 {
        client.read(&token).await.expect("the key holds");
    }
    assert!(!waiting.is_finished(), "it waits for the issuer");

    // A fetch has its own time-out, far shorter than the call's.
    advance_clock(Duration::from_secs(6)).await;
    assert_refused(in_time("an answer", waiting).await.expect("it ends"));

    // Nor do they wait when the keys are old.
    advance_clock(Duration::from_secs(11 * 60)).await;
    let client = TokenClient::of(&server);
    client.read(&token).await.expect("the key holds");
    wait_for_fetches(&issuer, 3).await;
    client.read(&token).await.expect("the key holds");
}

#[tokio::test]
async fn a_cancelled_call_does_not_cancel_the_key_fetch() {
    let (old, new) = (Signer::es256(), Signer::es256());
    let (issuer, server, _) = start_with_issuer_of(&old, "old").await;
    issuer.set_body(&key_set(&[new.jwk("new")]));
    issuer.hold();
    let token = new.token_by("new", &claims());
    let gone = tokio::spawn({
        let (client, token) = (TokenClient::of(&server), token.clone());
        async move { client.read(&token).await }
    });
    wait_for_fetches(&issuer, 2).await;
    gone.abort();
    assert!(gone.await.is_err_and(|end| end.is_cancelled()));
    issuer.release();
    TokenClient::of(&server)
        .read(&token)
        .await
        .expect("the new key");
    assert_eq!(issuer.fetches(), 2);
}
