//! TLS, and client certificates.

use expertise::config::{AuthMode, Tls};
use tonic::transport::{ClientTlsConfig, Endpoint};

use super::prelude::*;
use crate::kit::client::Client;

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

const ACCOUNT: [(&str, &str); 1] = [("x-account-id", "42")];

/// Asserts that no response came from the service.
async fn assert_not_served(client: TokenClient) {
    let answer = error_answer(client.list(&ACCOUNT).await);
    assert_eq!(answer.reason, "");
}

#[tokio::test]
async fn calls_go_over_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    let tls = authority.files(directory.path());
    let server = start_with_tls(AuthMode::Header, tls).await;
    let trusting_client = client(&server, trusting(&authority));
    trusting_client.list(&ACCOUNT).await.expect("it is served");
    assert_not_served(client(&server, trusting(&Authority::new()))).await;
}

#[tokio::test]
async fn plain_text_on_a_tls_port_fails_and_disturbs_no_other_call() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    let tls = authority.files(directory.path());
    let server = start_with_tls(hs256(), tls).await;
    assert_not_served(TokenClient::of(&server)).await;
    let token = Signer::hs256().token(&claims());
    let client = client(&server, trusting(&authority));
    client.read(&token).await.expect("it is served");
}

#[tokio::test]
async fn tls_on_a_plain_text_port_fails_and_disturbs_no_other_call() {
    let authority = Authority::new();
    let server = start(AuthMode::Header).await;
    assert_not_served(client(&server, trusting(&authority))).await;
    TokenClient::of(&server)
        .list(&ACCOUNT)
        .await
        .expect("it is served");
}

#[tokio::test]
async fn with_a_client_ca_clients_need_its_certificate() {
    let directory = tempfile::tempdir().expect("a directory");
    let (servers, clients) = (Authority::new(), Authority::new());
    let path = directory.path().join("clients.pem");
    std::fs::write(&path, clients.pem()).expect("a file");
    let tls = Tls {
        client_ca_file: Some(path),
        ..servers.files(directory.path())
    };
    let server = start_with_tls(AuthMode::Header, tls).await;
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
