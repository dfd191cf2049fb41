//! HTTP/2 requests with any headers and bytes, which may never end, without a client library
//! that checks, copies or times out.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use h2::{
    RecvStream, SendStream,
    client::{self, ResponseFuture, SendRequest},
};
use http::{Method, Request};
use prost::Message;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::deadline::in_time;

/// The window for responses: one of 64 MB does not wait for this client.
const WINDOW: u32 = 128 * 1024 * 1024;

/// An HTTP/2 connection.
#[derive(Clone)]
pub struct Http2Connection {
    address: SocketAddr,
    streams: SendRequest<Bytes>,
}

/// Whether the request ends after its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    Sent,
    Never,
}

#[derive(Debug)]
pub struct Http2Response {
    /// The status code of HTTP.
    pub http: u16,
    pub headers: http::HeaderMap,
    /// `None` without a gRPC status.
    pub status: Option<Status>,
    /// The message with its prefix, if there is one.
    pub body: Bytes,
}

impl Http2Response {
    /// The status of gRPC.
    #[track_caller]
    pub fn status(&self) -> Status {
        self.status.clone().expect("a status")
    }

    /// The code and reason of an error, which the API must define.
    #[track_caller]
    pub fn refusal(&self) -> (Code, String) {
        let status = self.status();
        let info = status.get_details_error_info();
        let info = info.unwrap_or_else(|| panic!("no detail: {status:?}"));
        assert_eq!(
            (self.http, &*info.domain),
            (200, "expertise.v1"),
            "{status:?}"
        );
        (status.code(), info.reason)
    }

    /// A header or trailer that comes with the status.
    pub fn header(&self, name: &str) -> Option<&str> {
        let metadata = self.status.as_ref()?.metadata();
        metadata.get(name)?.to_str().ok()
    }

    #[track_caller]
    pub fn is(&self, code: Code, reason: &str) {
        assert_eq!(self.refusal(), (code, reason.to_owned()), "{self:?}");
    }

    /// The message, decoded.
    pub fn message<T: Message + Default>(&self) -> T {
        T::decode(&self.body[5..]).expect("a message")
    }
}

impl Http2Connection {
    pub async fn to(address: SocketAddr) -> Self {
        Self::with_window(address, WINDOW).await
    }

    /// A connection on whose streams the server may send only so much that is not read.
    pub async fn with_window(address: SocketAddr, window: u32) -> Self {
        let stream = tokio::net::TcpStream::connect(address).await;
        let stream = stream.expect("a connection");
        stream.set_nodelay(true).expect("an option of TCP");
        let handshake = client::Builder::new()
            .initial_window_size(window)
            .initial_connection_window_size(WINDOW)
            .max_send_buffer_size(WINDOW as usize)
            .handshake(stream);
        let (streams, connection) = handshake.await.expect("HTTP/2");
        tokio::spawn(connection);
        Self { address, streams }
    }

    /// Sends a gRPC request with these headers in addition to the required ones.
    pub async fn call(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        bytes: &[u8],
        end: RequestEnd,
    ) -> Http2Response {
        self.answer(self.grpc(path, headers), bytes, end).await
    }

    /// Makes a complete call, such as `TaskService/GetTask`, and waits for its response, or for the
    /// error that ends its stream.
    pub async fn try_call(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        message: Bytes,
    ) -> Result<Http2Response, h2::Error> {
        let request = self.grpc(&format!("/expertise.v1.{method}"), headers);
        in_time(
            "a response",
            self.exchange(request, message, RequestEnd::Sent),
        )
        .await
    }

    /// Makes a complete call, and only reads the head of its response.
    pub async fn begin_call(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        message: Bytes,
    ) -> Result<http::Response<RecvStream>, h2::Error> {
        let request = self.grpc(&format!("/expertise.v1.{method}"), headers);
        let (response, _) = self.start(request, message, RequestEnd::Sent).await?;
        response.await
    }

    /// Sends any request, which ends after its bytes.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        bytes: &[u8],
    ) -> Http2Response {
        let request = self.request(method, path, headers);
        self.answer(request, bytes, RequestEnd::Sent).await
    }

    async fn answer(&self, request: Request<()>, bytes: &[u8], end: RequestEnd) -> Http2Response {
        let exchange = self.exchange(request, Bytes::copy_from_slice(bytes), end);
        in_time("an answer", exchange).await.expect("an answer")
    }

    fn grpc(&self, path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let grpc = [("content-type", "application/grpc"), ("te", "trailers")];
        self.request(Method::POST, path, &[&grpc, headers].concat())
    }

    fn request(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let builder = Request::builder().method(method);
        let builder = builder.uri(format!("http://{}{path}", self.address));
        let builder = headers.iter().fold(builder, |b, (k, v)| b.header(*k, *v));
        builder.body(()).expect("a request")
    }

    async fn start(
        &self,
        request: Request<()>,
        bytes: Bytes,
        end: RequestEnd,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let mut streams = self.streams.clone().ready().await?;
        let (response, mut stream) = streams.send_request(request, false)?;
        // After an early error the server may reset the stream.
        let _ = stream.send_data(bytes, end == RequestEnd::Sent);
        Ok((response, stream))
    }

    async fn exchange(
        &self,
        request: Request<()>,
        bytes: Bytes,
        end: RequestEnd,
    ) -> Result<Http2Response, h2::Error> {
        // A request without an end lasts until this is dropped.
        let (response, _stream) = self.start(request, bytes, end).await?;
        let (head, mut body) = response.await?.into_parts();
        if head.headers.contains_key("grpc-status") {
            // Clients of gRPC's C core accept nothing after it, not even an empty frame.
            assert!(body.is_end_stream(), "{head:?} do not end the stream");
        }
        let mut received = BytesMut::new();
        let mut failure = None;
        while let Some(data) = body.data().await {
            match data {
                Ok(data) => {
                    received.extend_from_slice(&data);
                    let _ = body.flow_control().release_capacity(data.len());
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let trailers = body.trailers().await.ok().flatten();
        let status = trailers.as_ref().and_then(Status::from_header_map);
        let status = status.or_else(|| Status::from_header_map(&head.headers));
        match (failure, &status) {
            (Some(error), None) => Err(error),
            (Some(_) | None, _) => Ok(Http2Response {
                http: head.status.as_u16(),
                headers: head.headers,
                status,
                body: received.freeze(),
            }),
        }
    }
}

/// The prefix of a message: the compression flag and the length.
pub fn prefix(flag: u8, length: usize) -> Vec<u8> {
    let length = u32::try_from(length).expect("a length");
    [&[flag][..], &length.to_be_bytes()].concat()
}

/// A message with its prefix.
pub fn framed(message: &[u8]) -> Vec<u8> {
    [&prefix(0, message.len())[..], message].concat()
}

/// A message with its prefix.
pub fn framed_message(message: &impl Message) -> Bytes {
    framed(&message.encode_to_vec()).into()
}
