//! Revisions that the server makes by itself.

use super::{deleted_tasks, exported, given_guide, numbers, retitle};
use crate::{
    kit::{
        server::{Settings, TestServer},
        sql::SqlConnection,
    },
    prelude::*,
};

async fn change(client: &Client, task: &str, title: &str) -> ImportTaskResponse {
    let mut document = client.exported(task).await;
    document.steps[3].title = title.to_owned();
    client.import(document).await.accepted()
}

#[apply(on_both_databases)]
async fn an_import_that_changes_nothing_keeps_nothing(client: Client) {
    let guide = given_guide(&client).await;
    let document = client.exported(&guide.guid).await;
    let imported = client.import(document).await.accepted();
    assert_eq!(imported.outcome(), ImportOutcome::Unchanged);
    assert_eq!(imported.previous_revision, 0);
    let now = exported(&client, &guide.guid).await;
    assert_eq!(imported.guide_etag, now.guide_etag);
    assert!(client.all_revisions(&guide.guid).await.is_empty());
}

#[apply(on_both_databases)]
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

#[apply(on_both_databases)]
async fn a_purge_leaves_no_row(url: String) {
    let server = TestServer::start(Settings::new(&url)).await;
    let client = server.client();
    let guide = client.given_task(task("Guide")).await;
    let step = information_step(&guide, "Step").translated("de", step_translation("Schritt"));
    let step = client.given_step(step).await;
    client.kept_revision(&guide.guid).await;
    client.alias(&guide.guid, "live", 1).await;
    client.delete_step(&step.guid).await.accepted();
    let mut database = SqlConnection::open(&url).await;
    let before = database.tables_with(client.account()).await;
    for table in [
        "deleted_step_translations",
        "deleted_steps",
        "task_histories",
    ] {
        assert!(before.contains(&table.to_owned()), "{before:?}");
    }
    let purged = client.purge(&guide.guid).await.accepted();
    assert_eq!(purged.previous_revision, 0);
    let mut left = database.tables_with(client.account()).await;
    // The feed says that it was deleted.
    left.retain(|table| !["accounts", "change_feeds", "changes"].contains(&table.as_str()));
    assert_eq!(left, Vec::<String>::new());
    server.shut_down().await;
}

#[apply(on_both_databases)]
async fn publishing_keeps_what_is_published(client: Client) {
    let guide = given_guide(&client).await;
    let publish = async |published: i32, mask: &[&str], name: &str| {
        let task = task_of(&guide.guid).named(name).with_published(published);
        client.updated_task(task, mask).await;
    };
    publish(1, &["published"], "").await;
    publish(0, &["published"], "").await;
    publish(2, &["published"], "").await;
    let dry = UpdateTaskRequest {
        task: Some(task_of(&guide.guid).with_published(1)),
        update_mask: field_mask(&["published"]),
        validate_only: true,
    };
    client.call(dry).await.accepted();
    assert!(client.all_revisions(&guide.guid).await.is_empty());
    publish(1, &["published", "name"], "Renamed").await;
    let [revision] = &client.all_revisions(&guide.guid).await[..] else {
        panic!("one revision");
    };
    assert_eq!(revision.cause(), RevisionCause::Published);
    assert_eq!(revision.task_name, "Renamed");
    let now = exported(&client, &guide.guid).await;
    assert_eq!(revision.guide_etag, now.guide_etag);
    let kept = client.revision_document(&guide.guid, 1).await;
    assert_eq!(Some(kept), now.document);
    // If it is already published, it is only changed.
    publish(1, &["published", "name"], "Renamed again").await;
    assert_eq!(client.all_revisions(&guide.guid).await.len(), 1);
    // A managed task has its own history.
    let managed = &client.managed_by(&guide.steps[0], 0).await.guid;
    for published in [0, 1] {
        let update = task_of(managed).with_published(published);
        client.updated_task(update, &[]).await;
    }
    let revisions = client.all_revisions(managed).await;
    assert_eq!(revisions.len(), 1);
    assert_eq!(revisions[0].cause(), RevisionCause::Published);
    assert_eq!(client.all_revisions(&guide.guid).await.len(), 1);
    // It returns to its default, which is 1.
    publish(0, &["published"], "").await;
    client
        .updated_task(task_of(&guide.guid), &["published"])
        .await;
    assert_eq!(client.all_revisions(&guide.guid).await.len(), 2);
}

#[apply(on_both_databases)]
async fn a_published_guide_that_refers_to_itself_is_kept_once_and_as_it_is(client: Client) {
    let guide = given_guide(&client).await;
    client.given_step(subtask(&guide, &guide)).await;
    let changes: [&[&str]; 3] = [&["name"], &["external_id"], &[]];
    for (number, changed) in changes.into_iter().enumerate() {
        let hidden = task_of(&guide.guid).with_published(0);
        client.updated_task(hidden, &["published"]).await;
        let published = task_of(&guide.guid)
            .named("Renamed")
            .with(|it| it.external_id = Some("renamed".to_owned()))
            .with_published(1);
        let mask = [&["published"], changed].concat();
        client.updated_task(published, &mask).await;
        let now = exported(&client, &guide.guid).await;
        let again = client.call(revision_of(&guide.guid)).await.accepted();
        assert!(again.unchanged, "{changed:?}");
        let revisions = client.all_revisions(&guide.guid).await;
        assert_eq!(revisions.len(), number + 1);
        assert_eq!(revisions[0].guide_etag, now.guide_etag);
        let kept = client.revision_document(&guide.guid, revisions[0].revision);
        assert_eq!(Some(kept.await), now.document);
    }
}

/// On SQLite, writes share a transaction, so a write that waits for memory must not have changed
/// anything.
#[apply(on_both_databases)]
async fn large_guides_that_are_published_at_once_are_kept(client: Client) {
    let mut guides = Vec::new();
    for _ in 0..8 {
        let guide = client.given_task(task("Large").with_published(0)).await;
        let step = information_step(&guide, "large").with_body("x".repeat(1_100_000));
        client.given_step(step).await;
        guides.push(guide.guid);
    }
    at_once(&client, guides.len(), |client, number| {
        let published = task_of(&guides[number]).with_published(1);
        async move { client.updated_task(published, &["published"]).await }
    })
    .await;
    for guide in guides {
        let revisions = client.all_revisions(&guide).await;
        let now = exported(&client, &guide).await.guide_etag;
        let kept: Vec<_> = revisions
            .iter()
            .map(|it| (it.cause(), &it.guide_etag))
            .collect();
        assert_eq!(kept, [(RevisionCause::Published, &now)]);
    }
}

#[apply(on_both_databases)]
async fn the_oldest_automatic_revisions_go(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    retitle(&client, &guide.guid, "Other").await;
    change(&client, &guide.guid, "Title").await;
    client.alias(&guide.guid, "live", 2).await;
    for number in 0..52 {
        change(&client, &guide.guid, &format!("Title {number}")).await;
    }
    let expected: Vec<i64> = (5..=54).rev().chain([2, 1]).collect();
    assert_eq!(numbers(&client, &guide.guid).await, expected);
    // An alias keeps one only as long as it names it.
    client.alias(&guide.guid, "live", "").await;
    change(&client, &guide.guid, "Last").await;
    let expected: Vec<i64> = (6..=55).rev().chain([1]).collect();
    assert_eq!(numbers(&client, &guide.guid).await, expected);
}

#[apply(on_both_databases)]
async fn deleted_tasks_are_listed_until_they_come_back(client: Client) {
    let mut guides = Vec::new();
    for _ in 0..3 {
        let guide = given_guide(&client).await;
        client.kept_revision(&guide.guid).await;
        guides.push(guide.guid);
    }
    // Neither in the order of ids nor in the order of revisions.
    for index in [0, 2, 1] {
        client.force_delete_task(&guides[index]).await.accepted();
    }
    let listed = async || {
        let request = ListDeletedTasksRequest {
            page_size: 2,
            page_token: String::new(),
        };
        let listed = client.list(request).await;
        assert!(listed.iter().all(|deleted| deleted.deleted_ts.is_some()));
        let tasks = listed.into_iter().map(|deleted| deleted.latest);
        let tasks = tasks.map(|latest| latest.expect("a revision").task);
        tasks.collect::<Vec<_>>()
    };
    let expected = [1, 2, 0].map(|index| guides[index].clone());
    assert_eq!(listed().await, expected);
    client.restored(&guides[2], 1).await;
    assert_eq!(listed().await, [guides[1].clone(), guides[0].clone()]);
}

#[apply(on_both_databases)]
async fn deleted_tasks_are_listed_with_the_aliases_of_their_last_state(client: Client) {
    for aliases in [&["also", "live"][..], &["live"], &[]] {
        let guide = given_guide(&client).await;
        let kept = client.kept_revision(&guide.guid).await.revision;
        client.force_delete_task(&guide.guid).await.accepted();
        for alias in aliases.iter().rev() {
            client.alias(&guide.guid, alias, kept).await;
        }
        let listed = deleted_tasks(&client).await;
        let latest = listed[0].latest.as_ref().expect("a revision");
        assert_eq!((&latest.task, latest.revision), (&guide.guid, kept));
        assert_eq!(latest.aliases, aliases);
        let revisions = client.all_revisions(&guide.guid).await;
        assert_eq!(std::slice::from_ref(latest), revisions);
    }
}

#[apply(on_both_databases)]
async fn a_purged_task_that_comes_back_has_no_former_alias(client: Client) {
    let guide = given_guide(&client).await;
    let managed = client.managed_by(&guide.steps[0], 0).await.guid;
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    client.kept_revision(&managed).await;
    client.alias(&managed, "live", 1).await;
    client.purge(&managed).await.accepted();
    let former = deleted.previous_revision;
    client.restored(&guide.guid, former).await;
    let kept = client.kept_revision(&managed).await;
    assert_eq!(kept.aliases, [""; 0]);
    assert_eq!(kept.revision, 1, "nothing of the former history is left");
}

#[apply(on_both_databases)]
async fn a_deleted_task_without_a_revision_is_not_listed(client: Client) {
    let guide = given_guide(&client).await;
    let kept = revision_of(&guide.guid).with(|it| it.alias = "live".to_owned());
    client.call(kept).await.accepted();
    retitle(&client, &guide.guid, "Changed").await;
    client.force_delete_task(&guide.guid).await.accepted();
    client.alias(&guide.guid, "live", "").await;
    // The newest remaining one is shown, until none remains.
    for number in [2, 1] {
        let listed = deleted_tasks(&client).await;
        let latest = listed.into_iter().map(|deleted| deleted.latest);
        let latest = latest.map(|latest| latest.expect("a revision").revision);
        assert_eq!(latest.collect::<Vec<_>>(), [number]);
        let deleted = client.delete_revision(&guide.guid, number).await;
        deleted.accepted();
    }
    assert_eq!(deleted_tasks(&client).await, []);
}

#[apply(on_both_databases)]
async fn revisions_and_deletions_say_who_made_them_and_when(client: Client) {
    let time = |time: Option<prost_types::Timestamp>| {
        let time = time.expect("a time");
        (time.seconds, time.nanos)
    };
    let [ana, ben, eve] = ["ana", "ben", "eve"].map(|name| client.with_metadata("x-subject", name));
    let guide = given_guide(&client).await;
    let kept = ana.kept_revision(&guide.guid).await;
    assert!(time(kept.created_ts) > time(guide.modified_ts));
    // It is still ana's.
    assert_eq!(eve.kept_revision(&guide.guid).await, kept);
    retitle(&ana, &guide.guid, "Title").await;
    change(&ben, &guide.guid, "Changed").await;
    eve.restored(&guide.guid, 1).await;
    for (client, published) in [(&eve, 0), (&ana, 1)] {
        let update = task_of(&guide.guid).with_published(published);
        client.updated_task(update, &["published"]).await;
    }
    let revisions = client.all_revisions(&guide.guid).await;
    let subjects: Vec<&str> = revisions.iter().map(|it| it.subject.as_str()).collect();
    assert_eq!(subjects, ["ana", "eve", "ben", "ana"]);
    let times = revisions.iter().map(|it| time(it.created_ts));
    assert!(times.rev().is_sorted_by(|one, next| one < next));
    // ben deletes a state that already has a revision, eve one that does not.
    for (client, name, number, author) in [(&ben, "ben", 4, "ana"), (&eve, "eve", 5, "eve")] {
        client.force_delete_task(&guide.guid).await.accepted();
        let listed = deleted_tasks(client).await;
        let deleted = &listed[0];
        let latest = deleted.latest.as_ref().expect("a revision");
        assert_eq!((latest.revision, &*latest.subject), (number, author));
        assert_eq!(deleted.subject, name);
        assert!(time(deleted.deleted_ts) >= time(latest.created_ts));
        assert!(time(deleted.deleted_ts) > time(revisions[0].created_ts));
        client.restored(&guide.guid, number).await;
    }
}
