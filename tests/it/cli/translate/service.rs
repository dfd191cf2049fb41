//! Runs with a service that refuses or fails.

use std::collections::HashMap;

use expertise::proto::v1::{TranslationResult, TranslationWork};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::prelude::*;
use crate::command::Says;

#[tokio::test]
async fn every_page_is_translated_and_no_item_tried_twice() {
    let spanish = TranslationWork {
        language: "es".to_owned(),
        ..step("b", "two")
    };
    let service = FakeService::start(State {
        pages: vec![
            vec![step("a", "one")],
            vec![],
            vec![step("a", "one"), step("b", "two"), spanish],
            vec![],
        ],
        results: HashMap::from([("a".to_owned(), TranslationResult::Stale)]),
        ..State::default()
    })
    .await;
    let engine = FakeEngine::start(upper_case).await;
    let translate = translate(&service.url, &engine.url)
        .env("EXPERTISE_LANGUAGES", "de,es")
        .env("EXPERTISE_SOURCE_LANGUAGE", "fr");
    let outcome = run(translate).await;
    outcome.end.as_ref().expect("a whole run");
    assert_eq!((outcome.count("written"), outcome.count("stale")), (2, 1));
    let state = service.state();
    let tokens: Vec<_> = state.lists.iter().map(|list| &list.page_token).collect();
    assert_eq!(tokens, ["", "1", "2", "3"]);
    let written = state.written.iter();
    let mut written: Vec<_> = written.map(|it| (&*it.guid, &*it.language)).collect();
    written.sort_unstable();
    assert_eq!(written, [("b", "de"), ("b", "es")]);
    let asked = engine.requests().concat();
    for (target, items) in [("de", 2), ("es", 1)] {
        let pair = format!("\"source\":\"fr\",\"target\":\"{target}\"");
        assert_eq!(asked.matches(&pair).count(), items, "{asked}");
    }
}

#[tokio::test]
async fn skipped_items_are_counted_and_no_failure() {
    let work = ["locked", "stale", "gone", "fine"].map(|guid| step(guid, "on"));
    let service = FakeService::start(State {
        pages: vec![work.to_vec()],
        results: HashMap::from([
            ("locked".to_owned(), TranslationResult::SkippedLocked),
            ("stale".to_owned(), TranslationResult::Stale),
            ("gone".to_owned(), TranslationResult::NotFound),
        ]),
        ..State::default()
    })
    .await;
    let engine = FakeEngine::start(upper_case).await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    assert_eq!(
        outcome.summary,
        "written 1, skipped as locked 1, stale 1, not found 1, failed 0"
    );
    assert_eq!(service.written(), ["fine"]);
}

#[tokio::test]
async fn an_item_refused_by_the_service_does_not_stop_the_others() {
    let service = FakeService::start(State {
        pages: vec![["a", "bad", "b"].map(|guid| step(guid, "on")).to_vec()],
        refused: HashMap::from([("bad".to_owned(), Status::invalid_argument("on and on"))]),
        ..State::default()
    })
    .await;
    let engine = FakeEngine::start(upper_case).await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    outcome.end.as_ref().expect("a whole run");
    assert_eq!(service.written(), ["a", "b"]);
    assert_eq!(
        outcome.reason(),
        "the server did not write it: INVALID_ARGUMENT"
    );
}

#[tokio::test]
async fn calls_to_an_unavailable_service_are_retried() {
    let service = FakeService::start(State {
        pages: vec![vec![step("s", "on")]],
        errors: vec![Status::unavailable(""), Status::aborted("")],
        ..State::default()
    })
    .await;
    let engine = FakeEngine::start(upper_case).await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    outcome.end.as_ref().expect("a whole run");
    assert_eq!(outcome.count("written"), 1);
}

#[tokio::test]
async fn a_refusal_that_no_retry_mends_ends_the_run_at_once() {
    for (status, code) in [
        (Status::unauthenticated(""), "UNAUTHENTICATED"),
        (Status::permission_denied(""), "PERMISSION_DENIED"),
        (Status::unimplemented(""), "UNIMPLEMENTED"),
    ] {
        let service = FakeService::start(State {
            pages: vec![vec![step("s", "on")]],
            errors: vec![status],
            ..State::default()
        })
        .await;
        let engine = FakeEngine::start(upper_case).await;
        let end = run(translate(&service.url, &engine.url)).await.end;
        let line = end.expect_err("not allowed");
        let expected = format!("expertise: the server does not list the work: {code}");
        assert_eq!(line, expected);
        assert_eq!(service.state().metadata.len(), 1);
    }
}

#[tokio::test]
async fn a_missing_scope_is_named() {
    let metadata = HashMap::from([("scope".to_owned(), "translate".to_owned())]);
    let info = ErrorDetails::with_error_info("SCOPE_MISSING", "expertise.v1", metadata);
    let refusal = Status::with_error_details(Code::PermissionDenied, "no", info);
    let service = FakeService::start(State {
        errors: vec![refusal],
        ..State::default()
    })
    .await;
    let engine = FakeEngine::start(upper_case).await;
    let end = run(translate(&service.url, &engine.url)).await.end;
    let line = end.expect_err("not allowed");
    line.says(&["no: use a token that has it (SCOPE_MISSING)"]);
}

#[tokio::test]
async fn texts_of_the_service_cannot_control_the_terminal() {
    let text = || "red \u{1b}[31m\u{202e}text";
    let error = |code| {
        let metadata = HashMap::from([("scope".to_owned(), text().to_owned())]);
        let mut details = ErrorDetails::with_error_info(text(), "expertise.v1", metadata);
        details.add_bad_request_violation(text(), text());
        Status::with_error_details(code, text(), details)
    };
    let service = FakeService::start(State {
        pages: vec![vec![step(text(), "on")]],
        refused: HashMap::from([(text().to_owned(), error(Code::InvalidArgument))]),
        ..State::default()
    })
    .await;
    let engine = FakeEngine::start(upper_case).await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    let failed = outcome.failures.first().expect("a failure").clone();
    service.state().errors.push(error(Code::PermissionDenied));
    let end = run(translate(&service.url, &engine.url)).await.end;
    for line in [failed, end.expect_err("not allowed")] {
        let plain = "red  [31m text";
        assert_eq!(line.matches(plain).count(), line.matches("red").count());
        assert!(line.contains(plain), "{line}");
    }
}

#[tokio::test]
async fn a_service_that_is_down_is_an_error_of_one_line() {
    let engine = FakeEngine::start(upper_case).await;
    let end = run(translate("http://127.0.0.1:1", &engine.url)).await.end;
    let line = end.expect_err("the service is down");
    line.says(&[
        "the server does not list the work",
        "refuses the connection",
    ]);
}

#[tokio::test]
async fn credentials_languages_and_task_are_sent() {
    let service = FakeService::with(vec![step("s", "on")]).await;
    let engine = FakeEngine::start(upper_case).await;
    let guid = "01890a5d-ac96-774b-bcce-b302099a8057";
    let translate = || {
        translate(&service.url, &engine.url)
            .env("EXPERTISE_LANGUAGES", "de,pt-BR")
            .env("EXPERTISE_TASK", guid)
    };
    run(translate()).await.end.expect("a whole run");
    let with_token = translate().without("EXPERTISE_ACCOUNT");
    let with_token = with_token.env("EXPERTISE_TOKEN", "a.b.c");
    run(with_token).await.end.expect("a whole run");
    let state = service.state();
    let metadata: Vec<_> = state
        .metadata
        .iter()
        .map(|map| {
            ["x-account-id", "x-scopes", "authorization"].map(|name| map.get(name)?.to_str().ok())
        })
        .collect();
    let account = [Some("42"), Some("translate"), None];
    let token = [None, None, Some("Bearer a.b.c")];
    assert_eq!(metadata, [account, account, token, token]);
    let list = state.lists.first().expect("a list");
    assert_eq!(list.languages, ["de", "pt-BR"]);
    assert_eq!(list.task.as_deref(), Some(guid));
}
