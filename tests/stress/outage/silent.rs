//! A PostgreSQL that hangs: connections stay open, and no query is answered.

use std::time::{Duration, Instant};

use super::{DEADLINE, SLACK, call_with_deadline, prelude::*, rounds, serve};
use crate::service::no_transaction_is_left_open;

const CLIENTS: usize = 6;
/// The longest that a call may take by the server's settings.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// How the silence ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The bytes that were held arrive late.
    Resumed,
    /// The connections break.
    Broken,
    /// The connections stay silent for ever, and new ones are served.
    Replaced,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn calls_end_by_their_deadline_while_postgres_hangs_and_are_served_afterwards() {
    let _machine = machine::shared();
    let name = "silent";
    let cluster = shared_cluster();
    let direct = cluster.make_database(name);
    let relay = Relay::to(cluster.port());
    let url = relay.url(&direct);
    let timeout = format!("{}s", REQUEST_TIMEOUT.as_secs());
    let service = serve(name, &url, &[("EXPERTISE_REQUEST_TIMEOUT", &timeout)]);
    let health = Health::of(service.address());
    let client = service.client();
    let known = client.given_task(task("Known")).await;
    health.wait_until_serving().await;
    let mut load = Writers::start(name, service.address(), CLIENTS).await;
    for _ in 0..rounds() {
        for end in [End::Resumed, End::Broken, End::Replaced] {
            load.wait_until_served(20).await;
            relay.hold();
            health.wait_until_not_serving().await;
            load.wait_until_reads_are_refused(3).await;
            load.wait_until_writes_are_refused(3).await;
            deadlines_are_kept(&client, &known).await;
            match end {
                End::Resumed => relay.resume(),
                End::Broken => relay.cut(),
                End::Replaced => relay.abandon(),
            }
            let back = Instant::now();
            load.wait_until_served(1).await;
            let first = back.elapsed();
            health.wait_until_serving().await;
            let healthy = back.elapsed();
            load.wait_until_served_without_errors().await;
            println!("{name}, {end:?}: served after {first:?}, healthy after {healthy:?}");
        }
    }
    let history = load.end().await;
    history.has_no_errors_but(
        name,
        &[Code::Unavailable, Code::Aborted, Code::DeadlineExceeded],
    );
    let longest = history.longest();
    println!("{name}: the longest call took {longest:?}");
    assert!(longest < REQUEST_TIMEOUT + SLACK, "a call took {longest:?}");
    no_transaction_is_left_open(&direct).await;
}

/// Calls with a deadline shorter than the server's own are answered in time.
async fn deadlines_are_kept(client: &Client, known: &Task) {
    let get = GetTaskRequest {
        guid: known.guid.clone(),
    };
    let create = create_task_request(task("Late"));
    let answers = tokio::join!(
        call_with_deadline(client, "TaskService/GetTask", &get, DEADLINE),
        call_with_deadline(client, "TaskService/CreateTask", &create, DEADLINE),
    );
    answers.0.is_refused_in_time();
    answers.1.is_refused_in_time();
}
