//! Ports, and the connections that are accepted on them.

use std::{future::ready, io, net::SocketAddr, sync::Arc};

use futures_util::{Stream, StreamExt};
use tokio::{
    net::{TcpListener, TcpSocket},
    time::sleep,
};
use tonic::transport::server::TcpIncoming;
use tracing::warn;

use super::{
    ACCEPT_RETRY_PAUSE, KEEPALIVE_INTERVAL, StartError,
    connections::{Connections, MAX_DELAYED_CONNECTIONS, TrackedStream},
};

/// Connections that wait to be accepted.
const LISTEN_BACKLOG: u32 = 1024;
/// Accepted connections that are admitted at once: a few more than can be delayed, so that
/// delayed ones never keep others from being accepted.
const MAX_ADMISSIONS: usize = MAX_DELAYED_CONNECTIONS + 16;

/// Accepted connections. After a failure, accepting continues after a pause.
pub fn incoming(
    listener: TcpListener,
    connections: Arc<Connections>,
) -> impl Stream<Item = io::Result<TrackedStream>> {
    TcpIncoming::from(listener)
        .with_nodelay(Some(true))
        .with_keepalive(Some(KEEPALIVE_INTERVAL))
        .then(|accepted| async {
            if let Err(error) = &accepted {
                warn!(%error, "a connection was not accepted");
                sleep(ACCEPT_RETRY_PAUSE).await;
            }
            accepted
        })
        .map(move |accepted| {
            let connections = Arc::clone(&connections);
            async move {
                match accepted {
                    Ok(stream) => connections.admit(stream).await.map(Ok),
                    Err(error) => Some(Err(error)),
                }
            }
        })
        .buffer_unordered(MAX_ADMISSIONS)
        .filter_map(ready)
}

/// Listens on the port that a setting names; returns the address with the port that was
/// picked.
pub fn listen(
    setting: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let listening = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A restart must not wait until the system forgets old connections.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(LISTEN_BACKLOG)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    listening().map_err(|reason| StartError::Listen {
        setting,
        address,
        reason,
    })
}

/// What to do about an address that cannot be listened on.
pub fn listen_advice(setting: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "the port is taken: stop the program that holds it, or set {setting} to another (port 0 picks \
             a free one)"
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!("this machine does not have the address: set {setting} to one of its own")
        }
        io::ErrorKind::PermissionDenied => {
            format!("the system does not allow the port: set {setting} to a port of 1024 or higher")
        }
        _ => error.to_string(),
    }
}
