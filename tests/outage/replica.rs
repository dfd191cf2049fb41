//! A replica for reads that may lag: what is asked of it, and that nobody misses it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::task::JoinHandle;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::harness::{
    admin, cluster,
    cluster::{Cluster, Stop},
    database,
    prelude::*,
    process::ServerProcess,
    serve,
};

/// What the log says when the replica is asked from now on.
const FOUND: &str = "reads that may lag go to the replica";
/// And when it is not.
const LOST: &str = "reads that may lag go to the primary";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_exports_and_work_lag_with_the_replica_and_all_else_does_not() {
    let name = "lagging";
    let Some(primary) = cluster(name, &["fsync=off"]) else {
        return;
    };
    let standby = primary.standby(&format!("{name}.standby"));
    let server = serve_with_replica(name, &primary.url(), &standby.url());
    says(&server, FOUND, 1).await;
    let world = World::at(server.address());
    let old = world.given_task(task("Old")).await;
    until("the replica keeps up", async || {
        (world.all_tasks().await.len() == 1).then_some(())
    })
    .await;
    stand_still(&standby).await;

    let new = world.given_task(task("New")).await;
    let step = world.given_step(note(&old, "Step")).await;
    let other = world.given_step(note(&new, "Other")).await;
    world.given_role("Role").await;

    // A machine that is busy may take the replica for gone for a moment.
    until("tasks lag", async || {
        (world.all_tasks().await == vec![old.clone()]).then_some(())
    })
    .await;
    until("roles lag", async || {
        let listed = world.list_roles(0, "").await.accepted();
        listed.roles.is_empty().then_some(())
    })
    .await;
    until("steps lag", async || {
        let listed = world.steps_of(&old.guid, 0).await;
        listed.is_empty().then_some(())
    })
    .await;
    until("exports lag", async || {
        let exported = world.exported(&old.guid).await;
        exported.steps.is_empty().then_some(())
    })
    .await;
    until("work lags", async || {
        (world.work(&["de"]).await.len() == 1).then_some(())
    })
    .await;

    assert_eq!(world.order_of(&old.guid).await, vec![step.guid.clone()]);
    assert_eq!(world.get_task(&new.guid).await.accepted().name, "New");
    assert_eq!(world.get_step(&step.guid).await.accepted(), step);
    let renamed = Task {
        name: "Renamed".to_owned(),
        ..task_of(&new.guid)
    };
    let renamed = world.updated_task(renamed, &[]).await;

    // What the replica does not know yet is not said to be missing.
    until("steps of a task that is not there lag", async || {
        let listed = world.steps_of(&new.guid, 0).await;
        listed.is_empty().then_some(())
    })
    .await;
    let exported = world.exported(&new.guid).await;
    assert_eq!(exported.task, Some(renamed));
    assert_eq!(exported.steps.len(), 1);
    let missing = world.export(&unknown_guid()).await.refused();
    missing.is(Code::NotFound, "TASK_NOT_FOUND");
    let request = ListStepsRequest {
        task: unknown_guid(),
        ..ListStepsRequest::default()
    };
    let missing = world.list_steps(request).await.refused();
    missing.is(Code::NotFound, "TASK_NOT_FOUND");

    admin::once(&standby.url(), "SELECT pg_wal_replay_resume()").await;
    until("the replica keeps up again", async || {
        let steps = world.steps_of(&new.guid, 0).await;
        (steps == [other.clone()]).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_goes_away_costs_no_call_and_is_found_again() {
    let name = "deserted";
    let Some(primary) = cluster(name, &["fsync=off"]) else {
        return;
    };
    let mut standby = primary.standby(&format!("{name}.standby"));
    let relay = Relay::to(standby.port());
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", relay.port());
    let server = serve_with_replica(name, &primary.url(), &url);
    says(&server, FOUND, 1).await;
    let world = World::at(server.address());
    let read = world.given_task(task("Read")).await;
    until("the replica keeps up", async || {
        (world.all_tasks().await.len() == 1).then_some(())
    })
    .await;
    let readers = Readers::of(&world, &read);
    let health = Health::of(server.address());
    health.is_good().await;

    for (round, how) in [Stop::Fast, Stop::Immediate].into_iter().enumerate() {
        readers.go_on().await;
        tokio::task::block_in_place(|| standby.stop(how));
        says(&server, LOST, 2 * round + 1).await;
        readers.go_on().await;
        assert_eq!(health.now("").await, ServingStatus::Serving);
        tokio::task::block_in_place(|| standby.start_again());
        says(&server, FOUND, 2 * round + 2).await;

        // It hangs with calls at hand: they get their answer elsewhere.
        readers.go_on().await;
        relay.hold();
        says(&server, LOST, 2 * round + 2).await;
        readers.go_on().await;
        assert_eq!(health.now("").await, ServingStatus::Serving);
        relay.cut();
        says(&server, FOUND, 2 * round + 3).await;
    }
    readers.end().await;

    // It is asked again, and not only said to be.
    stand_still(&standby).await;
    world.given_task(task("More")).await;
    until("the replica is asked", async || {
        (world.all_tasks().await.len() == 1).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_no_replica_of_the_primary_is_not_asked() {
    let (Some((url, _)), Some((other, _))) = (database("own"), database("other")) else {
        return;
    };
    let foreign = serve("other", &other, &[]);
    let foreign = World::at(foreign.address());
    foreign.given_task(task("Foreign")).await;
    let server = serve_with_replica("own", &url, &other);
    says(&server, LOST, 1).await;
    assert!(server.log().contains("none of this database"));
    let world = World::at(server.address()).calling_as(foreign.account());
    assert_eq!(world.all_tasks().await, vec![]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_without_its_replica() {
    let Some((url, _)) = database("lonely") else {
        return;
    };
    let nowhere = format!("postgres://127.0.0.1:{}/lonely", cluster::free_port());
    let server = serve_with_replica("lonely", &url, &nowhere);
    says(&server, LOST, 1).await;
    let world = World::at(server.address());
    let task = world.given_task(task("Here")).await;
    assert_eq!(world.all_tasks().await, vec![task]);
    Health::of(server.address()).is_good().await;
}

fn serve_with_replica(name: &str, url: &str, replica: &str) -> ServerProcess {
    let replica = ("EXPERTISE_DATABASE_READ_URL", replica);
    serve(name, url, &[replica, ("EXPERTISE_LOG", "info")])
}

/// Waits until the log has said something so often.
async fn says(server: &ServerProcess, what: &str, times: usize) {
    until(what, async || {
        let log = server.log();
        (log.matches(what).count() >= times).then_some(())
    })
    .await;
}

/// Has a standby apply nothing more until it is told to go on.
async fn stand_still(standby: &Cluster) {
    let mut session = admin::session(&standby.url()).await;
    admin::run(&mut session, "SELECT pg_wal_replay_pause()").await;
    until("the standby stands still", async || {
        let state: String = sqlx::query_scalar("SELECT pg_get_wal_replay_pause_state()")
            .fetch_one(&mut session)
            .await
            .expect("its state");
        (state == "paused").then_some(())
    })
    .await;
}

/// Callers who list and export all the time, and must always be served.
struct Readers {
    served: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    reading: Vec<JoinHandle<()>>,
}

impl Readers {
    fn of(world: &World, task: &Task) -> Self {
        let (served, stop) = (Arc::default(), Arc::default());
        let reading = (0..4).map(|_| {
            let world = world.over_another_connection();
            let task = task.clone();
            let (served, stop) = (Arc::clone(&served), Arc::clone(&stop));
            tokio::spawn(async move {
                let stopped: &AtomicBool = &stop;
                let served: &AtomicUsize = &served;
                while !stopped.load(Ordering::Relaxed) {
                    assert_eq!(world.all_tasks().await.len(), 1);
                    assert_eq!(world.exported(&task.guid).await.steps, vec![]);
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

    /// Waits until each has been served some more, one after the other at least.
    async fn go_on(&self) {
        let enough = self.served.load(Ordering::Relaxed) + 40;
        until("readers are served", async || {
            self.are_well();
            (self.served.load(Ordering::Relaxed) >= enough).then_some(())
        })
        .await;
    }

    fn are_well(&self) {
        let failed = self.reading.iter().any(JoinHandle::is_finished);
        assert!(!failed, "a reader was not served");
    }

    async fn end(self) {
        self.are_well();
        self.stop.store(true, Ordering::Relaxed);
        for reader in self.reading {
            reader.await.expect("every read is served");
        }
    }
}
