//! Calls over plain HTTP/2, without a client library that checks, copies or times out.

use std::{future::poll_fn, net::SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};
use h2::{
    RecvStream,
    client::{self, SendRequest},
};
use http::Request;
use prost::Message;
use tokio::net::TcpStream;
use tonic::Status;

use crate::kit::deadline::in_time;

/// The window for responses: one of 64 MB does not wait for this client.
const WINDOW: u32 = 128 * 1024 * 1024;

/// A connection to a server.
#[derive(Clone)]
pub struct Connection {
    streams: SendRequest<Bytes>,
}

/// A response.
#[derive(Debug)]
pub struct Response {
    pub http: u16,
    /// The message with its prefix, if there is one.
    pub body: Bytes,
    pub status: Status,
}

/// A call: a path and headers, the account among them.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub method: &'a str,
    pub account: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
}

impl Connection {
    pub async fn open(server: SocketAddr) -> Self {
        Self::with_window(server, WINDOW).await
    }

    /// A connection on whose streams the server may send only so much that is not
    /// read.
    pub async fn with_window(server: SocketAddr, window: u32) -> Self {
        let stream = TcpStream::connect(server).await.expect("it listens");
        stream.set_nodelay(true).expect("an option of TCP");
        let (streams, connection) = client::Builder::new()
            .initial_window_size(window)
            .initial_connection_window_size(WINDOW)
            .max_send_buffer_size(WINDOW as usize)
            .handshake(stream)
            .await
            .expect("it speaks HTTP/2");
        tokio::spawn(connection);
        Self { streams }
    }

    /// Makes a call and waits for its whole response, or for the error that ends its
    /// stream.
    pub async fn call(&self, call: Call<'_>, body: Bytes) -> Result<Response, h2::Error> {
        in_time("a response", self.receive(call, body)).await
    }

    /// Makes a call and waits for the head of its response. The rest is not read.
    pub async fn begin(
        &self,
        call: Call<'_>,
        body: Bytes,
    ) -> Result<http::Response<RecvStream>, h2::Error> {
        let mut streams = self.streams.clone().ready().await?;
        let (response, mut sending) = streams.send_request(call.request(), false)?;
        // A response may come before the end of the request, which it ends.
        let _ = sending.send_data(body, true);
        response.await
    }

    async fn receive(&self, call: Call<'_>, body: Bytes) -> Result<Response, h2::Error> {
        let (head, mut body) = self.begin(call, body).await?.into_parts();
        let mut received = BytesMut::new();
        while let Some(data) = body.data().await {
            let data = data?;
            received.extend_from_slice(&data);
            body.flow_control().release_capacity(data.len())?;
        }
        let trailers = poll_fn(|context| body.poll_trailers(context)).await?;
        let status = trailers.as_ref().and_then(Status::from_header_map);
        let status = status.or_else(|| Status::from_header_map(&head.headers));
        Ok(Response {
            http: head.status.as_u16(),
            body: received.freeze(),
            status: status.unwrap_or_else(|| Status::unknown("no status")),
        })
    }
}

impl Call<'_> {
    fn request(&self) -> Request<()> {
        let mut builder = Request::builder()
            .method("POST")
            .uri(format!("http://test/expertise.v1.{}", self.method))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("x-account-id", self.account);
        for (name, value) in self.headers {
            builder = builder.header(*name, *value);
        }
        builder.body(()).expect("a request")
    }
}

impl Response {
    /// The message, decoded.
    pub fn message<T: Message + Default>(&self) -> T {
        T::decode(&self.body[5..]).expect("a message")
    }
}

/// A message with its prefix.
pub fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(5 + length);
    bytes.put(prefix(false, length));
    message.encode(&mut bytes).expect("there is room");
    bytes.freeze()
}

/// The prefix of a message of this many bytes.
pub fn prefix(compressed: bool, length: usize) -> Bytes {
    let mut bytes = BytesMut::with_capacity(5);
    bytes.put_u8(compressed.into());
    bytes.put_u32(u32::try_from(length).expect("a length"));
    bytes.freeze()
}
