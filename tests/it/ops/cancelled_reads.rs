//! A read that its caller cancels while its transaction begins takes no write with it that uses
//! the same connection next.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    kit::{
        postgres::shared_cluster,
        relay::Relay,
        server::{Settings, TestServer},
    },
    prelude::*,
};

/// How long PostgreSQL's answers take, so that a BEGIN is pending for a while.
const DELAY: Duration = Duration::from_millis(2);

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_write_after_a_cancelled_begin_is_durable() {
    let cluster = shared_cluster();
    let url = cluster.make_database("cancelled_begin");
    let relay = Relay::with_delay(cluster.port(), DELAY);
    let serve = async |url: &str| {
        let settings = Settings::new(url).set("EXPERTISE_DATABASE_MAX_CONNECTIONS", 1);
        TestServer::start(settings).await
    };
    let (delayed, direct) = (serve(&relay.url(&url)).await, serve(&url).await);
    let (client, other) = (delayed.client(), direct.client());
    let task = client.given_task(task("Read")).await;
    // Later and later, until one ends: each moment of the transaction is among them.
    for millis in (0..).step_by(2) {
        let export = client.export(&task.guid);
        let ended = timeout(Duration::from_millis(millis), export).await;
        let written = client.given_task(crate::kit::sample::task("Written")).await;
        // Another session sees it.
        other.get_task(&written.guid).await.accepted();
        if let Ok(exported) = ended {
            exported.accepted();
            assert!(Duration::from_millis(millis) > DELAY, "none was cancelled");
            break;
        }
    }
}
