//! A client that behaves as it should, while others do not.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use expertise::proto::v1::{Step, Task};
use tokio::{task::JoinHandle, time::sleep};
use tonic::Status;
use tonic_types::StatusExt;

use super::is_overloaded;
use crate::{
    kit::{
        client::Client,
        deadline::until_true,
        sample::{information_step, task},
    },
    service::Service,
};

/// How long it waits after a refusal.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// A client that calls again and again over a connection of its own. Every answer must
/// be right; a refusal must say that the server is full or its database busy, and is
/// retried.
pub struct NormalClient {
    progress: Arc<Progress>,
    calling: JoinHandle<Vec<Duration>>,
}

#[derive(Default)]
struct Progress {
    stop: AtomicBool,
    rounds: AtomicUsize,
    refused: AtomicUsize,
}

/// The calls of the client.
pub struct ClientReport {
    /// The median time of an accepted call.
    pub median: Duration,
    /// Calls that were refused because the server was full.
    pub refused: usize,
}

impl NormalClient {
    pub async fn start(service: &Service) -> Self {
        let client = service.client();
        let task = client.given_task(task("Normal")).await;
        let progress = Arc::<Progress>::default();
        let calling = tokio::spawn(call(client, task, Arc::clone(&progress)));
        Self { progress, calling }
    }

    /// Waits until it was served so many times more.
    pub async fn is_served(&self, times: usize) {
        let goal = self.progress.rounds.load(Ordering::Relaxed) + times;
        until_true("the normal client is served", || {
            assert!(!self.calling.is_finished(), "the normal client failed");
            self.progress.rounds.load(Ordering::Relaxed) >= goal
        })
        .await;
    }

    /// Stops it.
    pub async fn end(self) -> ClientReport {
        self.progress.stop.store(true, Ordering::Relaxed);
        let mut took = self.calling.await.expect("every answer was right");
        took.sort();
        ClientReport {
            median: took.get(took.len() / 2).copied().unwrap_or_default(),
            refused: self.progress.refused.load(Ordering::Relaxed),
        }
    }
}

/// The median time of a call when the client is alone, over this long.
pub async fn median_alone(service: &Service, time: Duration) -> Duration {
    let client = NormalClient::start(service).await;
    sleep(time).await;
    client.is_served(20).await;
    let report = client.end().await;
    assert_eq!(report.refused, 0, "nobody else calls");
    report.median
}

async fn call(client: Client, task: Task, progress: Arc<Progress>) -> Vec<Duration> {
    let mut took = Vec::new();
    while !progress.stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        match create_read_delete(&client, &task).await {
            Ok(()) => {
                took.push(started.elapsed() / 3);
                progress.rounds.fetch_add(1, Ordering::Relaxed);
            }
            Err(status) => {
                let reason = status.get_details_error_info().map(|info| info.reason);
                // On a busy machine the database may take too long for a connection.
                if reason.as_deref() != Some("STORE_UNAVAILABLE") {
                    is_overloaded(&status);
                    progress.refused.fetch_add(1, Ordering::Relaxed);
                }
                sleep(RETRY_PAUSE).await;
            }
        }
    }
    took
}

async fn create_read_delete(client: &Client, task: &Task) -> Result<(), Status> {
    let created = client.create_step(information_step(task, "Normal")).await?;
    let step: Step = created.step.expect("the response holds the step");
    assert_eq!(client.get_step(&step.guid).await?, step);
    client.delete_step(&step.guid).await?;
    Ok(())
}
