//! Violations in one part of a request do not hide those in another.

use crate::kit::prelude::*;

/// A document with violations of its task, of steps and of documents nested in it.
fn invalid_document() -> TaskDocument {
    let deeper = answer_with("deep", "", document("", document_steps(&[""])));
    let mut inner = document("Inner", document_steps(&["fine", ""]));
    inner.task = inner.task.map(|task| task.with_roles(vec![4]));
    inner.steps[0].cost = Some(1);
    inner
        .steps
        .push(observation_asking(linked_question(vec![deeper])));
    let linked = linked_question(vec![answer("a", "A"), answer_with("b", "Inner", inner)]);
    let untyped = Step {
        product_id: None,
        ..document_step(StepType::Unspecified, "Untyped")
    };
    let steps = vec![
        document_step(StepType::Information, ""),
        untyped,
        observation_asking(linked),
        // Two answers have one key.
        observation_asking(question("q", &["a", "a"])),
    ];
    TaskDocument {
        task: Some(task("Guide").with_published(-1)),
        ..document("Guide", steps)
    }
}

const OF_DOCUMENT: [(&str, &str); 10] = [
    ("document.task.published", "FIELD_OUT_OF_RANGE"),
    ("document.steps[0].title", "FIELD_REQUIRED"),
    ("document.steps[1].type", "FIELD_REQUIRED"),
    ("document.steps[1].product_id", "FIELD_REQUIRED"),
    (
        "document.steps[2].feedback_config[0].values[1].task_json.task.roles[0]",
        "FIELD_INVALID",
    ),
    (
        "document.steps[2].feedback_config[0].values[1].task_json.steps[0].cost",
        "FIELD_OUT_OF_RANGE",
    ),
    (
        "document.steps[2].feedback_config[0].values[1].task_json.steps[1].title",
        "FIELD_REQUIRED",
    ),
    (
        "document.steps[2].feedback_config[0].values[1].task_json.steps[2].feedback_config[0]\
         .values[0].value",
        "FIELD_REQUIRED",
    ),
    (
        "document.steps[2].feedback_config[0].values[1].task_json.steps[2].feedback_config[0]\
         .values[0].task_json.steps[0].title",
        "FIELD_REQUIRED",
    ),
    (
        "document.steps[3].feedback_config[0].values[1].key",
        "FIELD_INVALID",
    ),
];

/// Those of [`OF_DOCUMENT`], and others of the request.
fn with_document<'a>(others: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [others, &OF_DOCUMENT].concat()
}

#[apply(on_one_database)]
async fn a_request_id_does_not_hide_the_document(client: Client) {
    let request = ImportTaskRequest {
        document: Some(invalid_document()),
        request_id: "once".to_owned(),
        etag: "a\0b".to_owned(),
        absent_steps: 9,
        ..ImportTaskRequest::default()
    };
    let failure = client.send_import(request).await.refused();
    failure.violates(&with_document(&[
        ("request_id", "FIELD_INVALID"),
        ("etag", "FIELD_INVALID"),
        ("etag", "FIELD_INVALID"),
        ("absent_steps", "FIELD_INVALID"),
    ]));
    let failure = client.import(invalid_document()).await.refused();
    failure.violates(&OF_DOCUMENT);
}

#[apply(on_one_database)]
async fn a_malformed_id_of_a_step_does_not_hide_other_steps(client: Client) {
    let made = client.imported(document("Guide", Vec::new())).await;
    for guid in ["", made.guid.as_str()] {
        let mut sent = invalid_document();
        sent.task.as_mut().unwrap().guid = guid.to_owned();
        sent.steps
            .push(document_step(StepType::Information, "Fifth"));
        sent.steps[4].guid = "fifth".to_owned();
        let failure = client.import(sent).await.refused();
        failure.violates(&with_document(&[(
            "document.steps[4].guid",
            "FIELD_INVALID",
        )]));
    }
}

#[apply(on_one_database)]
async fn a_missing_task_does_not_hide_the_steps(client: Client) {
    let sent = TaskDocument {
        task: None,
        ..invalid_document()
    };
    let mut expected = with_document(&[("document.task", "FIELD_REQUIRED")]);
    expected.retain(|(path, _)| *path != "document.task.published");
    let failure = client.import(sent.clone()).await.refused();
    failure.violates(&expected);
    let failure = client.validate(validation_of_document(sent)).await;
    failure.refused().violates(&expected);
}

/// An update sends some fields only.
#[apply(on_one_database)]
async fn a_step_that_exists_is_not_checked_as_a_new_one(client: Client) {
    let made = client
        .imported(document("Guide", document_steps(&["One", "Two"])))
        .await;
    let known = |guid: &str| Step {
        cost: Some(1),
        ..step_of(guid)
    };
    let steps = vec![known(&made.steps[0]), known("second")];
    let failure = client
        .import(document_of(&made.guid, steps))
        .await
        .refused();
    failure.violates(&[
        ("document.steps[0].cost", "FIELD_OUT_OF_RANGE"),
        ("document.steps[1].guid", "FIELD_INVALID"),
        ("document.steps[1].cost", "FIELD_OUT_OF_RANGE"),
    ]);
    let failure = client
        .import(document_of("first", vec![known(&made.steps[0])]))
        .await;
    failure.refused().violates(&[
        ("document.task.guid", "FIELD_INVALID"),
        ("document.steps[0].cost", "FIELD_OUT_OF_RANGE"),
    ]);
}

#[apply(on_one_database)]
async fn a_page_size_does_not_hide_the_document(client: Client) {
    let options = ValidationOptions {
        min_severity: 9,
        ..ValidationOptions::default()
    };
    let request = ValidateTaskRequest {
        options: Some(options),
        page_size: -1,
        ..validation_of_document(invalid_document())
    };
    let failure = client.validate(request).await.refused();
    failure.violates(&with_document(&[
        ("options.min_severity", "FIELD_INVALID"),
        ("page_size", "FIELD_OUT_OF_RANGE"),
    ]));
    let request = PreviewTaskRequest {
        page_size: -1,
        subtask_depth: 9,
        ..preview_of_document(invalid_document())
    };
    let failure = client.preview(request).await.refused();
    failure.violates(&with_document(&[
        ("page_size", "FIELD_OUT_OF_RANGE"),
        ("subtask_depth", "FIELD_OUT_OF_RANGE"),
    ]));
}

#[apply(on_one_database)]
async fn a_malformed_id_does_not_hide_the_other_fields_of_an_update(client: Client) {
    let long = "x".repeat(401);
    let sent = task_of("no-id").named(&long).with_published(-1);
    let failure = client.update_task(sent, &[]).await.refused();
    failure.violates(&[
        ("task.guid", "FIELD_INVALID"),
        ("task.name", "FIELD_TOO_LONG"),
        ("task.published", "FIELD_OUT_OF_RANGE"),
    ]);
    let sent = Step {
        subtask_id: "no-id".to_owned(),
        subtask_pid: Some(0),
        cost: Some(1),
        ..step_of("").titled(&long)
    };
    let failure = client.update_step(sent, &[]).await.refused();
    failure.violates(&[
        ("step.guid", "FIELD_REQUIRED"),
        ("step.title", "FIELD_TOO_LONG"),
        ("step.subtask_id", "FIELD_INVALID"),
        ("step.subtask_pid", "FIELD_OUT_OF_RANGE"),
        ("step.cost", "FIELD_OUT_OF_RANGE"),
    ]);
}

#[apply(on_one_database)]
async fn a_second_question_does_not_hide_the_first(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let sent = Step {
        feedback_config: vec![question("", &["yes"]), question("Second", &["no"])],
        ..step(&guide, StepType::Observation, "Ask")
    };
    let failure = client.create_step(sent).await.refused();
    failure.violates(&[
        ("step.feedback_config", "TOO_MANY_ELEMENTS"),
        ("step.feedback_config[0].name", "FIELD_REQUIRED"),
    ]);
}

#[apply(on_one_database)]
async fn a_translation_does_not_hide_that_another_has_no_text(client: Client) {
    client.given_task(task("Guide")).await;
    let work = client.translation_work(&["de"]).await.remove(0);
    let items = vec![
        AutomaticTranslation {
            guid: "no-id".to_owned(),
            ..automatic(&work, "Text")
        },
        AutomaticTranslation {
            name: None,
            ..automatic(&work, "Text")
        },
    ];
    let failure = client.write_translations(items).await.refused();
    failure.violates(&[
        ("translations[0].guid", "FIELD_INVALID"),
        ("translations[1]", "FIELD_REQUIRED"),
    ]);
}
