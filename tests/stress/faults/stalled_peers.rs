//! Peers that would hold up a server that waits for them.

use std::{net::SocketAddr, time::Duration};

use tokio::{task::JoinSet, time::Instant};

use crate::{
    frame_peer::FramePeer,
    kit::deadline::{WAIT_TIMEOUT, until_true},
};

/// Connections that stay open until this is dropped.
pub struct StalledPeers {
    _idle: Vec<FramePeer>,
    _sending: JoinSet<()>,
}

impl StalledPeers {
    /// Some that send nothing, and some that send the preface of HTTP/2 and answer
    /// nothing after it, no PING either.
    pub async fn idle(server: SocketAddr) -> Self {
        let mut idle = Vec::new();
        for _ in 0..2 {
            idle.push(FramePeer::connect(server).await);
            let peer = FramePeer::with_preface(server).await;
            until_true("settings", || !peer.received().settings.is_empty()).await;
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
        let peer = FramePeer::with_preface(server).await;
        let end = Instant::now() + WAIT_TIMEOUT;
        let sending = peer.send_slowly(Duration::from_millis(20), 1_000, end);
        peers._sending.spawn(sending);
        peers
    }
}
