//! A failover: the address of the database leads to a standby, which is then promoted.

use tonic_health::pb::health_check_response::ServingStatus;

use super::{prelude::*, serve};

const CLIENTS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn writes_are_refused_until_the_address_leads_to_a_primary() {
    let _machine = machine::shared();
    let name = "standby";
    let settings = ["fsync=off", "synchronous_commit=remote_apply"];
    let mut primary = Cluster::start("standby.primary", &settings);
    let standby = primary.standby(&format!("{name}.standby"));
    // Once the standby keeps up, every acknowledged write is on both servers.
    let wait_for_standby = "ALTER SYSTEM SET synchronous_standby_names = '*'";
    SqlConnection::open(&primary.url())
        .await
        .execute(wait_for_standby)
        .await;
    SqlConnection::open(&primary.url())
        .await
        .execute("SELECT pg_reload_conf()")
        .await;
    let mut session = SqlConnection::open(&primary.url()).await;
    until("the standby keeps up", async || {
        let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        (session.number(state).await == 1).then_some(())
    })
    .await;
    drop(session);
    let relay = Relay::to(primary.port());
    let service = serve(name, &relay.url(&primary.url()), &[]);
    let health = Health::of(service.address());
    let mut load = Writers::start(name, service.address(), CLIENTS).await;
    load.wait_until_served(20).await;

    // The address leads to the standby too early, and then back to the primary. Connections
    // to the standby are open then, and the service closes them.
    relay.lead_to(standby.port());
    relay.cut();
    load.wait_until_writes_are_refused(10).await;
    load.wait_until_reads_are_served(20).await;
    assert_eq!(health.status().await, ServingStatus::Serving);
    relay.lead_to(primary.port());
    load.wait_until_served_without_errors().await;

    // The primary stops, and the standby is promoted a while after the address changed.
    tokio::task::block_in_place(|| primary.stop(Stop::Fast));
    relay.lead_to(standby.port());
    load.wait_until_writes_are_refused(10).await;
    load.wait_until_reads_are_served(20).await;
    SqlConnection::open(&standby.url())
        .await
        .execute("SELECT pg_promote()")
        .await;
    load.wait_until_served_without_errors().await;
    health.wait_until_serving().await;

    let history = load.end().await;
    history.has_no_errors_but(name, &[Code::Unavailable, Code::Aborted]);
}
