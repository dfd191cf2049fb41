//! A replica for reads that may lag: which calls read it, and that none fails without
//! it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::task::JoinHandle;
use tonic_health::pb::health_check_response::ServingStatus;

use super::{admin, prelude::*, serve};
use crate::kit::postgres::free_port;

/// A line of the log when the server begins to read from the replica.
const REPLICA_FOUND: &str = "reads that may be stale go to the replica";
/// And when it stops.
const REPLICA_LOST: &str = "reads that may be stale go to the primary";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn lists_exports_and_work_lag_with_the_replica_and_all_else_does_not() {
    let _machine = machine::shared();
    let primary = Cluster::start("lagging.cluster", &["fsync=off"]);
    let standby = primary.standby("lagging.standby");
    let service = serve_with_replica("lagging", &primary.url(), &standby.url());
    until_logged(&service, REPLICA_FOUND, 1).await;
    let client = service.client();
    let old = client.given_task(task("Old")).await;
    until("the replica keeps up", async || {
        (client.all_tasks().await.len() == 1).then_some(())
    })
    .await;
    pause_replay(&standby).await;

    let new = client.given_task(task("New")).await;
    let step = client.given_step(information_step(&old, "Step")).await;
    let other = client.given_step(information_step(&new, "Other")).await;
    client.given_role("Role").await;

    // On a busy machine the server may lose the replica for a moment.
    until("tasks lag", async || {
        (client.all_tasks().await == vec![old.clone()]).then_some(())
    })
    .await;
    until("roles lag", async || {
        let listed = client.list_roles(0, "").await.accepted();
        listed.roles.is_empty().then_some(())
    })
    .await;
    until("steps lag", async || {
        let listed = client.steps_of(&old.guid, 0).await;
        listed.is_empty().then_some(())
    })
    .await;
    until("exports lag", async || {
        let exported = client.exported(&old.guid).await;
        exported.steps.is_empty().then_some(())
    })
    .await;
    until("work lags", async || {
        (client.translation_work(&["de"]).await.len() == 1).then_some(())
    })
    .await;

    let fresh = client.with_metadata("x-read-from", "primary");
    assert_eq!(fresh.all_tasks().await.len(), 2);
    assert_eq!(
        fresh.steps_of(&old.guid, 0).await,
        std::slice::from_ref(&step)
    );
    assert_eq!(fresh.exported(&old.guid).await.steps.len(), 1);
    assert_eq!(fresh.list_roles(0, "").await.accepted().roles.len(), 1);
    assert_eq!(fresh.translation_work(&["de"]).await.len(), 4);

    assert_eq!(client.step_order(&old.guid).await, vec![step.guid.clone()]);
    assert_eq!(client.get_task(&new.guid).await.accepted().name, "New");
    assert_eq!(client.get_step(&step.guid).await.accepted(), step);
    let renamed = Task {
        name: "Renamed".to_owned(),
        ..task_of(&new.guid)
    };
    let renamed = client.updated_task(renamed, &[]).await;

    // A task that the replica does not have yet is not missing.
    until("steps of a task that is not there lag", async || {
        let listed = client.steps_of(&new.guid, 0).await;
        listed.is_empty().then_some(())
    })
    .await;
    let exported = client.exported(&new.guid).await;
    assert_eq!(exported.task, Some(renamed));
    assert_eq!(exported.steps.len(), 1);
    let missing = client.export(&unknown_guid()).await.refused();
    missing.is(Code::NotFound, "TASK_NOT_FOUND");
    let request = ListStepsRequest {
        task: unknown_guid(),
        ..ListStepsRequest::default()
    };
    let missing = client.list_steps(request).await.refused();
    missing.is(Code::NotFound, "TASK_NOT_FOUND");

    admin::once(&standby.url(), "SELECT pg_wal_replay_resume()").await;
    until("the replica keeps up again", async || {
        let steps = client.steps_of(&new.guid, 0).await;
        (steps == [other.clone()]).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_replica_that_goes_away_costs_no_call_and_is_found_again() {
    let _machine = machine::shared();
    let primary = Cluster::start("replica-away.cluster", &["fsync=off"]);
    let mut standby = primary.standby("replica-away.standby");
    let relay = Relay::to(standby.port());
    let url = relay.url(&standby.url());
    let service = serve_with_replica("replica-away", &primary.url(), &url);
    until_logged(&service, REPLICA_FOUND, 1).await;
    let client = service.client();
    let read = client.given_task(task("Read")).await;
    until("the replica keeps up", async || {
        (client.all_tasks().await.len() == 1).then_some(())
    })
    .await;
    let readers = Readers::start(&client, &read);
    let health = Health::of(service.address());
    health.wait_until_serving().await;

    for (round, how) in [Stop::Fast, Stop::Immediate].into_iter().enumerate() {
        readers.wait_until_served().await;
        tokio::task::block_in_place(|| standby.stop(how));
        until_logged(&service, REPLICA_LOST, 2 * round + 1).await;
        readers.wait_until_served().await;
        assert_eq!(health.status().await, ServingStatus::Serving);
        tokio::task::block_in_place(|| standby.start_again());
        until_logged(&service, REPLICA_FOUND, 2 * round + 2).await;

        // It hangs with calls under way: the primary answers them.
        readers.wait_until_served().await;
        relay.hold();
        until_logged(&service, REPLICA_LOST, 2 * round + 2).await;
        readers.wait_until_served().await;
        assert_eq!(health.status().await, ServingStatus::Serving);
        relay.cut();
        until_logged(&service, REPLICA_FOUND, 2 * round + 3).await;
    }
    readers.end().await;

    // A list without the new task shows that the replica is read again.
    pause_replay(&standby).await;
    client.given_task(task("More")).await;
    until("the replica is read", async || {
        (client.all_tasks().await.len() == 1).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_database_that_is_no_replica_of_the_primary_is_not_read() {
    let _machine = machine::shared();
    let cluster = shared_cluster();
    let (url, other) = (cluster.make_database("own"), cluster.make_database("other"));
    let other_service = serve("other", &other, &[]);
    let other_client = other_service.client();
    other_client.given_task(task("Other")).await;
    let service = serve_with_replica("own", &url, &other);
    until_logged(&service, REPLICA_LOST, 1).await;
    assert!(
        service
            .process()
            .log()
            .contains("not a replica of the database")
    );
    let client = service.client().with_account(other_client.account());
    assert_eq!(client.all_tasks().await, vec![]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_server_starts_without_its_replica() {
    let _machine = machine::shared();
    let cluster = shared_cluster();
    let url = cluster.make_database("no-replica");
    let nowhere = format!("postgres://127.0.0.1:{}/no-replica", free_port());
    let service = serve_with_replica("no-replica", &url, &nowhere);
    until_logged(&service, REPLICA_LOST, 1).await;
    let client = service.client();
    let task = client.given_task(task("Here")).await;
    assert_eq!(client.all_tasks().await, vec![task]);
    Health::of(service.address()).wait_until_serving().await;
}

fn serve_with_replica(name: &str, url: &str, replica: &str) -> Service {
    let replica = ("EXPERTISE_DATABASE_READ_URL", replica);
    serve(name, url, &[replica, ("EXPERTISE_LOG", "info")])
}

/// Waits until the log of the server contains a text at least `times` times.
async fn until_logged(service: &Service, what: &str, times: usize) {
    until(what, async || {
        let log = service.process().log();
        (log.matches(what).count() >= times).then_some(())
    })
    .await;
}

/// Has a standby apply nothing more until its replay is resumed.
async fn pause_replay(standby: &Cluster) {
    let mut session = admin::session(&standby.url()).await;
    admin::run(&mut session, "SELECT pg_wal_replay_pause()").await;
    until("the replay is paused", async || {
        let state: String = sqlx::query_scalar("SELECT pg_get_wal_replay_pause_state()")
            .fetch_one(&mut session)
            .await
            .expect("its state");
        (state == "paused").then_some(())
    })
    .await;
}

/// Clients that list and export all the time, and must always be served.
struct Readers {
    served: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    reading: Vec<JoinHandle<()>>,
}

impl Readers {
    fn start(client: &Client, task: &Task) -> Self {
        let served = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let reading = (0..4).map(|_| {
            let client = client.over_new_connection();
            let task = task.clone();
            let (served, stop) = (Arc::clone(&served), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(client.all_tasks().await.len(), 1);
                    assert_eq!(client.exported(&task.guid).await.steps, vec![]);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let reading = reading.collect();
        Self {
            served,
            stop,
            reading,
        }
    }

    /// Waits until they are served 40 times more.
    async fn wait_until_served(&self) {
        let enough = self.served.load(Ordering::Relaxed) + 40;
        until("readers are served", async || {
            self.assert_none_failed();
            (self.served.load(Ordering::Relaxed) >= enough).then_some(())
        })
        .await;
    }

    fn assert_none_failed(&self) {
        let failed = self.reading.iter().any(JoinHandle::is_finished);
        assert!(!failed, "a reader was not served");
    }

    async fn end(self) {
        self.assert_none_failed();
        self.stop.store(true, Ordering::Relaxed);
        for reader in self.reading {
            reader.await.expect("every read is served");
        }
    }
}
