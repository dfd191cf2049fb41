//! Writes that wait in SQLite's queue while another process holds the database.

use std::time::{Duration, Instant};

use tokio::{task::JoinSet, time::timeout};
use tonic::Request;

use crate::{
    kit::{
        deadline::{until, until_true},
        scratch::Scratch,
        server::{Settings, TestServer, with_metrics},
        sql::SqlConnection,
    },
    ops::exposition::Exposition,
    prelude::*,
};

const WRITES: usize = 8;

/// Has writes with this deadline wait while another process holds the database, until all
/// are answered; the codes of their answers, and the names of the tasks that are stored
/// once a later write is.
async fn write_to_a_held_database(
    name: &str,
    deadline: Duration,
) -> (Vec<Result<(), Failure>>, Vec<String>) {
    let url = Scratch::of_this_run().sqlite_url(name);
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let mut holder = SqlConnection::open(&url).await;
    holder.execute("BEGIN IMMEDIATE").await;
    let mut writes = JoinSet::new();
    for _ in 0..WRITES {
        let client = client.clone();
        writes.spawn(async move {
            let mut request = Request::new(create_task_request(task("Held up")));
            request.set_timeout(deadline);
            let answer = client.send(request).await;
            answer.map(drop).map_err(Failure::from)
        });
    }
    let has_all =
        |metrics: &Exposition| metrics.sum("expertise_calls_in_work", &[]) == WRITES as f64;
    server.wait_for_metrics("the writes wait", has_all).await;
    let answers = writes.join_all().await;
    holder.execute("ROLLBACK").await;
    // It is last in the queue.
    client.given_task(task("Last")).await;
    let stored = client.all_tasks().await;
    server.shut_down().await;
    (answers, stored.into_iter().map(|task| task.name).collect())
}

#[tokio::test]
async fn a_write_whose_deadline_has_passed_in_the_queue_is_never_stored() {
    let deadline = Duration::from_secs(3);
    let (answers, stored) = write_to_a_held_database("late", deadline).await;
    for answer in answers {
        let failure = answer.expect_err("the database is held");
        // The client may see it first.
        let late = [Code::DeadlineExceeded, Code::Cancelled];
        assert!(late.contains(&failure.code), "{failure:?}");
    }
    assert_eq!(stored, ["Last"]);
}

/// A server, and another process that may hold its database. A write waits for half of the request
/// timeout.
async fn server_and_holder(name: &str) -> (TestServer, SqlConnection) {
    let url = Scratch::of_this_run().sqlite_url(name);
    let settings = Settings::new(&url).set("EXPERTISE_REQUEST_TIMEOUT", "3s");
    let server = TestServer::start(settings).await;
    (server, SqlConnection::open(&url).await)
}

#[tokio::test]
async fn a_write_that_another_process_holds_up_is_refused_and_may_be_retried() {
    let (server, mut holder) = server_and_holder("held").await;
    let client = server.client();
    holder.execute("BEGIN EXCLUSIVE").await;
    let failure = client.create_task(task("Held up")).await.refused();
    failure.is(Code::Unavailable, "STORE_UNAVAILABLE");
    assert!(failure.details.retry_info().is_some(), "{failure:?}");
    let line = "a write waited too long for its turn on SQLite: another process locks the file";
    until_true("the wait is logged", || server.log().contains(line)).await;
    holder.execute("ROLLBACK").await;
    client.given_task(task("Retried")).await;
    until_true("the end is logged", || {
        server.log().contains("writes work again")
    })
    .await;
    let stored = client.all_tasks().await.into_iter().map(|task| task.name);
    assert_eq!(stored.collect::<Vec<_>>(), ["Retried"]);
    assert!(server.terminate().success());
}

#[tokio::test]
async fn changes_that_another_process_keeps_without_an_order_come_later() {
    let (server, mut holder) = server_and_holder("held_feed").await;
    let client = server.client();
    let cursor = client.cursor_now().await;
    let stored = client.given_task(task("Stored")).await;
    holder.execute("BEGIN IMMEDIATE").await;
    let page = client.call(changes_behind(&cursor)).await.accepted();
    assert_eq!((page.changes, page.caught_up), (Vec::new(), false));
    assert_eq!(page.next_cursor, cursor);
    holder.execute("ROLLBACK").await;
    let (changes, _) = client.changes_after(&cursor).await;
    let tasks = changes.into_iter().map(|change| change.task);
    assert_eq!(tasks.collect::<Vec<_>>(), [stored.guid]);
    server.shut_down().await;
}

/// 128 calls are worked on, 96 of one account, and 1,024 wait for a permit, 768 of one account.
#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_queue_are_refused_and_so_are_those_that_wait_too_long() {
    let url = Scratch::of_this_run().sqlite_url("full_queue");
    let server = TestServer::start(with_metrics(&url)).await;
    let mut holder = SqlConnection::open(&url).await;
    holder.execute("BEGIN IMMEDIATE").await;
    let mut calls = JoinSet::new();
    let mut begin = |account: &'static str, count: usize| {
        for begun in (0..count).step_by(100) {
            let client = server.client().with_account(account);
            for _ in begun..count.min(begun + 100) {
                let client = client.clone();
                calls.spawn(async move { client.create_task(task("Held up")).await.map(drop) });
            }
        }
    };
    // On a slow machine some of them have given up before the others are there.
    let waiting = |count: f64| {
        let is = move |metrics: &Exposition| {
            let waiting = metrics.sum("expertise_calls_waiting", &[]);
            (count - 20.0..=count).contains(&waiting)
        };
        server.wait_for_metrics("calls wait", is)
    };
    let rejected = async |cause| {
        let metrics = server.metrics().await;
        metrics.sum("expertise_rejected_calls_total", &[("cause", cause)])
    };
    let client = server.client();
    let mut late = Request::new(create_task_request(task("Late")));
    late.set_timeout(Duration::from_secs(2));
    let in_work = |count: f64| {
        let is = move |metrics: &Exposition| metrics.sum("expertise_calls_in_work", &[]) == count;
        server.wait_for_metrics("calls are worked on", is)
    };
    // One account leaves a quarter to others, which need not wait.
    begin("demo", 128);
    in_work(96.0).await;
    waiting(32.0).await;
    let other = server.client().with_account("other");
    let request = ListTasksRequest::default();
    other.call(request).await.accepted();
    begin("other", 32);
    in_work(128.0).await;
    let begun = Instant::now();
    let failure = client.send(late).await.refused();
    failure.is(Code::ResourceExhausted, "OVERLOADED");
    assert!(
        failure.message.contains("too long for its turn"),
        "{failure:?}"
    );
    assert!(failure.details.retry_info().is_some(), "{failure:?}");
    let half = Duration::from_secs(1);
    assert!(begun.elapsed() >= half, "half of its time is for the work");
    assert!(rejected("queue_timeout").await >= 1.0);
    assert_eq!(rejected("queue_full").await, 0.0);

    // One account leaves a quarter of the places, too.
    begin("demo", 768 - 32);
    waiting(768.0).await;
    is_refused(&server.client().with_account("demo")).await;
    assert!(rejected("queue_full").await >= 1.0);
    begin("other", 256);
    waiting(1_024.0).await;
    is_refused(&client).await;
    assert!(rejected("queue_full").await >= 2.0);
    calls.shutdown().await;
}

/// Makes calls until one is rejected. Earlier calls wait.
async fn is_refused(client: &Client) {
    let mut calls = JoinSet::new();
    let refused = until("a call is refused", async || {
        let client = client.clone();
        calls.spawn(async move { client.create_task(task("Too many")).await });
        let ended = timeout(Duration::from_millis(200), calls.join_next()).await;
        let answer = ended.ok()??.expect("no panic");
        let failure = Failure::from(answer.err()?);
        (failure.code == Code::ResourceExhausted).then_some(failure)
    });
    let failure = refused.await;
    failure.is(Code::ResourceExhausted, "OVERLOADED");
    assert!(failure.message.contains("too many calls"), "{failure:?}");
    assert!(failure.details.retry_info().is_some(), "{failure:?}");
}

#[tokio::test]
#[ignore = "slow: it waits for half a minute"]
async fn a_write_that_is_refused_in_the_queue_is_never_stored() {
    let deadline = Duration::from_secs(25);
    let (answers, stored) = write_to_a_held_database("refused", deadline).await;
    let refused = answers.iter().flat_map(|answer| answer.as_ref().err());
    let unavailable = refused.filter(|failure| failure.code == Code::Unavailable);
    assert!(unavailable.count() > 0, "{answers:?}");
    assert!(answers.iter().all(Result::is_err), "{answers:?}");
    assert_eq!(stored, ["Last"]);
}
