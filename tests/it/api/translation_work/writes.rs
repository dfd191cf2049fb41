//! WriteTranslations: the results of automatic translations.

use super::{given_unlocked_step, row_of_task, state, unlocked_name, work_on};
use crate::prelude::*;
use TranslationResult::{NotFound, SkippedLocked, Stale, Written};
use serde_json::json;

async fn write(client: &Client, translations: Vec<AutomaticTranslation>) -> Vec<TranslationResult> {
    let response = client.write_translations(translations).await.accepted();
    response.results().collect()
}

#[apply(on_both_databases)]
async fn written_texts_are_seen_and_unlocked(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let guid = client.given_step(full_step(&guide)).await.guid;
    let row = StepTranslation {
        title: Some("Vérifier".to_owned()),
        body: Some("<p>Ouvrir&nbsp;\r\n</p>".to_owned()),
        instructions: vec![object(json!({"outil": [null, 1.5, {}]})), object(json!({}))],
        feedback_config: vec![question("réponse", &["oui", "non"])],
        locked: Some(false),
    };
    let work = client.translation_work(&["fr"]).await;
    let work = work.into_iter().find(|item| item.guid == guid).unwrap();
    let sent = AutomaticTranslation {
        body: row.body.clone(),
        instructions: row.instructions.clone(),
        feedback_config: row.feedback_config.clone(),
        ..automatic(&work, "Vérifier")
    };
    assert_eq!(client.written(sent).await, Written);
    let read = client.get_step(&guid).await.accepted();
    assert_eq!(read.translations.len(), 2);
    assert_eq!(read.translations["fr"], row);
}

#[apply(on_both_databases)]
async fn the_same_write_again_changes_nothing(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let step = client.given_step(full_step(&guide)).await;
    let work = client.translation_work(&["fr"]).await;
    let full = |item: &TranslationWork| AutomaticTranslation {
        body: Some("<p>x</p>".to_owned()),
        instructions: vec![object(json!({"a": 1.5}))],
        feedback_config: vec![question("q", &["a"])],
        ..automatic(item, "x")
    };
    let sent: Vec<_> = work
        .iter()
        .map(|item| match item.kind() {
            TranslationKind::Step => full(item),
            _ => automatic(item, "x"),
        })
        .collect();
    assert_eq!(write(&client, sent.clone()).await, [Written, Written]);
    let guide = client.get_task(&guide.guid).await.accepted();
    let step = client.get_step(&step.guid).await.accepted();
    assert_eq!(write(&client, sent).await, [Written, Written]);
    assert_eq!(client.get_task(&guide.guid).await.accepted(), guide);
    assert_eq!(client.get_step(&step.guid).await.accepted(), step);
}

#[apply(on_both_databases)]
async fn a_written_row_is_replaced_whole(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let step = given_unlocked_step(&client, &guide).await;
    client.retitle(&step.guid, "Listen").await;
    let work = work_on(&client, &step.guid).await;
    let sent = automatic(&work, "")
        .with(|it| it.body = Some("<p>Neu</p>".to_owned()))
        .with(|it| it.title = None);
    assert_eq!(client.written(sent).await, Written);
    let expected = StepTranslation::default()
        .with(|it| it.body = Some("<p>Neu</p>".to_owned()))
        .with(|it| it.locked = Some(false));
    let read = client.get_step(&step.guid).await.accepted();
    assert_eq!(read.translations["de"], expected);
}

#[apply(on_both_databases)]
async fn a_digest_that_was_never_given_out_is_stale(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let work = work_on(&client, &guide.guid).await;
    let digest = &work.source_digest;
    for source_digest in [
        " ".to_owned(),
        "nonsense".to_owned(),
        "ü🔧".to_owned(),
        format!("{digest}A"),
        format!("{digest}="),
        digest[1..].to_owned(),
        format!("{}{digest}", &digest[..1]),
        digest.to_lowercase() + digest,
        "A".repeat(digest.len()),
        "A".repeat(100_000),
    ] {
        let sent = automatic(&work, "Pumpe").with(|it| it.source_digest = source_digest);
        assert_eq!(client.written(sent).await, Stale);
    }
    let read = client.get_task(&guide.guid).await.accepted();
    assert!(read.translations.is_empty());
}

#[apply(on_both_databases)]
async fn a_language_may_come_in_another_case(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let work = client.translation_work(&["zh-Hant"]).await;
    let sent = automatic(&work[0], "泵").in_language("ZH-hant");
    assert_eq!(client.written(sent).await, Written);
    let read = client.get_task(&guide.guid).await.accepted();
    assert_eq!(read.translations["zh-Hant"], unlocked_name("泵"));
}

#[apply(on_both_databases)]
async fn an_id_may_come_in_upper_case(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let work = work_on(&client, &guide.guid).await;
    let sent = automatic(&work, "Pumpe").with(|it| it.guid = guide.guid.to_uppercase());
    assert_eq!(client.written(sent).await, Written);
    assert_eq!(state(&client, &guide.guid).await, None);
}

#[apply(on_both_databases)]
async fn texts_of_the_other_kind_are_ignored_and_listed(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let step = client.given_step(information_step(&guide, "Look")).await;
    let everything = |item: TranslationWork| AutomaticTranslation {
        name: Some("Name".to_owned()),
        title: Some("Titel".to_owned()),
        body: Some("<p>Text</p>".to_owned()),
        instructions: vec![object(json!({"a": 1}))],
        feedback_config: vec![question("q", &["a"])],
        ..automatic(&item, "")
    };
    let sent = everything(work_on(&client, &guide.guid).await);
    let response = client.write_translations(vec![sent]).await.accepted();
    assert_eq!(response.results().collect::<Vec<_>>(), [Written]);
    assert_eq!(
        response.ignored_paths,
        [
            "translations.body",
            "translations.feedback_config",
            "translations.instructions",
            "translations.title",
        ]
    );
    let read = client.get_task(&guide.guid).await.accepted();
    assert_eq!(read.translations["de"], unlocked_name("Name"));
    let sent = everything(work_on(&client, &step.guid).await);
    let response = client.write_translations(vec![sent]).await.accepted();
    assert_eq!(response.results().collect::<Vec<_>>(), [Written]);
    assert_eq!(response.ignored_paths, ["translations.name"]);
    let read = client.get_step(&step.guid).await.accepted();
    assert_eq!(read.translations["de"].title(), "Titel");
}

/// A question with links, which translations do not have.
fn linked_question() -> FeedbackConfig {
    let mut config = question("Antwort", &["ja", "nein"]);
    config.linked = Some(true);
    config.values[1].link = unknown_guid();
    config
}

#[apply(on_both_databases)]
async fn links_in_a_question_are_ignored_and_listed(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let asking = step(&guide, StepType::Observation, "Ask");
    let step = client.given_step(asking).await;
    let sent = automatic(&work_on(&client, &step.guid).await, "Fragen")
        .with(|it| it.feedback_config = vec![linked_question()]);
    let response = client.write_translations(vec![sent]).await.accepted();
    assert_eq!(response.results().collect::<Vec<_>>(), [Written]);
    assert_eq!(
        response.ignored_paths,
        [
            "translations.feedback_config.linked",
            "translations.feedback_config.values.link",
        ]
    );
    let read = client.get_step(&step.guid).await.accepted();
    let row = &read.translations["de"];
    assert_eq!(row.feedback_config, [question("Antwort", &["ja", "nein"])]);
}

/// Ignored texts are reported for written items alone.
#[apply(on_both_databases)]
async fn unwritten_items_are_not_listed_as_ignored(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let work = work_on(&client, &guide.guid).await;
    let sent = AutomaticTranslation {
        title: Some("Titel".to_owned()),
        feedback_config: vec![linked_question()],
        source_digest: "nonsense".to_owned(),
        ..automatic(&work, "Pumpe")
    };
    let response = client.write_translations(vec![sent]).await.accepted();
    assert_eq!(response.results().collect::<Vec<_>>(), [Stale]);
    assert_eq!(response.ignored_paths, [""; 0]);
    client
        .updated_task(row_of_task(&guide.guid, task_translation("Pumpe")), &[])
        .await;
    let locked = automatic(&work, "Pumpe").with(|it| it.title = Some("Titel".to_owned()));
    let unknown = locked.clone().with(|it| it.guid = unknown_guid());
    let sent = vec![locked, unknown];
    let response = client.write_translations(sent).await.accepted();
    let results: Vec<_> = response.results().collect();
    assert_eq!(results, [SkippedLocked, NotFound]);
    assert_eq!(response.ignored_paths, [""; 0]);
}
