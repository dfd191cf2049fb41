//! A server of a test's own, and calls to it.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use expertise::{
    config::Config,
    proto::v1::{
        CreateStepRequest, CreateStepResponse, CreateTaskRequest, DeleteTaskRequest,
        GetTaskRequest, Step, StepType, Task, step_service_client::StepServiceClient,
        task_service_client::TaskServiceClient,
    },
    server::Server,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};
use tonic::{
    Request, Status,
    metadata::AsciiMetadataValue,
    transport::{Channel, Endpoint},
};

use super::exposition::Exposition;

/// Far beyond what anything here takes: a wait that long has hung.
pub const BOUND: Duration = Duration::from_secs(60);

/// Calls over one connection, with metadata.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    metadata: Vec<(&'static str, String)>,
}

impl Client {
    pub fn to(address: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        Self {
            channel: endpoint.expect("an address").connect_lazy(),
            metadata: vec![("x-account-id", "demo".to_owned())],
        }
    }

    /// The same with more metadata.
    pub fn with(&self, name: &'static str, value: &str) -> Self {
        let mut client = self.clone();
        client.metadata.push((name, value.to_owned()));
        client
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in &self.metadata {
            let value = AsciiMetadataValue::try_from(value).expect("a header's value");
            request.metadata_mut().append(*name, value);
        }
        request
    }

    pub async fn create_task(&self, name: &str) -> Result<Task, Status> {
        let task = Task {
            name: name.to_owned(),
            product_id: Some(7),
            ..Task::default()
        };
        let request = self.request(CreateTaskRequest {
            task: Some(task),
            ..CreateTaskRequest::default()
        });
        let mut client = TaskServiceClient::new(self.channel.clone());
        let answer = client.create_task(request);
        Ok(answer.await?.into_inner().task.expect("a task"))
    }

    pub async fn get_task(&self, guid: &str) -> Result<Task, Status> {
        let request = self.request(GetTaskRequest {
            guid: guid.to_owned(),
        });
        let mut client = TaskServiceClient::new(self.channel.clone());
        let answer = client.get_task(request);
        Ok(answer.await?.into_inner().task.expect("a task"))
    }

    /// Deletes a task and its steps.
    pub async fn delete_task(&self, guid: &str) -> Result<(), Status> {
        let request = self.request(DeleteTaskRequest {
            guid: guid.to_owned(),
            force: true,
            ..DeleteTaskRequest::default()
        });
        let mut client = TaskServiceClient::new(self.channel.clone());
        client.delete_task(request).await.map(drop)
    }

    pub async fn create_step(&self, task: &Task, title: &str) -> Result<Step, Status> {
        let step = Step {
            task: task.guid.clone(),
            product_id: Some(7),
            r#type: StepType::Information.into(),
            title: title.to_owned(),
            ..Step::default()
        };
        let request = self.request(CreateStepRequest {
            step: Some(step),
            ..CreateStepRequest::default()
        });
        let mut client = StepServiceClient::new(self.channel.clone());
        let answer = client.create_step(request);
        let CreateStepResponse { step, .. } = answer.await?.into_inner();
        Ok(step.expect("a step"))
    }

    /// A call that is begun and whose message is never sent.
    pub fn get_task_that_never_comes(&self) -> JoinHandle<()> {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        let request = self.request(futures_util::stream::pending::<GetTaskRequest>());
        tokio::spawn(async move {
            client.ready().await.expect("a connection");
            let codec = tonic_prost::ProstCodec::<GetTaskRequest, Task>::default();
            let path = "/expertise.v1.TaskService/GetTask".parse();
            let answer = client.client_streaming(request, path.expect("a path"), codec);
            let _ = answer.await;
        })
    }

    /// A call of a path that the contract does not have.
    pub async fn call_nothing(&self, path: &str) -> Status {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client.ready().await.expect("a connection");
        let codec = tonic_prost::ProstCodec::<GetTaskRequest, Task>::default();
        let path = path.parse().expect("a path");
        let request = self.request(GetTaskRequest::default());
        let answer: Result<tonic::Response<Task>, _> = client.unary(request, path, codec).await;
        answer.expect_err("it is not there")
    }
}

/// A server, until it is stopped or dropped.
pub struct Service {
    address: SocketAddr,
    metrics: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// Settings with metrics on a free port.
pub fn config(database_url: &str) -> Config {
    Config {
        metrics_listen: Some(([127, 0, 0, 1], 0).into()),
        ..Config::for_tests(database_url)
    }
}

impl Service {
    pub async fn start(config: Config) -> Self {
        let server = Server::bind(config).await.expect("it starts");
        let address = server.local_addr();
        let metrics = server.metrics_addr().expect("it is asked for");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            server.serve(async { drop(stopped.await) }).await;
        });
        Self {
            address,
            metrics,
            stop,
            serving,
        }
    }

    pub fn client(&self) -> Client {
        Client::to(self.address)
    }

    /// Where metrics are.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics
    }

    pub async fn metrics(&self) -> Exposition {
        let (code, text) = get(self.metrics, "/metrics").await;
        assert_eq!(code, 200, "{text}");
        Exposition::of(&text)
    }

    /// Waits until the metrics are like this.
    pub async fn until(&self, what: &str, holds: impl Fn(&Exposition) -> bool) -> Exposition {
        let begun = Instant::now();
        loop {
            let metrics = self.metrics().await;
            if holds(&metrics) {
                return metrics;
            }
            assert!(begun.elapsed() < BOUND, "never: {what}\n{metrics:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Tells it to end, without waiting.
    pub fn begin_to_stop(self) -> JoinHandle<()> {
        drop(self.stop);
        self.serving
    }

    /// Ends it.
    pub async fn stop(self) {
        let serving = self.begin_to_stop();
        let ended = tokio::time::timeout(BOUND, serving).await;
        ended.expect("it ends").expect("without a panic");
    }
}

/// The code and the body of an answer over plain HTTP.
pub async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    exchange(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n"),
    )
    .await
}

/// The code and the body of the answer to these bytes.
pub async fn exchange(address: SocketAddr, request: &str) -> (u16, String) {
    let answer = async {
        let mut peer = TcpStream::connect(address).await?;
        peer.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(BOUND, answer).await;
    let answer = answer.expect("in time").expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let code = head.split(' ').nth(1).expect("a code");
    (code.parse().expect("a code"), body.to_owned())
}
