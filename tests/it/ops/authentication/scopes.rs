//! The scopes that calls need.

use std::collections::BTreeSet;

use tonic_types::StatusExt;

use super::prelude::*;
use crate::kit::catalogue::catalogue;

#[tokio::test]
async fn every_call_of_the_contract_needs_exactly_its_scope() {
    let by_token = TestServer::start(hs256()).await;
    let by_header = TestServer::start(in_memory()).await;
    let scopes: BTreeSet<&str> = catalogue().calls.values().map(|it| &*it.scope).collect();
    for (call, entry) in &catalogue().calls {
        let scope = entry.scope.as_str();
        let others = scopes.iter().copied().filter(|other| *other != scope);
        let others = others.collect::<Vec<_>>().join(" ");
        let bearer = |scopes| format!("Bearer {}", token(Some(scopes)));
        let (its_own, without) = (bearer(scope), bearer(&others));
        let account = ("x-account-id", "42");
        for (server, permitted, refused) in [
            (
                &by_token,
                vec![("authorization", its_own.as_str())],
                vec![("authorization", without.as_str())],
            ),
            (
                &by_header,
                vec![account, ("x-scopes", scope)],
                vec![account, ("x-scopes", others.as_str())],
            ),
        ] {
            let client = TokenClient::of(server);
            let status = client.call(call, &refused).await.expect_err(call);
            let info = status.get_details_error_info().expect("a detail");
            let needed = info.metadata.get("scope").map(String::as_str);
            let found = (status.code(), &*info.reason, needed);
            let expected = (Code::PermissionDenied, "SCOPE_MISSING", Some(scope));
            assert_eq!(found, expected, "{call}");
            // The call is permitted: the next error is about the empty message.
            if let Err(status) = client.call(call, &permitted).await {
                assert_eq!(status.code(), Code::InvalidArgument, "{call}");
            }
        }
    }
}

fn token(scope: Option<&str>) -> String {
    let mut claims = claims();
    claims["scope"] = json!(scope);
    Signer::hs256().token(&claims)
}

#[track_caller]
fn assert_scope_missing<T: std::fmt::Debug>(outcome: Result<T, tonic::Status>) {
    let answer = error_answer(outcome);
    assert_eq!(answer.code, Code::PermissionDenied);
    assert_eq!(answer.reason, "SCOPE_MISSING");
}

#[tokio::test]
async fn a_token_without_known_scopes_permits_nothing() {
    let server = TestServer::start(hs256()).await;
    let client = TokenClient::of(&server);
    for scope in [None, Some(""), Some("openid"), Some("READ")] {
        assert_scope_missing(client.read(&token(scope)).await);
    }
}
