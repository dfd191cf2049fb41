//! Health of the server, for load balancers and orchestrators.

use std::time::Duration;

use tokio::{sync::watch, time::sleep};
use tonic_health::{
    ServingStatus,
    pb::health_server::{Health, HealthServer},
    server::{HealthReporter, health_reporter},
};
use tracing::{info, warn};

use crate::{grpc, store::Store};

/// How often the database is pinged. It is pinged more often during an outage, so that calls work
/// again soon after it ends.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const PING_INTERVAL_WHEN_DOWN: Duration = Duration::from_millis(200);

/// The health of the whole server: every service needs the same database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// The database has not been opened yet.
    Starting,
    Serving,
    DatabaseDown,
    /// The server is shutting down.
    ShuttingDown,
}

/// Sets the health that `grpc.health.v1.Health` reports, for the server, `""`, and each of its
/// services.
pub struct HealthMonitor {
    state: watch::Sender<HealthState>,
    reporter: HealthReporter,
}

impl HealthMonitor {
    /// Reports NOT_SERVING until the database is open.
    pub async fn new() -> (Self, HealthServer<impl Health>) {
        let (reporter, service) = health_reporter();
        let monitor = Self {
            state: watch::Sender::new(HealthState::Starting),
            reporter,
        };
        monitor.report(ServingStatus::NotServing).await;
        (monitor, service)
    }

    pub fn state(&self) -> HealthState {
        *self.state.borrow()
    }

    /// Pings the database until the future is dropped. `address` is its name in the log.
    pub async fn follow_database(&self, store: Store, address: String) {
        // The causes of the current outage.
        let mut logged = Vec::new();
        loop {
            match store.ping().await {
                Ok(()) => {
                    if self.set(HealthState::Serving).await {
                        info!("the database responds again");
                    }
                    logged.clear();
                    sleep(PING_INTERVAL).await;
                }
                Err(cause) => {
                    self.set(HealthState::DatabaseDown).await;
                    if !logged.contains(&cause) {
                        warn!("the database does not respond: {cause} ({address})");
                        logged.push(cause);
                    }
                    sleep(PING_INTERVAL_WHEN_DOWN).await;
                }
            }
        }
    }

    /// Reports NOT_SERVING from now on, and ends watches, which would delay the shutdown. The
    /// database must no longer be followed.
    pub async fn shut_down(&self) {
        self.set(HealthState::ShuttingDown).await;
        for service in reported_services() {
            let mut reporter = self.reporter.clone();
            reporter.clear_service_status(service).await;
        }
        self.report(ServingStatus::NotServing).await;
    }

    /// Changes the state. Returns whether it has changed.
    pub async fn set(&self, state: HealthState) -> bool {
        let is_changed = self.state.send_replace(state) != state;
        if is_changed {
            self.report(match state {
                HealthState::Serving => ServingStatus::Serving,
                _ => ServingStatus::NotServing,
            })
            .await;
        }
        is_changed
    }

    async fn report(&self, status: ServingStatus) {
        for service in reported_services() {
            self.reporter.set_service_status(service, status).await;
        }
    }
}

fn reported_services() -> impl Iterator<Item = &'static str> {
    grpc::SERVICES.into_iter().chain([""])
}
