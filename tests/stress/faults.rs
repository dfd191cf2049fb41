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
mod history;
mod shutdown;
mod stalled_peers;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use expertise::proto::v1::Task;
use tokio::task::JoinSet;

use self::history::History;
use crate::{
    expected::{
        ObservedState, UnansweredOutcome, WriteError, Writer, task_draft, verify, write_error,
    },
    kit::rng::Rng,
    service::Service,
};

const WRITERS: usize = 16;
/// A write that runs for longer hangs: PostgreSQL ends those of a killed server sooner.
const QUIET_TIMEOUT: Duration = Duration::from_secs(60);

/// The writers of a scenario, and what became of their writes.
struct Scenario {
    rng: Rng,
    shared_task: Task,
    writers: Vec<Writer>,
    counts: WriteCounts,
    history: History,
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
    fn count(&mut self, outcome: &UnansweredOutcome) {
        match outcome {
            UnansweredOutcome::Done(_) => self.done += 1,
            UnansweredOutcome::NotDone => self.not_done += 1,
        }
    }
}

/// Makes the task that all writers share.
async fn make_shared_task(service: &Service) -> Task {
    let client = service.client_of_shared_account();
    client.given_task(task_draft("shared".to_owned())).await
}

/// Waits until no write is under way, of this server or one that was killed, and reads the
/// state. Fails when a transaction stays open, which reading does not end.
async fn state_once_quiet(service: &Service) -> ObservedState {
    let (client, database) = (service.client_of_shared_account(), service.database());
    let started = Instant::now();
    loop {
        let before = database_state::summary(database).await;
        let read = ObservedState::read(&client).await;
        let state = match read.map_err(|status| write_error(&status)) {
            Ok(state) => Some(state),
            // A task was deleted while it was read, or every connection was in use.
            Err(WriteError::Missing | WriteError::NotDone | WriteError::Unknown) => None,
            Err(other) => panic!("{other:?} of a read"),
        };
        let open = database_state::open_transactions(database).await;
        let is_quiet = open.is_empty() && before == database_state::summary(database).await;
        if let Some(state) = state.filter(|_| is_quiet) {
            return state;
        }
        assert!(started.elapsed() < QUIET_TIMEOUT, "still open: {open}");
    }
}

impl Scenario {
    async fn new(name: &str, service: &Service) -> Self {
        let mut rng = Rng::from_env(name, "EXPERTISE_TEST_FAULTS_SEED");
        let shared_task = make_shared_task(service).await;
        Self {
            writers: Writer::several_sharing(&shared_task, WRITERS, 1, &mut rng),
            rng,
            shared_task,
            counts: WriteCounts::default(),
            history: History::default(),
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
        let state = state_once_quiet(service).await;
        let resolved = verify(self.writers.iter_mut(), Some(&self.shared_task), &state);
        self.history.verify(&client, &self.writers, &state).await;
        for (writer, resolved) in self.writers.iter_mut().zip(resolved) {
            for write in &resolved {
                self.counts.count(&write.outcome);
            }
            self.counts.repeated += writer.repeat(&client, resolved).await;
        }
        let acknowledged = self.writers.iter().map(|writer| writer.acknowledged);
        self.counts.acknowledged = acknowledged.sum();
    }
}
