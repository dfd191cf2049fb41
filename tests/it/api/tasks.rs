//! Tasks: which fields are stored, and which the system sets.

use crate::prelude::*;

#[apply(on_both_databases)]
async fn a_created_task_gets_a_version_7_guid(client: Client) {
    let guid = client.given_task(task("New")).await.guid;
    let parsed: uuid::Uuid = guid.parse().expect("a UUID");
    assert_eq!(parsed.get_version_num(), 7);
    assert_eq!(parsed.hyphenated().to_string(), guid);
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
