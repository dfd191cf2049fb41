//! A server of a test's own, and calls to it.

use std::{fmt, net::SocketAddr, time::Duration};

use bytes::Bytes;
use expertise::{
    auth::{KeySource, SigningSecret, TokenRules},
    config::{AuthMode, Config, Tls},
    proto::v1::{
        CreateRoleRequest, CreateTaskRequest, ListTasksRequest, Role, Task,
        role_service_client::RoleServiceClient, task_service_client::TaskServiceClient,
    },
    server::{Server, StartError},
};
use tokio::sync::oneshot;
use tonic::{
    Code, Request, Status,
    metadata::AsciiMetadataValue,
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt;

use super::raw::RawCodec;

pub const ISSUER: &str = "https://issuer.test";
pub const AUDIENCE: &str = "expertise";
pub const SECRET: &[u8] = b"a secret of these tests, 32 bytes or more";

/// Far beyond what an answer takes: a wait that long has hung.
const BOUND: Duration = Duration::from_secs(60);

/// A server on a database of its own, until it is dropped.
pub struct Service {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

/// `jwt` mode with these keys.
pub fn jwt(keys: KeySource) -> AuthMode {
    AuthMode::Jwt(TokenRules {
        keys,
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
    })
}

/// `jwt` mode with the secret of these tests.
pub fn hs256() -> AuthMode {
    let secret = std::str::from_utf8(SECRET).expect("text");
    jwt(KeySource::Secret(
        SigningSecret::new(secret).expect("32 bytes"),
    ))
}

impl Service {
    pub async fn start(auth: AuthMode) -> Self {
        Self::try_start(auth, None).await.expect("it starts")
    }

    pub async fn start_with_tls(auth: AuthMode, tls: Tls) -> Self {
        Self::try_start(auth, Some(tls)).await.expect("it starts")
    }

    /// A server whose calls may take this long.
    pub async fn start_impatient(auth: AuthMode, request_timeout: Duration) -> Self {
        let config = Config {
            auth,
            request_timeout,
            ..Config::for_tests("sqlite::memory:")
        };
        Self::with(config).await.expect("it starts")
    }

    /// The server, or the one line that says why not.
    pub async fn try_start(auth: AuthMode, tls: Option<Tls>) -> Result<Self, String> {
        let config = Config {
            auth,
            tls,
            ..Config::for_tests("sqlite::memory:")
        };
        Self::with(config).await
    }

    async fn with(config: Config) -> Result<Self, String> {
        let line = |error: StartError| error.to_string();
        let server = Server::bind(config).await.map_err(line)?;
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(server.serve(async { drop(stopped.await) }));
        Ok(Self {
            address,
            _stop: stop,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Calls over one connection in plain text.
    pub fn client(&self) -> Client {
        Client::to(self.address)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Service").field(&self.address).finish()
    }
}

/// Calls over one connection.
#[derive(Clone)]
pub struct Client(pub Channel);

impl Client {
    /// Calls over one connection in plain text.
    pub fn to(address: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        Self(endpoint.expect("an address").connect_lazy())
    }

    /// ListTasks with a token.
    pub async fn read(&self, token: &str) -> Result<(), Status> {
        self.list(&[("authorization", &format!("Bearer {token}"))])
            .await
    }

    /// ListTasks with this metadata.
    pub async fn list(&self, metadata: &[(&'static str, &str)]) -> Result<(), Status> {
        let mut client = TaskServiceClient::new(self.0.clone());
        let request = with(ListTasksRequest::default(), metadata);
        bounded(client.list_tasks(request)).await.map(drop)
    }

    /// An empty message to a call, such as `TaskService/GetTask`.
    pub async fn ask(&self, call: &str, metadata: &[(&'static str, &str)]) -> Result<(), Status> {
        let path = format!("/expertise.v1.{call}").parse().expect("a path");
        let mut client = tonic::client::Grpc::new(self.0.clone());
        client.ready().await.expect("a connection");
        let request = with(Bytes::new(), metadata);
        bounded(client.unary(request, path, RawCodec))
            .await
            .map(drop)
    }

    /// CreateTask with a token; the account that the task is in.
    pub async fn write(&self, token: &str) -> Result<String, Status> {
        let request = CreateTaskRequest {
            task: Some(Task {
                name: "A task".to_owned(),
                product_id: Some(1),
                ..Task::default()
            }),
            ..CreateTaskRequest::default()
        };
        let bearer = format!("Bearer {token}");
        let request = with(request, &[("authorization", &bearer)]);
        let mut client = TaskServiceClient::new(self.0.clone());
        let response = bounded(client.create_task(request)).await?.into_inner();
        Ok(response.task.expect("the task").account_id)
    }

    /// CreateRole with a token.
    pub async fn administer(&self, token: &str) -> Result<(), Status> {
        let role = Role {
            id: 0,
            name: "A role".to_owned(),
        };
        let request = CreateRoleRequest { role: Some(role) };
        let bearer = format!("Bearer {token}");
        let request = with(request, &[("authorization", &bearer)]);
        let mut client = RoleServiceClient::new(self.0.clone());
        bounded(client.create_role(request)).await.map(drop)
    }
}

fn with<T>(message: T, metadata: &[(&'static str, &str)]) -> Request<T> {
    let mut request = Request::new(message);
    for (name, value) in metadata {
        let value: AsciiMetadataValue = value.parse().expect("metadata of printable ASCII");
        request.metadata_mut().append(*name, value);
    }
    request
}

/// Waits for an answer, and fails when there is none.
pub async fn bounded<T>(call: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(BOUND, call).await;
    answer.expect("an answer")
}

/// An answer as the wire has it.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub code: Code,
    pub reason: String,
    pub message: String,
    pub details: Vec<u8>,
}

/// What a refused call was answered.
#[track_caller]
pub fn answered<T: fmt::Debug>(outcome: Result<T, Status>) -> Answer {
    let status = outcome.expect_err("it is refused");
    let info = status.get_details_error_info();
    Answer {
        code: status.code(),
        reason: info.map(|info| info.reason).unwrap_or_default(),
        message: status.message().to_owned(),
        details: status.details().to_vec(),
    }
}
