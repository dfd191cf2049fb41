//! A PostgreSQL that hangs: connections stay open, nothing is answered.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use crate::harness::{admin, database, deadline, prelude::*, rounds, serve};

const CALLERS: usize = 6;
/// The longest that a call may take here by the server's settings.
const TIMEOUT: Duration = Duration::from_secs(3);
/// What a busy machine may add.
const SLACK: Duration = Duration::from_secs(3);
/// A deadline of a caller's own, in milliseconds.
const DEADLINE: u64 = 1_000;

/// How the silence ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// What was held arrives late.
    Resumed,
    /// The connections break.
    Broken,
    /// The connections stay silent for ever, and new ones are served.
    Replaced,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_end_by_their_deadline_while_postgres_hangs_and_go_on_after() {
    let name = "silent";
    let Some((direct, port)) = database(name) else {
        return;
    };
    let relay = Relay::to(port);
    let url = direct.replace(&port.to_string(), &relay.port().to_string());
    let timeout = format!("{}s", TIMEOUT.as_secs());
    let server = serve(name, &url, &[("EXPERTISE_REQUEST_TIMEOUT", &timeout)]);
    let health = Health::of(server.address());
    let world = World::at(server.address());
    let known = world.given_task(task("Known")).await;
    health.is_good().await;
    let mut load = Load::on(server.address(), CALLERS);
    for _ in 0..rounds() {
        for end in [End::Resumed, End::Broken, End::Replaced] {
            load.is_served(20).await;
            relay.hold();
            health.is_bad().await;
            load.reads_are_refused(3).await;
            load.writes_are_refused(3).await;
            deadlines_hold((server.address(), world.account()), &known).await;
            match end {
                End::Resumed => relay.resume(),
                End::Broken => relay.cut(),
                End::Replaced => relay.abandon(),
            }
            let back = Instant::now();
            load.is_served(1).await;
            let first = back.elapsed();
            health.is_good().await;
            let healthy = back.elapsed();
            load.is_well().await;
            println!("{name}, {end:?}: served after {first:?}, healthy after {healthy:?}");
        }
    }
    let history = load.end().await;
    history.tells(
        name,
        &[Code::Unavailable, Code::Aborted, Code::DeadlineExceeded],
    );
    let longest = history.longest();
    println!("{name}: the longest call took {longest:?}");
    assert!(longest < TIMEOUT + SLACK, "a call took {longest:?}");
    nobody_holds_a_lock(&direct).await;
}

/// Calls with a deadline shorter than the server's own are answered in time.
async fn deadlines_hold(caller: (SocketAddr, &str), known: &Task) {
    let get = GetTaskRequest {
        guid: known.guid.clone(),
    };
    let create = CreateTaskRequest {
        task: Some(task("Late")),
        ..CreateTaskRequest::default()
    };
    let answers = tokio::join!(
        deadline::call(caller, "TaskService/GetTask", &get, DEADLINE),
        deadline::call(caller, "TaskService/CreateTask", &create, DEADLINE),
    );
    for answer in [answers.0, answers.1] {
        let is_expected = matches!(answer.code, Code::DeadlineExceeded | Code::Unavailable);
        assert!(is_expected, "{answer:?}");
        let bound = Duration::from_millis(DEADLINE) + SLACK;
        assert!(answer.took < bound, "{answer:?}");
    }
}

/// No transaction of the service is left open in the database.
async fn nobody_holds_a_lock(url: &str) {
    let mut session = admin::session(url).await;
    until("no transaction is left open", async || {
        let open = "SELECT count(*) FROM pg_stat_activity \
                    WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
        let open: i64 = sqlx::query_scalar(open)
            .fetch_one(&mut session)
            .await
            .expect("a count");
        (open == 0).then_some(())
    })
    .await;
}
