//! Tasks: which fields are stored, and which the system sets.

use crate::kit::prelude::*;
use prost_types::Timestamp;

#[apply(on_both_databases)]
async fn a_created_task_gets_a_version_7_guid(client: Client) {
    let guid = client.given_task(task("New")).await.guid;
    let parsed: uuid::Uuid = guid.parse().expect("a UUID");
    assert_eq!(parsed.get_version_num(), 7);
    assert_eq!(parsed.hyphenated().to_string(), guid);
}

#[apply(on_both_databases)]
async fn duplicate_roles_are_removed_and_the_order_is_kept(client: Client) {
    let sent = task("Doubled").with_roles(vec![8, 0, 5, 8, 0, 1]);
    assert_eq!(client.given_task(sent).await.roles, [8, 0, 5, 1]);
}

#[apply(on_both_databases)]
async fn a_name_is_kept_byte_for_byte(client: Client) {
    // Decomposed, right-to-left and zero-width characters, and all kinds of quotes.
    let name = "e\u{301}\u{200f}א\u{200b}'\"\\%_`$1?;--";
    let guid = client.given_task(task(name)).await.guid;
    assert_eq!(client.get_task(&guid).await.accepted().name, name);
}

#[apply(on_both_databases)]
async fn a_new_task_is_standard_dirty_unindexed_and_without_steps(client: Client) {
    let created = client.given_task(task("New")).await;
    assert_eq!(created.r#type, Some(TaskType::Standard.into()));
    assert_eq!(created.steps, [""; 0]);
    assert_eq!((created.parent_guid.as_str(), created.idx), ("", 0));
    assert!(created.dirty_record);
    assert!(!created.mvn_indexed);
    assert_eq!(created.mvn_ts, None);
}

#[apply(on_both_databases)]
async fn times_are_utc_with_microseconds(client: Client) {
    let created = client.given_task(task("Timed")).await;
    let (made, changed) = (created.created_ts.unwrap(), created.modified_ts.unwrap());
    // Between 2025 and 2100, so neither a local time nor another unit.
    assert!((1_735_689_600..4_102_444_800).contains(&made.seconds));
    assert_eq!((made.nanos % 1_000, changed.nanos % 1_000), (0, 0));
    assert!((made.seconds, made.nanos) <= (changed.seconds, changed.nanos));
}

/// A task with a value in every field that only the system sets.
fn task_with_system_fields(name: &str) -> Task {
    let long_ago = Timestamp {
        seconds: 1,
        nanos: 0,
    };
    Task {
        guid: unknown_guid(),
        r#type: Some(TaskType::Linked.into()),
        steps: vec![unknown_guid()],
        etag: "mine".to_owned(),
        account_id: "somebody".to_owned(),
        parent_guid: unknown_guid(),
        idx: 3,
        dirty_record: true,
        mvn_indexed: true,
        mvn_version: 4,
        mvn_info: "info".to_owned(),
        mvn_ts: Some(long_ago),
        created_ts: Some(long_ago),
        modified_ts: Some(long_ago),
        ..task(name)
    }
}

#[apply(on_both_databases)]
async fn system_set_fields_sent_on_create_change_nothing_and_are_listed(client: Client) {
    let sent = task_with_system_fields("System fields");
    let response = client.create_task(sent.clone()).await.accepted();
    assert_eq!(
        response.ignored_paths,
        [
            "task.account_id",
            "task.created_ts",
            "task.dirty_record",
            "task.etag",
            "task.guid",
            "task.idx",
            "task.modified_ts",
            "task.mvn_indexed",
            "task.mvn_info",
            "task.mvn_ts",
            "task.mvn_version",
            "task.parent_guid",
            "task.steps",
            "task.type",
        ]
    );
    let stored = response.task.unwrap();
    let mut plain = client.given_task(task("System fields")).await;
    assert_ne!(stored.guid, sent.guid);
    assert_ne!(stored.created_ts, sent.created_ts);
    plain.guid.clone_from(&stored.guid);
    plain.etag.clone_from(&stored.etag);
    plain.created_ts = stored.created_ts;
    plain.modified_ts = stored.modified_ts;
    assert_eq!(stored, plain);
}

#[apply(on_both_databases)]
async fn system_set_fields_sent_on_update_change_nothing_and_are_listed(client: Client) {
    let before = client.given_task(task("Before")).await;
    let sent = task_with_system_fields("After").with_guid(&before.guid);
    let sent = sent.with_etag(&before.etag);
    let response = client.update_task(sent, &[]).await.accepted();
    // `dirty_record` and `product_id` are as they are stored.
    assert_eq!(
        response.ignored_paths,
        [
            "task.account_id",
            "task.created_ts",
            "task.idx",
            "task.modified_ts",
            "task.mvn_indexed",
            "task.mvn_info",
            "task.mvn_ts",
            "task.mvn_version",
            "task.parent_guid",
            "task.steps",
            "task.type",
        ]
    );
    let after = response.task.unwrap();
    let expected = before
        .named("After")
        .with_etag(after.etag.clone())
        .with(|it| it.modified_ts = after.modified_ts);
    assert_eq!(after, expected);
}

#[apply(on_both_databases)]
async fn an_upper_case_guid_names_the_same_task(client: Client) {
    let created = client.given_task(task("Upper case")).await;
    let read = client.get_task(&created.guid.to_uppercase()).await;
    assert_eq!(read.accepted(), created);
    let update = task_of(&created.guid.to_uppercase()).named("Renamed");
    let updated = client.updated_task(update, &["name"]).await;
    assert_eq!(updated.guid, created.guid);
}

#[apply(on_both_databases)]
async fn an_update_changes_etag_and_modified_ts_alone_of_the_system_fields(client: Client) {
    let mut before = client.given_task(full_task()).await;
    let hidden = before.clone().with_published(7);
    // A rename is written under locks.
    let renamed = hidden.clone().named("After");
    for (changed, field) in [(hidden, "published"), (renamed, "name")] {
        let sent = changed.clone().with_etag("");
        let after = client.updated_task(sent, &[field]).await;
        before = has_a_new_version_of(&before, changed, after);
    }
}

/// Asserts that the task is the changed one with another version, and returns it.
fn has_a_new_version_of(before: &Task, changed: Task, after: Task) -> Task {
    assert_ne!(after.etag, before.etag);
    assert_ne!(after.modified_ts, before.modified_ts);
    let expected = changed
        .with_etag(after.etag.clone())
        .with(|it| it.modified_ts = after.modified_ts);
    assert_eq!(after, expected);
    after
}

#[apply(on_both_databases)]
async fn product_id_is_fixed(client: Client) {
    let created = client.given_task(task("Fixed")).await;
    for product in [PRODUCT + 1, -1] {
        let update = task_of(&created.guid).with_product(product);
        let response = client.update_task(update, &[]).await.accepted();
        assert_eq!(response.ignored_paths, ["task.product_id"]);
        assert_eq!(response.task.unwrap(), created);
    }
}

#[apply(on_both_databases)]
async fn a_deleted_task_is_gone(client: Client) {
    let guid = client.given_task(task("Short-lived")).await.guid;
    let response = client.delete_task(&guid).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    client
        .get_task(&guid)
        .await
        .refused()
        .is_task_not_found(&guid);
    client
        .delete_task(&guid)
        .await
        .refused()
        .is_task_not_found(&guid);
}

#[apply(on_both_databases)]
async fn force_deletes_the_steps_too(client: Client) {
    let task = client.given_task(task("Whole")).await;
    let steps = client.given_steps(&task, &["a", "b"]).await;
    let request = deletion_of(&task.guid).with(|it| it.force = true);
    client.call(request).await.accepted();
    for step in steps {
        client
            .get_step(&step)
            .await
            .refused()
            .is_step_not_found(&step);
    }
}
