//! HTTP/2 requests with any headers and bytes, which may never end.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::deadline::in_time;

/// An HTTP/2 connection.
pub struct Http2Connection {
    address: SocketAddr,
    sender: SendRequest<Bytes>,
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
    /// `None` where there is no gRPC status.
    pub status: Option<Status>,
    /// The length of the body.
    pub bytes: usize,
}

impl Http2Response {
    /// The code and reason of an error, which must be one of the contract.
    #[track_caller]
    pub fn refusal(&self) -> (Code, String) {
        let status = self.status.as_ref().expect("a status");
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
}

impl Http2Connection {
    pub async fn to(address: SocketAddr) -> Self {
        let stream = tokio::net::TcpStream::connect(address).await;
        let handshake = h2::client::handshake(stream.expect("a connection")).await;
        let (sender, connection) = handshake.expect("HTTP/2");
        tokio::spawn(connection);
        Self { address, sender }
    }

    /// Sends a gRPC request with these headers beside those that gRPC requires.
    pub async fn call(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        bytes: &[u8],
        end: RequestEnd,
    ) -> Http2Response {
        let grpc = [("content-type", "application/grpc"), ("te", "trailers")];
        let headers: Vec<_> = grpc.iter().chain(headers).copied().collect();
        self.send(Method::POST, path, &headers, bytes, end).await
    }

    /// Sends any request.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        bytes: &[u8],
        end: RequestEnd,
    ) -> Http2Response {
        let builder = Request::builder().method(method);
        let builder = builder.uri(format!("http://{}{path}", self.address));
        let builder = headers.iter().fold(builder, |b, (k, v)| b.header(*k, *v));
        let request = builder.body(()).expect("a request");
        in_time("an answer", self.exchange(request, bytes, end)).await
    }

    async fn exchange(&self, request: Request<()>, bytes: &[u8], end: RequestEnd) -> Http2Response {
        let sender = self.sender.clone().ready().await;
        let ends = end == RequestEnd::Sent;
        let sent = sender.expect("a stream").send_request(request, false);
        let (response, mut stream) = sent.expect("a stream");
        let bytes = Bytes::copy_from_slice(bytes);
        // After an early error the server may reset the stream.
        let _ = stream.send_data(bytes, ends);
        let (head, mut body) = response.await.expect("a response").into_parts();
        let mut received = 0;
        while let Some(Ok(data)) = body.data().await {
            let _ = body.flow_control().release_capacity(data.len());
            received += data.len();
        }
        let trailers: Option<HeaderMap> = body.trailers().await.ok().flatten();
        let status = Status::from_header_map(&head.headers)
            .or_else(|| trailers.as_ref().and_then(Status::from_header_map));
        Http2Response {
            http: head.status.as_u16(),
            status,
            bytes: received,
        }
    }
}

/// The prefix of a message: the compression flag and the length.
pub fn prefix(flag: u8, length: u32) -> Vec<u8> {
    [&[flag][..], &length.to_be_bytes()].concat()
}

/// A message with its prefix.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a length");
    [&prefix(0, length)[..], message].concat()
}
