//! Rules about texts, translations and the existence of steps.

use super::*;
use serde_json::json;

on_both_databases![
    a_changed_source_makes_translations_outdated,
    a_new_name_makes_translations_of_the_task_outdated,
];

on_one_database![
    a_missing_translation_names_the_missing_fields,
    only_the_requested_languages_are_checked,
    a_translated_question_with_other_keys_is_reported,
    a_task_without_published_steps_is_reported,
    an_information_without_content_is_reported,
    an_unknown_value_of_published_is_reported,
];

async fn a_missing_translation_names_the_missing_fields(client: Client) {
    let mut steps = clean();
    steps[3] = steps[3]
        .clone()
        .translated("de", step_translation("Fertig"));
    let guide = document_with(
        task("Guide").translated("de", task_translation("Anleitung")),
        steps,
    );
    let found = client
        .validated(validation_of_document(guide))
        .await
        .findings;
    let fields: Vec<_> = found.iter().map(|one| fact(one, "fields")).collect();
    let step = json!(["title", "body"]);
    assert_eq!(
        fields,
        [
            json!(["title", "feedback_config"]),
            step.clone(),
            step,
            json!(["body"])
        ]
    );
    for finding in &found {
        assert_eq!(finding.rule, "translation/missing");
        assert_eq!(finding.language, "de");
    }
    assert_eq!(found[3].path, "document.steps[3].translations[\"de\"]");
}

async fn only_the_requested_languages_are_checked(client: Client) {
    let mut steps = vec![shown(StepType::End, "Done")];
    steps[0] = steps[0]
        .clone()
        .translated("de", step_translation("Fertig"));
    let options = ValidationOptions {
        // A language that is named twice is checked once.
        languages: vec!["FR".to_owned(), "fr".to_owned()],
        ..ValidationOptions::default()
    };
    let request = validation_of_document(document("Guide", steps));
    let found = client
        .validated(with_options(request, options))
        .await
        .findings;
    let languages: Vec<_> = found.iter().map(|one| one.language.as_str()).collect();
    // One finding for the task, one for its step.
    assert_eq!(languages, ["fr", "fr"]);
}

async fn a_changed_source_makes_translations_outdated(client: Client) {
    for (locked, rule) in [
        (false, "translation/outdated"),
        (true, "translation/locked-outdated"),
    ] {
        let row = step_translation("Fertig")
            .with_body("Text")
            .with_lock(locked);
        let end = shown(StepType::End, "Done").translated("de", row);
        let name = task_translation("Anleitung");
        let guide = document_with(task("Guide").translated("de", name), vec![end]);
        let made = client.imported(guide).await;
        let request = validation_of(&made.guid);
        assert_eq!(client.validated(request.clone()).await.findings, []);
        let renamed = step_of(&made.steps[0]).titled("Finished");
        client.update_step(renamed, &["title"]).await.accepted();
        let found = client.validated(request).await.findings;
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.rule.as_str(), &one.step))
            .collect();
        assert_eq!(found, [(rule, &made.steps[0])]);
    }
}

async fn a_translated_question_with_other_keys_is_reported(client: Client) {
    let mut steps = clean();
    for step in &mut steps {
        let mut row = step_translation("Titel").with_body("Text");
        if !step.feedback_config.is_empty() {
            let values = vec![answer("on", "an"), answer("other", "sonst")];
            row.feedback_config = vec![question("light", &[]).with_values(values)];
        }
        *step = step.clone().translated("de", row);
    }
    let guide = document_with(
        task("Guide").translated("de", task_translation("Anleitung")),
        steps,
    );
    let found = client
        .validated(validation_of_document(guide))
        .await
        .findings;
    let path = "document.steps[0].translations[\"de\"].feedback_config[0].values";
    assert_eq!(places(&found), [("translation/answers", path)]);
    assert_eq!(fact(&found[0], "missing"), json!(["off"]));
    assert_eq!(fact(&found[0], "others"), json!(["other"]));
}

async fn a_task_without_published_steps_is_reported(client: Client) {
    let mut draft = shown(StepType::End, "Draft");
    draft.published = Some(0);
    for steps in [vec![], vec![draft]] {
        let count = steps.len();
        let found = findings(&client, steps).await;
        let rules: Vec<_> = found.iter().map(|one| one.rule.as_str()).collect();
        assert_eq!(rules, ["path/no-outcome", "task/no-steps"]);
        assert_eq!(fact(&found[1], "steps"), json!(count as f64));
        assert_eq!(
            (found[1].path.as_str(), found[1].step.as_str()),
            ("document.task", "")
        );
    }
}

async fn an_information_without_content_is_reported(client: Client) {
    let mut steps = clean();
    steps.insert(1, document_step(StepType::Information, "Empty"));
    only_finding(&client, steps, "step/no-content", 1, "").await;
}

async fn an_unknown_value_of_published_is_reported(client: Client) {
    let mut steps = clean();
    let mut other = shown(StepType::Information, "Other");
    other.published = Some(2);
    steps.insert(1, other);
    only_finding(&client, steps, "step/unknown-published", 1, "published").await;
}

async fn a_new_name_makes_translations_of_the_task_outdated(client: Client) {
    for (locked, rule) in [
        (false, "translation/outdated"),
        (true, "translation/locked-outdated"),
    ] {
        let name = TaskTranslation {
            locked: Some(locked),
            ..task_translation("Anleitung")
        };
        let end = shown(StepType::End, "Done")
            .translated("de", step_translation("Fertig").with_body("Text"));
        let guide = document_with(task("Guide").translated("de", name), vec![end]);
        let made = client.imported(guide).await;
        let request = validation_of(&made.guid);
        assert_eq!(client.validated(request.clone()).await.findings, []);
        let renamed = task_of(&made.guid).named("Renamed");
        client.updated_task(renamed, &["name"]).await;
        let found = client.validated(request).await.findings;
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.rule.as_str(), one.step.as_str(), one.path.as_str()))
            .collect();
        assert_eq!(found, [(rule, "", "translations[\"de\"]")]);
    }
}
