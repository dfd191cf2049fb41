//! Runs of the translation in this process, and items of work.

use std::time::Duration;

use expertise::{
    config::{
        Config, ConnectionConfig, Credentials, EngineKind, RetrySettings, TranslateConfig, Trust,
    },
    domain::{
        ids::{AccountId, TaskId},
        translation::Language,
    },
    proto::v1::{FeedbackConfig, FeedbackValue, TranslationSource, TranslationWork},
    translate::{self, TranslateError, TranslateFailure, TranslateProgress, TranslateSummary},
};

/// The result of a run.
pub struct RunOutcome {
    pub end: Result<(), TranslateError>,
    pub summary: TranslateSummary,
    pub failures: Vec<TranslateFailure>,
}

#[derive(Default)]
struct Failures(Vec<TranslateFailure>);

impl TranslateProgress for Failures {
    fn page_done(&mut self, _: &TranslateSummary) {}

    fn item_failed(&mut self, failure: &TranslateFailure) {
        self.0.push(failure.clone());
    }
}

/// Settings for account 42, with retries that do not pause.
pub fn config(server: &str, engine: &str) -> TranslateConfig {
    TranslateConfig {
        connection: ConnectionConfig {
            server: server.to_owned(),
            trust: Trust::default(),
            credentials: Credentials::Account(AccountId::parse("42").expect("an account")),
            retry: RetrySettings {
                retries: 2,
                first_pause: Duration::ZERO,
            },
            flags: String::new(),
        },
        languages: vec![language("de")],
        source_language: language("en"),
        task: None,
        engine: EngineKind::LibreTranslate,
        engine_url: engine.to_owned(),
        engine_api_key: None,
        parallel: 4,
        timeout: Duration::from_secs(30),
        log: Config::for_tests("sqlite::memory:").log,
    }
}

pub fn language(tag: &str) -> Language {
    Language::parse(tag).expect("a tag")
}

pub async fn run(config: &TranslateConfig) -> RunOutcome {
    run_of_task(config, None).await
}

pub async fn run_of_task(config: &TranslateConfig, task: Option<TaskId>) -> RunOutcome {
    let mut summary = TranslateSummary::default();
    let mut failures = Failures::default();
    let end = translate::run(config, task, &mut summary, &mut failures).await;
    RunOutcome {
        end,
        summary,
        failures: failures.0,
    }
}

/// A step with a title and a body to translate into German.
pub fn step(guid: &str, title: &str) -> TranslationWork {
    item(
        guid,
        TranslationSource {
            title: Some(title.to_owned()),
            body: Some(format!(
                "<p class=\"a > b\">Press&nbsp;<b>{title}</b> &amp; wait.<!-- no --></p>"
            )),
            ..TranslationSource::default()
        },
    )
}

/// A step that asks something.
pub fn question(guid: &str, answer: &str) -> TranslationWork {
    let value = FeedbackValue {
        key: "yes".to_owned(),
        value: answer.to_owned(),
        ..FeedbackValue::default()
    };
    let config = FeedbackConfig {
        name: "is it on".to_owned(),
        r#type: "enum".to_owned(),
        linked: None,
        values: vec![value],
    };
    item(
        guid,
        TranslationSource {
            title: Some("a question".to_owned()),
            feedback_config: vec![config],
            ..TranslationSource::default()
        },
    )
}

fn item(guid: &str, source: TranslationSource) -> TranslationWork {
    TranslationWork {
        guid: guid.to_owned(),
        language: "de".to_owned(),
        source: Some(source),
        source_digest: format!("digest of {guid}"),
        ..TranslationWork::default()
    }
}
