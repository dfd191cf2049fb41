//! Clients that cancel their calls.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::{WriteCounts, cancelling_client::CancellingClient, make_shared_task, wait_until_quiet};
use crate::{
    kit::{
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
    let mut clients: Vec<CancellingClient> = (0..CLIENTS)
        .map(|_| CancellingClient::new(WRITERS, &mut rng, &task, &service))
        .collect();
    let mut counts = WriteCounts::default();
    let cancelled = |clients: &[CancellingClient]| -> u64 {
        clients.iter().map(|client| client.cancelled).sum()
    };
    let goal = number_from_env("EXPERTISE_TEST_CANCELLED_CALLS").unwrap_or(300);
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

async fn in_parallel<T, F: Future<Output = CancellingClient> + Send + 'static>(
    items: impl IntoIterator<Item = T>,
    action: impl FnMut(T) -> F,
) -> Vec<CancellingClient> {
    let running: JoinSet<CancellingClient> = items.into_iter().map(action).collect();
    running.join_all().await
}

/// Asserts that the service holds what is expected, and repeats writes that were not
/// answered.
async fn compare(service: &Service, clients: &mut [CancellingClient], counts: &mut WriteCounts) {
    wait_until_quiet(service).await;
    let direct = service.client_of_shared_account();
    let writers = clients.iter_mut().flat_map(|client| &mut client.writers);
    counts.verify(&direct, writers).await;
}
