//! What operators rely on: settings, credentials, limits, metrics, traces, logs, readiness, and backups
//! that can be restored.

pub mod authentication;
mod backups;
mod cancelled_reads;
pub mod collector;
mod concurrent_writes;
mod contended_rows;
mod documentation;
pub mod exposition;
mod health_and_reflection;
mod http2_framing;
mod log;
mod metrics;
mod read_fleet;
mod readiness;
mod server_state;
mod settings;
mod shared_sqlite_file;
mod startup;
mod statement_counts;
mod traces;
mod write_queue;

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
