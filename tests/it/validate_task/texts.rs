//! Rules about texts, translations and the existence of steps.

use super::*;
use serde_json::json;

#[apply(on_one_database)]
async fn a_missing_translation_names_the_missing_fields(client: Client) {
    let listed = || vec![object(json!({"text": "Unplug it"}))];
    let mut steps = clean();
    steps[1].instructions = listed();
    let row = StepTranslation {
        instructions: listed(),
        ..step_translation("Schalten")
    };
    steps[2] = steps[2].clone().translated("de", row);
    steps[2].instructions = listed();
    steps[3] = steps[3]
        .clone()
        .translated("de", step_translation("Fertig"));
    steps.insert(3, document_step(StepType::Solution, "Without body"));
    let guide = document_with(
        task("Guide").translated("de", task_translation("Anleitung")),
        steps,
    );
    let found = client
        .validated(validation_of_document(guide))
        .await
        .findings;
    let fields: Vec<_> = found.iter().map(|one| fact(one, "fields")).collect();
    assert_eq!(
        fields,
        [
            json!(["title", "feedback_config"]),
            json!(["title", "body", "instructions"]),
            json!(["body"]),
            json!(["title"]),
            json!(["body"])
        ]
    );
    for finding in &found {
        assert_eq!(finding.rule, "translation/missing");
        assert_eq!(finding.language, "de");
    }
    assert_eq!(found[4].path, "document.steps[4].translations[\"de\"]");
}

/// Of each type of step: each text is lacking alone, and is there alone.
#[apply(on_one_database)]
async fn each_text_that_a_translation_lacks_is_missing(client: Client) {
    let listed = || vec![object(json!({"text": "Unplug it"}))];
    let whole = StepTranslation {
        instructions: listed(),
        feedback_config: vec![question("it", &["a", "b"])],
        ..step_translation("Titel").with_body("Text")
    };
    type Removal = fn(&mut StepTranslation);
    let removals: [(&str, Removal); 4] = [
        ("title", |row| row.title = None),
        ("body", |row| row.body = None),
        ("instructions", |row| row.instructions.clear()),
        ("feedback_config", |row| row.feedback_config.clear()),
    ];
    let inner = client.imported(document("Inner", Vec::new())).await;
    let (mut steps, mut expected) = (Vec::new(), Vec::new());
    for number in 1..=6 {
        let step = match StepType::try_from(number).expect("a type") {
            StepType::Subtask => subtask(&Task::default(), &inner),
            kind => document_step(kind, "Title"),
        };
        let step = step.with_body("text").with_instructions(listed());
        let step = step.with_question(question("it", &["a", "b"]));
        let pairs = (0..4).flat_map(|index| [(index, true), (index, false)]);
        for (index, lacks_it) in pairs {
            let (mut row, mut fields) = (whole.clone(), Vec::new());
            for (at, (field, remove)) in removals.iter().enumerate() {
                if (at == index) == lacks_it {
                    remove(&mut row);
                    fields.push(*field);
                }
            }
            let path = format!("document.steps[{}].translations[\"de\"]", steps.len());
            steps.push(step.clone().translated("de", row));
            expected.push((path, json!(fields)));
        }
    }
    let guide = task("Guide").translated("de", task_translation("Anleitung"));
    let request = validation_of_document(document_with(guide, steps));
    let found = client.validated(request).await.findings;
    let found = of_rule(&found, "translation/missing").into_iter();
    let found: Vec<_> = found
        .map(|one| (one.path.clone(), fact(one, "fields")))
        .collect();
    assert_eq!(found, expected);
}

#[apply(on_both_databases)]
async fn a_name_is_missing_beside_a_lock_and_of_a_managed_task(client: Client) {
    let made = client
        .imported(document("Guide", vec![linked_observation(&[("a", "A")])]))
        .await;
    let managed = client.get_step(&made.steps[1]).await.accepted().link;
    let lock = TaskTranslation::default().with_lock(false);
    let locked = task_of(&made.guid).translated("de", lock);
    client
        .updated_task(locked, &["translations.de.locked"])
        .await;
    let found = client.validated(validation_of(&made.guid)).await.findings;
    let of_tasks = found.iter().filter(|one| one.step.is_empty());
    let missing = of_tasks.filter(|one| one.rule == "translation/missing");
    let missing: Vec<_> = missing
        .map(|one| (&one.task, fact(one, "fields")))
        .collect();
    let name = json!(["name"]);
    assert_eq!(missing, [(&made.guid, name.clone()), (&managed, name)]);
}

#[apply(on_one_database)]
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
    assert_eq!(fact(&found[0], "fields"), json!(["name"]));
    assert_eq!(found[0].path, "document.task.translations[\"fr\"]");
    assert_eq!(fact(&found[1], "fields"), json!(["title", "body"]));
}

/// A language of any text of the guide, although the subtask has findings of its own.
#[apply(on_one_database)]
async fn languages_of_subtasks_are_checked(client: Client) {
    let row = step_translation("Fini").with_body("Texte");
    let end = shown(StepType::End, "Inner").translated("fr", row);
    let inner = client.imported(document("Inner", vec![end])).await;
    let found = findings(&client, vec![subtask(&Task::default(), &inner)]).await;
    let rule = "translation/missing";
    assert_eq!(
        places(&found),
        [
            (rule, "document.steps[0].translations[\"fr\"]"),
            (rule, "document.task.translations[\"fr\"]")
        ]
    );
}

/// What speaks of walkthroughs is checked all the same.
#[apply(on_one_database)]
async fn of_more_than_a_hundred_languages_a_hundred_are_checked(client: Client) {
    let all = tags(101);
    for (count, too_large) in [(100, 0), (101, 1)] {
        let mut steps = vec![
            document_step(StepType::End, "End"),
            document_step(StepType::Solution, "After"),
        ];
        for (index, tag) in all.iter().take(count).enumerate() {
            let translations = &mut steps[index / 100].translations;
            translations.insert(tag.clone(), step_translation("Text"));
        }
        let found = findings(&client, steps).await;
        let beyond = of_rule(&found, "analysis/too-large");
        assert_eq!(beyond.len(), too_large);
        for finding in beyond {
            assert_eq!(fact(finding, "limit"), json!("languages"));
            assert_eq!(fact(finding, "most"), json!(100.0));
        }
        assert_eq!(of_rule(&found, "step/unreachable").len(), 1);
        let missing = of_rule(&found, "translation/missing").into_iter();
        let missing = missing.filter(|one| one.step.is_empty() && one.path.contains("task."));
        assert_eq!(missing.count(), 100);
    }
}

#[apply(on_both_databases)]
async fn a_changed_source_makes_translations_outdated(client: Client) {
    for (locked, rule) in [
        (false, "translation/outdated"),
        (true, "translation/locked-outdated"),
    ] {
        for (field, update) in [
            ("title", step_of("").titled("Finished")),
            ("body", step_of("").with_body("Finished")),
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
            let update = update.with_guid(&made.steps[0]);
            client.update_step(update, &[field]).await.accepted();
            let found = client.validated(request).await.findings;
            let found: Vec<_> = found
                .iter()
                .map(|one| (one.rule.as_str(), &one.step))
                .collect();
            assert_eq!(found, [(rule, &made.steps[0])], "{field}");
        }
    }
}

#[apply(on_one_database)]
async fn a_translated_question_with_other_keys_is_reported(client: Client) {
    for (keys, missing, others) in [
        (&["on", "other"][..], &["off"][..], &["other"][..]),
        (&["off"], &["on"], &[]),
        (&["on", "off", "other"], &[], &["other"]),
        (&["off", "on"], &[], &[]),
    ] {
        let mut steps = clean();
        for step in &mut steps {
            let mut row = step_translation("Titel").with_body("Text");
            if !step.feedback_config.is_empty() {
                row.feedback_config = vec![question("light", keys)];
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
        if missing.is_empty() && others.is_empty() {
            assert_eq!(found, []);
            continue;
        }
        let path = "document.steps[0].translations[\"de\"].feedback_config[0].values";
        assert_eq!(places(&found), [("translation/answers", path)]);
        assert_eq!(fact(&found[0], "missing"), json!(missing));
        assert_eq!(fact(&found[0], "others"), json!(others));
    }
}

#[apply(on_one_database)]
async fn texts_and_lists_of_a_finding_are_cut(client: Client) {
    let long = "é".repeat(999);
    let same = ["a", "b"].map(|end| answer(&format!("{long}{end}"), &long));
    let others = (0..100).map(|n| answer(&format!("key {n}"), &format!("Text {n}")));
    let values = same.into_iter().chain(others).collect();
    let row = StepTranslation {
        feedback_config: vec![question("it", &["another"])],
        ..step_translation("Frage")
    };
    let asked = observation_asking(question("it", &[]).with_values(values));
    let found = findings(&client, vec![asked.translated("de", row)]).await;
    let message = &of_rule(&found, "observation/duplicate-text")[0].message;
    assert_eq!(message.chars().count(), 2_049);
    assert!(message.ends_with('…'), "{message}");
    let missing = fact(of_rule(&found, "translation/answers")[0], "missing");
    assert_eq!(missing.as_array().map(Vec::len), Some(100));
}

#[apply(on_one_database)]
async fn a_task_without_published_steps_is_reported(client: Client) {
    let mut draft = shown(StepType::End, "Draft");
    draft.published = Some(0);
    for steps in [vec![], vec![draft.clone()]] {
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
    let options = ValidationOptions {
        include_unpublished: true,
        ..ValidationOptions::default()
    };
    let request = validation_of_document(document("Guide", vec![draft]));
    let found = client.validated(with_options(request, options)).await;
    assert_eq!(found.findings, []);
}

#[apply(on_one_database)]
async fn an_information_without_content_is_reported(client: Client) {
    let mut steps = clean();
    steps.insert(1, document_step(StepType::Information, "Empty"));
    // Instructions are content, and steps of other types need none.
    let listed = object(json!({"text": "Unplug it"}));
    let listed = document_step(StepType::Information, "Listed").with_instructions(vec![listed]);
    steps.insert(2, listed);
    steps.insert(3, document_step(StepType::Solution, "Without body"));
    steps.insert(4, document_step(StepType::Idp, "Without body"));
    let found = only_finding(&client, steps, "step/no-content", 1, "").await;
    assert_eq!(found.severity(), Severity::Info);
}

#[apply(on_one_database)]
async fn an_unknown_value_of_published_is_reported(client: Client) {
    let mut steps = clean();
    let mut other = shown(StepType::Information, "Other");
    other.published = Some(2);
    steps.insert(1, other);
    let rule = "step/unknown-published";
    let found = only_finding(&client, steps, rule, 1, "published").await;
    assert_eq!(fact(&found, "published"), json!(2.0));
}

#[apply(on_both_databases)]
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

#[apply(on_both_databases)]
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

#[apply(on_one_database)]
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
