//! Clients of one account.

use std::{net::SocketAddr, time::Duration};

use expertise::proto::v1::{
    role_service_client::RoleServiceClient, step_service_client::StepServiceClient,
    task_service_client::TaskServiceClient, translation_service_client::TranslationServiceClient,
};
use tonic::{
    Request, Status,
    metadata::AsciiMetadataValue,
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};

/// The account of every writer: what they do meets in the database.
const ACCOUNT: &str = "faults";

/// A connection, and who calls over it.
#[derive(Clone, Debug)]
pub struct Caller {
    channel: Channel,
    metadata: Metadata,
}

/// What the metadata of a call says.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    timeout: Option<Duration>,
}

impl Interceptor for Metadata {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        metadata.insert("x-account-id", AsciiMetadataValue::from_static(ACCOUNT));
        if let Some(timeout) = self.timeout {
            request.set_timeout(timeout);
        }
        Ok(request)
    }
}

type Authenticated = InterceptedService<Channel, Metadata>;

impl Caller {
    /// Over a connection of its own, which is made at the first call.
    pub fn at(server: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{server}"));
        Self {
            channel: endpoint.expect("the server's address").connect_lazy(),
            metadata: Metadata::default(),
        }
    }

    /// The same, whose calls have so much time.
    pub fn within(&self, timeout: Duration) -> Self {
        let mut caller = self.clone();
        caller.metadata.timeout = Some(timeout);
        caller
    }

    fn authenticated(&self) -> Authenticated {
        InterceptedService::new(self.channel.clone(), self.metadata.clone())
    }

    pub fn tasks(&self) -> TaskServiceClient<Authenticated> {
        TaskServiceClient::new(self.authenticated())
    }

    pub fn steps(&self) -> StepServiceClient<Authenticated> {
        StepServiceClient::new(self.authenticated())
    }

    pub fn roles(&self) -> RoleServiceClient<Authenticated> {
        RoleServiceClient::new(self.authenticated())
    }

    pub fn translations(&self) -> TranslationServiceClient<Authenticated> {
        TranslationServiceClient::new(self.authenticated())
    }
}
