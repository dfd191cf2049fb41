//! What a token opens.

use crate::harness::prelude::*;

fn token(scope: Option<&str>) -> String {
    let mut claims = claims();
    claims["scope"] = json!(scope);
    Signer::secret(SECRET).token(&claims)
}

#[track_caller]
fn lacks<T: std::fmt::Debug>(outcome: Result<T, tonic::Status>) {
    let answer = answered(outcome);
    assert_eq!(answer.code, Code::PermissionDenied);
    assert_eq!(answer.reason, "SCOPE_MISSING");
}

#[tokio::test]
async fn a_read_only_token_reads_and_does_nothing_else() {
    let service = Service::start(hs256()).await;
    let client = service.client();
    let token = token(Some("read"));
    client.read(&token).await.expect("it may read");
    lacks(client.write(&token).await);
    lacks(client.administer(&token).await);
}

#[tokio::test]
async fn each_scope_opens_its_own_calls() {
    let service = Service::start(hs256()).await;
    let client = service.client();
    client
        .write(&token(Some("write")))
        .await
        .expect("it may write");
    lacks(client.read(&token(Some("write"))).await);
    let admin = token(Some("admin"));
    client.administer(&admin).await.expect("it may administer");
    lacks(client.write(&admin).await);
}

#[tokio::test]
async fn a_token_without_scopes_of_ours_opens_nothing() {
    let service = Service::start(hs256()).await;
    let client = service.client();
    for scope in [None, Some(""), Some("openid"), Some("READ")] {
        lacks(client.read(&token(scope)).await);
    }
}
