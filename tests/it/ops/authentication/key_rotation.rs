//! Keys change while the server runs.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Instant};

use tempfile::TempDir;

use super::prelude::*;

/// An issuer with this key, a server that fetches its keys, and calls to it.
async fn start_with_issuer_of(signer: &Signer, id: &str) -> (KeyServer, TestServer, TokenClient) {
    let issuer = KeyServer::start(&key_set(&[signer.jwk(id)])).await;
    let server = start_with_keys_of(&issuer).await;
    let client = TokenClient::of(&server);
    (issuer, server, client)
}

/// Makes a FIFO. Whoever opens it to read waits for a writer.
fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
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

/// Waits until a server has read its file again and accepts this token, a few seconds at most.
async fn wait_until_accepted(server: &TestServer, token: &str) {
    let client = TokenClient::of(server);
    until("the new key", async || client.read(token).await.ok()).await;
}

/// Waits until a server no longer accepts this token.
async fn wait_until_refused(server: &TestServer, token: &str) {
    let client = TokenClient::of(server);
    until("a refusal", async || client.read(token).await.err()).await;
}

/// Waits until a server has logged that it could not read its keys again.
async fn wait_until_unreadable(server: &TestServer) {
    let is_logged = || {
        server
            .log()
            .contains("the keys cannot be read: the old ones stay in use")
    };
    until_true("the file is read", is_logged).await;
}

/// Files are read every few seconds. Each test waits for one reading.
#[tokio::test]
async fn a_key_set_file_is_read_again_when_it_changes() {
    let (old, new) = (Signer::es256(), Signer::ed25519());
    let by_old = old.token_by("old", &claims());
    let by_new = new.token_by("new", &claims());
    let both = key_set(&[old.jwk("old"), new.jwk("new")]);
    let start = async |set: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("keys.json");
        replace(&path, set);
        let server = TestServer::start(jwt("EXPERTISE_JWT_JWKS_FILE", path.display())).await;
        let read = TokenClient::of(&server).read(&by_old).await;
        read.expect("the old key holds");
        (server, path, directory)
    };
    let (growing, path, _directory) = start(&key_set(&[old.jwk("old")])).await;
    replace(&path, &both);
    let (shrinking, path, _directory) = start(&both).await;
    // In place.
    fs::write(&path, key_set(&[new.jwk("new")])).expect("a file");
    wait_until_accepted(&growing, &by_new).await;
    let client = TokenClient::of(&growing);
    client.read(&by_old).await.expect("the old key still holds");
    wait_until_refused(&shrinking, &by_old).await;
    let client = TokenClient::of(&shrinking);
    client.read(&by_new).await.expect("the new key holds");
}

/// Servers whose key files are spoiled, each in its own way.
async fn start_and_spoil(signer: &Signer) -> Vec<(TestServer, TempDir)> {
    let set = key_set(&[signer.jwk("key")]);
    let cut = |path: &Path| replace(path, &set[..set.len() / 2]);
    let remove = |path: &Path| fs::remove_file(path).expect("a file");
    let empty = |path: &Path| replace(path, &key_set(&[]));
    let mut off_curve = signer.jwk("key");
    off_curve["x"] = off_curve["y"].clone();
    let malformed = |path: &Path| replace(path, &key_set(&[off_curve.clone()]));
    let fifo = |path: &Path| {
        fs::remove_file(path).expect("a file");
        make_fifo(path);
    };
    let mut servers = Vec::new();
    for spoil in [&cut as &dyn Fn(&Path), &remove, &empty, &malformed, &fifo] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("keys.json");
        replace(&path, &set);
        let server = TestServer::start(jwt("EXPERTISE_JWT_JWKS_FILE", path.display())).await;
        spoil(&path);
        servers.push((server, directory));
    }
    servers
}

#[tokio::test]
async fn an_unreadable_key_file_keeps_the_known_keys() {
    let signer = Signer::es256();
    let servers = start_and_spoil(&signer).await;
    let token = signer.token_by("key", &claims());
    for (server, _directory) in &servers {
        wait_until_unreadable(server).await;
        let read = in_time("a call", TokenClient::of(server).read(&token)).await;
        read.expect("the key holds");
    }
}

#[tokio::test]
#[ignore = "slow"]
async fn a_key_file_is_used_again_after_it_was_unreadable() {
    let (old, new) = (Signer::es256(), Signer::es256());
    for (server, directory) in start_and_spoil(&old).await {
        wait_until_unreadable(&server).await;
        let path = directory.path().join("keys.json");
        replace(&path, &key_set(&[new.jwk("new")]));
        wait_until_accepted(&server, &new.token_by("new", &claims())).await;
        let by_old = old.token_by("key", &claims());
        assert_refused(TokenClient::of(&server).read(&by_old).await);
    }
}

#[tokio::test]
async fn a_public_key_file_is_read_again_when_it_changes() {
    let (old, new) = (Signer::es256(), Signer::rsa());
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("key.pem");
    replace(&path, old.public_pem());
    let server = TestServer::start(jwt("EXPERTISE_JWT_PUBLIC_KEY_FILE", path.display())).await;
    let by_old = old.token(&claims());
    let client = TokenClient::of(&server);
    client.read(&by_old).await.expect("the old key");
    replace(&path, new.public_pem());
    wait_until_accepted(&server, &new.token(&claims())).await;
    assert_refused(TokenClient::of(&server).read(&by_old).await);
}

#[tokio::test]
async fn a_secret_file_is_read_again_when_it_changes() {
    const NEXT: &str = "the next secret of these tests, also 32 bytes";
    let by_old = Signer::hs256().token(&claims());
    let write = |path: &Path, text: &str, mode| {
        replace(path, text);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
    };
    let start = async || {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("secret");
        // The end of the line does not count.
        write(&path, &format!("{SECRET}\n"), 0o600);
        let server = TestServer::start(jwt("EXPERTISE_JWT_SECRET_FILE", path.display())).await;
        let read = TokenClient::of(&server).read(&by_old).await;
        read.expect("the old secret");
        (server, path, directory)
    };
    let (server, path, _directory) = start().await;
    write(&path, NEXT, 0o600);
    // A secret that others may read is not taken.
    let (cautious, path, _directory) = start().await;
    write(&path, NEXT, 0o640);
    let by_new = Signer::secret(NEXT.as_bytes()).token(&claims());
    wait_until_accepted(&server, &by_new).await;
    assert_refused(TokenClient::of(&server).read(&by_old).await);
    wait_until_unreadable(&cautious).await;
    let client = TokenClient::of(&cautious);
    client.read(&by_old).await.expect("the secret holds");
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
async fn a_key_without_an_id_serves_no_token_that_names_one() {
    let signer = Signer::es256();
    let mut key = signer.jwk("key");
    key.as_object_mut().expect("an object").remove("kid");
    let issuer = KeyServer::start(&key_set(&[key])).await;
    let server = start_with_keys_of(&issuer).await;
    let client = TokenClient::of(&server);
    let plain = signer.token(&claims());
    client.read(&plain).await.expect("the only key");
    assert_eq!(issuer.fetches(), 1);
    issuer.set_body(&key_set(&[signer.jwk("key")]));
    let named = signer.token_by("key", &claims());
    client.read(&named).await.expect("the set is fetched again");
    assert_eq!(issuer.fetches(), 2);
    assert_refused(client.read(&signer.token_by("other", &claims())).await);
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
    // One fetch at startup, one immediately, and one every ten seconds.
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
    let (issuer, _server, client) = start_with_issuer_of(&old, "old").await;
    let (by_old, by_new) = (
        old.token_by("old", &claims()),
        new.token_by("new", &claims()),
    );
    issuer.set_body(&key_set(&[]));
    assert_refused(client.read(&by_new).await);
    assert_eq!(issuer.fetches(), 2);
    client.read(&by_old).await.expect("the old key holds");
}

/// For an unknown key id, the keys are fetched every ten seconds at most.
#[tokio::test]
#[ignore = "slow"]
async fn a_key_set_is_fetched_again_after_it_was_empty() {
    let (old, new) = (Signer::es256(), Signer::es256());
    let (issuer, server, client) = start_with_issuer_of(&old, "old").await;
    let by_new = new.token_by("new", &claims());
    issuer.set_body(&key_set(&[]));
    assert_refused(client.read(&by_new).await);
    issuer.set_body(&key_set(&[new.jwk("new")]));
    wait_until_accepted(&server, &by_new).await;
    assert_refused(client.read(&old.token_by("old", &claims())).await);
}

#[tokio::test]
async fn waiting_for_keys_ends_at_the_time_limit() {
    let signer = Signer::es256();
    let issuer = KeyServer::start(&key_set(&[signer.jwk("key")])).await;
    let settings = jwt("EXPERTISE_JWT_JWKS_URL", issuer.url());
    let server = TestServer::start(settings.set("EXPERTISE_REQUEST_TIMEOUT", "50ms")).await;
    issuer.fall_silent();
    let client = TokenClient::of(&server);
    let answer = error_answer(client.read(&signer.token_by("new", &claims())).await);
    assert_eq!(answer.reason, "DEADLINE_EXCEEDED");
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
async fn calls_with_known_keys_do_not_wait_for_an_issuer_that_hangs() {
    let signer = Signer::es256();
    let (issuer, _server, client) = start_with_issuer_of(&signer, "key").await;
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

    // A fetch has its own timeout, which is far shorter than the call's.
    assert_refused(in_time("an answer", waiting).await.expect("it ends"));
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
