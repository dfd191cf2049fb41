//! Mask paths into `translations`.

use crate::kit::prelude::*;

on_both_databases![
    a_masked_language_is_written_alone,
    a_masked_language_that_is_absent_is_deleted,
    a_masked_language_that_was_never_there_is_no_error,
    a_masked_text_is_written_alone,
    a_masked_text_that_is_unset_is_cleared,
    a_key_may_stand_in_backticks,
    a_key_is_read_in_any_case,
    a_lock_can_be_masked,
    a_masked_lock_that_is_unset_is_true,
    a_steps_language_is_written_alone,
    a_steps_masked_text_is_written_alone,
    a_masked_list_of_instructions_creates_a_language_unless_it_is_empty,
    a_wider_path_includes_a_narrower_one,
    a_listed_step_sent_back_without_a_mask_loses_the_bodies_of_its_translations,
];

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

async fn a_masked_language_is_written_alone(client: Client) {
    let before = stored(&client).await;
    let update = translated(
        &before.guid,
        &[
            ("de", task_translation("Neu")),
            ("fr", task_translation("Nouveau")),
        ],
    );
    let after = client.updated_task(update, &["translations.fr"]).await;
    assert_eq!(after.translations["fr"].name.as_deref(), Some("Nouveau"));
    assert_eq!(after.translations["de"], before.translations["de"]);
    assert_eq!(
        after.translations["zh-Hant"],
        before.translations["zh-Hant"]
    );
}

async fn a_masked_language_that_is_absent_is_deleted(client: Client) {
    let before = stored(&client).await;
    let update = translated(&before.guid, &[]);
    let after = client.updated_task(update, &["translations.de"]).await;
    assert_eq!(after.translations.keys().collect::<Vec<_>>(), ["zh-Hant"]);
}

async fn a_masked_language_that_was_never_there_is_no_error(client: Client) {
    let before = stored(&client).await;
    let update = translated(&before.guid, &[]);
    let after = client.updated_task(update, &["translations.fr"]).await;
    assert_eq!(after, before);
}

async fn a_masked_text_is_written_alone(client: Client) {
    let before = stored(&client).await;
    let row = TaskTranslation {
        name: Some("Neu".to_owned()),
        locked: Some(false),
    };
    let update = translated(&before.guid, &[("de", row)]);
    let after = client.updated_task(update, &["translations.de.name"]).await;
    let expected = TaskTranslation {
        name: Some("Neu".to_owned()),
        locked: before.translations["de"].locked,
    };
    assert_eq!(after.translations["de"], expected);
}

async fn a_masked_text_that_is_unset_is_cleared(client: Client) {
    let before = stored(&client).await;
    let update = translated(&before.guid, &[("de", TaskTranslation::default())]);
    let after = client.updated_task(update, &["translations.de.name"]).await;
    let expected = TaskTranslation {
        name: None,
        locked: before.translations["de"].locked,
    };
    assert_eq!(after.translations["de"], expected);
}

async fn a_key_may_stand_in_backticks(client: Client) {
    let before = stored(&client).await;
    for (path, name) in [
        ("translations.`zh-Hant`", "一"),
        ("translations.`zh-Hant`.name", "二"),
        ("translations.zh-Hant", "三"),
        ("translations.zh-Hant.name", "四"),
    ] {
        let update = translated(&before.guid, &[("zh-Hant", task_translation(name))]);
        let after = client.updated_task(update, &[path]).await;
        assert_eq!(after.translations["zh-Hant"].name.as_deref(), Some(name));
        assert_eq!(after.translations["de"], before.translations["de"]);
    }
}

async fn a_key_is_read_in_any_case(client: Client) {
    let before = stored(&client).await;
    let update = translated(&before.guid, &[("ZH-HANT", task_translation("新"))]);
    let mask = ["translations.zh-hant.name"];
    let after = client.updated_task(update, &mask).await;
    assert_eq!(after.translations["zh-Hant"].name.as_deref(), Some("新"));
    assert_eq!(after.translations.len(), 2);
}

async fn a_lock_can_be_masked(client: Client) {
    let before = stored(&client).await;
    let row = TaskTranslation {
        name: Some("unread".to_owned()),
        locked: Some(false),
    };
    let update = translated(&before.guid, &[("de", row)]);
    let mask = ["translations.de.locked"];
    let after = client.updated_task(update, &mask).await;
    let expected = TaskTranslation {
        name: before.translations["de"].name.clone(),
        locked: Some(false),
    };
    assert_eq!(after.translations["de"], expected);
}

async fn a_masked_lock_that_is_unset_is_true(client: Client) {
    let before = stored(&client).await;
    assert_eq!(before.translations["zh-Hant"].locked, Some(false));
    let update = translated(&before.guid, &[("zh-Hant", TaskTranslation::default())]);
    let mask = ["translations.zh-Hant.locked"];
    let after = client.updated_task(update, &mask).await;
    assert_eq!(after.translations["zh-Hant"].locked, Some(true));
}

async fn stored_step(client: &Client) -> Step {
    let task = stored(client).await;
    client.given_step(full_step(&task)).await
}

async fn a_steps_language_is_written_alone(client: Client) {
    let before = stored_step(&client).await;
    let update = step_of(&before.guid).translated("fr", step_translation("Titre"));
    let after = client.updated_step(update, &["translations.fr"]).await;
    assert_eq!(after.translations["de"], before.translations["de"]);
    let expected = step_translation("Titre").with_lock(true);
    assert_eq!(after.translations["fr"], expected);
}

async fn a_steps_masked_text_is_written_alone(client: Client) {
    let before = stored_step(&client).await;
    let row = &before.translations["de"];
    let sent = StepTranslation {
        title: Some("Neu".to_owned()),
        body: Some("<p>neu</p>".to_owned()),
        instructions: vec![object(serde_json::json!({"neu": true}))],
        feedback_config: vec![question("Neu", &["a"])],
        locked: Some(true),
    };
    for (path, expected) in [
        (
            "translations.de.title",
            StepTranslation {
                title: sent.title.clone(),
                ..row.clone()
            },
        ),
        (
            "translations.de.body",
            StepTranslation {
                body: sent.body.clone(),
                ..row.clone()
            },
        ),
        (
            "translations.de.instructions",
            StepTranslation {
                instructions: sent.instructions.clone(),
                ..row.clone()
            },
        ),
    ] {
        let restored = step_of(&before.guid).with_translations(before.translations.clone());
        client.updated_step(restored, &["translations"]).await;
        let update = step_of(&before.guid).translated("de", sent.clone());
        let after = client.updated_step(update, &[path]).await;
        assert_eq!(after.translations["de"], expected, "{path}");
    }
}

async fn a_masked_list_of_instructions_creates_a_language_unless_it_is_empty(client: Client) {
    let before = stored_step(&client).await;
    let mask = ["translations.fr.instructions"];
    let sent = |instructions| {
        let row = StepTranslation {
            instructions,
            ..StepTranslation::default()
        };
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
async fn a_listed_step_sent_back_without_a_mask_loses_the_bodies_of_its_translations(
    client: Client,
) {
    let task = client.given_task(task("Guide")).await;
    let row = step_translation("Titel").with_body("Text");
    let sent = information_step(&task, "title")
        .with_body("text")
        .translated("de", row);
    client.given_step(sent).await;
    let page = client.list_steps(ListStepsRequest {
        task: task.guid,
        ..ListStepsRequest::default()
    });
    let mut listed = page.await.accepted().steps;
    let listed = listed.pop().expect("a step");
    let masked = client.updated_step(listed.clone(), &["translations.de.title"]);
    assert_eq!(
        masked.await.translations["de"].body.as_deref(),
        Some("Text")
    );
    let after = client.updated_step(
        Step {
            etag: String::new(),
            ..listed
        },
        &[],
    );
    let after = after.await;
    assert_eq!(after.body.as_deref(), Some("text"));
    assert_eq!(after.translations["de"].body, None);
    // An empty body is sent, unlike an absent one.
    let emptied = client.updated_step(step_of(&after.guid).with_body(""), &[]);
    assert_eq!(emptied.await.body.as_deref(), Some(""));
}
