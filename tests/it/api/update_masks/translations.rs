//! Mask paths into `translations`.

use crate::kit::prelude::*;

async fn stored(client: &Client) -> Task {
    client.given_task(full_task()).await
}

fn translated(guid: &str, rows: &[(&str, TaskTranslation)]) -> Task {
    Task {
        translations: rows
            .iter()
            .map(|(language, row)| ((*language).to_owned(), row.clone()))
            .collect(),
        ..task_of(guid)
    }
}

#[apply(on_both_databases)]
async fn a_key_is_read_in_any_case(client: Client) {
    let before = stored(&client).await;
    let update = translated(&before.guid, &[("ZH-HANT", task_translation("新"))]);
    let mask = ["translations.zh-hant.name"];
    let after = client.updated_task(update, &mask).await;
    assert_eq!(after.translations["zh-Hant"].name.as_deref(), Some("新"));
    assert_eq!(after.translations.len(), 2);
}

#[apply(on_both_databases)]
async fn a_language_is_sent_once_whatever_part_the_mask_names(client: Client) {
    let before = stored(&client).await;
    let new = || task_translation("neu");
    let unnamed = TaskTranslation::default;
    for [lower, upper] in [[new(), new()], [new(), unnamed()], [unnamed(), new()]] {
        let twice = [("de", lower), ("DE", upper)];
        let update = translated(&before.guid, &twice);
        for path in [
            "translations.de",
            "translations.de.name",
            "translations.de.locked",
        ] {
            let failure = client.update_task(update.clone(), &[path]).await;
            let failure = failure.refused();
            failure.violates_below("task.translations", "FIELD_INVALID");
        }
    }
}

async fn stored_step(client: &Client) -> Step {
    let task = stored(client).await;
    client.given_step(full_step(&task)).await
}

#[apply(on_both_databases)]
async fn a_masked_list_of_instructions_creates_a_language_unless_it_is_empty(client: Client) {
    let before = stored_step(&client).await;
    let mask = ["translations.fr.instructions"];
    let sent = |instructions| {
        let row = StepTranslation::default().with(|it| it.instructions = instructions);
        step_of(&before.guid).translated("fr", row)
    };
    let after = client.updated_step(sent(vec![]), &mask).await;
    assert_eq!(after.translations, before.translations);
    let instruction = object(serde_json::json!({"outil": "clé"}));
    let after = client
        .updated_step(sent(vec![instruction.clone()]), &mask)
        .await;
    assert_eq!(after.translations["fr"].instructions, [instruction]);
}

/// The language is locked unless the mask names its lock.
#[apply(on_both_databases)]
async fn each_masked_field_creates_a_language(client: Client) {
    let full = full_step(&Task::default()).translations["de"].clone();
    for field in ["title", "body", "instructions", "feedback_config", "locked"] {
        let before = stored_step(&client).await;
        let update = step_of(&before.guid).translated("fr", full.clone());
        let mask = format!("translations.fr.{field}");
        let after = client.updated_step(update, &[&mask]).await;
        let mut expected = StepTranslation::default().with_lock(true);
        match field {
            "title" => expected.title.clone_from(&full.title),
            "body" => expected.body.clone_from(&full.body),
            "instructions" => expected.instructions.clone_from(&full.instructions),
            "feedback_config" => expected.feedback_config.clone_from(&full.feedback_config),
            _ => expected.locked = Some(false),
        }
        assert_eq!(after.translations["fr"], expected, "{field}");
        assert_eq!(after.translations["de"], before.translations["de"]);
    }
}

#[apply(on_both_databases)]
async fn a_wider_path_includes_a_narrower_one(client: Client) {
    let before = stored_step(&client).await;
    let update = step_of(&before.guid).translated("de", step_translation("Neu"));
    let (whole, title) = ("translations.de", "translations.de.title");
    for mask in [[whole, title], [title, whole]] {
        let row = before.translations["de"].clone();
        let former = step_of(&before.guid).translated("de", row);
        client.updated_step(former, &[whole]).await;
        let after = client.updated_step(update.clone(), &mask).await;
        let expected = step_translation("Neu").with_lock(true);
        assert_eq!(after.translations["de"], expected, "{mask:?}");
    }
    for mask in [["translations", whole], [whole, "translations"]] {
        let other = step_of(&before.guid).translated("fr", step_translation("Titre"));
        client.updated_step(other, &["translations.fr"]).await;
        let after = client.updated_step(update.clone(), &mask).await;
        assert_eq!(after.translations.keys().collect::<Vec<_>>(), ["de"]);
    }
}

/// A language is replaced as a whole, and a listed step has no bodies.
#[apply(on_both_databases)]
async fn a_listed_step_sent_back_without_a_mask_loses_the_bodies_of_its_translations(
    client: Client,
) {
    let task = client.given_task(task("Guide")).await;
    let row = step_translation("Titel").with_body("Text");
    let sent = information_step(&task, "title")
        .with_body("text")
        .translated("de", row);
    client.given_step(sent).await;
    let page = client.call(list_steps_of(&task.guid));
    let mut listed = page.await.accepted().steps;
    let listed = listed.pop().expect("a step");
    let masked = client.updated_step(listed.clone(), &["translations.de.title"]);
    assert_eq!(
        masked.await.translations["de"].body.as_deref(),
        Some("Text")
    );
    let after = client.updated_step(listed.with_etag(""), &[]);
    let after = after.await;
    assert_eq!(after.body.as_deref(), Some("text"));
    assert_eq!(after.translations["de"].body, None);
    // An empty body is sent, unlike an absent one.
    let emptied = client.updated_step(step_of(&after.guid).with_body(""), &[]);
    assert_eq!(emptied.await.body.as_deref(), Some(""));
}
