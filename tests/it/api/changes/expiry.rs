//! Changes that are no longer kept, and databases that were restored or replaced.

use std::time::Duration;

use crate::{
    command::Cli,
    databases::postgres,
    kit::{
        deadline::until,
        postgres::copy_database,
        scratch::Scratch,
        server::{CHANGES_RETENTION, TestServer, with_metrics},
        sql::SqlConnection,
    },
    prelude::*,
};

/// Writes until the server deletes old changes.
const WRITES: usize = 256;

fn behind(cursor: &str) -> ListChangesRequest {
    changes_behind(cursor).with(|it| it.page_size = 50)
}

fn is_expired(status: tonic::Status) {
    let failure = Failure::from(status);
    failure.is(Code::FailedPrecondition, "CURSOR_EXPIRED");
    assert_eq!(failure.preconditions(), [("CURSOR_EXPIRED", "cursor")]);
}

#[apply(on_both_databases)]
async fn what_is_too_old_expires_but_for_the_newest(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let (busy, quiet) = (server.client(), server.client().with_account("quiet"));
    quiet.given_task(task("Quiet")).await;
    let first_of_quiet = quiet.cursor_now().await;
    quiet.given_task(task("Quiet")).await;
    let cursor_of_quiet = quiet.cursor_now().await;
    let start = busy.cursor_now().await;
    let guide = busy.given_task(task("Busy")).await;
    let rename = async |number: usize| {
        busy.rename(&guide.guid, format!("Busy {number}")).await;
    };
    // Three writes were made. The last one has the others of its account deleted.
    for number in 4..WRITES {
        rename(number).await;
    }
    let (read, _) = busy.changes_after(&start).await;
    let mut database = SqlConnection::open(&url).await;
    database.age_changes(CHANGES_RETENTION).await;
    rename(WRITES).await;
    let expired = async || busy.call(behind(&start)).await.err();
    is_expired(until("the oldest changes are deleted", expired).await);
    // The kept changes begin after the deleted ones, and include the newest change.
    let oldest = changes_from(ChangeStart::Oldest).with(|it| it.page_size = 500);
    // A page is not caught up while another reader puts changes in order.
    let caught_up = async || {
        let page = busy.call(oldest.clone()).await.accepted();
        page.caught_up.then_some(page)
    };
    let kept = until("the newest change is in order", caught_up).await;
    let newest = kept.changes.last().expect("the newest change");
    assert_eq!(
        newest.etag,
        busy.get_task(&guide.guid).await.accepted().etag
    );
    // Deleted changes are counted once the deletion is committed.
    let counted = async || {
        let pruned = server.metrics().await;
        let pruned = pruned.sum("expertise_pruned_changes_total", &[]) as usize;
        (pruned > 0).then_some(pruned)
    };
    let pruned = until("the deleted changes are counted", counted).await;
    assert_eq!(pruned + kept.changes.len(), WRITES - 2);
    assert_eq!(busy.changes_after(&newest.cursor).await.0, []);
    // No change is missing after the last deleted one.
    let [.., before, last] = &read[..pruned] else {
        panic!("{pruned} were deleted");
    };
    assert_eq!(busy.changes_after(&last.cursor).await.0, kept.changes);
    is_expired(busy.call(behind(&before.cursor)).await.unwrap_err());
    let cli = Cli {
        server: format!("http://{}", busy.address()),
        account: busy.account().to_owned(),
    };
    let output = cli.command(&["changes", "--since", &before.cursor]);
    let output = output.run_in_background().await;
    output.fails_with(1, &["CURSOR_EXPIRED", "changes --since oldest"]);
    // The cursor of an account without writes never expires.
    let page = quiet.call(behind(&cursor_of_quiet)).await.accepted();
    assert!(page.changes.is_empty() && page.caught_up);
    assert_eq!(quiet.changes_after(&first_of_quiet).await.0.len(), 1);
    server.shut_down().await;
}

#[tokio::test]
async fn what_is_younger_than_the_retention_is_kept() {
    let server = TestServer::start(with_metrics("sqlite::memory:")).await;
    let client = server.client();
    let guide = client.given_task(task("Guide")).await;
    for number in 1..WRITES {
        client.rename(&guide.guid, format!("Guide {number}")).await;
    }
    // Old changes are deleted by the transaction that puts the others in order.
    let sequenced = "expertise_sequenced_changes_total";
    let metrics = server.wait_for_metrics("changes are put in order", |metrics| {
        metrics.sum(sequenced, &[]) > 0.0
    });
    assert_eq!(metrics.await.sum(sequenced, &[]), WRITES as f64);
    let oldest = changes_from(ChangeStart::Oldest).with(|it| it.page_size = 500);
    let kept = client.call(oldest).await.accepted();
    assert_eq!(kept.changes.len(), WRITES);
    server.shut_down().await;
}

#[tokio::test]
async fn a_cursor_of_another_database_is_refused() {
    let start = async || TestServer::start(with_metrics("sqlite::memory:")).await;
    let (server, other) = (start().await, start().await);
    let cursor = other.client().cursor_now().await;
    let failure = server.client().call(behind(&cursor)).await;
    failure.refused().violates(&[("cursor", "CURSOR_INVALID")]);
    for server in [server, other] {
        server.shut_down().await;
    }
}

#[apply(on_both_databases)]
async fn a_reader_meets_every_change_or_learns_of_the_gap(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let mut database = SqlConnection::open(&url).await;
    let mut cursor = client.cursor_now().await;
    let writer = client.over_new_connection();
    let writing = tokio::spawn(async move {
        let mut created = Vec::new();
        for number in 0..4 * WRITES {
            let name = format!("Guide {number}");
            created.push(writer.given_task(task(&name)).await.guid);
        }
        created
    });
    // It reads more slowly than the writers write, so its cursor expires. Each gap starts a new
    // run.
    let mut runs = vec![Vec::new()];
    loop {
        let is_last = writing.is_finished();
        match client.call(behind(&cursor)).await {
            Ok(page) => {
                let met = page.changes.into_iter().map(|change| change.task);
                runs.last_mut().expect("a run").extend(met);
                cursor = page.next_cursor;
                if is_last && page.caught_up {
                    break;
                }
            }
            Err(status) => {
                is_expired(status);
                runs.push(Vec::new());
                cursor = client.cursor_now().await;
            }
        }
        if !is_last {
            database.age_changes(CHANGES_RETENTION / 2).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let written = writing.await.expect("the writes");
    for run in &runs {
        let is_part = written.windows(run.len().max(1)).any(|part| part == run);
        assert!(run.is_empty() || is_part, "{runs:?} of {written:?}");
    }
    let last = runs.last().and_then(|run| run.last());
    assert!(
        last.is_none() || last == written.last(),
        "{runs:?} of {written:?}"
    );
    let is_complete = runs.len() > 1 || runs.concat() == written;
    assert!(is_complete, "{runs:?} of {written:?}");
    server.shut_down().await;
}

/// One cursor from after the copy was made, and one from before. Then the copy is served, and
/// changed until its feed is longer than the original's.
async fn a_copy_is_noticed(original: &str, copied: impl AsyncFnOnce() -> String) {
    let server = TestServer::start(with_metrics(original)).await;
    let client = server.client();
    let guide = client.given_task(task("Guide")).await;
    let before = client.cursor_now().await;
    server.shut_down().await;
    let copy = copied().await;
    let server = TestServer::start(with_metrics(original)).await;
    let client = server.client();
    client.given_step(information_step(&guide, "Lost")).await;
    let after = client.cursor_now().await;
    server.shut_down().await;

    let server = TestServer::start(with_metrics(&copy)).await;
    let client = server.client();
    is_expired(client.call(behind(&after)).await.unwrap_err());
    let mut steps = Vec::new();
    for title in ["another", "and another"] {
        let step = client.given_step(information_step(&guide, title)).await;
        steps.push((ChangeKind::StepCreated, step.guid));
        let (changes, _) = client.changes_after(&before).await;
        let changes = changes.into_iter();
        let changes: Vec<_> = changes.map(|it| (it.kind(), it.step)).collect();
        assert_eq!(changes, steps);
        is_expired(client.call(behind(&after)).await.unwrap_err());
    }
    server.shut_down().await;
}

#[tokio::test]
async fn a_restored_file_is_noticed() {
    let scratch = Scratch::of_this_run();
    let (original, copy) = (scratch.sqlite_url("dumped"), scratch.sqlite_url("restored"));
    let file = |url: &str| url.trim_start_matches("sqlite:").to_owned();
    a_copy_is_noticed(&original, async || {
        std::fs::copy(file(&original), file(&copy)).expect("a copy");
        copy.clone()
    })
    .await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_restored_database_is_noticed() {
    let original = postgres("dumped");
    a_copy_is_noticed(&original, async || copy_database(&original, "restored")).await;
}
