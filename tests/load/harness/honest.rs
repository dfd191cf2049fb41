//! A client that does what it should, while others do not.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use expertise::proto::v1::Task;
use tokio::task::JoinHandle;

use super::{
    failure::Outcome,
    sample::{note, task},
    service::{Service, eventually},
    world::World,
};

/// A client that calls and calls over a connection of its own. Every call must
/// succeed, and every answer be right.
pub struct Honest {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
    calling: JoinHandle<Vec<Duration>>,
}

impl Honest {
    pub async fn begin(service: &Service) -> Self {
        let world = service.world();
        let task = world.given_task(task("Honest")).await;
        let (stop, rounds) = (Arc::default(), Arc::default());
        let calling = call(world, task, Arc::clone(&stop), Arc::clone(&rounds));
        Self {
            stop,
            rounds,
            calling: tokio::spawn(calling),
        }
    }

    /// Waits until it was served so many times more.
    pub async fn is_served(&self, times: usize) {
        let target = self.rounds.load(Ordering::Relaxed) + times;
        eventually("the honest client is served", || {
            assert!(!self.calling.is_finished(), "the honest client failed");
            self.rounds.load(Ordering::Relaxed) >= target
        })
        .await;
    }

    /// Has it stop; how long a call took in the middle.
    pub async fn end(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        let mut took = self.calling.await.expect("every call succeeded");
        took.sort();
        took.get(took.len() / 2).copied().unwrap_or_default()
    }
}

/// The median of a client that is alone, over this long.
pub async fn quiet_median(service: &Service, time: Duration) -> Duration {
    let honest = Honest::begin(service).await;
    tokio::time::sleep(time).await;
    honest.is_served(20).await;
    honest.end().await
}

async fn call(
    world: World,
    task: Task,
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
) -> Vec<Duration> {
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let step = world.given_step(note(&task, "Honest")).await;
        let read = world.get_step(&step.guid).await.accepted();
        took.push(begun.elapsed() / 2);
        assert_eq!(read, step);
        world.delete_step(&step.guid).await.accepted();
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    took
}
