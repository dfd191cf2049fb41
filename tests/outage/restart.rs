//! PostgreSQL ends under load and comes back.

use std::time::{Duration, Instant};

use crate::harness::{cluster, cluster::Stop, prelude::*, rounds, serve};

const CALLERS: usize = 8;
/// When it must serve again once PostgreSQL takes connections. On a machine with
/// time to spare it takes less than a second.
const FIRST: Duration = Duration::from_secs(3);
/// From when on no call fails any more that begins then.
const LAST: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_stops_or_crashes_comes_back_unnoticed_but_for_refusals() {
    let name = "restart";
    let durable = ["fsync=on", "full_page_writes=on"];
    let Some(mut cluster) = cluster(name, &durable) else {
        return;
    };
    let server = serve(name, &cluster.url(), &[]);
    let health = Health::of(server.address());
    health.is_good().await;
    let mut load = Load::on(server.address(), CALLERS);
    let mut outages = Vec::new();
    for how in [Stop::Fast, Stop::Immediate].repeat(rounds()) {
        load.is_served(20).await;
        tokio::task::block_in_place(|| cluster.stop(how));
        let gone = Instant::now();
        health.is_bad().await;
        load.reads_are_refused(5).await;
        load.writes_are_refused(5).await;
        tokio::task::block_in_place(|| cluster.start_again());
        let back = Instant::now();
        load.is_well().await;
        health.is_good().await;
        load.is_served(CALLERS).await;
        outages.push((how, gone, back, Instant::now()));
    }
    let history = load.end().await;
    history.tells(name, &[Code::Unavailable, Code::Aborted]);
    for (how, gone, back, end) in outages {
        let first = history.first_success(gone, back);
        let last = history.last_failure(back, end);
        println!("{name}, {how:?}: first success after {first:?}, last failure after {last:?}");
        assert!(first < FIRST, "no call went well for {first:?}");
        assert!(last < LAST, "calls failed until {last:?} after");
    }
}
