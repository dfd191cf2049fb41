//! Calls that wait for changes.

use std::time::{Duration, Instant};

use prost_types::Duration as ProtoDuration;
use tokio::task::JoinHandle;
use tonic::Request;

use crate::{
    kit::{
        deadline::{in_time, until},
        server::{TestServer, with_metrics},
        sql::SqlConnection,
    },
    prelude::*,
};

fn waiting(cursor: &str, seconds: i64) -> ListChangesRequest {
    changes_behind(cursor).with(|it| it.wait = Some(ProtoDuration { seconds, nanos: 0 }))
}

type Answer = JoinHandle<Result<ListChangesResponse, tonic::Status>>;

fn ask(client: &Client, request: ListChangesRequest) -> Answer {
    let client = client.clone();
    tokio::spawn(async move { client.call(request).await })
}

async fn answered(answer: Answer) -> ListChangesResponse {
    in_time("the answer", answer)
        .await
        .expect("an answer")
        .accepted()
}

#[apply(on_both_databases)]
async fn a_wait_ends_with_a_change(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let cursor = client.cursor_now().await;
    let oldest = waiting("", 60).with(|it| it.set_start(ChangeStart::Oldest));
    let answers = [waiting(&cursor, 60), oldest].map(|request| ask(&client, request));
    until_waiting(&server, 2.0).await;
    let guide = client.given_task(task("Guide")).await;
    for answer in answers {
        let page = answered(answer).await;
        let tasks: Vec<&str> = page.changes.iter().map(|change| &*change.task).collect();
        assert_eq!(tasks, [&*guide.guid]);
    }
    // With something to send, nothing is waited for.
    let page = answered(ask(&client, waiting(&cursor, 60))).await;
    assert_eq!(page.changes.len(), 1);
    server.shut_down().await;
}

#[apply(on_both_databases)]
async fn a_wait_ends_with_its_time(client: Client) {
    let cursor = client.cursor_now().await;
    let began = Instant::now();
    client.other_account().given_task(task("Other")).await;
    let mut request = waiting(&cursor, 1);
    request.wait.as_mut().expect("a time").nanos = 200_000_000;
    let page = answered(ask(&client, request)).await;
    assert!(began.elapsed() >= Duration::from_millis(1_200));
    assert!(page.changes.is_empty() && page.caught_up);
    // The start at the present has nothing to wait for.
    let now = waiting("", 60)
        .with(|it| it.cursor = String::new())
        .with(|it| it.set_start(ChangeStart::Now));
    let page = answered(ask(&client, now)).await;
    assert!(page.changes.is_empty() && page.caught_up);
}

#[apply(on_both_databases)]
async fn a_wait_for_a_task_goes_on_over_other_changes(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let guide = client.given_task(task("Guide")).await;
    let cursor = client.cursor_now().await;
    let of_task = waiting(&cursor, 60).with(|it| it.task = guide.guid.clone());
    let answer = ask(&client, of_task);
    until_waiting(&server, 1.0).await;
    client.given_task(task("Other")).await;
    // Longer than the database is asked again.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!answer.is_finished(), "it ends with another change");
    let step = client.given_step(information_step(&guide, "Step")).await;
    let page = answered(answer).await;
    let steps: Vec<&str> = page.changes.iter().map(|change| &*change.step).collect();
    assert_eq!(steps, [&*step.guid]);
    server.shut_down().await;
}

#[apply(on_both_databases)]
async fn an_answer_comes_before_the_deadline_of_the_caller(client: Client) {
    let cursor = client.cursor_now().await;
    let mut request = Request::new(waiting(&cursor, 60));
    request.set_timeout(Duration::from_secs(2));
    let page = client.send(request).await.accepted();
    assert!(page.caught_up);
}

#[apply(on_both_databases)]
async fn the_time_limit_of_the_server_does_not_count(url: String) {
    let settings = with_metrics(&url).set("EXPERTISE_REQUEST_TIMEOUT", "1500ms");
    let server = TestServer::start(settings).await;
    let client = server.client();
    let cursor = client.cursor_now().await;
    let page = answered(ask(&client, waiting(&cursor, 3))).await;
    assert!(page.caught_up);
    server.shut_down().await;
}

/// Until so many calls wait.
async fn until_waiting(server: &TestServer, count: f64) {
    until("calls wait", async || {
        let metrics = server.metrics().await;
        (metrics.sum("expertise_waiting_calls", &[]) == count).then_some(())
    })
    .await;
}

/// One call reads the new changes for all waiting calls.
#[apply(on_both_databases)]
async fn waits_for_a_task_read_other_changes_once(url: String) {
    const WAITING: usize = 50;
    const WRITES: usize = 5;
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let guide = client.given_task(task("Guide")).await;
    let cursor = client.cursor_now().await;
    let of_task = waiting(&cursor, 60).with(|it| it.task = guide.guid.clone());
    let answers: Vec<Answer> = (0..WAITING)
        .map(|_| ask(&client, of_task.clone()))
        .collect();
    until_waiting(&server, WAITING as f64).await;
    let statements = async || {
        let metrics = server.metrics().await;
        metrics.sum("expertise_database_statement_seconds_count", &[])
    };
    let before = statements().await;
    for _ in 0..WRITES {
        client.given_task(task("Other")).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let took = statements().await - before;
    let of_each = (WAITING * WRITES) as f64;
    assert!(took < of_each / 2.0, "{took} statements");
    client.given_step(information_step(&guide, "Step")).await;
    for answer in answers {
        assert_eq!(answered(answer).await.changes.len(), 1);
    }
    server.shut_down().await;
}

#[apply(on_both_databases)]
async fn a_shutdown_answers_at_once(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let cursor = client.cursor_now().await;
    let waiting = ask(&client, waiting(&cursor, 60));
    until_waiting(&server, 1.0).await;
    let shutdown = server.begin_shutdown();
    assert_eq!(answered(waiting).await.next_cursor, cursor);
    in_time("the end", shutdown)
        .await
        .expect("an end")
        .expect("an end");
}

#[apply(on_both_databases)]
async fn at_most_100_calls_of_an_account_wait(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let cursor = client.cursor_now().await;
    // A connection has at most 100 concurrent calls.
    let waiters = client.over_new_connection();
    let answers: Vec<Answer> = (0..100)
        .map(|_| ask(&waiters, waiting(&cursor, 60)))
        .collect();
    until_waiting(&server, 100.0).await;
    let failure = client.call(waiting(&cursor, 60)).await.refused();
    failure.is(Code::ResourceExhausted, "OVERLOADED");
    // Who does not wait is served, and so is another account.
    client.call(waiting(&cursor, 0)).await.accepted();
    let other = client.other_account();
    let cursor_of_other = other.cursor_now().await;
    answered(ask(&other, waiting(&cursor_of_other, 1))).await;
    client.given_task(task("Guide")).await;
    for answer in answers {
        assert_eq!(answered(answer).await.changes.len(), 1);
    }
    until_waiting(&server, 0.0).await;
    server.shut_down().await;
}

/// The database is asked twice a second for each account, and once by the call at its beginning and
/// at its end.
#[apply(on_both_databases)]
async fn a_call_that_waits_alone_is_not_asked_again_and_again(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    client.given_task(task("Guide")).await;
    let cursor = client.cursor_now().await;
    let statements = async || {
        let metrics = server.metrics().await;
        metrics.sum("expertise_database_statement_seconds_count", &[])
    };
    let before = statements().await;
    answered(ask(&client, waiting(&cursor, 3))).await;
    let took = statements().await - before;
    assert!((2.0..=14.0).contains(&took), "{took} statements");
    server.shut_down().await;
}

/// On SQLite the server is the only one, and what it wrote itself is seen in the same way.
#[apply(on_both_databases)]
async fn what_another_server_writes_is_seen(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let reader = server.client();
    let other = match url.starts_with("postgres") {
        true => Some(TestServer::start(with_metrics(&url)).await),
        false => None,
    };
    let writer = other.as_ref().unwrap_or(&server).client();
    let writer = writer.with_account(reader.account());
    let cursor = reader.cursor_now().await;
    let waiting = ask(&reader, waiting(&cursor, 60));
    until_waiting(&server, 1.0).await;
    let guide = writer.given_task(task("Guide")).await;
    assert_eq!(answered(waiting).await.changes[0].task, guide.guid);
    if let Some(other) = other {
        other.shut_down().await;
    }
    server.shut_down().await;
}

/// A change that another server wrote, and that a reader there put in order immediately.
#[apply(on_both_databases)]
async fn what_another_server_puts_in_order_is_seen(url: String) {
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let guide = client.given_task(task("Guide")).await;
    let cursor = client.cursor_now().await;
    let began = Instant::now();
    let waiting = ask(&client, waiting(&cursor, 40));
    until_waiting(&server, 1.0).await;
    let columns = "transaction_id, transaction_size, kind, task, version, changed_ts, step_count, \
        fields, rpc, subject";
    let write = format!(
        "BEGIN; INSERT INTO changes (account_id, position, {columns}) \
         SELECT account_id, position + 1, {columns} FROM changes WHERE account_id = 'demo'; \
         UPDATE change_feeds SET head = head + 1 WHERE account_id = 'demo'; COMMIT"
    );
    SqlConnection::open(&url).await.execute(&write).await;
    assert_eq!(answered(waiting).await.changes[0].task, guide.guid);
    assert!(began.elapsed() < Duration::from_secs(20));
    server.shut_down().await;
}
