//! No connection to spare: those of the service are held up, or PostgreSQL has no
//! more to give.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use sqlx::Connection;

use crate::harness::{admin, database, deadline, prelude::*, serve};

/// How long a refusal may take: two seconds of patience, and what a busy machine
/// adds.
const FAST: Duration = Duration::from_secs(5);
const FEW: (&str, &str) = ("EXPERTISE_DATABASE_MAX_CONNECTIONS", "2");
const DEADLINE: u64 = 1_000;
const SLACK: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_refused_soon_while_every_connection_is_held_up() {
    let name = "held-up";
    let Some((url, _)) = database(name) else {
        return;
    };
    let server = serve(name, &url, &[FEW]);
    let world = World::at(server.address());
    let caller = (server.address(), world.account());
    let locked = world.given_task(task("Locked")).await;
    let free = world.given_task(task("Free")).await;
    let mut foreign = admin::session(&url).await;

    // A row that somebody else holds: the write that wants it takes the only
    // connection for writes, and those who wait for their turn are refused. Reads
    // go on.
    let hold = format!(
        "BEGIN; SELECT 1 FROM tasks WHERE guid = '{}' FOR UPDATE",
        locked.guid
    );
    admin::run(&mut foreign, &hold).await;
    let blocked = rename(caller, &locked, 20_000);
    let blocked = tokio::spawn(blocked);
    until("the write waits for the row", async || {
        waits_for_a_lock(&url).await.then_some(())
    })
    .await;
    refuses_soon(async || world.updated(&free).await).await;
    in_time(rename(caller, &free, DEADLINE).await);
    in_time(rename(caller, &locked, DEADLINE).await);
    assert_eq!(world.get_task(&locked.guid).await.accepted(), locked);
    admin::run(&mut foreign, "ROLLBACK").await;
    let blocked = blocked.await.expect("it is answered");
    assert_eq!(blocked.code, Code::Ok, "{blocked:?}");

    // A table that somebody else holds: reads wait too, and take all connections.
    admin::run(&mut foreign, "BEGIN; LOCK TABLE tasks").await;
    let reads = (0..12).map(|_| async {
        let begun = Instant::now();
        let read = world.get_task(&free.guid).await;
        (read.refused(), begun.elapsed())
    });
    let refused = futures_util::future::join_all(reads).await;
    let busy = refused.iter().filter(|(failure, took)| {
        assert!(*took < FAST + FAST, "it took {took:?}: {failure:?}");
        failure.code == Code::Unavailable
    });
    for (failure, _) in busy.clone() {
        is_retried(failure);
    }
    assert!(busy.count() > 0, "{refused:?}");
    admin::run(&mut foreign, "ROLLBACK").await;
    until("calls are served", async || world.updated(&free).await.ok()).await;
    assert_eq!(world.get_task(&free.guid).await.accepted().name, "Free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_refused_soon_while_postgres_has_no_connection_to_give() {
    let name = "too-many";
    let Some((url, _)) = database(name) else {
        return;
    };
    let owned = format!("CREATE ROLE service LOGIN; ALTER DATABASE \"{name}\" OWNER TO service");
    admin::once(&url, &owned).await;
    let server = serve(name, &url.replace("postgres@", "service@"), &[]);
    let health = Health::of(server.address());
    let world = World::at(server.address());
    let caller = (server.address(), world.account());
    let known = world.given_task(task("Known")).await;

    // SQLSTATE too_many_connections, as when PostgreSQL's own limit is reached.
    let none = format!(
        "ALTER ROLE service CONNECTION LIMIT 0; {}",
        admin::END_SESSIONS
    );
    admin::once(&url, &none).await;
    refuses_soon(async || world.updated(&known).await).await;
    refuses_soon(async || world.get_task(&known.guid).await).await;
    in_time(rename(caller, &known, DEADLINE).await);
    health.is_bad().await;

    let some = "ALTER ROLE service CONNECTION LIMIT -1";
    admin::once(&url, some).await;
    until("calls are served", async || {
        world.updated(&known).await.ok()
    })
    .await;
    health.is_good().await;
}

impl World {
    /// Writes the task as it is.
    async fn updated(&self, task: &Task) -> Result<Task, tonic::Status> {
        let task = Task {
            etag: String::new(),
            ..task.clone()
        };
        let response = self.update_task(task, &["published"]).await?;
        Ok(response.task.expect("the response holds the task"))
    }
}

/// Asserts that a call is refused, and soon, and told when to come again.
async fn refuses_soon<T: std::fmt::Debug>(call: impl AsyncFn() -> Result<T, tonic::Status>) {
    for _ in 0..2 {
        let begun = Instant::now();
        let failure = call().await.refused();
        let took = begun.elapsed();
        is_retried(&failure);
        assert!(took < FAST, "it took {took:?}");
        println!("refused after {took:?}: {}", failure.message);
    }
}

#[track_caller]
fn is_retried(failure: &Failure) {
    failure.is(Code::Unavailable, "STORE_UNAVAILABLE");
    let retry = failure.details.retry_info();
    assert!(retry.is_some_and(|retry| retry.retry_delay.is_some()));
}

/// Renames a task, within so many milliseconds.
fn rename(
    (server, account): (SocketAddr, &str),
    task: &Task,
    millis: u64,
) -> impl Future<Output = deadline::Answer> + use<> {
    let request = UpdateTaskRequest {
        task: Some(Task {
            name: format!("{} no more", task.name),
            ..task_of(&task.guid)
        }),
        update_mask: field_mask(&["name"]),
        validate_only: false,
    };
    let account = account.to_owned();
    async move {
        let caller = (server, account.as_str());
        deadline::call(caller, "TaskService/UpdateTask", &request, millis).await
    }
}

/// Asserts that a call was refused and did not pass [`DEADLINE`].
#[track_caller]
fn in_time(answer: deadline::Answer) {
    let is_expected = matches!(answer.code, Code::DeadlineExceeded | Code::Unavailable);
    assert!(is_expected, "{answer:?}");
    let bound = Duration::from_millis(DEADLINE) + SLACK;
    assert!(answer.took < bound, "{answer:?}");
}

async fn waits_for_a_lock(url: &str) -> bool {
    let mut session = admin::session(url).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let waiting: i64 = sqlx::query_scalar(waiting)
        .fetch_one(&mut session)
        .await
        .expect("a count");
    session.close().await.expect("it is closed");
    waiting > 0
}
