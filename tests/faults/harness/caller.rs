//! Clients of one account.

use std::net::SocketAddr;

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
#[derive(Clone, Debug)]
pub struct Metadata {
    subject: AsciiMetadataValue,
}

impl Interceptor for Metadata {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        metadata.insert("x-account-id", AsciiMetadataValue::from_static(ACCOUNT));
        metadata.insert("x-subject", self.subject.clone());
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
            metadata: Metadata {
                subject: AsciiMetadataValue::from_static("somebody"),
            },
        }
    }

    /// The same under a name that the server's log shows.
    pub fn called(&self, subject: &str) -> Self {
        let mut caller = self.clone();
        caller.metadata.subject = subject.parse().expect("printable ASCII");
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
