//! Update masks. What an update by any mask leaves is held against a model in
//! `properties::update_masks`; here is what is listed as ignored, and what the model does
//! not know.

use crate::kit::prelude::*;

mod refused;
mod translations;

on_both_databases![sending_back_what_was_read_changes_nothing,];

on_one_database![
    an_empty_mask_is_no_mask,
    fields_of_a_task_that_are_not_honored_are_listed,
    fields_of_a_step_that_are_not_honored_are_listed,
    the_merged_step_is_what_is_checked,
];

async fn an_empty_mask_is_no_mask(client: Client) {
    let before = client.given_task(full_task()).await;
    let request = UpdateTaskRequest {
        task: Some(task_of(&before.guid).named("Renamed")),
        update_mask: Some(prost_types::FieldMask { paths: Vec::new() }),
        validate_only: false,
    };
    let updated = client.tasks().update_task(request).await.accepted();
    let after = updated.into_inner().task.unwrap();
    assert_eq!(
        (after.name.as_str(), after.roles),
        ("Renamed", before.roles)
    );
}

async fn fields_of_a_task_that_are_not_honored_are_listed(client: Client) {
    let before = client.given_task(full_task()).await;
    let sent = task_of(&before.guid).named("Renamed").with_published(0);
    let foreign = Task {
        account_id: "somebody".to_owned(),
        ..sent.clone().with_product(8)
    };
    let shorthand = task_of(&before.guid).with_shorthand("components.7.power = off");
    let shorthand_listed = &["task.dependency_shorthand"];
    let rows: [(&Task, &[&str], &[&str]); 7] = [
        // Named by the mask, in order, each once.
        (
            &sent,
            &["steps", "name", "type", "product_id", "type", "name"],
            &["task.product_id", "task.steps", "task.type"],
        ),
        // Populated, whatever the mask says.
        (&foreign, &["name"], &["task.account_id", "task.product_id"]),
        (&foreign, &[], &["task.account_id", "task.product_id"]),
        // Not those that are honored, inside or outside of the mask, and not `guid` and `etag`.
        (&sent, &["name"], &[]),
        (
            &sent.clone().with_etag(before.etag.clone()),
            &["guid", "etag"],
            &[],
        ),
        (&shorthand, &[], shorthand_listed),
        (&shorthand, &["dependency_shorthand"], shorthand_listed),
    ];
    for (sent, mask, ignored) in rows {
        let mut sent = sent.clone();
        if !sent.etag.is_empty() {
            sent.etag = client.get_task(&before.guid).await.accepted().etag;
        }
        let response = client.update_task(sent, mask).await.accepted();
        assert_eq!(response.ignored_paths, ignored, "{mask:?}");
        let task = response.task.expect("the task");
        assert_eq!(task.dependencies, before.dependencies, "{mask:?}");
        assert_eq!(task.product_id, before.product_id, "{mask:?}");
    }
}

async fn fields_of_a_step_that_are_not_honored_are_listed(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let before = client.given_step(full_step(&task)).await;
    let mut config = before.feedback_config.clone();
    config[0].values[0].link = unknown_guid();
    let update = Step {
        title: "Renamed".to_owned(),
        link: unknown_guid(),
        subtask_pid: Some(3),
        feedback_config: config,
        ..step_of(&before.guid)
    };
    let mask = ["title", "r_data", "account_id", "subtask_id"];
    let response = client.update_step(update, &mask).await.accepted();
    assert_eq!(
        response.ignored_paths,
        [
            "step.account_id",
            "step.feedback_config.values.link",
            "step.link",
            "step.r_data",
            "step.subtask_id",
            "step.subtask_pid",
        ]
    );
    assert_eq!(response.step.unwrap().title, "Renamed");
}

async fn the_merged_step_is_what_is_checked(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let observation = client.given_step(full_step(&task)).await;
    let unset = step_of(&observation.guid);
    for (sent, field, reason) in [
        (unset.clone().with_cost(2), "cost", "FIELD_OUT_OF_RANGE"),
        (unset, "feedback_config", "FIELD_REQUIRED"),
    ] {
        let failure = client.update_step(sent, &[field]).await.refused();
        failure.violates(&[(&format!("step.{field}"), reason)]);
    }
}

async fn sending_back_what_was_read_changes_nothing(client: Client) {
    let task = client.given_task(full_task()).await;
    let step = client.given_step(full_step(&task)).await;
    let task = client.get_task(&task.guid).await.accepted();
    for mask in [&[][..], &["*"]] {
        assert_eq!(client.updated_task(task.clone(), mask).await, task);
        assert_eq!(client.updated_step(step.clone(), mask).await, step);
    }
}
