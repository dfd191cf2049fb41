#![allow(clippy::expect_used)]

use std::{
    future::{pending, ready},
    io,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream};
use http::{HeaderMap, header::CONTENT_TYPE};
use http_body_util::StreamBody;
use hyper::body::{Body as HttpBody, Frame};
use tonic::{
    Code,
    server::NamedService,
    service::Routes,
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt;

use super::*;
use crate::{
    proto::v1::{GetTaskRequest, task_service_client::TaskServiceClient},
    server::{connections::Connections, http2, listen::incoming, routes::ServerRoutes},
};

const GET_TASK: &str = "/expertise.v1.TaskService/GetTask";

/// A service that a test defines.
#[derive(Clone)]
struct Stub(fn(Request<Body>) -> BoxFuture<'static, Response<Body>>);

impl Service<Request<Body>> for Stub {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.0;
        Box::pin(async move { Ok(answer(request).await) })
    }
}

impl NamedService for Stub {
    const NAME: &'static str = "expertise.v1.TaskService";
}

/// A body of these frames.
fn frames<const N: usize>(frames: [Frame<Bytes>; N]) -> Body {
    let frames = stream::iter(frames.map(Ok::<_, Status>));
    Body::new(StreamBody::new(frames))
}

/// A request with an empty message.
fn empty_request(path: &str, headers: &[(&'static str, &'static str)]) -> Request<Body> {
    request_with_body(path, headers, message(0))
}

fn request_with_body(
    path: &str,
    headers: &[(&'static str, &'static str)],
    body: Body,
) -> Request<Body> {
    let builder = Request::builder()
        .method("POST")
        .uri(path)
        .header("content-type", "application/grpc");
    let builder = headers.iter().fold(builder, |b, (k, v)| b.header(*k, *v));
    builder.body(body).expect("a request")
}

fn middleware(request_timeout: Duration) -> Arc<Middleware> {
    let limits = CallLimits {
        request_timeout,
        max_message_bytes: 1024,
        max_inflight_bytes: 4096,
    };
    Arc::new(Middleware::new(Authenticator::Header, limits, None))
}

/// The status of the response, from its headers or its trailers.
async fn status_of(stub: Stub, request: Request<Body>) -> Status {
    status_within(Duration::from_secs(3600), stub, request).await
}

async fn status_within(limit: Duration, stub: Stub, request: Request<Body>) -> Status {
    let response = call(&middleware(limit), stub, request).await;
    let (parts, mut body) = response.into_parts();
    if let Some(status) = Status::from_header_map(&parts.headers) {
        return status;
    }
    loop {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let frame = frame.expect("trailers").expect("no error");
        if let Some(trailers) = frame.trailers_ref() {
            return Status::from_header_map(trailers).expect("a status");
        }
    }
}

fn call(
    middleware: &Arc<Middleware>,
    stub: Stub,
    request: Request<Body>,
) -> BoxFuture<'static, Response<Body>> {
    match CallService::new(Arc::clone(middleware), stub).call(request, None) {
        CallResponse::Ready(response) => Box::pin(ready(response)),
        CallResponse::Pending(work) => work,
    }
}

fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    info.map(|info| info.reason).unwrap_or_default()
}

fn unreachable_stub() -> Stub {
    Stub(|_| panic!("the service was called"))
}

fn ok_stub() -> Stub {
    Stub(|_| Box::pin(async { Status::ok("").into_http() }))
}

#[tokio::test]
async fn a_panic_is_logged_with_its_id_and_the_connection_serves_on() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let stub = Stub(|_| {
        Box::pin(async {
            if CALLS.fetch_add(1, Ordering::SeqCst) == 0 {
                panic!("the text of a guide");
            }
            let empty = Frame::data(Bytes::from_static(&[0; 5]));
            let ok = Status::ok("").into_http::<Body>().headers().clone();
            let mut response = Response::new(frames([empty, Frame::trailers(ok)]));
            let grpc = http::HeaderValue::from_static("application/grpc");
            response.headers_mut().insert(CONTENT_TYPE, grpc);
            response
        })
    });
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer({
        let log = log.clone();
        move || log.clone()
    });
    let _logging = tracing::subscriber::set_default(subscriber.finish());
    // With one dispatcher, the thread that first reaches a log statement decides whether it is
    // enabled: maybe that of another test, which has no subscriber. With two, tracing asks both.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let mut client = TaskServiceClient::new(served(stub).await);
    let mut get = async || {
        let mut request = tonic::Request::new(GetTaskRequest::default());
        let account = "42".parse().expect("an account");
        request.metadata_mut().insert("x-account-id", account);
        client.get_task(request).await
    };
    let status = get().await.expect_err("it panicked");
    assert_eq!(
        (status.code(), &*reason(&status)),
        (Code::Internal, "INTERNAL")
    );
    let info = status.get_details_error_info().expect("a detail");
    let id = info.metadata.get("id").expect("an id");
    get().await.expect("it serves on");

    let log = String::from_utf8(log.0.lock().expect("a lock").clone()).expect("text");
    let matches = |line: &&str| line.contains("ERROR") && line.contains(id.as_str());
    assert_eq!(log.lines().filter(matches).count(), 1, "{log}");
    assert!(!log.contains("the text of a guide"), "{log}");
}

/// A server with the service behind the middleware.
async fn served(stub: Stub) -> Channel {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    let middleware = middleware(Duration::from_secs(3600));
    let routes = ServerRoutes::new(Routes::default());
    routes.open(Routes::new(stub));
    let service = CallService::new(middleware, routes);
    let incoming = incoming(listener, Connections::within_descriptors(0));
    tokio::spawn(http2::serve(service, None, incoming, pending()));
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    endpoint.expect("an address").connect_lazy()
}

/// A log that can be read.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("a lock").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn errors_in_trailers_are_normalised_and_data_passes() {
    let stub = Stub(|_| {
        let mut trailers = HeaderMap::new();
        let status = Status::out_of_range("Error, encoded message length too large: …");
        status.add_header(&mut trailers).expect("headers");
        let body = frames([
            Frame::data(Bytes::from_static(b"x")),
            Frame::trailers(trailers),
        ]);
        Box::pin(async { Response::new(body) })
    });
    let status = status_of(stub, empty_request(GET_TASK, &[("x-account-id", "42")])).await;
    assert_eq!(reason(&status), "MESSAGE_TOO_LARGE");
}

#[tokio::test]
async fn an_unknown_error_is_internal_and_its_text_is_hidden() {
    let stub = Stub(|_| Box::pin(async { Status::unknown("driver text").into_http() }));
    let status = status_of(stub, empty_request(GET_TASK, &[("x-account-id", "42")])).await;
    assert_eq!(
        (status.code(), &*reason(&status)),
        (Code::Internal, "INTERNAL")
    );
    assert!(!status.message().contains("driver"), "{status}");
}

/// A body of one message of so many bytes.
fn message(bytes: usize) -> Body {
    let length = u32::try_from(bytes).expect("a length");
    let sent = [&[0][..], &length.to_be_bytes(), &vec![0; bytes]].concat();
    frames([Frame::data(Bytes::from(sent))])
}

#[tokio::test]
async fn bytes_beyond_the_memory_budget_are_overloaded_until_calls_end() {
    let stub = Stub(|_| Box::pin(pending()));
    let middleware = middleware(Duration::from_secs(3600));
    let mut held = Vec::new();
    // One account alone does not get as far.
    for account in ["42", "43", "42", "43"] {
        let headers = &[("x-account-id", account)];
        let request = request_with_body(GET_TASK, headers, message(1000));
        let mut pending = call(&middleware, stub.clone(), request);
        assert!((&mut pending).now_or_never().is_none());
        held.push(pending);
    }
    let another = || {
        let headers = &[("x-account-id", "44")];
        let request = request_with_body(GET_TASK, headers, message(1000));
        call(&middleware, ok_stub(), request)
    };
    let refused = another().await;
    let status = Status::from_header_map(refused.headers()).expect("a status");
    assert_eq!(
        (status.code(), &*reason(&status)),
        (Code::ResourceExhausted, "OVERLOADED")
    );
    assert!(status.get_details_retry_info().is_some());
    held.pop();
    let taken = another().await;
    assert_eq!(taken.headers().get("grpc-status").expect("a status"), "0");
}

#[tokio::test]
async fn a_call_without_its_message_has_no_slot_in_the_queue() {
    let middleware = middleware(Duration::from_secs(3600));
    let silent = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Status>>());
    let request = request_with_body(GET_TASK, &[("x-account-id", "42")], Body::new(silent));
    let mut pending = call(&middleware, unreachable_stub(), request);
    assert_eq!(middleware.current_load().calls_waiting, 1);
    assert!((&mut pending).now_or_never().is_none());
    let waiting = middleware.current_load().calls_waiting;
    assert_eq!(waiting, 0, "its slot is released");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_ready_too_late_is_deadline_exceeded() {
    let stub = Stub(|_| {
        Box::pin(async {
            tokio::time::advance(Duration::from_secs(2)).await;
            Status::ok("").into_http()
        })
    });
    let request = empty_request(GET_TASK, &[("x-account-id", "42")]);
    let status = status_within(Duration::from_secs(1), stub, request).await;
    assert_eq!(status.code(), Code::DeadlineExceeded);
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_end_comes_too_late_is_deadline_exceeded() {
    let stub = Stub(|_| {
        let late_trailers = stream::once(async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let mut trailers = HeaderMap::new();
            Status::ok("").add_header(&mut trailers)?;
            Ok::<_, Status>(Frame::<Bytes>::trailers(trailers))
        });
        let body = Body::new(StreamBody::new(late_trailers));
        Box::pin(async { Response::new(body) })
    });
    let request = empty_request(GET_TASK, &[("x-account-id", "42")]);
    let status = status_within(Duration::from_secs(1), stub, request).await;
    assert_eq!(status.code(), Code::DeadlineExceeded);
}
