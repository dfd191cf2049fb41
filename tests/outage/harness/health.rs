//! The health of a server, as a load balancer asks for it.

use std::net::SocketAddr;

use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::until::until;

/// The server and each of its services.
const SERVICES: [&str; 5] = [
    "",
    "expertise.v1.TaskService",
    "expertise.v1.StepService",
    "expertise.v1.RoleService",
    "expertise.v1.TranslationService",
];

pub struct Health(HealthClient<Channel>);

impl Health {
    /// Asked over a connection of its own.
    pub fn of(server: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{server}"));
        Self(HealthClient::new(
            endpoint.expect("the server's address").connect_lazy(),
        ))
    }

    /// Waits until the server and each of its services serve.
    pub async fn is_good(&self) {
        self.becomes(ServingStatus::Serving).await;
    }

    /// Waits until neither the server nor any of its services serves.
    pub async fn is_bad(&self) {
        self.becomes(ServingStatus::NotServing).await;
    }

    async fn becomes(&self, status: ServingStatus) {
        for service in SERVICES {
            until(&format!("{service} {status:?}"), async || {
                (self.now(service).await == status).then_some(())
            })
            .await;
        }
    }

    /// What it says of a service now.
    pub async fn now(&self, service: &str) -> ServingStatus {
        let service = service.to_owned();
        let response = self.0.clone().check(HealthCheckRequest { service }).await;
        response.expect("health is answered").into_inner().status()
    }
}
