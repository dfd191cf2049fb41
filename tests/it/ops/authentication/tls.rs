//! TLS, and client certificates.

use tempfile::TempDir;
use tonic::transport::{ClientTlsConfig, Endpoint};

use super::certificates::{TlsFiles, write};
use super::prelude::*;
use crate::{
    command::{Says, command},
    kit::{
        client::Client,
        deadline::{until, until_true},
    },
};

/// Calls over TLS.
fn client(server: &TestServer, tls: ClientTlsConfig) -> TokenClient {
    let endpoint = Endpoint::from_shared(format!("https://{}", server.address()));
    let endpoint = endpoint.expect("an address").tls_config(tls).expect("TLS");
    TokenClient(Client::over(endpoint.connect_lazy(), server.address()))
}

fn trusting(authority: &Authority) -> ClientTlsConfig {
    ClientTlsConfig::new()
        .ca_certificate(authority.certificate())
        .domain_name("localhost")
}

async fn start_with_tls(files: &TlsFiles) -> TestServer {
    TestServer::start(in_memory().tls(files)).await
}

const ACCOUNT: [(&str, &str); 1] = [("x-account-id", "42")];

/// Asserts that no response came from the service.
async fn assert_not_served(client: TokenClient) {
    let answer = error_answer(client.list(&ACCOUNT).await);
    assert_eq!(answer.reason, "");
}

#[tokio::test]
async fn plain_text_on_a_tls_port_fails_and_disturbs_no_other_call() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    let server = start_with_tls(&authority.files(directory.path())).await;
    let client = client(&server, trusting(&authority));
    client.list(&ACCOUNT).await.expect("it is served");
    assert_not_served(TokenClient::of(&server)).await;
    client.list(&ACCOUNT).await.expect("it is still served");
}

#[tokio::test]
async fn tls_on_a_plain_text_port_fails_and_disturbs_no_other_call() {
    let server = TestServer::start(in_memory()).await;
    let plain = TokenClient::of(&server);
    plain.list(&ACCOUNT).await.expect("it is served");
    assert_not_served(client(&server, trusting(&Authority::new()))).await;
    plain.list(&ACCOUNT).await.expect("it is still served");
}

#[tokio::test]
async fn with_a_client_ca_clients_need_its_certificate() {
    let directory = tempfile::tempdir().expect("a directory");
    let (servers, clients) = (Authority::new(), Authority::new());
    let path = directory.path().join("clients.pem");
    std::fs::write(&path, clients.pem()).expect("a file");
    let settings = in_memory().tls(&servers.files(directory.path()));
    let settings = settings.set("EXPERTISE_TLS_CLIENT_CA_FILE", path.display());
    let server = TestServer::start(settings).await;
    let trusting = trusting(&servers);

    let known_client = client(&server, trusting.clone().identity(clients.identity()));
    known_client.list(&ACCOUNT).await.expect("it is served");
    assert_not_served(client(&server, trusting.clone())).await;
    assert_not_served(client(&server, trusting.identity(servers.identity()))).await;
    known_client
        .list(&ACCOUNT)
        .await
        .expect("it is still served");
}

/// Waits a few seconds until new connections get a certificate of this CA.
async fn wait_until_served_by(server: &TestServer, authority: &Authority) {
    let trusting = trusting(authority);
    until("the new certificate", async || {
        let client = client(server, trusting.clone());
        client.list(&ACCOUNT).await.ok()
    })
    .await;
}

#[tokio::test]
async fn a_renewed_certificate_is_used_by_new_connections() {
    let directory = tempfile::tempdir().expect("a directory");
    let (old, new) = (Authority::new(), Authority::new());
    let tls = old.files(directory.path());
    let server = start_with_tls(&tls).await;
    let open = client(&server, trusting(&old));
    open.list(&ACCOUNT).await.expect("it is served");
    new.files(directory.path());
    wait_until_served_by(&server, &new).await;
    assert_not_served(client(&server, trusting(&old))).await;
    open.list(&ACCOUNT).await.expect("the connection goes on");
}

/// Servers whose files are spoiled, each in its own way, after they were read.
async fn start_and_spoil(old: &Authority, new: &Authority) -> Vec<(TestServer, TempDir)> {
    // The last one is the key of another certificate, as happens between the two writes of a
    // renewal.
    let cut = |tls: &TlsFiles| std::fs::write(&tls.cert, &old.pem()[..100]).expect("a file");
    let remove = |tls: &TlsFiles| std::fs::remove_file(&tls.key).expect("a file");
    let unpair =
        |tls: &TlsFiles| std::fs::write(&tls.key, new.make("localhost").key).expect("a file");
    let mut servers = Vec::new();
    for spoil in [&cut as &dyn Fn(&TlsFiles), &remove, &unpair] {
        let directory = tempfile::tempdir().expect("a directory");
        let tls = old.files(directory.path());
        let server = start_with_tls(&tls).await;
        spoil(&tls);
        servers.push((server, directory));
    }
    for (server, _) in &servers {
        let is_logged = || server.log().contains("the old ones stay");
        until_true("the files are read", is_logged).await;
    }
    servers
}

#[tokio::test]
async fn files_that_cannot_be_used_keep_the_old_certificate() {
    let (old, new) = (Authority::new(), Authority::new());
    for (server, _directory) in &start_and_spoil(&old, &new).await {
        let client = client(server, trusting(&old));
        let listed = in_time("a call", client.list(&ACCOUNT));
        listed.await.expect("the old certificate holds");
    }
}

#[tokio::test]
#[ignore = "slow"]
async fn a_renewal_is_used_after_files_that_cannot_be_used() {
    let (old, new) = (Authority::new(), Authority::new());
    for (server, directory) in &start_and_spoil(&old, &new).await {
        new.files(directory.path());
        wait_until_served_by(server, &new).await;
    }
}

#[tokio::test]
async fn other_authorities_of_clients_count_for_new_connections() {
    let directory = tempfile::tempdir().expect("a directory");
    let (servers, old, new) = (Authority::new(), Authority::new(), Authority::new());
    let authorities = write(directory.path(), "clients.pem", old.pem());
    let settings = in_memory().tls(&servers.files(directory.path()));
    let settings = settings.set("EXPERTISE_TLS_CLIENT_CA_FILE", authorities.display());
    let server = TestServer::start(settings).await;
    let of = |clients: &Authority| {
        let trusting = trusting(&servers);
        client(&server, trusting.identity(clients.identity()))
    };
    of(&old).list(&ACCOUNT).await.expect("it is served");
    write(directory.path(), "clients.pem", new.pem());
    until("the new authority", async || {
        of(&new).list(&ACCOUNT).await.ok()
    })
    .await;
    assert_not_served(of(&old)).await;
}

#[test]
fn a_broken_certificate_is_a_warning_of_a_running_server() {
    let authority = Authority::new();
    let pair = authority.make("localhost");
    let server = command(&["--listen=127.0.0.1:0", "--log-format=text"])
        .envs(&[
            ("EXPERTISE_DATABASE_URL", "sqlite::memory:"),
            ("EXPERTISE_TLS_CERT_FILE", "cert.pem"),
            ("EXPERTISE_TLS_KEY_FILE", "key.pem"),
            ("EXPERTISE_LOG", "warn"),
        ])
        .file("cert.pem", &pair.cert)
        .file("key.pem", &pair.key)
        .start();
    server.start_line();
    std::fs::write(server.path("cert.pem"), "hush").expect("a file");
    let line = server.next_error_line();
    line.says(&[
        "WARN",
        "the TLS files cannot be read: the old ones stay in use",
        "EXPERTISE_TLS_CERT_FILE is \"cert.pem\": it must be certificates in PEM",
    ]);
    assert!(!line.contains("hush"), "{line}");
}
