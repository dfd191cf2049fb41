//! Errors: their codes, reasons and details, their order and their limits.

use crate::kit::prelude::*;

mod every_violation;

#[apply(on_one_database)]
async fn every_violation_is_reported(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let sent = Step {
        title: " ".to_owned(),
        product_id: Some(0),
        cost: Some(-1),
        published: Some(-1),
        tags: vec!["fine".to_owned(), "x".repeat(1_001), "\0".to_owned()],
        dependencies: Some(all_of(vec![when("", "~", "1")])),
        feedback_config: vec![FeedbackConfig {
            r#type: "free".to_owned(),
            values: vec![answer("a", "1"), answer("a", ""), answer("", "3")],
            ..question("", &[])
        }],
        translations: [("de".to_owned(), step_translation(&"x".repeat(401)))].into(),
        ..step(&task, StepType::Observation, "")
    };
    let request = CreateStepRequest {
        step: Some(sent),
        prevstep: "first".to_owned(),
        request_id: "once".to_owned(),
        validate_only: false,
    };
    let failure = client.send_create_step(request).await.refused();
    failure.violates(&[
        ("prevstep", "FIELD_INVALID"),
        ("request_id", "FIELD_INVALID"),
        ("step.cost", "FIELD_OUT_OF_RANGE"),
        (
            "step.dependencies.nodes[0].condition.operator",
            "FIELD_INVALID",
        ),
        (
            "step.dependencies.nodes[0].condition.variable",
            "FIELD_REQUIRED",
        ),
        ("step.feedback_config[0].name", "FIELD_REQUIRED"),
        ("step.feedback_config[0].type", "FIELD_INVALID"),
        ("step.feedback_config[0].values[1].key", "FIELD_INVALID"),
        ("step.feedback_config[0].values[1].value", "FIELD_REQUIRED"),
        ("step.feedback_config[0].values[2].key", "FIELD_REQUIRED"),
        ("step.product_id", "FIELD_OUT_OF_RANGE"),
        ("step.published", "FIELD_OUT_OF_RANGE"),
        ("step.tags[1]", "FIELD_TOO_LONG"),
        ("step.tags[2]", "FIELD_INVALID"),
        ("step.title", "FIELD_REQUIRED"),
        (r#"step.translations["de"].title"#, "FIELD_TOO_LONG"),
    ]);
}

/// All texts of the error.
fn words(failure: &Failure) -> String {
    format!("{} {:?}", failure.message, failure.details)
}

#[apply(on_one_database)]
async fn at_most_fifty_violations_are_reported_and_the_cut_is_said(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let with_invalid_tags =
        |count: usize| information_step(&task, "tagged").with_tags(vec!["\0".to_owned(); count]);
    let failure = client.create_step(with_invalid_tags(3)).await.refused();
    assert_eq!(failure.violations().len(), 3);
    assert_eq!(failure.metadata().get("violations_shown"), None);

    let failure = client.create_step(with_invalid_tags(321)).await.refused();
    let violations = failure.violations();
    // Short paths and descriptions may still reach 4 KiB before they are fifty.
    assert!((20..=50).contains(&violations.len()), "{violations:?}");
    for (index, (field, _)) in violations.iter().enumerate() {
        assert_eq!(*field, format!("step.tags[{index}]"));
    }
    let metadata = failure.metadata();
    assert_eq!(metadata["violations_shown"], violations.len().to_string());
    assert_eq!(metadata["violations_total"], "321");
}

#[apply(on_one_database)]
async fn long_paths_do_not_overflow_the_details(client: Client) {
    let rows = (0..100).map(|n| (format!("{n}{}", "🔧".repeat(500)), task_translation("")));
    let sent = task("Overflowing").with_translations(rows.collect());
    let request = create_task_request(sent);
    let status = client.send_create_task(request).await.unwrap_err();
    assert!(status.details().len() < 6_000, "{}", status.details().len());
    assert!(status.message().len() < 2_000, "{}", status.message());
    let failure = Failure::from(status);
    failure.is(Code::InvalidArgument, "FIELD_INVALID");
    assert!(!failure.violations().is_empty());
}

/// Asserts NOT_FOUND of what this field names.
fn names_field(failure: &Failure, field: &str) {
    assert_eq!(failure.code, Code::NotFound, "{failure:?}");
    assert_eq!(failure.metadata()["field"], field, "{failure:?}");
    // The only id of a request needs no name.
    if field.contains('.') {
        assert!(failure.message.contains(field), "{failure:?}");
    }
}

#[apply(on_both_databases)]
async fn the_field_that_names_a_missing_resource_is_named(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let guid = unknown_guid();
    let lost = || task("Nowhere").with_guid(guid.clone());
    names_field(&client.get_task(&guid).await.refused(), "guid");
    names_field(&client.get_step(&guid).await.refused(), "guid");
    names_field(&client.delete_step(&guid).await.refused(), "guid");
    names_field(&client.delete_task(&guid).await.refused(), "guid");
    names_field(&client.export(&guid).await.refused(), "guid");
    names_field(&client.delete_role(1).await.refused(), "id");
    let request = ListStepsRequest {
        task: guid.clone(),
        ..ListStepsRequest::default()
    };
    let listed = client.list_steps(request).await.refused();
    names_field(&listed, "task");
    let updated = client.update_task(lost(), &["name"]).await.refused();
    names_field(&updated, "task.guid");
    let updated = client.update_step(step_of(&guid).titled("lost"), &[]).await;
    names_field(&updated.refused(), "step.guid");
    for (new, prevstep) in [
        (information_step(&lost(), "lost"), ""),
        (information_step(&lost(), "lost"), &guid),
        (subtask(&lost(), &guide), ""),
    ] {
        let created = client.create_step_after(new, prevstep).await;
        let refused = created.refused();
        refused.is_task_not_found(&guid);
        names_field(&refused, "step.task");
    }
    let created = client.create_step(subtask(&guide, &lost())).await;
    names_field(&created.refused(), "step.subtask_id");
    let step = client.given_step(subtask(&guide, &guide)).await;
    let retargeted = Step {
        subtask_id: guid.clone(),
        ..step
    };
    let updated = client.update_step(retargeted, &["subtask_id"]).await;
    names_field(&updated.refused(), "step.subtask_id");
}

#[apply(on_both_databases)]
async fn a_missing_reference_of_a_document_is_named_by_its_path(client: Client) {
    let guid = unknown_guid();
    let lost = task("Nowhere").with_guid(guid.clone());
    let refused = client.import(document_of(&guid, vec![])).await.refused();
    names_field(&refused, "document.task.guid");
    let steps = vec![
        document_step(StepType::End, "end"),
        subtask(&Task::default(), &lost),
    ];
    let refused = client.import(document("Guide", steps)).await.refused();
    names_field(&refused, "document.steps[1].subtask_id");
    let guide = client.given_task(task("Guide")).await;
    let stranger = information_step(&guide, "stranger").with_guid(guid);
    let refused = client
        .import(document_of(&guide.guid, vec![stranger]))
        .await;
    names_field(&refused.refused(), "document.steps[0].guid");
}

#[apply(on_one_database)]
async fn fields_are_checked_before_references(client: Client) {
    let lost = task("Nowhere").with_guid(unknown_guid());
    let failure = client
        .create_step(information_step(&lost, ""))
        .await
        .refused();
    failure.violates(&[("step.title", "FIELD_REQUIRED")]);
}

#[apply(on_both_databases)]
async fn references_are_checked_before_preconditions(client: Client) {
    let request = DeleteTaskRequest {
        guid: unknown_guid(),
        etag: "old".to_owned(),
        force: false,
        purge_history: false,
    };
    let guid = request.guid.clone();
    let failure = client.send_delete_task(request).await.refused();
    failure.is_task_not_found(&guid);
}

#[apply(on_one_database)]
async fn no_error_repeats_long_input(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let secret = "s3cret".repeat(1_000);
    let sent = Step {
        tags: vec![secret.clone()],
        dependency_shorthand: Some(secret.clone()),
        ..information_step(&task, &secret)
    };
    let failure = client.create_step(sent).await.refused();
    assert!(!words(&failure).contains(&secret), "{failure:?}");
}

#[apply(on_one_database)]
async fn unknown_calls_are_unimplemented(client: Client) {
    let unknown = client.send_bytes("TaskService/MoveTask", bytes::Bytes::new());
    let status = unknown.await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
}

#[apply(on_one_database)]
async fn a_missing_choice_names_what_may_be_chosen(client: Client) {
    let request = ValidateTaskRequest::default();
    let failure = client.validate(request).await.refused();
    let description = failure.description_of("source");
    assert_eq!(description, "needs `guid` or `document`");
    let empty = all_of(vec![DependencyNode::default()]);
    let sent = task("Guide").with_dependencies(empty);
    let failure = client.create_task(sent).await.refused();
    let description = failure.description_of("task.dependencies.nodes[0]");
    assert_eq!(description, "needs `condition` or `group`");
}

#[apply(on_one_database)]
async fn an_unknown_name_is_answered_with_the_allowed_ones(client: Client) {
    let sent = Task {
        roles: vec![4],
        ..task("Guide")
    };
    let failure = client.create_task(sent).await.refused();
    let description = failure.description_of("task.roles[0]");
    for level in ["ACCESS_LEVEL_USER (0)", "ACCESS_LEVEL_USER3 (8)"] {
        assert!(description.contains(level), "{level}: {description}");
    }
    let rules = ["step/unreachabel", "nothing/alike"].map(|rule| Suppression {
        rule: rule.to_owned(),
        ..Suppression::default()
    });
    let options = ValidationOptions {
        suppress: rules.to_vec(),
        ..ValidationOptions::default()
    };
    let request = ValidateTaskRequest {
        options: Some(options),
        ..validation_of_document(document("Guide", Vec::new()))
    };
    let failure = client.validate(request).await.refused();
    for (path, expected) in [
        (
            "options.suppress[0].rule",
            "is not the id of a rule; perhaps `step/unreachable` is meant",
        ),
        (
            "options.suppress[1].rule",
            "is not the id of a rule: see ListRules",
        ),
    ] {
        assert_eq!(failure.description_of(path), expected);
    }
}
