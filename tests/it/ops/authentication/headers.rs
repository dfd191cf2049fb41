//! Who may call: accounts and scopes.

use crate::{
    kit::http2::{Http2Connection, RequestEnd, framed},
    prelude::*,
};
use tonic::Status;

#[apply(on_one_database)]
async fn an_account_of_another_form_is_unauthenticated(client: Client) {
    let long = "a".repeat(65);
    for account in ["a b", "a/b", "*", "a,b", "a'b", &long] {
        let odd = client.with_account(account);
        let failure = odd.list_roles(0, "").await.refused();
        failure.is(Code::Unauthenticated, "CREDENTIALS_INVALID");
    }
    let empty = client.with_account("");
    let failure = empty.list_roles(0, "").await.refused();
    assert_eq!(failure.code, Code::Unauthenticated);
}

#[apply(on_one_database)]
async fn an_account_of_64_characters_is_accepted(client: Client) {
    let account = format!("{}Az09._:-{}", client.account(), "z".repeat(20));
    assert_eq!(account.len(), 64);
    let created = client.with_account(&account).given_task(task("Long")).await;
    assert_eq!(created.account_id, account);
}

#[apply(on_one_database)]
async fn credentials_sent_twice_or_too_long_are_refused(client: Client) {
    let connection = Http2Connection::to(client.address()).await;
    let list = "/expertise.v1.RoleService/ListRoles";
    let account = ("x-account-id", client.account());
    let (long, longer) = ("a".repeat(256), "a".repeat(257));
    for (headers, accepted) in [
        (&[account, account][..], false),
        (&[account, ("x-subject", &long)], true),
        (&[account, ("x-subject", &longer)], false),
        (&[account, ("x-subject", "a"), ("x-subject", "a")], false),
        (&[account, ("x-scopes", "read")], true),
        (
            &[account, ("x-scopes", "read"), ("x-scopes", "admin")],
            false,
        ),
        (
            &[account, ("x-scopes", "read"), ("x-scopes", "read")],
            false,
        ),
    ] {
        let answer = connection
            .call(list, headers, &framed(b""), RequestEnd::Sent)
            .await;
        let status = answer.status.as_ref().expect("a status");
        match accepted {
            true => assert_eq!(status.code(), Code::Ok, "{status:?}"),
            false => answer.is(Code::Unauthenticated, "CREDENTIALS_INVALID"),
        }
    }
}

#[apply(on_one_database)]
async fn a_misspelled_x_scopes_is_refused(client: Client) {
    let connection = Http2Connection::to(client.address()).await;
    let list = "/expertise.v1.RoleService/ListRoles";
    let account = ("x-account-id", client.account());
    for (headers, accepted) in [
        (&[account, ("x-scope", "read")][..], false),
        (&[account, ("x_scopes", "read")], false),
        (&[account, ("x-scops", "read")], false),
        (&[account, ("x-scope", "write"), ("x-scopes", "read")], true),
        (&[account, ("x-score", "1")], true),
    ] {
        let answer = connection
            .call(list, headers, &framed(b""), RequestEnd::Sent)
            .await;
        let status = answer.status.as_ref().expect("a status");
        match accepted {
            true => assert_eq!(status.code(), Code::Ok, "{status:?}"),
            false => {
                answer.is(Code::Unauthenticated, "CREDENTIALS_INVALID");
                assert!(
                    status.message().contains("rename it to x-scopes"),
                    "{status:?}"
                );
            }
        }
    }
}

#[track_caller]
fn assert_scope_missing<T: std::fmt::Debug>(outcome: Result<T, Status>, scope: &str) {
    let failure = outcome.refused();
    failure.is(Code::PermissionDenied, "SCOPE_MISSING");
    assert_eq!(
        failure.metadata().get("scope").map(String::as_str),
        Some(scope)
    );
}

#[apply(on_one_database)]
async fn a_caller_has_the_known_scopes_of_its_list_alone(client: Client) {
    for scopes in ["read", "openid read", "admin  read profile"] {
        let reader = client.with_scopes(scopes);
        reader.list_roles(0, "").await.accepted();
        assert_scope_missing(reader.create_task(task("Guide")).await, "write");
    }
    for scopes in ["", "openid", "READ", "read,write", "reads"] {
        let failure = client.with_scopes(scopes).list_roles(0, "").await.refused();
        failure.is(Code::PermissionDenied, "SCOPE_MISSING");
        let known = "read, write, translate, admin, index";
        assert!(failure.message.contains(known), "{failure:?}");
        assert!(!failure.message.contains("openid"), "{failure:?}");
    }
}

#[apply(on_one_database)]
async fn credentials_are_checked_before_the_message(client: Client) {
    let anonymous = client.without_credentials();
    let failure = anonymous.create_task(task("")).await.refused();
    failure.is(Code::Unauthenticated, "CREDENTIALS_MISSING");
    let reader = client.with_scopes("read");
    assert_scope_missing(reader.create_task(task("")).await, "write");
}

#[apply(on_both_databases)]
async fn accounts_differ_by_case(client: Client) {
    let account = format!("a{}", client.account());
    let lower = client.with_account(&account);
    let upper = client.with_account(&account.to_uppercase());
    let guid = lower.given_task(task("Lower")).await.guid;
    upper
        .get_task(&guid)
        .await
        .refused()
        .is_task_not_found(&guid);
}
