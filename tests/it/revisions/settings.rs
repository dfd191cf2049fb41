//! The settings of the history: how many revisions a server makes by itself, and how long the
//! history of a deleted task is kept.

use std::time::Duration;

use expertise::config::Config;

use super::{exported, given_guide, request};
use crate::kit::{
    databases::{empty_postgres, runtime},
    deadline::until,
    prelude::*,
    server::TestServer,
};

/// Runs a test on a server with these settings and a database of its own.
fn on(database_url: &str, settings: impl FnOnce(&mut Config), test: impl AsyncFnOnce(Client)) {
    let mut config = Config::for_tests(database_url);
    settings(&mut config);
    runtime().block_on(async {
        let server = TestServer::start(config).await;
        test(server.client()).await;
        server.shut_down().await;
    });
}

fn deleted_at_once(config: &mut Config) {
    config.deleted_task_retention = Duration::from_millis(1);
}

#[test]
fn histories_of_deleted_tasks_go_after_the_retention_on_sqlite() {
    on("sqlite::memory:", deleted_at_once, deleted_histories_go);
}

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn histories_of_deleted_tasks_go_after_the_retention_on_postgres() {
    on(
        &empty_postgres("retention"),
        deleted_at_once,
        deleted_histories_go,
    );
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
    }
    client.get_revision(&kept.guid, 1).await.accepted();
}

#[test]
fn without_retention_a_deleted_task_keeps_no_history() {
    let settings = |config: &mut Config| config.deleted_task_retention = Duration::ZERO;
    on("sqlite::memory:", settings, async |client| {
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
    let settings = |config: &mut Config| config.automatic_revisions = 0;
    on("sqlite::memory:", settings, async |client| {
        let guide = given_guide(&client).await;
        let mut changed = client.exported(&guide.guid).await;
        changed.steps[3].title = "Changed".to_owned();
        let imported = client.import(changed.clone()).await.accepted();
        assert_eq!(imported.previous_revision, 0);
        let now = exported(&client, &guide.guid).await;
        let made = client
            .create_revision(request(&guide.guid))
            .await
            .accepted();
        assert!(!made.unchanged);
        changed.steps[3].title = "Again".to_owned();
        // The newest revision is of the very state that the import changes.
        let imported = client.import(changed).await.accepted();
        assert_eq!(imported.previous_revision, 1);
        assert_eq!(
            Some(client.revision_document(&guide.guid, 1).await),
            now.document
        );
        let deleted = client.force_delete_task(&guide.guid).await.accepted();
        assert_eq!(deleted.previous_revision, 0);
        assert_eq!(client.all_revisions(&guide.guid).await.len(), 1);
    });
}
