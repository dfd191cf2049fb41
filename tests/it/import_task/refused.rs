//! Documents that ImportTask refuses, of which nothing is stored.

use crate::kit::prelude::*;

async fn nothing_is_made(client: &Client, failure: Failure) -> Failure {
    assert_eq!(client.all_tasks().await, [], "{failure:?}");
    failure
}

async fn refused(client: &Client, document: TaskDocument) -> Failure {
    let failure = client.import(document).await.refused();
    nothing_is_made(client, failure).await
}

#[apply(on_one_database)]
async fn a_new_steps_product_and_type_are_required(client: Client) {
    let made = client.imported(document("Guide", Vec::new())).await;
    let untyped = Step {
        product_id: None,
        ..document_step(StepType::Unspecified, "untyped")
    };
    let failure = client.import(document_of(&made.guid, vec![untyped])).await;
    failure.refused().violates(&[
        ("document.steps[0].product_id", "FIELD_REQUIRED"),
        ("document.steps[0].type", "FIELD_REQUIRED"),
    ]);
}

#[apply(on_one_database)]
async fn ids_in_a_document_are_uuids(client: Client) {
    let inner = TaskDocument {
        task: Some(task_of("inner")),
        steps: Vec::new(),
    };
    let steps = vec![
        document_step(StepType::Information, "a").with_guid("first"),
        document_step(StepType::Subtask, "").with_subtask_id("other"),
        observation_asking(linked_question(vec![answer_with("a", "A", inner)])),
    ];
    let mut sent = document("Guide", steps);
    sent.steps[1].subtask_pid = Some(PRODUCT);
    if let Some(task) = &mut sent.task {
        task.guid = "guide".to_owned();
    }
    let failure = refused(&client, sent).await;
    for field in [
        "document.task.guid",
        "document.steps[0].guid",
        "document.steps[2].feedback_config[0].values[0].task_json.task.guid",
    ] {
        let found = failure.violations();
        assert!(found.contains(&(field, "FIELD_INVALID")), "{failure:?}");
    }
}

#[apply(on_one_database)]
async fn more_violations_than_fit_are_counted(client: Client) {
    let failure = refused(&client, document("Guide", document_steps(&[""; 60]))).await;
    failure.is(Code::InvalidArgument, "FIELD_REQUIRED");
    assert!(failure.violations().len() <= 50);
    let total = failure.metadata().remove("violations_total");
    assert_eq!(total.as_deref(), Some("60"));
}

#[apply(on_one_database)]
async fn a_linked_text_has_200_code_points_at_most(client: Client) {
    for character in ["x", "🔧"] {
        let text = character.repeat(201);
        let steps = vec![linked_observation(&[("a", "A"), ("b", &text)])];
        let failure = refused(&client, document("Guide", steps)).await;
        failure.violates(&[(
            "document.steps[0].feedback_config[0].values[1].value",
            "FIELD_TOO_LONG",
        )]);
    }
    // The name in a document of the value is ignored, so it is not refused.
    let inner = document("Short", document_steps(&["inside"]));
    let linked = linked_question(vec![answer_with("a", &"x".repeat(201), inner)]);
    let failure = refused(&client, document("Guide", vec![observation_asking(linked)])).await;
    failure.violates(&[(
        "document.steps[0].feedback_config[0].values[0].value",
        "FIELD_TOO_LONG",
    )]);
    let text = "🔧".repeat(200);
    let made = client
        .imported(document("Guide", vec![linked_observation(&[("a", &text)])]))
        .await;
    let wiring = client.get_step(&made.steps[1]).await.accepted();
    assert_eq!(wiring.title, text);
}

#[apply(on_one_database)]
async fn linked_is_for_observations_only(client: Client) {
    for kind in [StepType::Information, StepType::Solution] {
        let step = Step {
            feedback_config: linked_observation(&[("a", "A")]).feedback_config,
            ..document_step(kind, "odd")
        };
        let failure = refused(&client, document("Guide", vec![step])).await;
        failure.violates(&[(
            "document.steps[0].feedback_config[0].linked",
            "FIELD_INVALID",
        )]);
    }
}

#[apply(on_one_database)]
async fn a_document_in_a_value_that_is_not_linked_is_listed(client: Client) {
    // It is ignored, although it is invalid.
    let values = vec![answer_with("a", "A", document("", document_steps(&[""])))];
    let question = FeedbackConfig {
        linked: None,
        ..linked_question(values)
    };
    for kind in [StepType::Observation, StepType::Information] {
        let step = document_step(kind, "a").with_question(question.clone());
        let response = client
            .import(document("Guide", vec![step]))
            .await
            .accepted();
        let listed = "document.steps.feedback_config.values.task_json";
        assert_eq!(response.ignored_paths, [listed]);
        assert_eq!(response.task.unwrap().steps.len(), 1);
    }
}

#[apply(on_one_database)]
async fn a_document_in_a_translation_is_refused(client: Client) {
    let question = linked_question(vec![answer_with("a", "A", document("A", Vec::new()))]);
    let translated = StepTranslation {
        feedback_config: vec![question],
        ..StepTranslation::default()
    };
    let step = linked_observation(&[("a", "A")]).translated("de", translated);
    let failure = refused(&client, document("Guide", vec![step])).await;
    failure.violates(&[(
        r#"document.steps[0].translations["de"].feedback_config[0].values[0].task_json"#,
        "FIELD_INVALID",
    )]);
}

#[apply(on_one_database)]
async fn conflicting_shorthand_is_refused(client: Client) {
    let dependencies = Some(all_of(vec![when("power", "=", "off")]));
    let shorthand = |text: &str| Some(text.to_owned());
    let sent = TaskDocument {
        task: Some(Task {
            dependencies: dependencies.clone(),
            dependency_shorthand: shorthand("components.7.power = on"),
            ..task("Guide")
        }),
        steps: vec![
            Step {
                dependencies,
                dependency_shorthand: shorthand("components.7.power = on"),
                ..document_step(StepType::Information, "a")
            },
            Step {
                dependency_shorthand: shorthand("nonsense"),
                ..document_step(StepType::Information, "b")
            },
        ],
    };
    let failure = refused(&client, sent).await;
    failure.violates(&[
        ("document.task.dependency_shorthand", "SHORTHAND_CONFLICT"),
        (
            "document.steps[0].dependency_shorthand",
            "SHORTHAND_CONFLICT",
        ),
        (
            "document.steps[1].dependency_shorthand",
            "SHORTHAND_INVALID",
        ),
    ]);
}

#[apply(on_both_databases)]
async fn the_product_of_a_subtask_must_be_the_tasks(client: Client) {
    let other = client.other_account();
    let outside = other.given_task(task("Outside")).await;
    let step = subtask(&Task::default(), &outside).with_subtask_pid(PRODUCT + 1);
    let failure = other.import(document("Guide", vec![step])).await.refused();
    failure.violates(&[("document.steps[0].subtask_pid", "FIELD_INVALID")]);
    let unsaid = Step {
        subtask_pid: None,
        ..subtask(&Task::default(), &outside)
    };
    let failure = other
        .import(document("Guide", vec![unsaid]))
        .await
        .refused();
    failure.violates(&[("document.steps[0].subtask_pid", "FIELD_REQUIRED")]);
}

#[apply(on_both_databases)]
async fn a_wrong_reference_is_reported_with_invalid_fields(client: Client) {
    let other = client.other_account();
    let outside = other.given_task(task("Outside")).await;
    let steps = vec![
        document_step(StepType::Information, ""),
        subtask(&Task::default(), &outside).with_subtask_pid(PRODUCT + 1),
    ];
    let expected = [
        ("document.steps[0].title", "FIELD_REQUIRED"),
        ("document.steps[1].subtask_pid", "FIELD_INVALID"),
    ];
    let failure = other.import(document("Guide", steps.clone())).await;
    failure.refused().violates(&expected);

    // The task itself may be invalid, too, and the guide may be stored.
    let failure = other.import(document("", steps.clone())).await.refused();
    let name = ("document.task.name", "FIELD_REQUIRED");
    failure.violates(&[&[name][..], &expected].concat());
    let made = other.imported(document("Guide", Vec::new())).await;
    let failure = other.import(document_of(&made.guid, steps)).await;
    failure.refused().violates(&expected);
}

#[apply(on_one_database)]
async fn invalid_fields_are_reported_before_missing_references(client: Client) {
    let absent = task("Absent").with_guid(unknown_guid());
    let steps = vec![
        subtask(&Task::default(), &absent),
        document_step(StepType::Information, ""),
    ];
    let failure = refused(&client, document("Guide", steps)).await;
    failure.violates(&[("document.steps[1].title", "FIELD_REQUIRED")]);
}

#[apply(on_one_database)]
async fn unknown_choices_are_refused_beside_the_fields_of_the_document(client: Client) {
    let steps = vec![document_step(StepType::Solution, "").with_cost(1)];
    let request = ImportTaskRequest {
        document: Some(document("", steps)),
        absent_steps: 99,
        absent_fields: 99,
        ..ImportTaskRequest::default()
    };
    let failure = client.send_import(request).await.refused();
    let failure = nothing_is_made(&client, failure).await;
    failure.violates(&[
        ("absent_fields", "FIELD_INVALID"),
        ("absent_steps", "FIELD_INVALID"),
        ("document.steps[0].cost", "FIELD_OUT_OF_RANGE"),
        ("document.steps[0].title", "FIELD_REQUIRED"),
        ("document.task.name", "FIELD_REQUIRED"),
    ]);
    // A number that is no type or level of a document hides nothing either.
    let step = Step {
        r#type: 99,
        ..document_step(StepType::Information, "").with_published(-1)
    };
    let sent = document_with(task("").with_roles(vec![4]), vec![step]);
    let failure = refused(&client, sent).await;
    failure.violates(&[
        ("document.steps[0].published", "FIELD_OUT_OF_RANGE"),
        ("document.steps[0].type", "FIELD_INVALID"),
        ("document.task.name", "FIELD_REQUIRED"),
        ("document.task.roles[0]", "FIELD_INVALID"),
    ]);
}
