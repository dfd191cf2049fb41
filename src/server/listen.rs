//! Ports, and the connections that come in.

use std::{future::ready, io, net::SocketAddr, sync::Arc};

use futures_util::{Stream, StreamExt};
use tokio::{
    net::{TcpListener, TcpSocket},
    time::sleep,
};
use tonic::transport::server::TcpIncoming;
use tracing::warn;

use super::{
    ACCEPT_PAUSE, KEEPALIVE, StartError,
    peers::{Peers, Wire},
};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// Connections that are accepted and wait for their turn.
const WAITING: usize = 1024;

/// Accepted connections. One that fails is waited out; the server goes on.
pub(super) fn incoming(
    listener: TcpListener,
    peers: Arc<Peers>,
) -> impl Stream<Item = io::Result<Wire>> {
    TcpIncoming::from(listener)
        .with_nodelay(Some(true))
        .with_keepalive(Some(KEEPALIVE))
        .then(|accepted| async {
            if let Err(error) = &accepted {
                warn!(%error, "a connection was not accepted");
                sleep(ACCEPT_PAUSE).await;
            }
            accepted
        })
        .map(move |accepted| {
            let peers = Arc::clone(&peers);
            async move {
                match accepted {
                    Ok(stream) => peers.admit_in_turn(stream).await.map(Ok),
                    Err(error) => Some(Err(error)),
                }
            }
        })
        .buffer_unordered(WAITING)
        .filter_map(ready)
}

/// A port that is taken and not listened on yet.
pub(super) struct Port {
    setting: &'static str,
    address: SocketAddr,
    socket: TcpSocket,
}

impl Port {
    /// Takes the port that a setting names.
    pub fn take(setting: &'static str, address: SocketAddr) -> Result<Self, StartError> {
        let socket = bind(address).map_err(|reason| StartError::Listen {
            setting,
            address,
            reason,
        })?;
        Ok(Self {
            setting,
            address,
            socket,
        })
    }

    /// Listens, and says where, with the port that was picked.
    pub fn listen(self) -> Result<(TcpListener, SocketAddr), StartError> {
        let Self {
            setting,
            address,
            socket,
        } = self;
        let refused = |reason| StartError::Listen {
            setting,
            address,
            reason,
        };
        let listener = socket.listen(BACKLOG).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok((listener, address))
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart must not wait for old connections to be forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// What to do about an address that cannot be listened on.
pub(super) fn advice(setting: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "the port is taken: stop what holds it, or set {setting} to another (port 0 picks \
             a free one)"
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!("this machine does not have the address: set {setting} to one of its own")
        }
        io::ErrorKind::PermissionDenied => {
            format!("the system does not allow the port: set {setting} to one from 1024")
        }
        _ => error.to_string(),
    }
}
