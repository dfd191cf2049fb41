//! Health of the server, for load balancers and orchestrators.
//!
//! The service is not tonic-health's own: that one answers a watch of an unknown service
//! with an error, where the protocol asks for SERVICE_UNKNOWN, and it cannot end watches
//! at shutdown while checks go on.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{Stream, stream};
use tokio::{sync::watch, time::sleep};
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_check_response::ServingStatus,
    health_server::{Health, HealthServer},
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
    Serving,
    DatabaseDown,
    /// For good. Watches end, so that they do not hold up the shutdown.
    ShuttingDown,
}

impl HealthState {
    fn status(self) -> ServingStatus {
        match self {
            Self::Serving => ServingStatus::Serving,
            Self::DatabaseDown | Self::ShuttingDown => ServingStatus::NotServing,
        }
    }
}

/// Sets the health that [`HealthService`] reports.
#[derive(Clone)]
pub struct HealthMonitor(Arc<watch::Sender<HealthState>>);

impl HealthMonitor {
    /// Reports NOT_SERVING until the database is open.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(HealthState::DatabaseDown)))
    }

    /// Reports SERVING: the database has been opened.
    pub fn start(&self) {
        self.set(HealthState::Serving);
    }

    pub fn service(&self) -> HealthServer<HealthService> {
        HealthServer::new(HealthService(self.0.subscribe()))
    }

    pub fn state(&self) -> HealthState {
        *self.0.borrow()
    }

    /// Pings the database until the future is dropped. `address` names it in the log.
    pub async fn follow_database(self, store: Store, address: String) {
        // The causes of the current outage.
        let mut logged = Vec::new();
        loop {
            match store.ping().await {
                Ok(()) => {
                    if self.set(HealthState::Serving) {
                        info!("the database answers again");
                    }
                    logged.clear();
                    sleep(PING_INTERVAL).await;
                }
                Err(cause) => {
                    self.set(HealthState::DatabaseDown);
                    if self.state() == HealthState::DatabaseDown && !logged.contains(&cause) {
                        warn!("the database does not answer: {cause} ({address})");
                        logged.push(cause);
                    }
                    sleep(PING_INTERVAL_WHEN_DOWN).await;
                }
            }
        }
    }

    /// Reports NOT_SERVING from here on.
    pub fn shut_down(&self) {
        self.set(HealthState::ShuttingDown);
    }

    /// Changes the state, except during shutdown. Returns whether it has changed.
    fn set(&self, state: HealthState) -> bool {
        self.0.send_if_modified(|current| {
            let changes = *current != state && *current != HealthState::ShuttingDown;
            if changes {
                *current = state;
            }
            changes
        })
    }
}

/// `grpc.health.v1.Health` for the server, `""`, and each of its services.
pub struct HealthService(watch::Receiver<HealthState>);

fn is_known(service: &str) -> bool {
    service.is_empty() || grpc::SERVICES.contains(&service)
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !is_known(&request.get_ref().service) {
            return Err(Status::not_found("the server has no such service"));
        }
        let state = *self.0.borrow();
        Ok(Response::new(response(state.status())))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let known = is_known(&request.get_ref().service);
        let changes = status_changes(self.0.clone(), known);
        Ok(Response::new(Box::pin(changes)))
    }
}

/// The status now and after each change, until the shutdown. An unknown service can be
/// watched too, as the protocol asks.
fn status_changes(
    receiver: watch::Receiver<HealthState>,
    known: bool,
) -> impl Stream<Item = Result<HealthCheckResponse, Status>> {
    stream::unfold((receiver, None), move |(mut receiver, last)| async move {
        loop {
            let state = *receiver.borrow_and_update();
            let status = match known {
                true => state.status(),
                false => ServingStatus::ServiceUnknown,
            };
            if last != Some(status) {
                return Some((Ok(response(status)), (receiver, Some(status))));
            }
            if state == HealthState::ShuttingDown {
                return None;
            }
            receiver.changed().await.ok()?;
        }
    })
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[tokio::test]
    async fn watchers_see_each_change_and_end_at_shutdown() {
        let monitor = HealthMonitor::new();
        let mut watched = Box::pin(status_changes(monitor.0.subscribe(), true));
        let mut next = async || {
            let item = watched.next().await;
            item.map(|item| item.map(|response| response.status()).ok())
        };
        assert_eq!(next().await, Some(Some(ServingStatus::NotServing)));
        monitor.start();
        assert_eq!(next().await, Some(Some(ServingStatus::Serving)));
        assert!(monitor.set(HealthState::DatabaseDown) && !monitor.set(HealthState::DatabaseDown));
        assert_eq!(next().await, Some(Some(ServingStatus::NotServing)));
        assert!(monitor.set(HealthState::Serving));
        assert_eq!(next().await, Some(Some(ServingStatus::Serving)));
        monitor.shut_down();
        assert!(!monitor.set(HealthState::Serving));
        assert_eq!(next().await, Some(Some(ServingStatus::NotServing)));
        assert_eq!(next().await, None);
    }
}
