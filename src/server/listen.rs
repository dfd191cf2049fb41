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
        .filter_map(move |accepted| {
            let admitted = accepted.map(|stream| peers.admit(stream)).transpose();
            ready(admitted)
        })
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
        let socket = bind(address).map_err(|source| StartError::Listen {
            setting,
            address,
            source,
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
        let refused = |source| StartError::Listen {
            setting,
            address,
            source,
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
