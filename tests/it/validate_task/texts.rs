//! Rules about texts, translations and the existence of steps.

use super::*;
use serde_json::json;

on_both_databases![
    a_changed_source_makes_translations_outdated,
    a_new_name_makes_translations_of_the_task_outdated,
    the_title_of_a_subtask_step_is_its_own_or_the_name_of_its_task,
];

on_one_database![
    a_missing_translation_names_the_missing_fields,
    only_the_requested_languages_are_checked,
    a_translated_question_with_other_keys_is_reported,
    a_task_without_published_steps_is_reported,
    an_information_without_content_is_reported,
    an_unknown_value_of_published_is_reported,
    a_language_that_is_not_registered_is_reported,
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

async fn the_title_of_a_subtask_step_is_its_own_or_the_name_of_its_task(client: Client) {
    let end = |title| {
        let german = step_translation("Fertig").with_body("Text");
        shown(StepType::End, title).translated("de", german)
    };
    let inner = client.imported(document("Inner", vec![end("Inner")])).await;
    let guide = document_with(
        task("Guide").translated("de", task_translation("Anleitung")),
        vec![subtask(&Task::default(), &inner), end("Done")],
    );
    let made = client.imported(guide).await;
    let request = validation_of(&made.guid);
    let found = client.validated(request.clone()).await.findings;
    assert_eq!(
        places(&found),
        [("translation/missing", "translations[\"de\"]")]
    );
    assert_eq!(found[0].step, made.steps[0]);
    assert_eq!(fact(&found[0], "fields"), json!(["title"]));

    let named = task_of(&inner.guid).translated("de", task_translation("Innen"));
    client.updated_task(named, &["translations.de"]).await;
    assert_eq!(client.validated(request.clone()).await.findings, []);

    // One of its own, in spite of the name, and after the name has changed.
    let titled = step_of(&made.steps[0]).translated("de", step_translation("Eigener"));
    client
        .update_step(titled, &["translations.de"])
        .await
        .accepted();
    assert_eq!(client.validated(request.clone()).await.findings, []);
    let renamed = task_of(&inner.guid).named("Renamed");
    client.updated_task(renamed, &["name"]).await;
    let found = client.validated(request).await.findings;
    let rules: Vec<_> = found.iter().map(|one| (&*one.rule, &one.step)).collect();
    assert_eq!(rules, [("translation/locked-outdated", &made.steps[0])]);
}

async fn a_language_that_is_not_registered_is_reported(client: Client) {
    for (language, subtag) in [
        ("german", Some("german")),
        ("en-UK", Some("UK")),
        ("x-simple", None),
    ] {
        let row = step_translation("Fertig").with_body("Text");
        let steps = vec![shown(StepType::End, "Done").translated(language, row)];
        let name = task_translation("Anleitung");
        let guide = document_with(task("Guide").translated(language, name), steps);
        let found = client
            .validated(validation_of_document(guide))
            .await
            .findings;
        let Some(subtag) = subtag else {
            assert_eq!(found, []);
            continue;
        };
        let of_task = format!("document.task.translations[\"{language}\"]");
        let of_step = format!("document.steps[0].translations[\"{language}\"]");
        let rule = "translation/unknown-language";
        assert_eq!(places(&found), [(rule, &*of_step), (rule, &*of_task)]);
        for finding in &found {
            assert_eq!(finding.language, language);
            assert_eq!(fact(finding, "language"), json!(language));
            assert_eq!(fact(finding, "subtag"), json!(subtag));
            assert!(!finding.message.is_empty() && !finding.hint.is_empty());
        }
    }
}
