//! Health of the server, for load balancers and orchestrators.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, watch},
    time::sleep,
};
use tonic_health::{
    ServingStatus,
    pb::health_server::{Health, HealthServer},
    server::{HealthReporter, health_reporter},
};
use tracing::{info, warn};

use crate::{grpc, store::Store};

/// How often the database is pinged. While it is down, more often: calls should come
/// back as soon as it does.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const PING_INTERVAL_WHEN_DOWN: Duration = Duration::from_millis(200);

/// The health of the whole server: every service needs the same database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// The database has not been opened yet.
    Starting,
    Serving,
    DatabaseDown,
    /// For good.
    ShuttingDown,
}

impl HealthState {
    fn status(self) -> ServingStatus {
        match self {
            Self::Serving => ServingStatus::Serving,
            Self::Starting | Self::DatabaseDown | Self::ShuttingDown => ServingStatus::NotServing,
        }
    }
}

/// Sets the health that `grpc.health.v1.Health` reports, for the server, `""`, and each of its
/// services.
#[derive(Clone)]
pub struct HealthMonitor {
    state: Arc<watch::Sender<HealthState>>,
    reporter: Arc<Mutex<HealthReporter>>,
}

impl HealthMonitor {
    /// Reports NOT_SERVING until the database is open.
    pub async fn new() -> (Self, HealthServer<impl Health>) {
        let (reporter, service) = health_reporter();
        let monitor = Self {
            state: Arc::new(watch::Sender::new(HealthState::Starting)),
            reporter: Arc::new(Mutex::new(reporter)),
        };
        monitor.report().await;
        (monitor, service)
    }

    /// Reports SERVING: the database has been opened.
    pub async fn start(&self) {
        self.set(HealthState::Serving).await;
    }

    pub fn state(&self) -> HealthState {
        *self.state.borrow()
    }

    /// Pings the database until the future is dropped. `address` names it in the log.
    pub async fn follow_database(self, store: Store, address: String) {
        // The causes of the current outage.
        let mut logged = Vec::new();
        loop {
            match store.ping().await {
                Ok(()) => {
                    if self.set(HealthState::Serving).await {
                        info!("the database answers again");
                    }
                    logged.clear();
                    sleep(PING_INTERVAL).await;
                }
                Err(cause) => {
                    self.set(HealthState::DatabaseDown).await;
                    if self.state() == HealthState::DatabaseDown && !logged.contains(&cause) {
                        warn!("the database does not answer: {cause} ({address})");
                        logged.push(cause);
                    }
                    sleep(PING_INTERVAL_WHEN_DOWN).await;
                }
            }
        }
    }

    /// Reports NOT_SERVING from here on, and ends watches, so that they do not hold up the
    /// shutdown.
    pub async fn shut_down(&self) {
        self.set(HealthState::ShuttingDown).await;
        let mut reporter = self.reporter.lock().await;
        for service in reported_services() {
            reporter.clear_service_status(service).await;
        }
        drop(reporter);
        self.report().await;
    }

    /// Changes the state, except during shutdown. Returns whether it has changed.
    async fn set(&self, state: HealthState) -> bool {
        let is_changed = self.state.send_if_modified(|current| {
            let changes = *current != state && *current != HealthState::ShuttingDown;
            if changes {
                *current = state;
            }
            changes
        });
        if is_changed {
            self.report().await;
        }
        is_changed
    }

    async fn report(&self) {
        let reporter = self.reporter.lock().await;
        let status = self.state().status();
        for service in reported_services() {
            reporter.set_service_status(service, status).await;
        }
    }
}

fn reported_services() -> impl Iterator<Item = &'static str> {
    grpc::SERVICES.into_iter().chain([""])
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use tonic_health::pb::{
        HealthCheckRequest,
        health_check_response::ServingStatus::{NotServing, Serving},
        health_client::HealthClient,
    };

    use super::*;

    #[tokio::test]
    async fn what_the_database_answers_changes_nothing_once_the_server_shuts_down() {
        let (monitor, service) = HealthMonitor::new().await;
        let client = HealthClient::new(service);
        let reported = async || {
            let mut statuses = Vec::new();
            for service in reported_services() {
                let service = service.to_owned();
                let answer = client.clone().check(HealthCheckRequest { service }).await;
                statuses.push(answer.expect("an answer").into_inner().status());
            }
            statuses.dedup();
            statuses
        };
        assert_eq!(reported().await, [NotServing]);
        monitor.start().await;
        assert_eq!(reported().await, [Serving]);
        for (state, is_changed, expected) in [
            (HealthState::Serving, false, Serving),
            (HealthState::DatabaseDown, true, NotServing),
            (HealthState::DatabaseDown, false, NotServing),
            (HealthState::Serving, true, Serving),
        ] {
            assert_eq!(monitor.set(state).await, is_changed, "{state:?}");
            assert_eq!(reported().await, [expected], "{state:?}");
        }
        monitor.shut_down().await;
        for state in [HealthState::Serving, HealthState::DatabaseDown] {
            assert!(!monitor.set(state).await, "{state:?}");
            assert_eq!(monitor.state(), HealthState::ShuttingDown);
            assert_eq!(reported().await, [NotServing], "{state:?}");
        }
    }
}
