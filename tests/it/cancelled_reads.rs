//! A read that its caller cancels while its transaction begins takes no write with it that uses
//! the same connection next.

use std::time::Duration;

use tokio::time::timeout;

use crate::kit::{postgres::Cluster, prelude::*, relay::Relay, store_server};

/// How long PostgreSQL's answers take, so that a BEGIN is pending for a while.
const DELAY: Duration = Duration::from_millis(3);

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_write_after_a_cancelled_begin_is_durable() {
    let cluster = Cluster::start("cancelled_begin", &["fsync=off"]);
    let url = cluster.make_database("cancelled_begin");
    let relay = Relay::with_delay(cluster.port(), DELAY);
    let (_, client) = store_server::serve(&relay.url(&url), 1).await;
    let (_, other) = store_server::serve(&url, 1).await;
    let task = client.given_task(task("Read")).await;
    for millis in 0..20 {
        let export = client.export(&task.guid);
        let ended = timeout(Duration::from_millis(millis), export).await;
        assert!(millis > 5 || ended.is_err(), "it is cancelled");
        let written = client.given_task(crate::kit::sample::task("Written")).await;
        // Another session sees it.
        other.get_task(&written.guid).await.accepted();
    }
}
