//! Health, as load balancers and orchestrators ask for it.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{Stream, stream};
use tokio::{sync::watch, time::sleep};
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_check_response::ServingStatus,
    health_server::{self, HealthServer},
};
use tracing::{info, warn};

use crate::{grpc, store::Store};

/// How often the database is asked while it is well, and while it is not: calls
/// should come back as soon as it does.
const PULSE: Duration = Duration::from_secs(1);
const UNWELL_PULSE: Duration = Duration::from_millis(200);

/// The one health of the whole server: every service needs the same database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Calls are taken.
    Well,
    /// The database does not answer.
    Unwell,
    /// On the way down: NOT_SERVING for good, and watchers are let go so that
    /// they do not hold up the shutdown.
    Leaving,
}

/// Sets the health that [`HealthServer`] reports.
#[derive(Clone)]
pub(super) struct Pulse(Arc<watch::Sender<Condition>>);

/// The health service and what drives it. The health is good until a first look
/// says otherwise.
pub(super) fn health() -> (Pulse, HealthServer<Health>) {
    let (sender, receiver) = watch::channel(Condition::Well);
    (Pulse(Arc::new(sender)), HealthServer::new(Health(receiver)))
}

impl Pulse {
    /// Follows the database; never ends by itself.
    pub async fn follow(self, store: Store) {
        loop {
            let well = store.ping().await;
            match well {
                true if self.set(Condition::Well) => info!("the database answers again"),
                false if self.set(Condition::Unwell) => warn!("the database does not answer"),
                true | false => {}
            }
            sleep(if well { PULSE } else { UNWELL_PULSE }).await;
        }
    }

    /// How the server is.
    pub fn condition(&self) -> Condition {
        *self.0.borrow()
    }

    /// NOT_SERVING from here on.
    pub fn leave(&self) {
        self.set(Condition::Leaving);
    }

    /// Whether that was a change.
    fn set(&self, condition: Condition) -> bool {
        self.0.send_if_modified(|current| {
            let changes = *current != condition && *current != Condition::Leaving;
            if changes {
                *current = condition;
            }
            changes
        })
    }
}

/// `grpc.health.v1.Health` for the server, `""`, and each of its services.
pub(super) struct Health(watch::Receiver<Condition>);

fn is_known(service: &str) -> bool {
    service.is_empty() || grpc::SERVICES.contains(&service)
}

fn answer(condition: Condition) -> ServingStatus {
    match condition {
        Condition::Well => ServingStatus::Serving,
        Condition::Unwell | Condition::Leaving => ServingStatus::NotServing,
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !is_known(&request.get_ref().service) {
            return Err(Status::not_found("no such service here"));
        }
        let condition = *self.0.borrow();
        Ok(Response::new(response(answer(condition))))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let known = is_known(&request.get_ref().service);
        let changes = changes(self.0.clone(), known);
        Ok(Response::new(Box::pin(changes)))
    }
}

/// The answer now and at each change. A service that is not known is watched
/// too, as the protocol asks.
fn changes(
    receiver: watch::Receiver<Condition>,
    known: bool,
) -> impl Stream<Item = Result<HealthCheckResponse, Status>> {
    stream::unfold((receiver, None), move |(mut receiver, last)| async move {
        loop {
            let condition = *receiver.borrow_and_update();
            let status = match known {
                true => answer(condition),
                false => ServingStatus::ServiceUnknown,
            };
            if last != Some(status) {
                return Some((Ok(response(status)), (receiver, Some(status))));
            }
            if condition == Condition::Leaving {
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
    async fn watchers_see_each_change_and_are_let_go_at_the_end() {
        let (sender, receiver) = watch::channel(Condition::Well);
        let pulse = Pulse(Arc::new(sender));
        let mut watched = Box::pin(changes(receiver, true));
        let mut next = async || {
            watched
                .next()
                .await
                .map(|item| item.map(|r| r.status()).ok())
        };
        assert_eq!(next().await, Some(Some(ServingStatus::Serving)));
        assert!(pulse.set(Condition::Unwell) && !pulse.set(Condition::Unwell));
        assert_eq!(next().await, Some(Some(ServingStatus::NotServing)));
        assert!(pulse.set(Condition::Well));
        assert_eq!(next().await, Some(Some(ServingStatus::Serving)));
        pulse.leave();
        assert!(!pulse.set(Condition::Well));
        assert_eq!(next().await, Some(Some(ServingStatus::NotServing)));
        assert_eq!(next().await, None);
    }
}
