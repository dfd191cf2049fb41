//! A collector of traces.

// Not every test that shares this file asks everything of it.
#![allow(dead_code)]

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    thread,
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};
use tokio::{sync::watch, time::timeout};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, async_trait, transport::Server};

/// Far beyond what anything here takes: a wait that long has hung.
const BOUND: Duration = Duration::from_secs(60);

/// Takes spans and keeps them.
pub struct Collector {
    address: SocketAddr,
    taken: watch::Receiver<Vec<ExportTraceServiceRequest>>,
}

struct Taking(watch::Sender<Vec<ExportTraceServiceRequest>>);

#[async_trait]
impl TraceService for Taking {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.send_modify(|taken| taken.push(request.into_inner()));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    pub fn start() -> Self {
        Self::at(([127, 0, 0, 1], 0).into())
    }

    /// One on this port.
    pub fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("its address");
        let (sender, taken) = watch::channel(Vec::new());
        // A thread of its own: a test that blocks does not hold it up.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime
                .expect("a runtime")
                .block_on(serve(listener, sender))
        });
        Self { address, taken }
    }

    /// What to set as the endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was taken, as it came.
    pub fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        self.taken.borrow().clone()
    }

    /// The spans that were taken so far.
    pub fn spans(&self) -> Vec<Span> {
        spans(&self.taken.borrow())
    }

    /// Waits for so many spans of a name; all of them.
    pub async fn spans_of(&mut self, name: &str, count: usize) -> Vec<Span> {
        let begun = Instant::now();
        loop {
            let found = spans(&self.taken.borrow_and_update());
            let found: Vec<_> = found.into_iter().filter(|span| span.name == name).collect();
            if found.len() >= count {
                return found;
            }
            let left = BOUND.saturating_sub(begun.elapsed());
            let changed = timeout(left, self.taken.changed()).await;
            changed.expect("spans in time").expect("a collector");
        }
    }
}

async fn serve(listener: TcpListener, taken: watch::Sender<Vec<ExportTraceServiceRequest>>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    let service = TraceServiceServer::new(Taking(taken));
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

/// Bytes as they are written.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
