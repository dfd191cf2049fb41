//! No free connection: those of the service are blocked, or PostgreSQL accepts no
//! more.

use std::time::{Duration, Instant};

use tonic::Status;

use super::{DEADLINE, END_SESSIONS, SLACK, TimedCode, call_with_deadline, prelude::*, serve};
use crate::kit::server::Setting;

/// The most time that a refusal may take: the server waits two seconds for a connection.
const MAX_REFUSAL_TIME: Duration = Duration::from_secs(2).saturating_add(SLACK);
/// The deadline of a call that waits until the test unblocks it.
const LONG_DEADLINE: Duration = Duration::from_secs(20);
const TWO_CONNECTIONS: Setting = ("EXPERTISE_DATABASE_MAX_CONNECTIONS", "2");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn calls_are_refused_soon_while_every_connection_is_blocked() {
    let _machine = machine::shared();
    let name = "blocked";
    let cluster = shared_cluster();
    let url = cluster.make_database(name);
    let service = serve(name, &url, &[TWO_CONNECTIONS]);
    let client = service.client();
    let locked = client.given_task(task("Locked")).await;
    let free = client.given_task(task("Free")).await;
    let mut other_session = SqlConnection::open(&url).await;

    // Another session locks a row: the write that waits for it takes the only connection
    // for writes, and writes that wait for a connection are refused. Reads are served.
    let lock = format!(
        "BEGIN; SELECT 1 FROM tasks WHERE guid = '{}' FOR UPDATE",
        locked.guid
    );
    other_session.execute(&lock).await;
    let blocked = tokio::spawn(rename(&client, &locked, LONG_DEADLINE));
    until("the write waits for the row", async || {
        waits_for_a_lock(&url).await.then_some(())
    })
    .await;
    is_refused_soon(async || write_unchanged(&client, &free).await).await;
    rename(&client, &free, DEADLINE).await.is_refused_in_time();
    rename(&client, &locked, DEADLINE)
        .await
        .is_refused_in_time();
    assert_eq!(client.get_task(&locked.guid).await.accepted(), locked);
    other_session.execute("ROLLBACK").await;
    let blocked = blocked.await.expect("it is answered");
    assert_eq!(blocked.code, Code::Ok, "{blocked:?}");

    // Another session locks a table: reads wait too, and take all connections.
    other_session.execute("BEGIN; LOCK TABLE tasks").await;
    let reads = (0..12).map(|_| async {
        let started = Instant::now();
        let read = client.get_task(&free.guid).await;
        (read.refused(), started.elapsed())
    });
    let refused = futures_util::future::join_all(reads).await;
    let busy = refused.iter().filter(|(failure, took)| {
        assert!(
            *took < MAX_REFUSAL_TIME * 2,
            "it took {took:?}: {failure:?}"
        );
        failure.code == Code::Unavailable
    });
    for (failure, _) in busy.clone() {
        says_when_to_retry(failure);
    }
    assert!(busy.count() > 0, "{refused:?}");
    other_session.execute("ROLLBACK").await;
    until("calls are served", async || {
        write_unchanged(&client, &free).await.ok()
    })
    .await;
    assert_eq!(client.get_task(&free.guid).await.accepted().name, "Free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn calls_are_refused_soon_while_postgres_accepts_no_connections() {
    let _machine = machine::shared();
    let name = "too-many";
    let cluster = shared_cluster();
    let url = cluster.make_database(name);
    let owned = format!("CREATE ROLE service LOGIN; ALTER DATABASE \"{name}\" OWNER TO service");
    SqlConnection::open(&url).await.execute(&owned).await;
    let service = serve(name, &url.replace("postgres@", "service@"), &[]);
    let health = Health::of(service.address());
    let client = service.client();
    let known = client.given_task(task("Known")).await;

    // SQLSTATE too_many_connections, as when PostgreSQL's own limit is reached.
    let none = format!("ALTER ROLE service CONNECTION LIMIT 0; {}", END_SESSIONS);
    SqlConnection::open(&url).await.execute(&none).await;
    is_refused_soon(async || write_unchanged(&client, &known).await).await;
    is_refused_soon(async || client.get_task(&known.guid).await).await;
    rename(&client, &known, DEADLINE).await.is_refused_in_time();
    health.wait_until_not_serving().await;

    let some = "ALTER ROLE service CONNECTION LIMIT -1";
    SqlConnection::open(&url).await.execute(some).await;
    until("calls are served", async || {
        write_unchanged(&client, &known).await.ok()
    })
    .await;
    health.wait_until_serving().await;
}

/// Writes the task as it is.
async fn write_unchanged(client: &Client, task: &Task) -> Result<UpdateTaskResponse, Status> {
    let task = task.clone().with_etag("");
    client.update_task(task, &["published"]).await
}

/// Asserts that a call is refused soon, and that the error says when to retry.
async fn is_refused_soon<T: std::fmt::Debug>(call: impl AsyncFn() -> Result<T, Status>) {
    for _ in 0..2 {
        let started = Instant::now();
        let failure = call().await.refused();
        let took = started.elapsed();
        says_when_to_retry(&failure);
        assert!(took < MAX_REFUSAL_TIME, "it took {took:?}");
        println!("refused after {took:?}: {}", failure.message);
    }
}

#[track_caller]
fn says_when_to_retry(failure: &Failure) {
    failure.is(Code::Unavailable, "STORE_UNAVAILABLE");
    let retry = failure.details.retry_info();
    assert!(retry.is_some_and(|retry| retry.retry_delay.is_some()));
}

/// Renames a task.
fn rename(
    client: &Client,
    task: &Task,
    deadline: Duration,
) -> impl Future<Output = TimedCode> + use<> {
    let request = UpdateTaskRequest {
        task: Some(task_of(&task.guid).named(format!("{} renamed", task.name))),
        update_mask: field_mask(&["name"]),
        validate_only: false,
    };
    let client = client.clone();
    async move { call_with_deadline(&client, "TaskService/UpdateTask", &request, deadline).await }
}

async fn waits_for_a_lock(url: &str) -> bool {
    let mut session = SqlConnection::open(url).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    session.number(waiting).await > 0
}
