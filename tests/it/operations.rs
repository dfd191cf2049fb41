//! What operators rely on: metrics and the pages about them, traces, readiness, and
//! backups that can be restored.

mod backups;
mod documentation;
mod log;
mod metrics;
mod read_fleet;
mod readiness;
mod server_state;
mod startup;
mod traces;

use expertise::proto::v1::*;
use futures_util::StreamExt;
use tokio::task::JoinHandle;
use tonic::{Request, Status};

use crate::kit::client::Client;

/// A call that is begun and whose message is never sent.
fn begin_get_task(client: &Client) -> JoinHandle<Result<(), Status>> {
    begin_get_task_with(client, Vec::new())
}

/// A call that sends these messages and never ends its request.
fn begin_get_task_with(
    client: &Client,
    messages: Vec<GetTaskRequest>,
) -> JoinHandle<Result<(), Status>> {
    let mut grpc = tonic::client::Grpc::new(client.authenticated());
    let messages = futures_util::stream::iter(messages);
    let request = Request::new(messages.chain(futures_util::stream::pending()));
    tokio::spawn(async move {
        grpc.ready().await.expect("a connection");
        let codec = tonic_prost::ProstCodec::<GetTaskRequest, Task>::default();
        let path = http::uri::PathAndQuery::from_static("/expertise.v1.TaskService/GetTask");
        grpc.client_streaming(request, path, codec).await.map(drop)
    })
}

/// The response to a call of a path that the API does not have.
async fn call_unknown_path(client: &Client, path: &str) -> Status {
    let mut grpc = tonic::client::Grpc::new(client.authenticated());
    grpc.ready().await.expect("a connection");
    let codec = tonic_prost::ProstCodec::<GetTaskRequest, Task>::default();
    let path = path.parse().expect("a path");
    let request = Request::new(GetTaskRequest::default());
    let answer: Result<tonic::Response<Task>, _> = grpc.unary(request, path, codec).await;
    answer.expect_err("it is not there")
}
