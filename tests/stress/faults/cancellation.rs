//! Clients that cancel their calls.

use std::time::{Duration, Instant};

use expertise::proto::v1::Task;
use tokio::task::JoinSet;

use super::{
    WriteCounts, cancelling_client::CancellingClient, database_state, make_shared_task,
    state_once_quiet,
};
use crate::{
    expected::{Writer, verify},
    kit::{
        rng::{Rng, number_from_env},
        server_process::Setting,
    },
    machine,
    service::{LOG_WARNINGS, Service},
};

const CLIENTS: usize = 8;
/// Workspaces of each client beside the one in the shared task. A workspace with a cancelled
/// write is not used until the outcome of the write is known.
const WORKSPACES: usize = 4;
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
    let writers = Writer::several_sharing(&task, CLIENTS, WORKSPACES, &mut rng).into_iter();
    let mut clients: Vec<CancellingClient> = writers
        .map(|writer| CancellingClient::new(writer, &task, &service))
        .collect();
    let mut counts = WriteCounts::default();
    let cancelled = |clients: &[CancellingClient]| -> u64 {
        clients.iter().map(|client| client.cancelled).sum()
    };
    let goal = number_from_env("EXPERTISE_TEST_CANCELLED_CALLS").unwrap_or(300);
    while cancelled(&clients) < goal {
        clients = in_parallel(clients, |client| client.call_and_cancel(CALLS)).await;
        clients = compare(&service, &task, clients, &mut counts).await;
    }
    // The last calls are acknowledged before the server is killed. They survive unless they
    // ran in a transaction that a cancelled call had left open.
    let direct = service.client_of_shared_account();
    clients = in_parallel(clients, |client| client.call(direct.clone(), LAST_CALLS)).await;
    clients = compare(&service, &task, clients, &mut counts).await;
    service.kill();
    service.restart();
    clients = compare(&service, &task, clients, &mut counts).await;
    let acknowledged = clients.iter().map(|client| client.writer.acknowledged);
    counts.acknowledged = acknowledged.sum();
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
async fn compare(
    service: &Service,
    task: &Task,
    mut clients: Vec<CancellingClient>,
    counts: &mut WriteCounts,
) -> Vec<CancellingClient> {
    let state = state_once_quiet(service).await;
    // Another session sees what the server shows.
    let tasks = database_state::count_tasks(service.database()).await;
    assert_eq!(tasks, state.tasks.len(), "tasks in the database");
    let writers = clients.iter_mut().map(|client| &mut client.writer);
    let resolved = verify(writers, Some(task), &state);
    for write in resolved.iter().flatten() {
        counts.count(&write.outcome);
    }
    let mut repeating = JoinSet::new();
    for (mut client, resolved) in clients.into_iter().zip(resolved) {
        let direct = service.client_of_shared_account();
        repeating.spawn(async move {
            let repeated = client.writer.repeat(&direct, resolved).await;
            (client, repeated)
        });
    }
    let repeated = repeating.join_all().await.into_iter();
    let repeated = repeated.map(|(client, repeated)| {
        counts.repeated += repeated;
        client
    });
    repeated.collect()
}
