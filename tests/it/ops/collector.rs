//! A collector of traces.

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    thread,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, async_trait, transport::Server};

use crate::kit::{deadline::in_time, runtime::runtime};

/// Receives spans and keeps them.
pub struct Collector {
    address: SocketAddr,
    received: watch::Receiver<Vec<ExportTraceServiceRequest>>,
}

struct Receiver(watch::Sender<Vec<ExportTraceServiceRequest>>);

#[async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0
            .send_modify(|received| received.push(request.into_inner()));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    pub fn start() -> Self {
        Self::at(([127, 0, 0, 1], 0).into())
    }

    /// Listens at this address.
    pub fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("its address");
        let (sender, received) = watch::channel(Vec::new());
        // It runs in its own thread, so a blocking test does not stop it.
        thread::spawn(move || runtime().block_on(serve(listener, sender)));
        Self { address, received }
    }

    /// The endpoint to configure.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        self.received.borrow().clone()
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Span> {
        spans(&self.received.borrow())
    }

    /// Waits until at least `count` spans have this name, and returns them.
    pub async fn spans_of(&mut self, name: &str, count: usize) -> Vec<Span> {
        let named = |requests: &[ExportTraceServiceRequest]| {
            let mut named = spans(requests);
            named.retain(|span| span.name == name);
            named
        };
        let enough = |requests: &Vec<_>| named(requests).len() >= count;
        let received = in_time("spans", self.received.wait_for(enough)).await;
        named(&received.expect("the collector runs"))
    }
}

async fn serve(listener: TcpListener, received: watch::Sender<Vec<ExportTraceServiceRequest>>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    let service = TraceServiceServer::new(Receiver(received));
    let serving = Server::builder().add_service(service);
    let served = serving.serve_with_incoming(TcpListenerStream::new(listener));
    served.await.expect("it serves");
}

fn spans(requests: &[ExportTraceServiceRequest]) -> Vec<Span> {
    let resources = requests.iter().flat_map(|request| &request.resource_spans);
    let scopes = resources.flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

/// Attributes as text.
pub fn attributes(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = attributes.iter().map(|attribute| {
        let value = attribute
            .value
            .as_ref()
            .and_then(|value| value.value.as_ref());
        let value = match value {
            Some(Value::StringValue(text)) => text.clone(),
            Some(Value::IntValue(number)) => number.to_string(),
            other => format!("{other:?}"),
        };
        (attribute.key.clone(), value)
    });
    text.collect()
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
