//! PostgreSQL stops or crashes under load and starts again.

use std::time::{Duration, Instant};

use super::{prelude::*, rounds, serve};

const CLIENTS: usize = 8;
/// The most time from when PostgreSQL takes connections to the first success. On an idle
/// machine it takes less than a second.
const MAX_TIME_TO_FIRST_SUCCESS: Duration = Duration::from_secs(3);
/// The most time to the start of the last call that fails.
const MAX_TIME_TO_LAST_FAILURE: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn calls_are_refused_while_postgres_is_stopped_and_served_when_it_is_back() {
    let _machine = machine::shared();
    let name = "restart";
    let durable = ["fsync=on", "full_page_writes=on"];
    let mut cluster = Cluster::start("restart.cluster", &durable);
    let service = serve(name, &cluster.url(), &[]);
    let health = Health::of(service.address());
    health.wait_until_serving().await;
    let mut load = Writers::start(name, service.address(), CLIENTS).await;
    let mut outages = Vec::new();
    for how in [Stop::Fast, Stop::Immediate].repeat(rounds()) {
        load.wait_until_served(20).await;
        tokio::task::block_in_place(|| cluster.stop(how));
        let stopped_at = Instant::now();
        health.wait_until_not_serving().await;
        load.wait_until_reads_are_refused(5).await;
        load.wait_until_writes_are_refused(5).await;
        tokio::task::block_in_place(|| cluster.start_again());
        let restarted_at = Instant::now();
        load.wait_until_served_without_errors().await;
        health.wait_until_serving().await;
        load.wait_until_served(CLIENTS).await;
        outages.push((how, stopped_at, restarted_at, Instant::now()));
    }
    let history = load.end().await;
    history.has_no_errors_but(name, &[Code::Unavailable, Code::Aborted]);
    for (how, stopped_at, restarted_at, end) in outages {
        let first = history.first_success(stopped_at, restarted_at);
        let last = history.last_failure(restarted_at, end);
        println!("{name}, {how:?}: first success after {first:?}, last failure after {last:?}");
        assert!(
            first < MAX_TIME_TO_FIRST_SUCCESS,
            "no call succeeded for {first:?}"
        );
        assert!(
            last < MAX_TIME_TO_LAST_FAILURE,
            "calls failed until {last:?} after"
        );
    }
}
