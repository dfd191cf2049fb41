//! The scopes that calls need.

use std::collections::BTreeSet;

use tonic_types::StatusExt;

use super::prelude::*;
use crate::kit::contract::methods;

/// Every call by the scope that it needs.
const CALLS: [(&str, &[&str]); 5] = [
    (
        "read",
        &[
            "TaskService/GetTask",
            "TaskService/ListTasks",
            "TaskService/ExportTask",
            "StepService/GetStep",
            "StepService/ListSteps",
            "StepService/ListDeletedSteps",
            "RoleService/ListRoles",
            "AnalysisService/ListReferences",
            "AnalysisService/PreviewTask",
            "AnalysisService/ValidateTask",
            "AnalysisService/ListFindings",
            "AnalysisService/ListRules",
            "RevisionService/GetRevision",
            "RevisionService/ListRevisions",
            "RevisionService/CompareRevisions",
            "RevisionService/ListDeletedTasks",
            "ChangeService/ListChanges",
        ],
    ),
    (
        "write",
        &[
            "TaskService/CreateTask",
            "TaskService/UpdateTask",
            "TaskService/DeleteTask",
            "TaskService/ImportTask",
            "StepService/CreateStep",
            "StepService/UpdateStep",
            "StepService/DeleteStep",
            "StepService/RestoreStep",
            "RevisionService/CreateRevision",
            "RevisionService/RestoreRevision",
            "RevisionService/DeleteRevision",
            "RevisionService/SetRevisionAlias",
        ],
    ),
    (
        "admin",
        &["RoleService/CreateRole", "RoleService/DeleteRole"],
    ),
    (
        "translate",
        &[
            "TranslationService/ListTranslationWork",
            "TranslationService/WriteTranslations",
        ],
    ),
    (
        "index",
        &[
            "IndexService/ListIndexWork",
            "IndexService/AcknowledgeIndexed",
        ],
    ),
];

#[tokio::test]
async fn every_call_of_the_contract_needs_exactly_its_scope() {
    let listed = CALLS.iter().flat_map(|(_, calls)| *calls);
    let listed: BTreeSet<_> = listed.map(|call| (*call).to_owned()).collect();
    let calls = methods().into_iter().collect();
    assert_eq!(listed, calls, "every call has its scope here");
    let by_token = TestServer::start(hs256()).await;
    let by_header = TestServer::start(in_memory()).await;
    for (scope, calls) in CALLS {
        let others = CALLS.iter().map(|(other, _)| *other);
        let others: Vec<_> = others.filter(|other| *other != scope).collect();
        let others = others.join(" ");
        let bearer = |scopes| format!("Bearer {}", token(Some(scopes)));
        let (its_own, without) = (bearer(scope), bearer(&others));
        for call in calls {
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
                let found = (status.code(), &*info.reason, &*info.metadata["scope"]);
                assert_eq!(
                    found,
                    (Code::PermissionDenied, "SCOPE_MISSING", scope),
                    "{call}"
                );
                // The call is permitted: the next error is about the empty message.
                match client.call(call, &permitted).await {
                    Ok(()) => {}
                    Err(status) => assert_eq!(status.code(), Code::InvalidArgument, "{call}"),
                }
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
