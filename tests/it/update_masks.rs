//! Update masks of tasks.

use crate::kit::prelude::*;

mod refused;
mod steps;
mod translations;

on_both_databases![
    no_mask_updates_the_populated_fields,
    an_empty_mask_is_no_mask,
    no_mask_replaces_lists_and_messages_whole,
    no_mask_merges_translations_by_language,
    a_mask_leaves_everything_else_alone,
    a_masked_published_that_is_unset_returns_to_1,
    masked_dependencies_that_are_unset_return_to_always_visible,
    a_masked_name_that_is_unset_is_refused,
    masked_roles_with_none_are_refused,
    masked_translations_are_replaced_whole,
    a_star_replaces_every_honored_field,
    a_star_returns_absent_fields_to_their_defaults,
    a_star_without_a_required_field_is_refused,
    a_masked_field_that_is_not_honored_is_listed,
    populated_fields_that_are_not_honored_are_listed_whatever_the_mask_says,
    honored_fields_outside_the_mask_are_not_listed,
    guid_and_etag_of_an_update_are_not_listed,
    a_shorthand_on_an_update_is_ignored_and_listed,
    sending_back_what_was_read_changes_nothing,
    a_path_named_twice_counts_once,
    an_update_that_changes_nothing_keeps_etag_and_modified_ts,
];

async fn stored(client: &Client) -> Task {
    client.given_task(full_task()).await
}

/// The stored task with the version that the update gave it.
fn with_version_of(task: Task, updated: &Task) -> Task {
    Task {
        etag: updated.etag.clone(),
        modified_ts: updated.modified_ts,
        ..task
    }
}

async fn no_mask_updates_the_populated_fields(client: Client) {
    let before = stored(&client).await;
    let update = task_of(&before.guid).named("Renamed").with_published(5);
    let after = client.updated_task(update, &[]).await;
    let expected = Task {
        name: "Renamed".to_owned(),
        published: Some(5),
        ..with_version_of(before, &after)
    };
    assert_eq!(after, expected);
    assert_eq!(client.get_task(&after.guid).await.accepted(), after);
}

async fn an_empty_mask_is_no_mask(client: Client) {
    let before = stored(&client).await;
    let update = task_of(&before.guid).named("Renamed");
    let request = UpdateTaskRequest {
        task: Some(update),
        update_mask: Some(prost_types::FieldMask { paths: Vec::new() }),
        validate_only: false,
    };
    let updated = client.tasks().update_task(request).await.accepted();
    let after = updated.into_inner().task.unwrap();
    assert_eq!(after.name, "Renamed");
    assert_eq!(after.roles, before.roles);
}

async fn no_mask_replaces_lists_and_messages_whole(client: Client) {
    let before = stored(&client).await;
    let dependencies = Some(any_of(vec![when("x", "=", "1")]));
    let update = Task {
        roles: vec![AccessLevel::Tech.into()],
        dependencies: dependencies.clone(),
        ..task_of(&before.guid)
    };
    let after = client.updated_task(update, &[]).await;
    assert_eq!(after.roles, [i32::from(AccessLevel::Tech)]);
    assert_eq!(after.dependencies, dependencies);
}

async fn no_mask_merges_translations_by_language(client: Client) {
    let before = stored(&client).await;
    let update = Task {
        translations: [
            ("de".to_owned(), task_translation("Neu")),
            ("fr".to_owned(), task_translation("Nouveau")),
        ]
        .into(),
        ..task_of(&before.guid)
    };
    let after = client.updated_task(update, &[]).await;
    let names: Vec<(&str, Option<&str>)> = after
        .translations
        .iter()
        .map(|(language, row)| (language.as_str(), row.name.as_deref()))
        .collect();
    assert_eq!(
        names,
        [
            ("de", Some("Neu")),
            ("fr", Some("Nouveau")),
            ("zh-Hant", before.translations["zh-Hant"].name.as_deref()),
        ]
    );
}

async fn a_mask_leaves_everything_else_alone(client: Client) {
    let before = stored(&client).await;
    let update = Task {
        name: "Renamed".to_owned(),
        published: Some(5),
        roles: vec![AccessLevel::Tech.into()],
        ..task_of(&before.guid)
    };
    let after = client.updated_task(update, &["published"]).await;
    let expected = with_version_of(before, &after).with_published(5);
    assert_eq!(after, expected);
}

async fn a_masked_published_that_is_unset_returns_to_1(client: Client) {
    let before = stored(&client).await;
    let after = client
        .updated_task(task_of(&before.guid), &["published"])
        .await;
    assert_eq!(after.published, Some(1));
}

async fn masked_dependencies_that_are_unset_return_to_always_visible(client: Client) {
    let before = stored(&client).await;
    let after = client
        .updated_task(task_of(&before.guid), &["dependencies"])
        .await;
    assert_eq!(after.dependencies, None);
}

async fn a_masked_name_that_is_unset_is_refused(client: Client) {
    let before = stored(&client).await;
    let updated = client.update_task(task_of(&before.guid), &["name"]).await;
    let failure = updated.refused();
    failure.violates(&[("task.name", "FIELD_REQUIRED")]);
}

async fn masked_roles_with_none_are_refused(client: Client) {
    let before = stored(&client).await;
    let updated = client.update_task(task_of(&before.guid), &["roles"]).await;
    let failure = updated.refused();
    failure.violates(&[("task.roles", "FIELD_REQUIRED")]);
    assert_eq!(client.get_task(&before.guid).await.accepted(), before);
}

async fn masked_translations_are_replaced_whole(client: Client) {
    let before = stored(&client).await;
    let update = task_of(&before.guid).translated("fr", task_translation("Seul"));
    let after = client.updated_task(update, &["translations"]).await;
    let languages: Vec<&String> = after.translations.keys().collect();
    assert_eq!(languages, ["fr"]);

    let after = client
        .updated_task(task_of(&before.guid), &["translations"])
        .await;
    assert!(after.translations.is_empty());
}

async fn a_star_replaces_every_honored_field(client: Client) {
    let before = client.given_task(task("Plain")).await;
    let sent = full_task().with_guid(before.guid.clone());
    let after = client.updated_task(sent.clone(), &["*"]).await;
    assert_eq!(after.name, sent.name);
    assert_eq!(after.dependencies, sent.dependencies);
    assert_eq!(after.published, sent.published);
    assert_eq!(after.roles, sent.roles);
    assert_eq!(
        after.translations.keys().collect::<Vec<_>>(),
        sent.translations.keys().collect::<Vec<_>>()
    );
}

async fn a_star_returns_absent_fields_to_their_defaults(client: Client) {
    let before = stored(&client).await;
    let update = Task {
        name: "Bare".to_owned(),
        roles: vec![AccessLevel::User.into()],
        ..task_of(&before.guid)
    };
    let after = client.updated_task(update, &["*"]).await;
    assert_eq!(after.published, Some(1));
    assert_eq!(after.dependencies, None);
    assert!(after.translations.is_empty());
}

async fn a_star_without_a_required_field_is_refused(client: Client) {
    let before = stored(&client).await;
    let update = task_of(&before.guid).with_roles(vec![AccessLevel::User.into()]);
    let failure = client.update_task(update, &["*"]).await.refused();
    failure.violates(&[("task.name", "FIELD_REQUIRED")]);
}

async fn a_masked_field_that_is_not_honored_is_listed(client: Client) {
    let before = stored(&client).await;
    let update = task_of(&before.guid).named("Renamed");
    let mask = ["steps", "name", "type", "product_id", "dirty_record"];
    let response = client.update_task(update, &mask).await.accepted();
    assert_eq!(
        response.ignored_paths,
        [
            "task.dirty_record",
            "task.product_id",
            "task.steps",
            "task.type"
        ]
    );
    assert_eq!(response.task.unwrap().name, "Renamed");
}

async fn populated_fields_that_are_not_honored_are_listed_whatever_the_mask_says(client: Client) {
    let before = stored(&client).await;
    let update = Task {
        name: "Renamed".to_owned(),
        product_id: Some(8),
        account_id: "somebody".to_owned(),
        ..task_of(&before.guid)
    };
    let response = client.update_task(update, &["name"]).await.accepted();
    assert_eq!(
        response.ignored_paths,
        ["task.account_id", "task.product_id"]
    );
}

async fn honored_fields_outside_the_mask_are_not_listed(client: Client) {
    let before = stored(&client).await;
    let update = task_of(&before.guid).named("Renamed").with_published(4);
    let response = client.update_task(update, &["name"]).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    assert_eq!(response.task.unwrap().published, before.published);
}

async fn guid_and_etag_of_an_update_are_not_listed(client: Client) {
    let before = stored(&client).await;
    let update = Task {
        etag: before.etag.clone(),
        name: "Renamed".to_owned(),
        ..task_of(&before.guid)
    };
    let response = client.update_task(update, &[]).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
}

async fn a_shorthand_on_an_update_is_ignored_and_listed(client: Client) {
    let before = stored(&client).await;
    let update = task_of(&before.guid).with_shorthand("components.7.power = off");
    for mask in [&[][..], &["dependency_shorthand"]] {
        let response = client.update_task(update.clone(), mask).await.accepted();
        assert_eq!(response.ignored_paths, ["task.dependency_shorthand"]);
        assert_eq!(response.task.unwrap(), before);
    }
}

async fn sending_back_what_was_read_changes_nothing(client: Client) {
    let created = stored(&client).await;
    client.given_step(information_step(&created, "one")).await;
    let before = client.get_task(&created.guid).await.accepted();
    for mask in [&[][..], &["*"]] {
        let response = client.update_task(before.clone(), mask).await.accepted();
        assert_eq!(response.task.unwrap(), before);
    }
}

async fn a_path_named_twice_counts_once(client: Client) {
    let before = stored(&client).await;
    let update = task_of(&before.guid).named("Renamed");
    let mask = ["name", "type", "name", "type"];
    let response = client.update_task(update, &mask).await.accepted();
    assert_eq!(response.ignored_paths, ["task.type"]);
    assert_eq!(response.task.unwrap().name, "Renamed");
}

async fn an_update_that_changes_nothing_keeps_etag_and_modified_ts(client: Client) {
    let before = stored(&client).await;
    let same = Task {
        name: before.name.clone(),
        roles: before.roles.clone(),
        dependencies: before.dependencies.clone(),
        ..task_of(&before.guid)
    };
    for mask in [&[][..], &["name"], &["roles", "dependencies"]] {
        assert_eq!(client.updated_task(same.clone(), mask).await, before);
    }
    let nothing = client.updated_task(task_of(&before.guid), &[]).await;
    assert_eq!(nothing, before);
}
