//! A failover: the address leads to a standby, and then to a server that takes
//! writes.

use tonic_health::pb::health_check_response::ServingStatus;

use crate::harness::{admin, cluster, cluster::Stop, prelude::*, serve};

const CALLERS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_wait_for_a_server_that_takes_them_and_find_it() {
    let name = "standby";
    let synchronous = ["fsync=off", "synchronous_commit=remote_apply"];
    let Some(mut primary) = cluster(name, &synchronous) else {
        return;
    };
    let standby = primary.standby(&format!("{name}.standby"));
    // From here on what is acknowledged is on both.
    let both = "ALTER SYSTEM SET synchronous_standby_names = '*'";
    admin::once(&primary.url(), both).await;
    admin::once(&primary.url(), "SELECT pg_reload_conf()").await;
    let mut admin = admin::session(&primary.url()).await;
    until("the standby keeps up", async || {
        let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        let following: i64 = sqlx::query_scalar(state)
            .fetch_one(&mut admin)
            .await
            .expect("a count");
        (following == 1).then_some(())
    })
    .await;
    drop(admin);
    let relay = Relay::to(primary.port());
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", relay.port());
    let server = serve(name, &url, &[]);
    let health = Health::of(server.address());
    let mut load = Load::on(server.address(), CALLERS);
    load.is_served(20).await;

    // The address moves to the standby too early, and back. Connections that were
    // made meanwhile still lead to the standby: they are given up.
    relay.lead_to(standby.port());
    relay.cut();
    load.writes_are_refused(10).await;
    load.reads_are_served(20).await;
    // It answers, and reads are served.
    assert_eq!(health.now("").await, ServingStatus::Serving);
    relay.lead_to(primary.port());
    load.is_well().await;

    // The primary is gone, and the standby takes over a while after the address.
    tokio::task::block_in_place(|| primary.stop(Stop::Fast));
    relay.lead_to(standby.port());
    load.writes_are_refused(10).await;
    load.reads_are_served(20).await;
    admin::once(&standby.url(), "SELECT pg_promote()").await;
    load.is_well().await;
    health.is_good().await;

    let history = load.end().await;
    history.tells(name, &[Code::Unavailable, Code::Aborted]);
}
