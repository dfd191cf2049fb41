//! The content of an item of work.

use super::work_on;
use crate::prelude::*;
use std::collections::BTreeSet;

/// The digest of the step's current texts.
async fn digest(client: &Client, guid: &str) -> String {
    work_on(client, guid).await.source_digest
}

#[apply(on_both_databases)]
async fn a_step_comes_with_its_texts(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let sent = full_step(&guide).with_translations([].into());
    let step = client.given_step(sent.clone()).await;
    let work = work_on(&client, &step.guid).await;
    let expected = TranslationWork {
        guid: step.guid,
        kind: TranslationKind::Step.into(),
        language: "de".to_owned(),
        state: TranslationState::Missing.into(),
        source: Some(TranslationSource {
            name: None,
            title: Some(sent.title),
            body: sent.body,
            instructions: sent.instructions,
            feedback_config: sent.feedback_config,
        }),
        source_digest: work.source_digest.clone(),
    };
    assert_eq!(work, expected);
    assert_ne!(work.source_digest, "");
}

#[apply(on_both_databases)]
async fn a_body_comes_byte_for_byte(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    for body in ["", " \r\n<p>\t\u{feff}ü\u{1}&nbsp;</P>\u{2028}🔧"] {
        let sent = information_step(&guide, "Look").with_body(body);
        let step = client.given_step(sent).await;
        let work = work_on(&client, &step.guid).await;
        assert_eq!(work.source.unwrap().body.as_deref(), Some(body));
    }
}

#[apply(on_both_databases)]
async fn a_question_comes_without_links(client: Client) {
    let sent = Step {
        feedback_config: vec![question("answer", &["yes", "no"]).with(|it| it.linked = Some(true))],
        ..step(&Task::default(), StepType::Observation, "Ask")
    };
    let guide = client.imported(document("Pump", vec![sent])).await;
    let step = client.get_step(&guide.steps[0]).await.accepted();
    assert_ne!(step.feedback_config[0].values[0].link, "");
    let work = work_on(&client, &step.guid).await;
    assert_eq!(
        work.source.unwrap().feedback_config,
        [question("answer", &["yes", "no"])]
    );
}

#[apply(on_both_databases)]
async fn the_digest_changes_when_words_are_in_other_fields(client: Client) {
    let guide = client.given_task(task("a")).await;
    let mut seen: BTreeSet<String> = [digest(&client, &guide.guid).await].into();
    let plain = information_step(&guide, "a");
    let asking = |name: &str, answers: &[(&str, &str)]| {
        let values = answers.iter().map(|(key, value)| answer(key, value));
        plain.clone().with(|it| {
            it.feedback_config = vec![question(name, &[]).with(|it| it.values = values.collect())]
        })
    };
    let instructed = |instructions: &[serde_json::Value]| {
        plain
            .clone()
            .with_instructions(instructions.iter().cloned().map(object).collect())
    };
    let with_body = plain.clone().with_body("b");
    let exchanged = plain.clone().titled("b").with_body("a");
    let joined = plain.clone().titled("ab");
    let different = [
        plain.clone(),
        with_body,
        exchanged,
        joined,
        asking("b", &[("c", "d")]),
        asking("b", &[("d", "c")]),
        asking("bc", &[("d", "e")]),
        asking("b", &[("cd", "e")]),
        asking("b", &[("c", "de")]),
        asking("b", &[("c", "d"), ("e", "f")]),
        instructed(&[serde_json::json!({"b": "c"})]),
        instructed(&[serde_json::json!({"c": "b"})]),
        instructed(&[serde_json::json!({"b": ["c"]})]),
        instructed(&[serde_json::json!({"b": 1})]),
        instructed(&[serde_json::json!({"b": "1"})]),
        instructed(&[serde_json::json!({"b": true})]),
        instructed(&[serde_json::json!({"b": null})]),
        instructed(&[serde_json::json!({})]),
        instructed(&[serde_json::json!({}), serde_json::json!({})]),
        instructed(&[serde_json::json!({"b": "c"}), serde_json::json!({"d": "e"})]),
        instructed(&[serde_json::json!({"d": "e"}), serde_json::json!({"b": "c"})]),
        instructed(&[serde_json::json!({"b": "c", "d": "e"})]),
    ];
    for step in different {
        let guid = client.given_step(step.clone()).await.guid;
        let new = seen.insert(digest(&client, &guid).await);
        assert!(new, "{step:?}");
    }
}
