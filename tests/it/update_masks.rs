//! Update masks. What an update by any mask leaves is held against a model in
//! `properties::update_masks`; here are fixed masks through the same model, what is listed
//! as ignored, and what the model does not know.

use crate::{
    kit::prelude::*,
    properties::update_masks::{Update, updates_equal_edits},
};

mod refused;
mod translations;

fn updates<T: Clone>(rows: &[(T, &[&str])]) -> Vec<Update<T>> {
    let update = |(sent, mask): &(T, &[&str])| Update {
        sent: sent.clone(),
        mask: mask.iter().map(|path| (*path).to_owned()).collect(),
        imported: false,
    };
    rows.iter().map(update).collect()
}

#[apply(on_both_databases)]
async fn each_kind_of_mask_of_a_task_edits_it_as_the_model(client: Client) {
    let unset = Task::default;
    let renamed = unset().named("Renamed").with_published(5);
    let other = unset()
        .with_roles(vec![AccessLevel::Tech.into()])
        .with_dependencies(any_of(vec![when("x", "=", "1")]));
    let de = |row: TaskTranslation| unset().translated("de", row);
    let neu = || task_translation("Neu");
    let both = unset().with_translations(
        ["de", "zh-Hant"]
            .map(|language| (language.to_owned(), neu()))
            .into(),
    );
    let rows: &[(Task, &[&str])] = &[
        (renamed.clone(), &[]),
        (unset(), &[]),
        (renamed.clone(), &["name"]),
        (other.clone(), &[]),
        (both.clone(), &[]),
        (other.clone(), &["published"]),
        (unset(), &["dependencies"]),
        (unset(), &["name"]),
        (unset(), &["roles"]),
        (both, &["translations.de"]),
        (unset(), &["translations.de"]),
        (unset(), &["translations.de"]),
        (de(neu().with_lock(false)), &["translations.de.name"]),
        (
            de(task_translation("unread").with_lock(false)),
            &["translations.de.locked"],
        ),
        (unset(), &["translations.de.locked"]),
        (
            de(TaskTranslation::default().with_lock(false)),
            &["translations.de.name"],
        ),
        (de(neu()), &["translations"]),
        (unset(), &["translations"]),
        (full_task(), &["*"]),
        (other.clone().named("Bare"), &["*"]),
        (other, &["*"]),
        (renamed, &["*"]),
    ];
    updates_equal_edits(&client, updates(rows)).await;
}

#[apply(on_both_databases)]
async fn each_kind_of_mask_of_a_step_edits_it_as_the_model(client: Client) {
    let unset = Step::default;
    let full = Step {
        task: String::new(),
        r#type: 0,
        product_id: None,
        cost: Some(2),
        ..full_step(&Task::default())
    };
    let renamed = unset().titled("Renamed").with_tags(vec!["new".to_owned()]);
    let row = step_translation("Neu").with_body("<p>neu</p>");
    let german = unset().translated("de", row);
    let rows: &[(Step, &[&str])] = &[
        (full.clone(), &["*"]),
        (renamed.clone(), &[]),
        (renamed.with_published(9).with_body("new"), &["body"]),
        (german.clone(), &["translations.de.title"]),
        (german.clone(), &["translations.de.body"]),
        (german.clone(), &["translations.de.instructions"]),
        (german, &["translations.de"]),
        (unset(), &["title"]),
        (
            unset(),
            &[
                "body",
                "cost",
                "dependencies",
                "feedback_config",
                "instructions",
                "looping",
                "parts",
                "published",
                "skills",
                "tags",
                "translations",
            ],
        ),
        (full, &[]),
        (unset().titled("Bare"), &["*"]),
        (unset().with_body("No title"), &["*"]),
    ];
    updates_equal_edits(&client, updates(rows)).await;
}

#[apply(on_one_database)]
async fn an_empty_mask_is_no_mask(client: Client) {
    let before = client.given_task(full_task()).await;
    let request = UpdateTaskRequest {
        task: Some(task_of(&before.guid).named("Renamed")),
        update_mask: Some(prost_types::FieldMask { paths: Vec::new() }),
        validate_only: false,
    };
    let after = client.send_update_task(request).await.accepted();
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

#[apply(on_one_database)]
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

#[apply(on_both_databases)]
async fn what_is_sent_as_it_is_stored_is_not_listed(client: Client) {
    let full = client.given_task(full_task()).await;
    let step = client.given_step(full_step(&full)).await;
    let steps = vec![
        linked_observation(&[("a", "A"), ("b", "B")]),
        subtask(&Task::default(), &full),
    ];
    let guide = client.imported(document("Guide", steps)).await;
    for guid in guide.steps.iter().chain([&step.guid]) {
        let read = client.get_step(guid).await.accepted();
        let changed = read.clone().with_body("<p>Changed</p>");
        for sent in [read.clone(), changed] {
            let updated = client.update_step(sent, &[]).await.accepted();
            assert!(updated.ignored_paths.is_empty(), "{updated:?}");
        }
        let read = client.get_step(guid).await.accepted();
        let other = Some("components.7.other = off".to_owned());
        let sent = Step {
            dependency_shorthand: other,
            ..read.clone()
        };
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
    client.imported(document("Guide", steps)).await;
    for (task, steps) in client.tasks_with_steps().await {
        for mask in [&[][..], &["*"]] {
            assert_eq!(client.updated_task(task.clone(), mask).await, task);
            for step in &steps {
                assert_eq!(client.updated_step(step.clone(), mask).await, *step);
            }
        }
    }
}
