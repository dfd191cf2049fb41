//! The command's output and exit codes.

use std::{collections::HashMap, time::Duration};

use expertise::proto::v1::TranslationResult;
use tokio::time::timeout;
use tonic::Status;

use super::prelude::*;
use crate::{
    command::{Says, command},
    kit::deadline::until_true,
};
use rustix::process::Signal;

#[tokio::test]
async fn a_run_ends_with_its_summary_and_an_exit_code() {
    let service = FakeService::with(vec![step("fine", "on"), step("bad", "bad")]).await;
    let engine = FakeEngine::start(|request| {
        if request.texts().iter().any(|text| text == "bad") {
            Reply::Answer(500, String::new())
        } else {
            upper_case(request)
        }
    })
    .await;
    let args = [
        "translate",
        "--languages=de",
        "--account=42",
        "--retries=1",
        "--backoff=1ms",
        "--server",
        &service.url,
        "--engine-url",
        &engine.url,
    ];
    let output = command(&args).run_in_background().await;
    assert_eq!(
        output.stdout,
        "written 1, skipped as locked 0, stale 0, not found 0, failed 1\n"
    );
    output
        .stderr
        .says(&["failed bad de: the engine does not respond: status 500"]);
    assert_eq!(output.code, Some(1));

    service.state().pages = vec![vec![step("fine", "on")]];
    let output = command(&args).run_in_background().await.succeeded();
    let summary = output.stdout;
    assert!(summary.starts_with("written 1,") && summary.ends_with("failed 0\n"));

    // Concurrent changes and locks of others are not failures.
    for result in [TranslationResult::Stale, TranslationResult::SkippedLocked] {
        service.state().results = HashMap::from([("fine".to_owned(), result)]);
        let output = command(&args).run_in_background().await.succeeded();
        assert!(output.stdout.starts_with("written 0,"), "{output:?}");
    }
}

#[tokio::test]
async fn a_run_has_the_task_the_languages_and_the_key_of_its_settings() {
    let service = FakeService::with(vec![step("s", "on")]).await;
    let engine = FakeEngine::start(upper_case).await;
    let guid = "01890a5d-ac96-774b-bcce-b302099a8057";
    let args = [
        "translate",
        "--languages=de,es",
        "--source-language=fr",
        "--task",
        guid,
        "--account=42",
        "--server",
        &service.url,
        "--engine-url",
        &engine.url,
    ];
    let run = command(&args).env("EXPERTISE_ENGINE_API_KEY", "sesame");
    run.run_in_background().await.succeeded();
    let asked = engine.requests().concat();
    asked.says(&["\"source\":\"fr\",\"target\":\"de\"", "sesame"]);
    let state = service.state();
    let list = state.lists.first().expect("a list");
    assert_eq!(list.languages, ["de", "es"]);
    assert_eq!(list.task.as_deref(), Some(guid));
}

#[tokio::test]
async fn an_interrupted_run_prints_its_summary_and_fails() {
    let service = FakeService::with(vec![step("s", "on")]).await;
    let engine = FakeEngine::start(|_| Reply::Silence).await;
    let args = [
        "translate",
        "--languages=de",
        "--account=42",
        "--server",
        &service.url,
        "--engine-url",
        &engine.url,
    ];
    let run = command(&args).start();
    until_true("the engine is asked", || !engine.requests().is_empty()).await;
    run.signal(Signal::INT);
    let ended = tokio::task::spawn_blocking(|| run.end());
    let ended = timeout(Duration::from_secs(20), ended).await;
    let output = ended.expect("it ends").expect("no panic");
    assert!(output.stdout.starts_with("written 0,"), "{output:?}");
    output.stderr.says(&["interrupted: the rest is left"]);
    assert_eq!(output.code, Some(1));
}

#[tokio::test]
async fn token_and_key_are_never_shown() {
    let engine = FakeEngine::start(|request| {
        Reply::Answer(400, format!("{{\"error\": {:?}}}", request.body))
    })
    .await;
    for errors in [vec![], vec![Status::unauthenticated("Bearer to.ken")]] {
        let service = FakeService::start(State {
            pages: vec![vec![step("s", "on")]],
            errors,
            ..State::default()
        })
        .await;
        let args = [
            "translate",
            "--languages=de",
            "--server",
            &service.url,
            "--engine-url",
            &engine.url,
        ];
        let environment = [
            ("EXPERTISE_TOKEN", "to.ken"),
            ("EXPERTISE_ENGINE_API_KEY", "sesame"),
            ("EXPERTISE_LOG", "trace"),
        ];
        let output = command(&args).envs(&environment).run_in_background().await;
        let shown = output.stdout + &output.stderr;
        assert_eq!(output.code, Some(1));
        assert!(shown.contains("failed"), "{shown}");
        shown.says_none_of(&["to.ken", "sesame"]);
        assert!(!service.state().metadata.is_empty());
    }
}
