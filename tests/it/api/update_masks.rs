//! Update masks. What an update by any mask leaves is held against a model in
//! `properties::update_masks`; here is what is listed as ignored, and what the model does not
//! know.

use crate::kit::prelude::*;

mod refused;
mod translations;

#[apply(on_one_database)]
async fn an_empty_mask_is_no_mask(client: Client) {
    let before = client.given_task(full_task()).await;
    let request = UpdateTaskRequest {
        task: Some(task_of(&before.guid).named("Renamed")),
        update_mask: Some(prost_types::FieldMask { paths: Vec::new() }),
        validate_only: false,
    };
    let after = client.call(request).await.accepted();
    let after = after.task.unwrap();
    assert_eq!(
        (after.name.as_str(), after.roles),
        ("Renamed", before.roles)
    );
}

#[apply(on_one_database)]
async fn a_mask_without_an_honored_field_changes_nothing(client: Client) {
    let task = client.given_task(full_task()).await;
    let step = client.given_step(full_step(&task)).await;
    let task = client.get_task(&task.guid).await.accepted();
    for field in ["guid", "etag", "created_ts"] {
        let sent = task_of(&task.guid).named("Never").with_published(1);
        let sent = sent.translated("fr", task_translation("Jamais"));
        assert_eq!(client.updated_task(sent, &[field]).await, task);
        let sent = step_of(&step.guid).titled("Never").with_published(1);
        let sent = sent.translated("fr", step_translation("Jamais"));
        assert_eq!(client.updated_step(sent, &[field]).await, step);
    }
}

#[apply(on_one_database)]
async fn fields_of_a_task_that_are_not_honored_are_listed(client: Client) {
    let before = client.given_task(full_task()).await;
    let sent = task_of(&before.guid).named("Renamed").with_published(0);
    let foreign = sent
        .clone()
        .with_product(8)
        .with(|it| it.account_id = "somebody".to_owned());
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

#[apply(on_one_database)]
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
        dependency_shorthand: Some("components.7.valve = shut".to_owned()),
        dirty_record: true,
        created_ts: before.created_ts,
        modified_ts: before.modified_ts,
        ..step_of(&before.guid)
    };
    let mask = ["title", "r_data", "account_id", "subtask_id"];
    let response = client.update_step(update, &mask).await.accepted();
    assert_eq!(
        response.ignored_paths,
        [
            "step.account_id",
            "step.dependency_shorthand",
            "step.feedback_config.values.link",
            "step.link",
            "step.r_data",
            "step.subtask_id",
            "step.subtask_pid",
        ]
    );
    let after = response.step.unwrap();
    assert_eq!(
        (after.title.as_str(), after.dependencies),
        ("Renamed", before.dependencies)
    );
}

#[apply(on_both_databases)]
async fn what_is_sent_as_it_is_stored_is_not_listed(client: Client) {
    let full = client.given_task(full_task()).await;
    let step = client.given_step(full_step(&full)).await;
    let steps = vec![
        linked_observation(&[("a", "A"), ("b", "B")]),
        subtask(&Task::default(), &full),
    ];
    let guide = client.given_guide(steps).await;
    for guid in guide.steps.iter().chain([&step.guid]) {
        let read = client.get_step(guid).await.accepted();
        let changed = read.clone().with_body("<p>Changed</p>");
        for sent in [read.clone(), changed] {
            let updated = client.update_step(sent, &[]).await.accepted();
            assert!(updated.ignored_paths.is_empty(), "{updated:?}");
        }
        let read = client.get_step(guid).await.accepted();
        let other = Some("components.7.other = off".to_owned());
        let sent = read.clone().with(|it| it.dependency_shorthand = other);
        let updated = client.update_step(sent, &[]).await.accepted();
        assert_eq!(updated.ignored_paths, ["step.dependency_shorthand"]);
        assert_eq!(updated.step, Some(read));
    }
    let read = client.get_task(&guide.guid).await.accepted();
    let renamed = read.clone().named("Renamed");
    let updated = client.update_task(renamed, &[]).await.accepted();
    assert!(updated.ignored_paths.is_empty(), "{updated:?}");
    let read = client.get_task(&guide.guid).await.accepted();
    let named = client.update_task(read, &["name", "steps"]);
    assert_eq!(named.await.accepted().ignored_paths, ["task.steps"]);
}

#[apply(on_both_databases)]
async fn sending_back_what_was_read_changes_nothing(client: Client) {
    let full = client.given_task(full_task()).await;
    client.given_step(full_step(&full)).await;
    let steps = vec![
        linked_observation(&[("a", "A"), ("b", "B")]),
        document_step(StepType::Solution, "Try it").with_cost(5),
        document_step(StepType::End, "Done"),
        subtask(&Task::default(), &full),
    ];
    client.given_guide(steps).await;
    for (task, steps) in client.tasks_with_steps().await {
        for mask in [&[][..], &["*"]] {
            assert_eq!(client.updated_task(task.clone(), mask).await, task);
            for step in &steps {
                assert_eq!(client.updated_step(step.clone(), mask).await, *step);
            }
        }
    }
}
