//! A call with a deadline that the client leaves to the server: tonic's would give
//! up by itself.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use bytes::{BufMut, Bytes, BytesMut};
use h2::client;
use http::Request;
use prost::Message;
use tokio::net::TcpStream;
use tonic::Code;

/// What the server made of a call.
#[derive(Debug)]
pub struct Answer {
    pub code: Code,
    pub took: Duration,
}

/// Sends a server one message of an account to a method, such as
/// `TaskService/GetTask`, that is to be answered in so many milliseconds.
pub async fn call(
    (server, account): (SocketAddr, &str),
    method: &str,
    message: &impl Message,
    millis: u64,
) -> Answer {
    let stream = TcpStream::connect(server).await.expect("a server");
    let (mut sender, connection) = client::handshake(stream).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let begun = Instant::now();
    let request = Request::post(format!("http://{server}/expertise.v1.{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("x-account-id", account)
        .header("grpc-timeout", format!("{millis}m"))
        .body(())
        .expect("a request");
    let (response, mut body) = sender.send_request(request, false).expect("it is sent");
    body.send_data(framed(message), true).expect("it is sent");
    let response = response.await.expect("an answer");
    let (head, mut body) = response.into_parts();
    while let Some(data) = body.data().await {
        let length = data.expect("bytes").len();
        let _ = body.flow_control().release_capacity(length);
    }
    let trailers = body.trailers().await.expect("the end");
    let trailers = trailers.unwrap_or(head.headers);
    let took = begun.elapsed();
    connection.abort();
    Answer {
        code: Code::from_bytes(trailers["grpc-status"].as_bytes()),
        took,
    }
}

fn framed(message: &impl Message) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.encoded_len()).expect("a small message"));
    message.encode(&mut frame).expect("there is room");
    frame.freeze()
}
