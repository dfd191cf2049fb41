//! Peers that would hold up a server that waits for them.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::Request;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

/// The preface of HTTP/2 and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The prefix of a message of a thousand bytes.
const MESSAGE_PREFIX: &[u8] = &[0, 0, 0, 3, 0xe8];

/// Connections that stay open until this is dropped.
pub struct StalledPeers {
    _idle: Vec<TcpStream>,
    _sending: JoinSet<()>,
}

impl StalledPeers {
    /// Some that send nothing, and some that send the preface of HTTP/2 and answer
    /// nothing after it, no PING either.
    pub async fn idle(server: SocketAddr) -> Self {
        let mut idle = Vec::new();
        for sends_preface in [false, false, true, true] {
            let peer = TcpStream::connect(server).await;
            let mut peer = peer.expect("a connection");
            if sends_preface {
                peer.write_all(PREFACE).await.expect("the server reads");
                peer.read_u8().await.expect("the server answers");
            }
            idle.push(peer);
        }
        Self {
            _idle: idle,
            _sending: JoinSet::new(),
        }
    }

    /// The same, and one that sends a request byte by byte.
    pub async fn idle_and_sending_slowly(server: SocketAddr) -> Self {
        let mut peers = Self::idle(server).await;
        let tcp = TcpStream::connect(server).await.expect("a connection");
        let (mut client, connection) = h2::client::handshake(tcp).await.expect("HTTP/2");
        peers._sending.spawn(async { drop(connection.await) });
        let request = Request::post(format!(
            "http://{server}/expertise.v1.StepService/CreateStep"
        ))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("x-account-id", "slow")
        .body(());
        let request = request.expect("a request");
        let (response, mut body) = client.send_request(request, false).expect("a stream");
        peers._sending.spawn(async move {
            let _open = (client, response);
            let mut next = Bytes::from_static(MESSAGE_PREFIX);
            while body.send_data(next, false).is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
                next = Bytes::from_static(&[0]);
            }
        });
        peers
    }
}
