//! Clients that cancel their calls.

use std::time::{Duration, Instant};

use expertise::proto::v1::Task;
use tokio::task::JoinSet;
use tonic::Status;

use super::{WriteCounts, cancelling_client::CancellingClient, make_shared_task, wait_until_quiet};
use crate::{
    expected::{SentWrite, WriteError, Writer, retry_while_unavailable},
    kit::{
        client::Client,
        rng::{Rng, number_from_env},
        server::Setting,
    },
    machine,
    service::{LOG_WARNINGS, Service},
};

const CLIENTS: usize = 8;
/// Writers of each client. One with a cancelled write is not used until the outcome of the write
/// is known.
const WRITERS: usize = 5;
/// Calls of each client between two comparisons.
const CALLS: u64 = 12;
/// Calls of each client when none is cancelled any more.
const LAST_CALLS: u64 = 4;
/// Writes to cancel, unless `EXPERTISE_TEST_CANCELLED_CALLS` says otherwise.
const CANCELLED_CALLS: u64 = 300;
/// The delay between server and PostgreSQL.
const DATABASE_DELAY: Duration = Duration::from_millis(1);
const SETTINGS: [Setting; 2] = [("EXPERTISE_DATABASE_MAX_CONNECTIONS", "8"), LOG_WARNINGS];

#[test]
fn cancelled_calls_leave_all_or_nothing_on_sqlite() {
    let _machine = machine::shared();
    let service = Service::on_sqlite("cancel-sqlite", &SETTINGS);
    cancelled_calls_leave_all_or_nothing("cancel-sqlite", service);
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn cancelled_calls_leave_all_or_nothing_on_postgres() {
    let _machine = machine::shared();
    let service = Service::on_slow_postgres("cancel-postgres", DATABASE_DELAY, &SETTINGS);
    cancelled_calls_leave_all_or_nothing("cancel-postgres", service);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_leave_all_or_nothing(name: &str, mut service: Service) {
    let started = Instant::now();
    let mut rng = Rng::from_env(name, "EXPERTISE_TEST_FAULTS_SEED");
    let task = make_shared_task(&service).await;
    let mut clients: Vec<RandomWrites> = (0..CLIENTS)
        .map(|_| RandomWrites::new(&mut rng, &task, &service))
        .collect();
    let mut counts = WriteCounts::default();
    let cancelled =
        |clients: &[RandomWrites]| -> u64 { clients.iter().map(|client| client.cancelled).sum() };
    let goal = number_from_env("EXPERTISE_TEST_CANCELLED_CALLS").unwrap_or(CANCELLED_CALLS);
    while cancelled(&clients) < goal {
        clients = in_parallel(clients, |client| client.call_and_cancel(CALLS)).await;
        compare(&service, &mut clients, &mut counts).await;
    }
    // The last calls are acknowledged before the server is killed. They survive unless they
    // ran in a transaction that a cancelled call had left open.
    let direct = service.client_of_shared_account();
    clients = in_parallel(clients, |client| client.call(direct.clone(), LAST_CALLS)).await;
    service.kill();
    service.restart();
    compare(&service, &mut clients, &mut counts).await;
    let refused: u64 = clients.iter().map(|client| client.refused).sum();
    let (cancelled, took) = (cancelled(&clients), started.elapsed());
    println!("{name}: {cancelled} cancelled, {refused} refused, {counts:?} in {took:?}");
    assert!(counts.done > 0 && counts.not_done > 0, "{counts:?}");
}

async fn in_parallel<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    items: impl IntoIterator<Item = T>,
    action: impl FnMut(T) -> F,
) -> Vec<T> {
    let running: JoinSet<T> = items.into_iter().map(action).collect();
    running.join_all().await
}

/// Asserts that the service holds what is expected, and repeats writes that were not
/// answered.
async fn compare(service: &Service, clients: &mut [RandomWrites], counts: &mut WriteCounts) {
    wait_until_quiet(service).await;
    service.delay_database(Duration::ZERO);
    let direct = service.client_of_shared_account();
    let writers = clients.iter_mut().flat_map(|client| &mut client.writers);
    counts.verify(&direct, writers).await;
    service.delay_database(DATABASE_DELAY);
}

/// A client with writers of its own, which write at random.
struct RandomWrites {
    client: CancellingClient,
    writers: Vec<Writer>,
    shared_account: String,
    shared_task: String,
    /// How many writes it cancelled.
    cancelled: u64,
    /// How many of its writes were refused.
    refused: u64,
}

impl RandomWrites {
    fn new(rng: &mut Rng, shared_task: &Task, service: &Service) -> Self {
        Self {
            writers: (0..WRITERS).map(|_| Writer::new(rng)).collect(),
            client: CancellingClient::new(rng, service),
            shared_account: service.client_of_shared_account().account().to_owned(),
            shared_task: shared_task.guid.clone(),
            cancelled: 0,
            refused: 0,
        }
    }

    /// Makes so many calls and cancels most of them. Stops earlier when each writer has an
    /// unanswered write.
    async fn call_and_cancel(mut self, calls: u64) -> Self {
        for _ in 0..calls {
            if self.client.rng.one_in(4) {
                let export = self
                    .client
                    .cancel_an_export(&self.shared_account, &self.shared_task);
                export.await;
            }
            let Some(writer) = self.free_writer() else {
                break;
            };
            let account = self.writers[writer].account().to_owned();
            let client = self.client.with_account(&account);
            let write = next_write(&mut self.writers[writer], &client).await;
            let call = async |client: Client| write.call.send(&client).await;
            let sent = self.client.call(&account, call).await;
            self.note(writer, write, sent);
        }
        self
    }

    /// Makes so many calls and waits for each.
    async fn call(mut self, direct: Client, calls: u64) -> Self {
        for _ in 0..calls {
            if let Some(writer) = self.free_writer() {
                let client = self.writers[writer].client(&direct);
                let write = next_write(&mut self.writers[writer], &client).await;
                let sent = write.call.send(&client).await;
                self.note(writer, write, Some(sent));
            }
        }
        self
    }

    /// A writer without an unanswered write.
    fn free_writer(&mut self) -> Option<usize> {
        let free = self.writers.iter().enumerate();
        let free = free.filter(|(_, writer)| writer.unanswered.is_none());
        let free: Vec<usize> = free.map(|(index, _)| index).collect();
        self.client.rng.try_pick(&free).copied()
    }

    fn note(&mut self, writer: usize, write: SentWrite, sent: Option<Result<String, Status>>) {
        let writer = &mut self.writers[writer];
        let Some(sent) = sent else {
            self.cancelled += 1;
            writer.unanswered = Some(write);
            return;
        };
        match writer.note(write, sent) {
            Ok(()) => {}
            Err(WriteError::Unknown) => self.cancelled += 1,
            Err(_) => self.refused += 1,
        }
    }
}

async fn next_write(writer: &mut Writer, client: &Client) -> SentWrite {
    loop {
        let write = retry_while_unavailable!(writer.next_write(client).await);
        if let Some(write) = write {
            return write;
        }
    }
}
