//! Requests of WriteTranslations that are refused and write nothing.

use super::{DE, work_on};
use crate::prelude::*;
use serde_json::json;

/// A task and a step without translations, and their work.
async fn given_work(client: &Client) -> [TranslationWork; 2] {
    let guide = client.given_task(task("Pump")).await;
    let step = client.given_step(information_step(&guide, "Look")).await;
    [
        work_on(client, &guide.guid).await,
        work_on(client, &step.guid).await,
    ]
}

async fn refused(client: &Client, translations: Vec<AutomaticTranslation>) -> Failure {
    let before = client.translation_work(&DE).await;
    let failure = client.write_translations(translations).await.refused();
    assert_eq!(client.translation_work(&DE).await, before);
    failure
}

#[apply(on_both_databases)]
async fn a_hundred_are_accepted_and_one_more_is_not(client: Client) {
    let [_, step] = given_work(&client).await;
    let sent: Vec<_> = tags(100)
        .into_iter()
        .map(|language| automatic(&step, "x").in_language(language))
        .collect();
    let mut many = sent.clone();
    many.push(sent[0].clone());
    let failure = client.write_translations(many).await.refused();
    failure.violates(&[("translations", "TOO_MANY_ELEMENTS")]);
    let read = client.get_step(&step.guid).await.accepted();
    assert!(read.translations.is_empty());
    let response = client.write_translations(sent).await.accepted();
    let results: Vec<_> = response.results().collect();
    assert_eq!(results, [TranslationResult::Written; 100]);
    let read = client.get_step(&step.guid).await.accepted();
    assert_eq!(read.translations.len(), 100);
}

#[apply(on_both_databases)]
async fn a_body_has_the_limits_of_the_body(client: Client) {
    let _turn = crate::api::large_bodies::ONE_AT_A_TIME.lock().await;
    let [_, step] = given_work(&client).await;
    for (body, reason) in [
        ("x".repeat(16_000_001), "FIELD_TOO_LONG"),
        ("x\0".to_owned(), "FIELD_INVALID"),
    ] {
        let sent = automatic(&step, "Schauen").with_body(body);
        let failure = refused(&client, vec![sent]).await;
        failure.violates(&[("translations[0].body", reason)]);
    }
    let sent = automatic(&step, "Schauen").with_body(String::new());
    assert_eq!(client.written(sent).await, TranslationResult::Written);
    let read = client.get_step(&step.guid).await.accepted();
    assert_eq!(read.translations["de"].body.as_deref(), Some(""));
}

/// A task and a step that have rows in the first of these languages, and their
/// work in the next.
async fn given_languages(client: &Client, tags: &[String], count: usize) -> [TranslationWork; 2] {
    let rows = tags[..count].iter();
    let guide = Task {
        translations: rows
            .clone()
            .map(|tag| (tag.clone(), task_translation("x")))
            .collect(),
        ..task("Pump")
    };
    let guide = client.given_task(guide).await;
    let step = Step {
        translations: rows
            .map(|tag| (tag.clone(), step_translation("x")))
            .collect(),
        ..information_step(&guide, "Look")
    };
    client.given_step(step).await;
    let work = client.translation_work(&[&tags[count]]).await;
    work.try_into().expect("two items")
}

fn into(language: &str, work: &TranslationWork) -> AutomaticTranslation {
    automatic(work, "machine").in_language(language)
}

#[apply(on_both_databases)]
async fn the_hundredth_language_is_accepted_and_one_more_is_not(client: Client) {
    let tags = tags(101);
    for item in given_languages(&client, &tags, 99).await {
        // It may be written again, and a known language is locked.
        for _ in 0..2 {
            let became = client.written(into(&tags[99], &item)).await;
            assert_eq!(became, TranslationResult::Written);
        }
        let became = client.written(into(&tags[0], &item)).await;
        assert_eq!(became, TranslationResult::SkippedLocked);
        let sent = vec![into(&tags[100], &item)];
        let failure = client.write_translations(sent).await.refused();
        failure.violates(&[("translations[0].language", "TOO_MANY_ELEMENTS")]);
    }
}

#[apply(on_both_databases)]
async fn nothing_is_written_when_one_language_is_too_many(client: Client) {
    let tags = tags(101);
    let [guide, step] = given_languages(&client, &tags, 99).await;
    let sent = vec![
        into(&tags[99], &guide),
        into(&tags[99], &step),
        into(&tags[100], &step),
    ];
    let failure = client.write_translations(sent).await.refused();
    failure.violates(&[("translations[2].language", "TOO_MANY_ELEMENTS")]);
    assert_eq!(client.translation_work(&[&tags[99]]).await.len(), 2);
}

#[apply(on_both_databases)]
async fn instructions_are_a_text(client: Client) {
    let [_, step] = given_work(&client).await;
    let instructed = automatic(&step, "").with(|it| it.title = None);
    let instructed = instructed.with(|it| it.instructions = vec![object(json!({}))]);
    assert_eq!(client.written(instructed).await, TranslationResult::Written);
}
