//! The settings of the history: how many revisions a server makes by itself, and how long the
//! history of a deleted task is kept.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::{deleted_tasks, exported, given_guide, numbers, publish, retitle};
use crate::{
    api::deleted_steps::not_restored,
    kit::{
        deadline::until,
        runtime::runtime,
        server::{Setting, Settings, TestServer, in_memory},
    },
    prelude::*,
};

/// Runs a test on a server with these settings.
async fn serve(settings: Settings, test: impl AsyncFnOnce(Client)) {
    let server = TestServer::start(settings).await;
    test(server.client()).await;
    server.shut_down().await;
}

/// The same on a database in memory.
fn on_sqlite(settings: &[Setting], test: impl AsyncFnOnce(Client)) {
    runtime().block_on(serve(in_memory().set_all(settings), test));
}

const DELETED_AT_ONCE: &[Setting] = &[("EXPERTISE_DELETED_TASK_RETENTION", "1ms")];

#[apply(on_both_databases)]
async fn histories_of_deleted_tasks_go_after_the_retention(url: String) {
    let settings = Settings::new(&url).set_all(DELETED_AT_ONCE);
    serve(settings, deleted_histories_go).await;
}

async fn deleted_histories_go(client: Client) {
    let kept = given_guide(&client).await;
    client.kept_revision(&kept.guid).await;
    for client in [client.other_account(), client.other_account()] {
        let guide = given_guide(&client).await;
        client.force_delete_task(&guide.guid).await.accepted();
        until("the history is deleted", async || {
            let found = client.get_revision(&guide.guid, 1).await;
            found.err().map(|status| {
                let failure = Failure::from(status);
                failure.is(Code::NotFound, "TASK_NOT_FOUND");
            })
        })
        .await;
        assert_eq!(deleted_tasks(&client).await, []);
    }
    client.get_revision(&kept.guid, 1).await.accepted();
}

#[apply(on_both_databases)]
async fn deleted_steps_go_after_the_retention(url: String) {
    let settings = Settings::new(&url).set_all(DELETED_AT_ONCE);
    serve(settings, deleted_steps_go).await;
}

async fn deleted_steps_go(client: Client) {
    let accounts = [client.other_account(), client].map(async |client| {
        let guide = client.given_task(task("Guide")).await;
        for _ in 0..2 {
            let step = client.given_step(information_step(&guide, "Step")).await;
            client.delete_step(&step.guid).await.accepted();
            until("the step is no longer kept", async || {
                let kept = client.deleted_steps(&guide.guid).await;
                kept.is_empty().then_some(())
            })
            .await;
            not_restored(&client, &step.guid).await;
        }
    });
    join_all(accounts).await;
}

#[test]
fn no_step_is_kept_without_retention() {
    let settings = [("EXPERTISE_DELETED_TASK_RETENTION", "0s")];
    on_sqlite(&settings, async |client| {
        let guide = client.given_task(task("Guide")).await;
        let step = client.given_step(information_step(&guide, "Step")).await;
        client.delete_step(&step.guid).await.accepted();
        assert_eq!(client.deleted_steps(&guide.guid).await, []);
        not_restored(&client, &step.guid).await;
    });
}

#[test]
fn the_history_of_a_deleted_task_stays_until_the_retention_has_passed() {
    let retention = Duration::from_secs(2);
    let settings = [("EXPERTISE_DELETED_TASK_RETENTION", "2s")];
    on_sqlite(&settings, async |client| {
        let guide = given_guide(&client).await;
        let started = Instant::now();
        client.force_delete_task(&guide.guid).await.accepted();
        until("the history is deleted", async || {
            client.get_revision(&guide.guid, 1).await.err()
        })
        .await;
        assert!(started.elapsed() >= retention, "{:?}", started.elapsed());
    });
}

#[test]
fn without_retention_a_deleted_task_keeps_no_history() {
    let settings = [("EXPERTISE_DELETED_TASK_RETENTION", "0s")];
    on_sqlite(&settings, async |client| {
        let guide = given_guide(&client).await;
        client.kept_revision(&guide.guid).await;
        let deleted = client.force_delete_task(&guide.guid).await.accepted();
        assert_eq!(deleted.previous_revision, 0);
        let failure = client.get_revision(&guide.guid, 1).await.refused();
        failure.is(Code::NotFound, "TASK_NOT_FOUND");
    });
}

#[test]
fn without_automatic_revisions_only_requested_ones_are_made() {
    let settings = [("EXPERTISE_AUTOMATIC_REVISIONS", "0")];
    on_sqlite(&settings, async |client| {
        let guide = given_guide(&client).await;
        let mut changed = client.exported(&guide.guid).await;
        changed.steps[3].title = "Changed".to_owned();
        let imported = client.import(changed.clone()).await.accepted();
        assert_eq!(imported.previous_revision, 0);
        let now = exported(&client, &guide.guid).await;
        let made = client.call(revision_of(&guide.guid)).await.accepted();
        assert!(!made.unchanged);
        changed.steps[3].title = "Again".to_owned();
        // The newest revision is of the very state that the import changes.
        let imported = client.import(changed).await.accepted();
        assert_eq!(imported.previous_revision, 1);
        assert_eq!(
            Some(client.revision_document(&guide.guid, 1).await),
            now.document
        );
        assert_eq!(client.kept_revision(&guide.guid).await.revision, 2);
        let deleted = client.delete_revision(&guide.guid, 2).await;
        deleted.accepted();
        let deleted = client.force_delete_task(&guide.guid).await.accepted();
        assert_eq!(deleted.previous_revision, 0);
        assert_eq!(client.all_revisions(&guide.guid).await.len(), 1);
        client.restored(&guide.guid, 1).await;
        assert_eq!(client.kept_revision(&guide.guid).await.revision, 3);
        let deleted = client.force_delete_task(&guide.guid).await.accepted();
        assert_eq!(deleted.previous_revision, 3);
    });
}

/// A guide of three steps with bodies of 700 kB each.
async fn given_large_guide(client: &Client) -> Task {
    let guide = client.given_task(task("Large")).await;
    add_large_steps(client, &guide).await;
    guide
}

async fn add_large_steps(client: &Client, guide: &Task) {
    for title in ["a", "b", "c"] {
        let step = information_step(guide, title).with_body("x".repeat(700_000));
        client.given_step(step).await;
    }
}

#[test]
fn a_guide_that_cannot_be_exported_is_changed_without_a_revision() {
    let settings = [("EXPERTISE_MAX_MESSAGE_BYTES", "1048576")];
    on_sqlite(&settings, async |client| {
        let guide = client.given_task(task("Large").with_published(0)).await;
        client.kept_revision(&guide.guid).await;
        add_large_steps(&client, &guide).await;
        let published = task_of(&guide.guid).with_published(1);
        client.updated_task(published, &["published"]).await;
        let renamed = document_with(task_of(&guide.guid).named("Renamed"), Vec::new());
        let imported = client.import_with(AbsentSteps::Keep, renamed).await;
        let imported = imported.accepted();
        assert_eq!(imported.outcome(), ImportOutcome::Updated);
        assert_eq!(imported.previous_revision, 0);
        let restored = client.restored(&guide.guid, 1).await;
        assert_eq!(restored.outcome(), ImportOutcome::Updated);
        assert_eq!(restored.previous_revision, 0);
        assert_eq!(client.all_revisions(&guide.guid).await.len(), 1);
    });
}

#[test]
fn a_guide_that_cannot_be_exported_is_deleted_without_a_revision() {
    let settings = [("EXPERTISE_MAX_MESSAGE_BYTES", "1048576")];
    on_sqlite(&settings, async |client| {
        let guide = given_large_guide(&client).await;
        let too_large = "MESSAGE_TOO_LARGE";
        let failure = client.export(&guide.guid).await.refused();
        failure.is(Code::ResourceExhausted, too_large);
        let failure = client.call(revision_of(&guide.guid)).await.refused();
        failure.is(Code::ResourceExhausted, too_large);
        let deleted = client.force_delete_task(&guide.guid).await.accepted();
        assert_eq!(deleted.previous_revision, 0);
        let failure = client.get_revision(&guide.guid, 1).await.refused();
        failure.is(Code::NotFound, "TASK_NOT_FOUND");
    });
}

#[test]
fn a_guide_that_never_fits_into_memory_is_not_deleted_without_a_revision() {
    let settings = [
        ("EXPERTISE_MAX_MESSAGE_BYTES", "4194304"),
        ("EXPERTISE_MAX_INFLIGHT_BYTES", "4194304"),
    ];
    on_sqlite(&settings, async |client| {
        let guide = given_large_guide(&client).await;
        let failure = client.force_delete_task(&guide.guid).await.refused();
        failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
        client.get_task(&guide.guid).await.accepted();
        client.purge(&guide.guid).await.accepted();
    });
}

#[test]
#[ignore = "slow"]
fn a_task_has_at_most_a_thousand_requested_revisions() {
    on_sqlite(&[], async |client| {
        let guide = given_guide(&client).await;
        // One that the server made does not count.
        publish(&client, &guide.guid).await;
        for number in 1..=1_000 {
            retitle(&client, &guide.guid, &format!("Title {number}")).await;
            client.kept_revision(&guide.guid).await;
        }
        // What is kept already is no more, and neither is that of another task.
        client.kept_revision(&guide.guid).await;
        let other = given_guide(&client).await;
        client.kept_revision(&other.guid).await;
        retitle(&client, &guide.guid, "One more").await;
        let failure = client.call(revision_of(&guide.guid)).await.refused();
        failure.violates(&[("task", "TOO_MANY_ELEMENTS")]);
        // It counts when it is requested.
        publish(&client, &guide.guid).await;
        let failure = client.call(revision_of(&guide.guid)).await.refused();
        failure.violates(&[("task", "TOO_MANY_ELEMENTS")]);
        let deleted = client.delete_revision(&guide.guid, 2).await;
        deleted.accepted();
        let kept = client.kept_revision(&guide.guid).await;
        assert_eq!(kept.cause(), RevisionCause::Requested);
    });
}

#[test]
fn a_guide_that_is_written_in_parts_comes_back_with_its_outdated_translations() {
    on_sqlite(&[], async |client| {
        let steps = vec![document_step(StepType::Information, "Step"); 5_001];
        let guide = client.given_guide(steps).await;
        let title = StepTranslation::default()
            .with(|it| it.title = Some("Schritt".to_owned()))
            .with(|it| it.locked = Some(false));
        let first = step_of(&guide.steps[0]).with_translations([("de".to_owned(), title)].into());
        client.updated_step(first, &["translations"]).await;
        let work = async || {
            let request =
                translation_work_request(&["de"]).with(|it| it.task = Some(guide.guid.clone()));
            let work = client.list(request).await;
            let mut work = work.into_iter();
            work.find(|work| work.guid == guide.steps[0])
                .map(|it| it.state)
        };
        retitle(&client, &guide.guid, "Another step").await;
        let outdated = work().await;
        assert!(outdated.is_some());
        let deleted = client.force_delete_task(&guide.guid).await.accepted();
        client
            .restored(&guide.guid, deleted.previous_revision)
            .await;
        assert_eq!(work().await, outdated);
    });
}

#[test]
fn an_alias_of_another_task_keeps_no_automatic_revision() {
    let settings = [("EXPERTISE_AUTOMATIC_REVISIONS", "1")];
    on_sqlite(&settings, async |client| {
        let other = given_guide(&client).await;
        client.kept_revision(&other.guid).await;
        client.alias(&other.guid, "live", 1).await;
        let guide = given_guide(&client).await;
        for title in ["a", "b"] {
            let mut changed = client.exported(&guide.guid).await;
            changed.steps[3].title = title.to_owned();
            client.import(changed).await.accepted();
        }
        assert_eq!(numbers(&client, &guide.guid).await, [2]);
    });
}

#[test]
fn automatic_revisions_of_all_causes_count_together() {
    let settings = [("EXPERTISE_AUTOMATIC_REVISIONS", "1")];
    on_sqlite(&settings, async |client| {
        let guide = given_guide(&client).await;
        let requested = client.kept_revision(&guide.guid).await;
        let automatic = async |number: i64, cause: RevisionCause| {
            let mut revisions = client.all_revisions(&guide.guid).await;
            assert_eq!(revisions.pop().as_ref(), Some(&requested));
            let [revision] = &revisions[..] else {
                panic!("{revisions:?}");
            };
            assert_eq!((revision.revision, revision.cause()), (number, cause));
            assert!(revision.size_bytes > 0);
            assert_eq!(revision.note, "");
            assert_eq!((revision.product_id, revision.step_count), (PRODUCT, 5));
        };
        retitle(&client, &guide.guid, "a").await;
        let mut changed = client.exported(&guide.guid).await;
        changed.steps[3].title = "b".to_owned();
        let imported = client.import(changed).await.accepted();
        assert_eq!(imported.previous_revision, 2);
        automatic(2, RevisionCause::BeforeImport).await;
        let restored = client.restored(&guide.guid, 1).await;
        assert_eq!(restored.previous_revision, 3);
        automatic(3, RevisionCause::BeforeRestore).await;
        publish(&client, &guide.guid).await;
        automatic(4, RevisionCause::Published).await;
        retitle(&client, &guide.guid, "c").await;
        let deleted = client.force_delete_task(&guide.guid).await.accepted();
        assert_eq!(deleted.previous_revision, 5);
        automatic(5, RevisionCause::BeforeDelete).await;
    });
}
