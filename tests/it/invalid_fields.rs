//! Field values that every call refuses.

use crate::kit::prelude::*;

mod every_text;
mod json;
mod limits;
mod nul;

on_one_database![
    a_missing_resource_is_refused,
    a_missing_name_is_refused,
    a_missing_title_is_refused,
    a_missing_type_is_refused,
    a_missing_task_is_refused,
    a_product_is_required_and_greater_than_0,
    a_subtasks_product_is_greater_than_0,
    published_is_not_negative,
    unknown_enum_numbers_are_refused,
    every_id_is_a_hyphenated_uuid,
    every_id_is_required,
    a_question_needs_name_type_and_values,
    a_question_has_one_type,
    an_answer_needs_key_and_value,
    answers_have_keys_of_their_own,
    a_document_in_an_answer_is_refused,
];

async fn a_missing_resource_is_refused(client: Client) {
    let mut tasks = client.tasks();
    let created = tasks.create_task(CreateTaskRequest::default()).await;
    created.refused().violates(&[("task", "FIELD_REQUIRED")]);
    let updated = tasks.update_task(UpdateTaskRequest::default()).await;
    updated.refused().violates(&[("task", "FIELD_REQUIRED")]);
    let mut steps = client.steps();
    let created = steps.create_step(CreateStepRequest::default()).await;
    created.refused().violates(&[("step", "FIELD_REQUIRED")]);
    let updated = steps.update_step(UpdateStepRequest::default()).await;
    updated.refused().violates(&[("step", "FIELD_REQUIRED")]);
}

const BLANK: [&str; 5] = ["", " ", "\t\r\n", "\u{a0}", "\u{3000} \u{2003}"];

async fn a_missing_name_is_refused(client: Client) {
    for name in BLANK {
        let failure = client.create_task(task(name)).await.refused();
        failure.violates(&[("task.name", "FIELD_REQUIRED")]);
    }
    let guid = client.given_task(task("Named")).await.guid;
    let blank = task_of(&guid).named(" ");
    let failure = client.update_task(blank, &[]).await.refused();
    failure.violates(&[("task.name", "FIELD_REQUIRED")]);
}

async fn a_missing_title_is_refused(client: Client) {
    let task = client.given_task(task("Guide")).await;
    for title in BLANK {
        let failure = client
            .create_step(information_step(&task, title))
            .await
            .refused();
        failure.violates(&[("step.title", "FIELD_REQUIRED")]);
    }
}

async fn a_missing_type_is_refused(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let sent = step(&task, StepType::Unspecified, "untyped");
    let failure = client.create_step(sent).await.refused();
    failure.violates(&[("step.type", "FIELD_REQUIRED")]);
    let sent = step(&task, StepType::Unspecified, "").with_cost(-1);
    let failure = client.create_step(sent).await.refused();
    failure.violates(&[
        ("step.cost", "FIELD_OUT_OF_RANGE"),
        ("step.type", "FIELD_REQUIRED"),
    ]);
}

async fn a_missing_task_is_refused(client: Client) {
    let created = client
        .create_step(information_step(&Task::default(), "lost"))
        .await;
    let failure = created.refused();
    failure.violates(&[("step.task", "FIELD_REQUIRED")]);
}

/// Invalid ids of products, and the reasons.
const BAD_PRODUCTS: [(Option<i64>, &str); 4] = [
    (None, "FIELD_REQUIRED"),
    (Some(0), "FIELD_OUT_OF_RANGE"),
    (Some(-1), "FIELD_OUT_OF_RANGE"),
    (Some(i64::MIN), "FIELD_OUT_OF_RANGE"),
];

async fn a_product_is_required_and_greater_than_0(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    for (product_id, reason) in BAD_PRODUCTS {
        let sent = Task {
            product_id,
            ..task("Unproductive")
        };
        let failure = client.create_task(sent).await.refused();
        failure.violates(&[("task.product_id", reason)]);
        let sent = Step {
            product_id,
            ..information_step(&guide, "unproductive")
        };
        let failure = client.create_step(sent).await.refused();
        failure.violates(&[("step.product_id", reason)]);
    }
}

async fn a_subtasks_product_is_greater_than_0(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    for (subtask_pid, reason) in BAD_PRODUCTS {
        let sent = Step {
            subtask_pid,
            ..subtask(&guide, &guide)
        };
        let failure = client.create_step(sent).await.refused();
        failure.violates(&[("step.subtask_pid", reason)]);
    }
}

async fn published_is_not_negative(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    for published in [-1, i32::MIN] {
        let sent = task("Negative").with_published(published);
        let failure = client.create_task(sent).await.refused();
        failure.violates(&[("task.published", "FIELD_OUT_OF_RANGE")]);
        let sent = Step {
            published: Some(published),
            ..information_step(&guide, "negative")
        };
        let failure = client.create_step(sent).await.refused();
        failure.violates(&[("step.published", "FIELD_OUT_OF_RANGE")]);
    }
}

async fn unknown_enum_numbers_are_refused(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    for odd in [4, 6, 9, -1, i32::MAX] {
        let sent = task("Odd").with_roles(vec![0, odd]);
        let failure = client.create_task(sent).await.refused();
        failure.violates(&[("task.roles[1]", "FIELD_INVALID")]);
    }
    for odd in [7, -1, i32::MAX] {
        let sent = Step {
            r#type: odd,
            ..information_step(&guide, "odd")
        };
        let failure = client.create_step(sent).await.refused();
        failure.violates(&[("step.type", "FIELD_INVALID")]);
    }
}

/// Texts that resemble a UUID but are refused.
fn not_uuids() -> [String; 8] {
    let guid = unknown_guid();
    [
        guid.replace('-', ""),
        format!("{{{guid}}}"),
        format!("urn:uuid:{guid}"),
        format!(" {guid}"),
        format!("{guid}0"),
        guid[..35].to_owned(),
        guid.replacen('-', "_", 1),
        "nonsense".to_owned(),
    ]
}

async fn every_id_is_a_hyphenated_uuid(client: Client) {
    for id in not_uuids() {
        refuses_id(&client, &id, "FIELD_INVALID").await;
        let task = client.given_task(task("Guide")).await;
        let created = client
            .create_step_after(information_step(&task, "x"), &id)
            .await;
        created.refused().violates(&[("prevstep", "FIELD_INVALID")]);
    }
}

async fn every_id_is_required(client: Client) {
    refuses_id(&client, "", "FIELD_REQUIRED").await;
}

/// Asserts that this id is refused in every field of every call that needs an id.
async fn refuses_id(client: &Client, id: &str, reason: &str) {
    let guide = client.given_task(task("Guide")).await;
    let guid = [("guid", reason)];
    client.get_task(id).await.refused().violates(&guid);
    client.delete_task(id).await.refused().violates(&guid);
    client.get_step(id).await.refused().violates(&guid);
    client.delete_step(id).await.refused().violates(&guid);
    let list = ListStepsRequest {
        task: id.to_owned(),
        ..ListStepsRequest::default()
    };
    let listed = client.list_steps(list).await;
    listed.refused().violates(&[("task", reason)]);

    let update = task_of(id).named("x");
    let updated = client.update_task(update, &[]).await;
    updated.refused().violates(&[("task.guid", reason)]);
    let update = step_of(id).titled("x");
    let updated = client.update_step(update, &[]).await;
    updated.refused().violates(&[("step.guid", reason)]);

    let created = client
        .create_step(information_step(&task_of(id), "x"))
        .await;
    created.refused().violates(&[("step.task", reason)]);
    let other = task_of(id).with_product(PRODUCT);
    let created = client.create_step(subtask(&guide, &other)).await;
    created.refused().violates(&[("step.subtask_id", reason)]);
}

async fn refuses_question(client: &Client, config: FeedbackConfig, violations: &[(&str, &str)]) {
    let task = client.given_task(task("Guide")).await;
    for kind in [StepType::Observation, StepType::Information] {
        let sent = step(&task, kind, "asking").with_question(config.clone());
        let failure = client.create_step(sent).await.refused();
        failure.violates(violations);
    }
}

async fn a_question_needs_name_type_and_values(client: Client) {
    let violations = [
        ("step.feedback_config[0].name", "FIELD_REQUIRED"),
        ("step.feedback_config[0].type", "FIELD_REQUIRED"),
        ("step.feedback_config[0].values", "FIELD_REQUIRED"),
    ];
    refuses_question(&client, FeedbackConfig::default(), &violations).await;
}

async fn a_question_has_one_type(client: Client) {
    for odd in ["ENUM", "text", "enum "] {
        let config = FeedbackConfig {
            r#type: odd.to_owned(),
            ..question("q", &["a"])
        };
        let violations = [("step.feedback_config[0].type", "FIELD_INVALID")];
        refuses_question(&client, config, &violations).await;
    }
}

async fn an_answer_needs_key_and_value(client: Client) {
    let config = question("q", &[]).with_values(vec![answer("a", "b"), answer("", " ")]);
    let violations = [
        ("step.feedback_config[0].values[1].key", "FIELD_REQUIRED"),
        ("step.feedback_config[0].values[1].value", "FIELD_REQUIRED"),
    ];
    refuses_question(&client, config, &violations).await;
}

async fn answers_have_keys_of_their_own(client: Client) {
    let config = question("q", &["a", "A", "a"]);
    let violations = [("step.feedback_config[0].values[2].key", "FIELD_INVALID")];
    refuses_question(&client, config, &violations).await;
}

async fn a_document_in_an_answer_is_refused(client: Client) {
    let mut config = question("q", &["a"]);
    config.values[0].task_json = Some(Box::default());
    let violation = (
        "step.feedback_config[0].values[0].task_json",
        "FIELD_INVALID",
    );
    refuses_question(&client, config.clone(), &[violation]).await;

    let task = client.given_task(task("Guide")).await;
    let stored = step(&task, StepType::Observation, "asking");
    let stored = client.given_step(stored).await;
    let update = step_of(&stored.guid).with_question(config);
    let failure = client.update_step(update, &[]).await.refused();
    failure.violates(&[violation]);
}
