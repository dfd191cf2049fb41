//! Revisions that the server makes by itself.

use super::{exported, given_guide, retitle};
use crate::kit::prelude::*;

on_both_databases![
    an_import_keeps_the_guide_as_it_was_before,
    an_import_that_changes_nothing_keeps_nothing,
    a_state_that_is_kept_is_not_kept_again,
    a_deletion_keeps_the_guide,
    a_purged_task_leaves_nothing,
    a_purged_task_that_comes_back_has_no_former_alias,
    publishing_keeps_what_is_published,
    the_oldest_automatic_revisions_go,
    deleted_tasks_are_listed_until_they_come_back,
    deleted_tasks_are_listed_with_the_aliases_of_their_last_state,
];

async fn change(client: &Client, task: &str, title: &str) -> ImportTaskResponse {
    let mut document = client.exported(task).await;
    document.steps[3].title = title.to_owned();
    client.import(document).await.accepted()
}

async fn an_import_keeps_the_guide_as_it_was_before(client: Client) {
    let guide = given_guide(&client).await;
    let before = exported(&client, &guide.guid).await;
    let imported = change(&client, &guide.guid, "Changed").await;
    assert_eq!(imported.previous_revision, 1);
    let found = client.get_revision(&guide.guid, 1).await.accepted();
    assert_eq!(found.document, before.document);
    let revision = found.revision.expect("a revision");
    assert_eq!(revision.cause(), RevisionCause::BeforeImport);
    assert_eq!(revision.guide_etag, before.guide_etag);
}

async fn an_import_that_changes_nothing_keeps_nothing(client: Client) {
    let guide = given_guide(&client).await;
    let document = client.exported(&guide.guid).await;
    let imported = client.import(document).await.accepted();
    assert_eq!(imported.outcome(), ImportOutcome::Unchanged);
    assert_eq!(imported.previous_revision, 0);
    assert!(client.all_revisions(&guide.guid).await.is_empty());
}

async fn a_state_that_is_kept_is_not_kept_again(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    let imported = change(&client, &guide.guid, "Changed").await;
    assert_eq!(imported.previous_revision, 1);
    client.kept_revision(&guide.guid).await;
    let restored = client.restored(&guide.guid, 1).await;
    assert_eq!(restored.previous_revision, 2);
    client.kept_revision(&guide.guid).await;
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    assert_eq!(deleted.previous_revision, 3);
    assert_eq!(client.all_revisions(&guide.guid).await.len(), 3);
}

async fn a_deletion_keeps_the_guide(client: Client) {
    let guide = given_guide(&client).await;
    let before = exported(&client, &guide.guid).await;
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    assert_eq!(deleted.previous_revision, 1);
    let found = client.get_revision(&guide.guid, 1).await.accepted();
    assert_eq!(found.document, before.document);
}

async fn a_purged_task_leaves_nothing(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    client
        .set_revision_alias(&guide.guid, "live", 1)
        .await
        .accepted();
    let request = DeleteTaskRequest {
        guid: guide.guid.clone(),
        force: true,
        purge_history: true,
        ..DeleteTaskRequest::default()
    };
    let deleted = client.send_delete_task(request).await.accepted();
    assert_eq!(deleted.previous_revision, 0);
    let failure = client.get_revision(&guide.guid, 1).await.refused();
    failure.is(Code::NotFound, "TASK_NOT_FOUND");
    let request = ListDeletedTasksRequest::default();
    let listed = client.list_deleted_tasks(request).await.accepted();
    assert!(listed.tasks.is_empty());
}

async fn publishing_keeps_what_is_published(client: Client) {
    let guide = given_guide(&client).await;
    let publish = async |published: i32, mask: &[&str], name: &str| {
        let task = Task {
            guid: guide.guid.clone(),
            name: name.to_owned(),
            published: Some(published),
            ..Task::default()
        };
        client.updated_task(task, mask).await;
    };
    publish(1, &["published"], "").await;
    publish(0, &["published"], "").await;
    publish(2, &["published"], "").await;
    assert!(client.all_revisions(&guide.guid).await.is_empty());
    publish(1, &["published", "name"], "Renamed").await;
    let [revision] = &client.all_revisions(&guide.guid).await[..] else {
        panic!("one revision");
    };
    assert_eq!(revision.cause(), RevisionCause::Published);
    let now = exported(&client, &guide.guid).await;
    assert_eq!(revision.guide_etag, now.guide_etag);
    let kept = client.revision_document(&guide.guid, 1).await;
    assert_eq!(Some(kept), now.document);
}

async fn the_oldest_automatic_revisions_go(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    retitle(&client, &guide.guid, "Other").await;
    change(&client, &guide.guid, "Title").await;
    client
        .set_revision_alias(&guide.guid, "live", 2)
        .await
        .accepted();
    for number in 0..52 {
        change(&client, &guide.guid, &format!("Title {number}")).await;
    }
    let revisions = client.all_revisions(&guide.guid).await;
    let numbers: Vec<i64> = revisions.iter().map(|it| it.revision).collect();
    let expected: Vec<i64> = (5..=54).rev().chain([2, 1]).collect();
    assert_eq!(numbers, expected);
}

async fn deleted_tasks_are_listed_until_they_come_back(client: Client) {
    let mut guides = Vec::new();
    for _ in 0..3 {
        let guide = given_guide(&client).await;
        client.force_delete_task(&guide.guid).await.accepted();
        guides.push(guide.guid);
    }
    let listed = async || {
        let request = ListDeletedTasksRequest {
            page_size: 2,
            page_token: String::new(),
        };
        let listed = client.list_all_deleted_tasks(request).await;
        assert!(listed.iter().all(|deleted| deleted.deleted_ts.is_some()));
        let tasks = listed.into_iter().map(|deleted| deleted.latest);
        let tasks = tasks.map(|latest| latest.expect("a revision").task);
        tasks.collect::<Vec<_>>()
    };
    let expected: Vec<&String> = guides.iter().rev().collect();
    assert_eq!(listed().await.iter().collect::<Vec<_>>(), expected);
    client.restored(&guides[1], 1).await;
    assert_eq!(listed().await, [guides[2].clone(), guides[0].clone()]);
}

async fn deleted_tasks_are_listed_with_the_aliases_of_their_last_state(client: Client) {
    for aliases in [&["also", "live"][..], &["live"], &[]] {
        let guide = given_guide(&client).await;
        let kept = client.kept_revision(&guide.guid).await.revision;
        for alias in aliases {
            let set = client.set_revision_alias(&guide.guid, alias, kept).await;
            set.accepted();
        }
        client.force_delete_task(&guide.guid).await.accepted();
        let request = ListDeletedTasksRequest::default();
        let listed = client.list_deleted_tasks(request).await.accepted();
        let latest = listed.tasks[0].latest.as_ref().expect("a revision");
        assert_eq!((&latest.task, latest.revision), (&guide.guid, kept));
        assert_eq!(latest.aliases, aliases);
    }
}

async fn a_purged_task_that_comes_back_has_no_former_alias(client: Client) {
    let guide = given_guide(&client).await;
    let observation = client.get_step(&guide.steps[0]).await.accepted();
    let managed = answers_of(&observation)[0].link.clone();
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    client.kept_revision(&managed).await;
    let alias = client.set_revision_alias(&managed, "live", 1).await;
    alias.accepted();
    let request = DeleteTaskRequest {
        guid: managed.clone(),
        force: true,
        purge_history: true,
        ..DeleteTaskRequest::default()
    };
    client.send_delete_task(request).await.accepted();
    let former = deleted.previous_revision;
    client.restored(&guide.guid, former).await;
    let kept = client.kept_revision(&managed).await;
    assert_eq!(kept.aliases, [""; 0]);
}
