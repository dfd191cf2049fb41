//! ListTranslationWork lists every resource whose translation is missing or outdated,
//! and no other.

use crate::prelude::*;
use serde_json::json;

mod concurrent_edits;
mod content;
mod large_bodies;
mod pages;
mod refused_writes;
mod requests;
mod writes;

const DE: [&str; 1] = ["de"];

/// A resource, a language and the state of the translation.
type PendingWork = (String, String, TranslationState);

/// The listed work, sorted.
fn pending(work: Vec<TranslationWork>) -> Vec<PendingWork> {
    let mut pending: Vec<PendingWork> = work
        .into_iter()
        .map(|item| {
            let state = item.state();
            (item.guid, item.language, state)
        })
        .collect();
    pending.sort();
    pending
}

/// Why the resource needs a translation into German; `None` if it does not.
async fn state(client: &Client, guid: &str) -> Option<TranslationState> {
    let mut states = client.translation_work(&DE).await;
    states.retain(|item| item.guid == guid);
    assert!(states.len() < 2, "{states:?}");
    states.first().map(TranslationWork::state)
}

/// The work into German on this resource, which must need a translation.
async fn work_on(client: &Client, guid: &str) -> TranslationWork {
    let work = client.translation_work(&DE).await;
    let mut own = work.into_iter().filter(|item| item.guid == guid);
    own.next().expect("work on the resource")
}

/// An update of the row in German.
fn row_of_task(guid: &str, row: TaskTranslation) -> Task {
    task_of(guid).translated("de", row)
}

/// An update of the row in German.
fn row_of_step(guid: &str, row: StepTranslation) -> Step {
    step_of(guid).translated("de", row)
}

fn unlocked_name(name: &str) -> TaskTranslation {
    task_translation(name).with_lock(false)
}

fn unlocked_title(title: &str) -> StepTranslation {
    step_translation(title).with_lock(false)
}

/// A task with an unlocked name in German.
async fn given_unlocked_task(client: &Client, name: &str) -> Task {
    let sent = task(name).translated("de", unlocked_name("Pumpe"));
    client.given_task(sent).await
}

/// An observation with all texts and an unlocked title in German.
async fn given_unlocked_step(client: &Client, task: &Task) -> Step {
    let sent = full_step(task).translated("de", unlocked_title("Ventil"));
    client.given_step(sent).await
}

#[apply(on_both_databases)]
async fn an_unlocked_row_is_outdated_once_a_text_of_the_step_changes(client: Client) {
    let guide = given_unlocked_task(&client, "Pump").await;
    let instructions = vec![object(json!({"tool": "wrench", "size": 14}))];
    let empty = Step::default();
    let changes = [
        ("title", Step::default().titled("Look")),
        ("body", Step::default().with_body("<p>Other</p>")),
        ("body", empty.clone()),
        (
            "instructions",
            Step::default().with_instructions(instructions),
        ),
        ("instructions", empty),
    ];
    for (mask, change) in changes {
        let step = given_unlocked_step(&client, &guide).await;
        assert_eq!(state(&client, &step.guid).await, None);
        let update = change.with_guid(step.guid.clone());
        client.updated_step(update, &[mask]).await;
        let outdated = Some(TranslationState::Outdated);
        assert_eq!(state(&client, &step.guid).await, outdated, "{mask}");
    }
    // Each text of the question on its own.
    for question in [
        question("reply", &["yes", "no"]),
        question("answer", &["yes", "maybe"]),
        question("answer", &["no", "yes"]),
        question("answer", &["yes"]),
        question("answer", &[])
            .with(|it| it.values = vec![answer("yes", "Yes!"), answer("no", "no")]),
    ] {
        let step = given_unlocked_step(&client, &guide).await;
        let update = step_of(&step.guid).with_question(question.clone());
        client.updated_step(update, &["feedback_config"]).await;
        let outdated = Some(TranslationState::Outdated);
        assert_eq!(state(&client, &step.guid).await, outdated, "{question:?}");
    }
}

#[apply(on_both_databases)]
async fn any_text_that_a_person_writes_makes_an_outdated_row_current(client: Client) {
    let guide = given_unlocked_task(&client, "Pump").await;
    let row = StepTranslation {
        body: Some("<p>Neu</p>".to_owned()),
        instructions: vec![object(json!({"werkzeug": "Zange"}))],
        feedback_config: vec![question("Antwort", &["ja"])],
        ..unlocked_title("Klappe")
    };
    for text in ["title", "body", "instructions", "feedback_config"] {
        let step = given_unlocked_step(&client, &guide).await;
        client.retitle(&step.guid, "Look").await;
        let outdated = Some(TranslationState::Outdated);
        assert_eq!(state(&client, &step.guid).await, outdated, "{text}");
        let mask = format!("translations.de.{text}");
        let update = row_of_step(&step.guid, row.clone());
        client.updated_step(update, &[&mask]).await;
        assert_eq!(state(&client, &step.guid).await, None, "{text}");
    }
}

#[apply(on_both_databases)]
async fn untranslated_fields_outdate_nothing(client: Client) {
    let guide = given_unlocked_task(&client, "Pump").await;
    let step = given_unlocked_step(&client, &guide).await;
    let update = Task {
        published: Some(5),
        roles: vec![AccessLevel::Tech.into()],
        dependencies: Some(conditions(2)),
        external_id: Some("pump".to_owned()),
        ..task_of(&guide.guid)
    };
    client.updated_task(update, &[]).await;
    let update = Step {
        published: Some(5),
        parts: vec!["bolt".to_owned()],
        skills: vec!["care".to_owned()],
        tags: vec!["dry".to_owned()],
        dependencies: Some(conditions(2)),
        external_id: Some("valve".to_owned()),
        looping: Some(Looping::default()),
        ..row_of_step(&step.guid, step_translation("Klappe").with_lock(false))
    };
    client.updated_step(update, &[]).await;
    assert_eq!(client.translation_work(&DE).await, []);
}

/// Writes an automatic translation of all work.
async fn translate_all(client: &Client) {
    for item in client.translation_work(&DE).await {
        let became = client.written(automatic(&item, "machine")).await;
        assert_eq!(became, TranslationResult::Written);
    }
    assert_eq!(client.translation_work(&DE).await, []);
}

#[apply(on_both_databases)]
async fn a_linked_value_that_changes_outdates_all_that_has_its_text(client: Client) {
    let linked = question("answer", &["yes", "no"]).with(|it| it.linked = Some(true));
    let asking = step(&Task::default(), StepType::Observation, "Ask").with_question(linked);
    let document = document_with(task("Pump"), vec![asking]);
    let guide = client.imported(document).await;
    // The guide, the observation, and for each value a managed task and its wiring step.
    assert_eq!(client.translation_work(&DE).await.len(), 6);
    // The managed tasks are not the guide's own.
    let own = translation_work_request(&DE).of_task(guide.guid.clone());
    assert_eq!(client.list(own).await.len(), 4);
    translate_all(&client).await;
    let asking = client.get_step(&guide.steps[0]).await.accepted();
    let mut config = asking.feedback_config[0].clone();
    config.values[0].value = "Yes!".to_owned();
    let managed = config.values[0].link.clone();
    let update = step_of(&asking.guid).with_question(config);
    client.updated_step(update, &["feedback_config"]).await;
    let outdated = |guid: &String| {
        let language = "de".to_owned();
        (guid.clone(), language, TranslationState::Outdated)
    };
    let mut expected = [&asking.guid, &guide.steps[1], &managed].map(outdated);
    expected.sort();
    let work = client.translation_work(&DE).await;
    for item in &work[..] {
        let source = item.source.clone().unwrap();
        let text = source.name.or(source.title).unwrap();
        assert!(["Yes!", "Ask"].contains(&&*text), "{text}");
    }
    assert_eq!(pending(work), expected);
    // Links are no texts.
    translate_all(&client).await;
    let mut asking = client.get_step(&asking.guid).await.accepted();
    let config = asking
        .feedback_config
        .remove(0)
        .with(|it| it.linked = Some(false));
    let update = step_of(&asking.guid).with_question(config);
    client.updated_step(update, &["feedback_config"]).await;
    assert_eq!(client.translation_work(&DE).await, []);
}

#[apply(on_both_databases)]
async fn an_import_that_changes_a_source_outdates_its_rows(client: Client) {
    let guide = client.given_task(task("Pump")).await;
    let steps = client.given_steps(&guide, &["Look", "Listen"]).await;
    translate_all(&client).await;
    let changed = step_of(&steps[0]).with_body("<p>closely</p>");
    let same = step_of(&steps[1]).titled("Listen");
    let document = document_with(task_of(&guide.guid).named("Valve"), vec![changed, same]);
    client.imported(document).await;
    let outdated = Some(TranslationState::Outdated);
    assert_eq!(state(&client, &guide.guid).await, outdated);
    assert_eq!(state(&client, &steps[0]).await, outdated);
    assert_eq!(state(&client, &steps[1]).await, None);
    // A row is sent unchanged with other fields, and then with another text.
    let mut sent = client.exported(&guide.guid).await;
    sent.steps[0].tags.push("wet".to_owned());
    sent.task.as_mut().unwrap().published = Some(0);
    client.imported(sent.clone()).await;
    assert_eq!(state(&client, &guide.guid).await, outdated);
    assert_eq!(state(&client, &steps[0]).await, outdated);
    let row = unlocked_title("Schauen");
    sent.steps[0].translations.insert("de".to_owned(), row);
    let row = unlocked_name("Ventil");
    let task = sent.task.as_mut().unwrap();
    task.translations.insert("de".to_owned(), row);
    client.imported(sent).await;
    assert_eq!(client.translation_work(&DE).await, []);
}
