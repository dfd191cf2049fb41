//! U+0000 is refused in every text, on both databases.

use crate::kit::prelude::*;
use serde_json::json;

on_both_databases![
    every_text_of_a_task_refuses_nul,
    every_text_of_a_step_refuses_nul,
    json_keys_and_texts_refuse_nul,
    ids_masks_and_tokens_refuse_nul,
    updates_refuse_nul_too,
    etags_and_digests_refuse_nul_too,
];

async fn every_text_of_a_task_refuses_nul(client: Client) {
    let condition = Condition {
        variable: "\0".to_owned(),
        operator: "=\0".to_owned(),
        targets: vec![text("\0")],
        path: "\0".to_owned(),
    };
    let sent = Task {
        dependencies: Some(all_of(vec![comparison(condition)])),
        translations: [
            ("de".to_owned(), task_translation("\0")),
            ("e\0n".to_owned(), task_translation("x")),
        ]
        .into(),
        ..task("a\0b")
    };
    let failure = client.create_task(sent).await.refused();
    failure.is(Code::InvalidArgument, "FIELD_INVALID");
    let violations = failure.violations();
    assert!(
        violations
            .iter()
            .all(|(_, reason)| *reason == "FIELD_INVALID")
    );
    let at = "task.dependencies.nodes[0].condition";
    for field in [
        "task.name".to_owned(),
        r#"task.translations["de"].name"#.to_owned(),
        format!("{at}.variable"),
        format!("{at}.operator"),
        format!("{at}.targets[0]"),
        format!("{at}.path"),
    ] {
        assert!(
            violations.iter().any(|v| v.0 == field),
            "{field}: {failure:?}"
        );
    }
    assert_eq!(violations.len(), 7, "{failure:?}");

    let sent = task("Short").with_shorthand("components.7.a = \0");
    let failure = client.create_task(sent).await.refused();
    assert_eq!(failure.violations()[0].0, "task.dependency_shorthand");
}

async fn every_text_of_a_step_refuses_nul(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let list = vec!["\0".to_owned()];
    let row = step_translation("\0").with_body("\0");
    let sent = Step {
        body: Some("<p>\0</p>".to_owned()),
        parts: list.clone(),
        skills: list.clone(),
        tags: list,
        feedback_config: vec![question("\0", &[]).with_values(vec![answer("\0", "\0")])],
        looping: Some(Looping {
            alias: "\0".to_owned(),
            ..Looping::default()
        }),
        translations: [("de".to_owned(), row)].into(),
        ..step(&task, StepType::Observation, "\0")
    };
    let failure = client.create_step(sent).await.refused();
    failure.violates(&[
        ("step.body", "FIELD_INVALID"),
        ("step.feedback_config[0].name", "FIELD_INVALID"),
        ("step.feedback_config[0].values[0].key", "FIELD_INVALID"),
        ("step.feedback_config[0].values[0].value", "FIELD_INVALID"),
        ("step.looping.alias", "FIELD_INVALID"),
        ("step.parts[0]", "FIELD_INVALID"),
        ("step.skills[0]", "FIELD_INVALID"),
        ("step.tags[0]", "FIELD_INVALID"),
        ("step.title", "FIELD_INVALID"),
        (r#"step.translations["de"].body"#, "FIELD_INVALID"),
        (r#"step.translations["de"].title"#, "FIELD_INVALID"),
    ]);
}

async fn json_keys_and_texts_refuse_nul(client: Client) {
    let task = client.given_task(task("Guide")).await;
    for odd in [
        json!({"a\u{0}": 1}),
        json!({"a": "\u{0}"}),
        json!({"a": [{"b": ["x", "y\u{0}"]}]}),
        json!({"a": {"\u{0}": null}}),
    ] {
        let sent = information_step(&task, "odd").with_instructions(vec![object(odd.clone())]);
        let failure = client.create_step(sent).await.refused();
        failure.violates_below("step.instructions[0]", "FIELD_INVALID");
        let sent = Step {
            looping: Some(Looping {
                array: Some(value(odd)),
                ..Looping::default()
            }),
            ..information_step(&task, "odd")
        };
        let failure = client.create_step(sent).await.refused();
        failure.violates_below("step.looping.array", "FIELD_INVALID");
    }
}

async fn ids_masks_and_tokens_refuse_nul(client: Client) {
    client
        .get_task("\0")
        .await
        .refused()
        .violates(&[("guid", "FIELD_INVALID")]);
    let listed = client.list_roles(0, "\0").await;
    listed
        .refused()
        .violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
    let request = CreateTaskRequest {
        task: Some(task("Named")),
        request_id: "\0".to_owned(),
        ..CreateTaskRequest::default()
    };
    let created = client.tasks().create_task(request).await;
    created
        .refused()
        .violates(&[("request_id", "FIELD_INVALID")]);
    let task = client.given_task(task("Guide")).await;
    let updated = client.update_task(task_of(&task.guid), &["na\0me"]).await;
    let failure = updated.refused();
    assert_eq!(failure.code, Code::InvalidArgument);
    assert_eq!(failure.violations()[0].0, "update_mask.paths[0]");
}

async fn etags_and_digests_refuse_nul_too(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let step = client.given_step(information_step(&task, "Look")).await;
    let (odd, at) = ("a\0b".to_owned(), &[("etag", "FIELD_INVALID")][..]);
    let request = DeleteTaskRequest {
        guid: task.guid.clone(),
        etag: odd.clone(),
        force: true,
    };
    let deleted = client.tasks().delete_task(request).await;
    deleted.refused().violates(at);
    let request = DeleteStepRequest {
        guid: step.guid.clone(),
        etag: odd.clone(),
    };
    let deleted = client.steps().delete_step(request).await;
    deleted.refused().violates(at);
    let request = ImportTaskRequest {
        document: Some(client.exported(&task.guid).await),
        etag: odd.clone(),
        ..ImportTaskRequest::default()
    };
    let imported = client.tasks().import_task(request).await;
    imported.refused().violates(at);
    let update = step_of(&step.guid).with_etag(odd.clone());
    let failure = client.update_step(update, &[]).await.refused();
    failure.violates(&[("step.etag", "FIELD_INVALID")]);
    let translation = AutomaticTranslation {
        guid: step.guid.clone(),
        language: "de".to_owned(),
        title: Some("Schau".to_owned()),
        source_digest: odd,
        ..AutomaticTranslation::default()
    };
    let written = client.write_translations(vec![translation]).await;
    let path = "translations[0].source_digest";
    written.refused().violates(&[(path, "FIELD_INVALID")]);
}

async fn updates_refuse_nul_too(client: Client) {
    let task = client.given_task(full_task()).await;
    let update = task_of(&task.guid).named("\0");
    let failure = client.update_task(update, &[]).await.refused();
    failure.violates(&[("task.name", "FIELD_INVALID")]);
    let update = task_of(&task.guid).with_etag("\0");
    let failure = client.update_task(update, &[]).await.refused();
    failure.violates(&[("task.etag", "FIELD_INVALID")]);
    assert_eq!(client.get_task(&task.guid).await.accepted(), task);
}
