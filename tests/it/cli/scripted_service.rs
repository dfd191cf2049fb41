//! A service that answers imports by a script.

use std::{
    pin::pin,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use expertise::proto::v1::{ImportTaskRequest, ImportTaskResponse, Task};
use h2::{RecvStream, server::SendResponse};
use http::{HeaderMap, HeaderValue, Request, Response};
use prost::Message;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    sync::Notify,
};
use tonic::Status;

use crate::kit::http2::framed_message;

/// What comes of an import.
#[derive(Clone, Debug)]
pub enum Reply {
    Done,
    Error(Status),
    /// The connection ends instead.
    Cut,
    /// The same, and nobody listens any more.
    CutForEver,
}

/// The service, until this is dropped.
pub struct ScriptedService {
    pub url: String,
    state: Arc<State>,
    _runtime: Runtime,
}

struct State {
    script: Vec<Reply>,
    request_ids: Mutex<Vec<String>>,
    cut: Notify,
}

impl ScriptedService {
    /// The last reply is that of all later imports.
    pub fn start(script: &[Reply]) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let state = Arc::new(State {
            script: script.to_vec(),
            request_ids: Mutex::default(),
            cut: Notify::new(),
        });
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        runtime.spawn(Arc::clone(&state).listen(listener));
        Self {
            url,
            state,
            _runtime: runtime,
        }
    }

    /// The request ids so far.
    pub fn request_ids(&self) -> Vec<String> {
        self.state.request_ids.lock().expect("the ids").clone()
    }
}

impl State {
    fn reply(&self, import: usize) -> &Reply {
        self.script
            .get(import)
            .unwrap_or(&self.script[self.script.len() - 1])
    }

    async fn listen(self: Arc<Self>, listener: TcpListener) {
        let mut listener = Some(listener);
        while let Some(listening) = &listener {
            let (client, _) = listening.accept().await.expect("a connection");
            let mut connection = pin!(Arc::clone(&self).serve(client));
            tokio::select! {
                () = &mut connection => {}
                // It stops listening before the connection ends.
                () = self.cut.notified() => {
                    let imports = self.request_ids.lock().expect("the ids").len();
                    if matches!(self.reply(imports - 1), Reply::CutForEver) {
                        listener = None;
                    }
                }
            }
        }
    }

    async fn serve(self: Arc<Self>, client: TcpStream) {
        let mut connection = h2::server::handshake(client).await.expect("HTTP/2");
        while let Some(Ok((request, respond))) = connection.accept().await {
            tokio::spawn(Arc::clone(&self).answer(request, respond));
        }
    }

    async fn answer(self: Arc<Self>, request: Request<RecvStream>, mut to: SendResponse<Bytes>) {
        if !request.uri().path().ends_with("/ImportTask") {
            let response = Status::unimplemented("").into_http::<()>();
            to.send_response(response, true).expect("it is sent");
            return;
        }
        let mut body = request.into_body();
        let mut message = Vec::new();
        while let Some(data) = body.data().await {
            message.extend(data.expect("a message"));
        }
        let request = ImportTaskRequest::decode(&message[5..]).expect("an import");
        let import = {
            let mut request_ids = self.request_ids.lock().expect("the ids");
            request_ids.push(request.request_id);
            request_ids.len() - 1
        };
        match self.reply(import) {
            Reply::Cut | Reply::CutForEver => self.cut.notify_one(),
            Reply::Error(status) => {
                let response = status.clone().into_http::<()>();
                to.send_response(response, true).expect("it is sent");
            }
            Reply::Done => {
                let response = Response::builder().header("content-type", "application/grpc");
                let response = response.body(()).expect("a response");
                let mut stream = to.send_response(response, false).expect("it is sent");
                let imported = ImportTaskResponse {
                    task: Some(Task::default()),
                    ..ImportTaskResponse::default()
                };
                let sent = stream.send_data(framed_message(&imported), false);
                sent.expect("it is sent");
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
                stream.send_trailers(trailers).expect("they are sent");
            }
        }
    }
}
