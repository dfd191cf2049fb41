//! Clients that cancel their calls, servers and databases that crash, and servers that
//! are told to end, each at random moments under a load of mixed writes. What is there
//! afterwards is compared with the [`expected`](crate::expected) state.
//!
//! A failure prints its seed. `EXPERTISE_TEST_FAULTS_SEED` repeats the choices, though not
//! the moments.

mod cancellation;
mod cancelling_client;
mod crash;
mod database_state;
mod shutdown;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use expertise::proto::v1::Task;
use futures_util::future::join_all;
use tokio::task::JoinSet;

use crate::{
    expected::{UnansweredOutcome, Writer, retry_while_unavailable},
    kit::{client::Client, deadline::until, rng::Rng, sample::task},
    service::Service,
};

const WRITERS: usize = 16;
/// How long nothing is written when no write is under way.
const QUIET: Duration = Duration::from_millis(50);

/// The writers of a scenario, and what became of their writes.
struct Scenario {
    rng: Rng,
    shared_task: Task,
    writers: Vec<Writer>,
    counts: WriteCounts,
}

#[derive(Debug, Default)]
struct WriteCounts {
    acknowledged: u64,
    /// Not answered, and found done.
    done: u64,
    /// Not answered, and found not done.
    not_done: u64,
    repeated: u64,
}

impl WriteCounts {
    fn count(&mut self, outcome: Option<UnansweredOutcome>) {
        match outcome {
            Some(UnansweredOutcome::Done) => self.done += 1,
            Some(UnansweredOutcome::NotDone) => self.not_done += 1,
            None => {}
        }
    }

    /// Asserts that the accounts of the writers hold what is expected, and counts.
    async fn verify(&mut self, client: &Client, writers: impl Iterator<Item = &mut Writer>) {
        let verified = writers.map(async |writer| {
            let outcome = writer.verify(client).await;
            (outcome, writer.acknowledged, writer.repeated)
        });
        (self.acknowledged, self.repeated) = (0, 0);
        for (outcome, acknowledged, repeated) in join_all(verified).await {
            self.count(outcome);
            self.acknowledged += acknowledged;
            self.repeated += repeated;
        }
    }
}

/// Makes the task that all writers share.
async fn make_shared_task(service: &Service) -> Task {
    let client = service.client_of_shared_account();
    client.given_task(task("shared")).await
}

/// Waits until no write is under way, of this server or one that was killed. Fails when a
/// transaction stays open.
async fn wait_until_quiet(service: &Service) {
    let database = service.database();
    until("no write is under way", async || {
        let before = database_state::summary(database).await;
        tokio::time::sleep(QUIET).await;
        let open = database_state::open_transactions(database).await;
        let is_quiet = open.is_empty() && before == database_state::summary(database).await;
        is_quiet.then_some(())
    })
    .await;
}

impl Scenario {
    async fn new(name: &str, service: &Service) -> Self {
        let mut rng = Rng::from_env(name, "EXPERTISE_TEST_FAULTS_SEED");
        let shared_task = make_shared_task(service).await;
        Self {
            writers: Writer::several_sharing(
                &shared_task,
                &service.client_of_shared_account(),
                WRITERS,
                &mut rng,
            ),
            rng,
            shared_task,
            counts: WriteCounts::default(),
        }
    }

    /// Has the writers write, and the fault happen at a random moment before `latest`.
    /// Returns the moment and the result of the fault.
    async fn write_during<T>(
        &mut self,
        service: &mut Service,
        latest: Duration,
        fault: impl FnOnce(&mut Service) -> T,
    ) -> (Duration, T) {
        let latest = usize::try_from(latest.as_micros()).expect("a short time");
        let moment = Duration::from_micros(self.rng.below(latest) as u64);
        let stop = Arc::new(AtomicBool::new(false));
        let mut writing = JoinSet::new();
        for mut writer in self.writers.drain(..) {
            let (client, stop) = (service.client_of_shared_account(), Arc::clone(&stop));
            writing.spawn(async move {
                writer.write_until(&client, &stop).await;
                writer
            });
        }
        tokio::time::sleep(moment).await;
        let outcome = tokio::task::block_in_place(|| fault(service));
        stop.store(true, Ordering::Relaxed);
        self.writers = writing.join_all().await;
        (moment, outcome)
    }

    /// Asserts that the service holds what is expected, and repeats writes that were
    /// not answered.
    async fn verify(&mut self, service: &Service) {
        let client = service.client_of_shared_account();
        wait_until_quiet(service).await;
        // After a crash of the database, the server connects again.
        retry_while_unavailable!(client.get_task(&self.shared_task.guid).await);
        let titles = client.step_titles(&self.shared_task.guid).await;
        let mut shared_steps = 0;
        for writer in &mut self.writers {
            let outcome = writer.verify_shared_task(&titles);
            shared_steps += writer.shared_steps();
            self.counts.count(outcome);
        }
        assert_eq!(titles.len(), shared_steps);
        self.counts.verify(&client, self.writers.iter_mut()).await;
    }
}
