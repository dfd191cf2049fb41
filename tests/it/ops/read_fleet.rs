//! A server of the read fleet: its database is a hot standby, so it serves reads and refuses writes.

use tokio::task::block_in_place;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    kit::{
        deadline::until,
        postgres::Cluster,
        server::{Settings, TestServer},
        sql::SqlConnection,
    },
    prelude::*,
};

/// A commit on the primary returns once the standby shows it.
const WAIT_FOR_STANDBY: [&str; 3] = [
    "ALTER SYSTEM SET synchronous_commit = remote_apply",
    "ALTER SYSTEM SET synchronous_standby_names = '*'",
    "SELECT pg_reload_conf()",
];
const IS_FOLLOWED: &str = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_server_on_a_standby_serves_reads_and_refuses_writes() {
    let primary = block_in_place(|| Cluster::start("read-fleet.primary", &["fsync=off"]));
    let writing = TestServer::start(Settings::new(&primary.url())).await;
    let mut database = SqlConnection::open(&primary.url()).await;
    let standby = block_in_place(|| primary.standby("read-fleet.standby"));
    for sql in WAIT_FOR_STANDBY {
        database.execute(sql).await;
    }
    until("the standby follows", async || {
        (database.number(IS_FOLLOWED).await == 1).then_some(())
    })
    .await;
    // It starts with its default settings: nothing has to be migrated.
    let reading = TestServer::start(Settings::new(&standby.url())).await;
    let warning = "the database is a standby, so writes are refused until it is promoted";
    assert!(reading.log().contains(warning), "{}", reading.log());
    let [writer, reader] = [&writing, &reading].map(TestServer::client);

    let start = writer.cursor_now().await;
    let guide = writer.given_task(task("Guide")).await;
    let step = writer.given_step(information_step(&guide, "Step")).await;
    assert_eq!(reader.all_tasks().await, writer.all_tasks().await);
    assert_eq!(reader.get_step(&step.guid).await.accepted(), step);
    assert_eq!(
        reader.exported(&guide.guid).await,
        writer.exported(&guide.guid).await
    );
    let work = reader.translation_work(&["de"]).await;
    assert_eq!(work, writer.translation_work(&["de"]).await);

    let refused = [
        reader.create_task(task("More")).await.map(drop),
        reader
            .create_step(information_step(&guide, "More"))
            .await
            .map(drop),
        reader
            .update_task(task_of(&guide.guid).named("Renamed"), &["name"])
            .await
            .map(drop),
        reader.delete_step(&step.guid).await.map(drop),
        reader.import(document("More", vec![])).await.map(drop),
        reader.create_role("Support").await.map(drop),
    ];
    for outcome in refused {
        let failure = outcome.refused();
        failure.is(Code::Unavailable, "STORE_UNAVAILABLE");
        assert!(
            failure.message.contains("does not currently accept writes"),
            "{failure:?}"
        );
    }
    assert_eq!(reader.get_step(&step.guid).await.accepted(), step);

    // Only a server that writes can put changes in order.
    let after_start = || changes_behind(&start);
    let page = reader.call(after_start()).await.accepted();
    assert_eq!((page.changes.len(), page.caught_up), (0, false));
    let (changes, _) = writer.changes_after(&start).await;
    assert_eq!(changes.len(), 2);
    let page = reader.call(after_start()).await.accepted();
    assert_eq!((page.changes, page.caught_up), (changes, true));

    let mut health = HealthClient::new(reader.channel());
    let answer = health.check(HealthCheckRequest::default()).await;
    let status = answer.accepted().into_inner().status();
    assert_eq!(status, ServingStatus::Serving);
}
