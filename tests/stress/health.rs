//! The health of a server as a load balancer sees it.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{task::JoinHandle, time::sleep};
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::kit::deadline::{in_time, until};

/// The server and each of its services.
const SERVICES: [&str; 9] = [
    "",
    "expertise.v1.TaskService",
    "expertise.v1.StepService",
    "expertise.v1.RoleService",
    "expertise.v1.TranslationService",
    "expertise.v1.AnalysisService",
    "expertise.v1.RevisionService",
    "expertise.v1.ChangeService",
    "expertise.v1.IndexService",
];

/// A client of the health service with its own connection.
pub struct Health(HealthClient<Channel>);

impl Health {
    pub fn of(server: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{server}"));
        Self(HealthClient::new(
            endpoint.expect("the server's address").connect_lazy(),
        ))
    }

    /// Waits until the server and each of its services serve.
    pub async fn wait_until_serving(&self) {
        self.wait_until_status(ServingStatus::Serving).await;
    }

    /// Waits until neither the server nor any of its services serves.
    pub async fn wait_until_not_serving(&self) {
        self.wait_until_status(ServingStatus::NotServing).await;
    }

    async fn wait_until_status(&self, status: ServingStatus) {
        for service in SERVICES {
            until(&format!("{service} {status:?}"), async || {
                (self.status_of(service).await == status).then_some(())
            })
            .await;
        }
    }

    /// The status of the server.
    pub async fn status(&self) -> ServingStatus {
        self.status_of("").await
    }

    async fn status_of(&self, service: &str) -> ServingStatus {
        let service = service.to_owned();
        let mut client = self.0.clone();
        let response = client.check(HealthCheckRequest { service });
        let response = in_time("health is answered", response).await;
        response.expect("health is answered").into_inner().status()
    }

    /// Watches the status of the server until it has ended; the last one.
    pub async fn watch_to_the_end(&self) -> JoinHandle<ServingStatus> {
        let watch = self.0.clone().watch(HealthCheckRequest::default()).await;
        let mut statuses = watch.expect("health is answered").into_inner();
        let mut last = statuses.message().await.expect("a status");
        tokio::spawn(async move {
            let watching = async {
                while let Ok(Some(next)) = statuses.message().await {
                    last = Some(next);
                }
            };
            in_time("the server ends", watching).await;
            last.map_or(ServingStatus::Unknown, |last| last.status())
        })
    }

    /// Checks again and again that the server serves. The 99th percentile of the times that
    /// the checks took.
    pub async fn check_time_p99(&self, time: Duration) -> Duration {
        time_p99(time, || async {
            assert_eq!(self.status().await, ServingStatus::Serving);
        })
        .await
    }
}

/// Makes calls again and again, one at a time. The 99th percentile of the times that they took.
pub async fn time_p99<F: Future<Output = ()>>(time: Duration, call: impl Fn() -> F) -> Duration {
    let started = Instant::now();
    let mut took = Vec::new();
    while started.elapsed() < time {
        let asked = Instant::now();
        call().await;
        took.push(asked.elapsed());
        sleep(Duration::from_millis(20)).await;
    }
    took.sort();
    took[took.len() * 99 / 100]
}
