//! Runs with engines that fail.

use std::time::Duration;

use serde_json::json;

use super::prelude::*;
use crate::command::Says;

#[tokio::test]
async fn texts_are_translated_and_tags_are_not() {
    let service = FakeService::with(vec![step("s", "on & off"), question("q", "yes")]).await;
    let engine = FakeEngine::start(upper_case).await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    outcome.end.as_ref().expect("a whole run");
    assert_eq!((outcome.count("written"), outcome.count("failed")), (2, 0));
    let mut written = service.state().written.clone();
    written.sort_by(|a, b| b.guid.cmp(&a.guid));
    let [step, question] = written.as_slice() else {
        panic!("{written:?}");
    };
    assert_eq!(step.title.as_deref(), Some("ON & OFF"));
    assert_eq!(
        step.body.as_deref(),
        Some("<p class=\"a > b\">PRESS&nbsp;<b>ON & OFF</b> &amp; WAIT.<!-- no --></p>")
    );
    assert_eq!(step.source_digest, "digest of s");
    let config = question.feedback_config.first().expect("a question");
    assert_eq!(config.name, "is it on");
    let value = config.values.first().expect("an answer");
    assert_eq!([&value.key, &value.value], ["yes", "YES"]);
}

#[tokio::test]
async fn temporary_failures_are_retried() {
    let failures: [fn() -> Reply; 8] = [
        || Reply::Answer(500, "{\"error\": \"out of memory\"}".to_owned()),
        || Reply::Answer(503, String::new()),
        || Reply::Answer(429, "{\"error\": \"slow down\"}".to_owned()),
        || Reply::Answer(200, "<html>a proxy's page</html>".to_owned()),
        || Reply::Answer(200, json!({ "translatedText": ["one"] }).to_string()),
        || {
            Reply::Answer(
                200,
                json!({ "translatedText": ["one", " ", "two"] }).to_string(),
            )
        },
        || Reply::Disconnect,
        || Reply::Silence,
    ];
    for (case, failure) in failures.into_iter().enumerate() {
        let service = FakeService::with(vec![step("s", "on")]).await;
        let engine = FakeEngine::start(move |request| match request.number {
            0 | 1 => failure(),
            _ => upper_case(request),
        })
        .await;
        let translate = translate(&service.url, &engine.url).env("EXPERTISE_TIMEOUT", "1s");
        let outcome = run(translate).await;
        outcome.end.as_ref().expect("a whole run");
        assert_eq!(
            outcome.count("written"),
            1,
            "case {case}: {:?}",
            outcome.failures
        );
        assert_eq!(engine.requests().len(), 3, "case {case}");
    }
}

#[tokio::test]
async fn an_engine_that_stays_busy_is_given_up_after_the_retries() {
    let service = FakeService::with(vec![step("s", "on")]).await;
    let engine = FakeEngine::start(|_| Reply::Answer(503, String::new())).await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    assert_eq!((outcome.count("failed"), engine.requests().len()), (1, 3));
    let reason = "the engine does not respond: status 503 Service Unavailable";
    assert_eq!(outcome.reason(), reason);
}

#[tokio::test]
async fn a_pause_that_an_engine_asks_for_is_kept() {
    let service = FakeService::with(vec![step("s", "on")]).await;
    let engine = FakeEngine::start(|request| match request.number {
        0 => Reply::RetryAfter(1),
        _ => upper_case(request),
    })
    .await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    assert_eq!(outcome.count("written"), 1, "{:?}", outcome.failures);
    assert!(engine.pauses()[0] >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_failing_item_does_not_stop_the_others() {
    let work = ["one", "bad", "two"].map(|title| step(title, title));
    let service = FakeService::with(work.to_vec()).await;
    let engine = FakeEngine::start(|request| {
        if request.texts().iter().any(|text| text == "bad") {
            Reply::Answer(200, "nonsense".to_owned())
        } else {
            upper_case(request)
        }
    })
    .await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    outcome.end.as_ref().expect("a whole run");
    assert_eq!((outcome.count("written"), outcome.count("failed")), (2, 1));
    assert_eq!(service.written(), ["one", "two"]);
    assert_eq!(
        outcome.failures,
        [
            "failed bad de: the engine's response cannot be used: it is not JSON of the expected form"
        ]
    );
}

/// The body takes several requests, of which only the last fails.
#[tokio::test]
async fn no_item_is_written_partly() {
    let mut work = step("s", "on");
    let source = work.source.as_mut().expect("a source");
    let sentences: String = (0..2_000).map(|at| format!("Sentence {at}. ")).collect();
    source.body = Some(format!("<p>{sentences}</p><p>bad</p>"));
    let service = FakeService::with(vec![work]).await;
    let engine = FakeEngine::start(|request| {
        if request.texts().iter().any(|text| text == "bad") {
            Reply::Answer(500, String::new())
        } else {
            upper_case(request)
        }
    })
    .await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    assert_eq!(outcome.count("failed"), 1);
    assert!(service.written().is_empty());
    let sizes = engine.requests();
    assert!(sizes.len() > 4 && sizes.iter().all(|body| body.len() < 4_500));
}

#[tokio::test]
async fn a_refusal_is_reported_in_the_engines_words_without_its_key() {
    let service = FakeService::with(vec![step("s", "on")]).await;
    let engine = FakeEngine::start(|_| {
        let error = "key sesame\nmay not use de";
        Reply::Answer(403, json!({ "error": error }).to_string())
    })
    .await;
    let translate = translate(&service.url, &engine.url);
    let outcome = run(translate.env("EXPERTISE_ENGINE_API_KEY", "sesame")).await;
    assert_eq!(
        outcome.reason(),
        "the engine refuses: status 403 Forbidden: key **** may not use de"
    );
    let asked = engine.requests();
    assert_eq!(asked.len(), 1, "a refusal is final");
    assert!(asked.concat().contains("sesame"));
}

#[tokio::test]
async fn an_engine_that_is_not_there_ends_the_run_before_it_begins() {
    let service = FakeService::with(vec![step("s", "on")]).await;
    for (kind, program) in [
        ("libretranslate", "start LibreTranslate"),
        ("apertium", "start Apertium's APY"),
    ] {
        let translate = translate(&service.url, "http://127.0.0.1:1");
        let outcome = run(translate.env("EXPERTISE_ENGINE", kind)).await;
        let line = outcome.end.expect_err("there is no engine");
        line.says(&["refused", program, "at http://127.0.0.1:1, or set"]);
        assert_eq!(outcome.failures, [""; 0]);
    }
    assert!(service.state().lists.is_empty(), "no work is asked for");
}

#[tokio::test]
async fn an_engine_that_goes_away_ends_the_run_early() {
    let work: Vec<_> = (0..60).map(|at| step(&at.to_string(), "on")).collect();
    let service = FakeService::start(State {
        pages: work.chunks(25).map(<[_]>::to_vec).collect(),
        ..State::default()
    })
    .await;
    let engine = FakeEngine::start(|_| Reply::Disconnect).await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    let end = outcome.end.as_ref().expect_err("the engine is down");
    assert!(end.contains("20 items in a row"), "{end}");
    assert_eq!((outcome.count("written"), outcome.count("failed")), (0, 20));
    let reason = outcome.reason();
    assert!(
        reason.contains("does not respond") && !reason.contains("127.0.0.1"),
        "{reason}"
    );
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let service = FakeService::with(vec![step("s", "on")]).await;
    let engine = FakeEngine::start(|_| Reply::Answer(307, String::new())).await;
    let outcome = run(translate(&service.url, &engine.url)).await;
    assert_eq!((outcome.count("failed"), engine.requests().len()), (1, 1));
}

#[tokio::test]
async fn apertium_gets_one_text_per_request() {
    let service = FakeService::with(vec![step("s", "on & off")]).await;
    let engine = FakeEngine::start(|request| {
        assert!(
            request
                .body
                .starts_with("langpair=eng%7Cdeu&markUnknown=no&format=txt&q=")
        );
        let answer = json!({ "responseData": { "translatedText": "ja" }, "responseStatus": 200 });
        Reply::Answer(200, answer.to_string())
    })
    .await;
    let translate = translate(&service.url, &engine.url);
    let outcome = run(translate.env("EXPERTISE_ENGINE", "apertium")).await;
    assert_eq!(outcome.count("written"), 1, "{:?}", outcome.failures);
    let mut asked = engine.requests();
    asked.sort();
    let asked: Vec<_> = asked
        .iter()
        .filter_map(|body| body.rsplit_once("&q="))
        .collect();
    let texts: Vec<_> = asked.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["%26+wait.", "Press", "on+%26+off"]);
}
