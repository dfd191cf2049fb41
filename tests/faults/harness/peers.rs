//! Peers that would hold up a server that waits for them.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::Request;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::{JoinHandle, JoinSet},
};
use tonic::transport::Endpoint;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

/// The preface of HTTP/2 and empty settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The beginning of a message that announces a thousand bytes.
const PREFIX: &[u8] = &[0, 0, 0, 3, 0xe8];

/// Connections that are there until they are dropped.
pub struct Peers {
    _silent: Vec<TcpStream>,
    _trickling: JoinSet<()>,
}

impl Peers {
    /// Some that say nothing, and some that greet and answer nothing after it, no
    /// PING either.
    pub async fn silent(server: SocketAddr) -> Self {
        let mut silent = Vec::new();
        for greets in [false, false, true, true] {
            let peer = TcpStream::connect(server).await;
            let mut peer = peer.expect("it is let in");
            if greets {
                peer.write_all(GREETING).await.expect("it greets");
                peer.read_u8().await.expect("it is greeted");
            }
            silent.push(peer);
        }
        Self {
            _silent: silent,
            _trickling: JoinSet::new(),
        }
    }

    /// The same, and one whose call comes byte by byte.
    pub async fn trickling(server: SocketAddr) -> Self {
        let mut peers = Self::silent(server).await;
        let tcp = TcpStream::connect(server).await.expect("it is let in");
        let (mut client, connection) = h2::client::handshake(tcp).await.expect("it is greeted");
        peers._trickling.spawn(async { drop(connection.await) });
        let request = Request::post(format!(
            "http://{server}/expertise.v1.StepService/CreateStep"
        ))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("x-account-id", "trickle")
        .body(());
        let request = request.expect("a request");
        let (response, mut body) = client.send_request(request, false).expect("it is sent");
        peers._trickling.spawn(async move {
            let _client = (client, response);
            let mut next = Bytes::from_static(PREFIX);
            while body.send_data(next, false).is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
                next = Bytes::from_static(&[0]);
            }
        });
        peers
    }
}

/// Follows the health of a server until it has gone: what it says last.
pub async fn follow_health(server: SocketAddr) -> JoinHandle<ServingStatus> {
    let endpoint = Endpoint::from_shared(format!("http://{server}"));
    let channel = endpoint.expect("an address").connect().await;
    let mut client = HealthClient::new(channel.expect("it is let in"));
    let watch = client.watch(HealthCheckRequest::default()).await;
    let mut said = watch.expect("an answer").into_inner();
    let mut last = said.message().await.expect("an answer");
    tokio::spawn(async move {
        while let Ok(Some(next)) = said.message().await {
            last = Some(next);
        }
        last.map_or(ServingStatus::Unknown, |last| last.status())
    })
}
