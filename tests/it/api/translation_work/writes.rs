//! WriteTranslations: the results of automatic translations.

use super::{row_of_task, state, unlocked_name, work_on};
use crate::prelude::*;
use TranslationResult::{NotFound, SkippedLocked, Stale, Written};
use serde_json::json;

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
    assert_eq!(client.written(sent.clone()).await, Written);
    let read = client.get_step(&guid).await.accepted();
    assert_eq!(read.translations.len(), 2);
    assert_eq!(read.translations["fr"], row);
    // The same write again changes nothing, and another one replaces the whole row.
    assert_eq!(client.written(sent.clone()).await, Written);
    assert_eq!(client.get_step(&guid).await.accepted(), read);
    let body = Some("<p>Nouveau</p>".to_owned());
    let less = AutomaticTranslation::default()
        .with(|it| it.guid = sent.guid)
        .with(|it| it.language = sent.language)
        .with(|it| it.source_digest = sent.source_digest)
        .with(|it| it.body = body.clone());
    assert_eq!(client.written(less).await, Written);
    let read = client.get_step(&guid).await.accepted();
    let expected = StepTranslation::default().with_lock(false);
    assert_eq!(read.translations["fr"], expected.with(|it| it.body = body));
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
