//! Ports, and the connections that are accepted on them.

use std::{
    future::{Future, ready},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use rlimit::{Resource, increase_nofile_limit};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::SetOnce,
    time::{Instant, Sleep, sleep, timeout},
};
use tonic::transport::server::{Connected, TcpIncoming};
use tracing::{debug, warn};

use super::{KEEPALIVE_INTERVAL, Shared, StartError, tls::ServerTls};
use crate::call_limits::{Limit, Permit};

/// The pause after a connection could not be accepted. If no file descriptor is free, for example,
/// an immediate retry would fail too.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(50);
/// How long a peer may take for its first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a peer may then take for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a peer may be silent, in addition to the time limit of a call. Clients of HTTP/2 answer PINGs more
/// often. A client of HTTP/1.1 is silent while its call runs, which may wait up to 60 seconds for changes.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// The maximum number of connections, even if there are more file descriptors.
const MAX_CONNECTIONS: usize = 16 * 1024;
/// The maximum number of file descriptors that the process requests from the system.
const MAX_DESCRIPTORS: u64 = 64 * 1024;
/// File descriptors for the log, files and listeners. Those for connections to the database and to the port
/// for metrics are reserved in addition.
const RESERVED_DESCRIPTORS: u64 = 64;

/// Limits the open connections.
pub struct ConnectionLimit {
    pub limit: Limit,
    /// What an operator can do when connections wait.
    advice: &'static str,
    /// Whether connections are waiting, which is logged once.
    is_full: AtomicBool,
}

impl ConnectionLimit {
    /// Limits connections to the number of file descriptors, except for the reserved ones. The process
    /// raises its limit of descriptors.
    pub fn within_descriptors(reserved_connections: usize) -> Self {
        let reserved = RESERVED_DESCRIPTORS + reserved_connections as u64;
        let current = || Resource::NOFILE.get_soft().unwrap_or(MAX_DESCRIPTORS);
        let descriptors = increase_nofile_limit(MAX_DESCRIPTORS).unwrap_or_else(|_| current());
        let max = descriptors.saturating_sub(reserved) as usize;
        let max = max.clamp(1, MAX_CONNECTIONS);
        Self::new(max, "check the limit of open files")
    }

    /// `advice` says what an operator can do when more connections wait.
    pub fn new(max: usize, advice: &'static str) -> Self {
        Self {
            limit: Limit::new(max),
            advice,
            is_full: AtomicBool::new(false),
        }
    }

    /// Waits until another connection is allowed.
    async fn permit(&self) -> Permit {
        if let Some(permit) = self.limit.try_take(1) {
            self.is_full.store(false, Relaxed);
            return permit;
        }
        if !self.is_full.swap(true, Relaxed) {
            let (max, advice) = (self.limit.max(), self.advice);
            warn!(max, "too many connections: new ones must wait; {advice}");
        }
        self.limit.take(1).await
    }
}

/// Accepted connections, after their TLS handshake if there is TLS. Connections that send nothing are
/// closed.
pub fn incoming(
    listener: TcpListener,
    state: &'static Shared,
    connections: &'static ConnectionLimit,
    tls: Option<&'static ServerTls>,
) -> impl Stream<Item = io::Result<Connection>> {
    let permitted = move |accepted: io::Result<TcpStream>| async move {
        match accepted {
            Ok(stream) => Some((stream, connections.permit().await)),
            Err(error) => {
                warn!(%error, "a connection was not accepted");
                sleep(ACCEPT_RETRY_PAUSE).await;
                None
            }
        }
    };
    TcpIncoming::from(listener)
        .with_nodelay(Some(true))
        .with_keepalive(Some(KEEPALIVE_INTERVAL))
        .then(permitted)
        .filter_map(ready)
        .map(move |(stream, permit)| Connection::open(stream, permit, state, tls))
        .buffer_unordered(connections.limit.max())
        .filter_map(|connection| ready(connection.map(Ok)))
}

/// Bytes in both directions, with or without TLS.
trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// The other end of a connection.
#[derive(Clone)]
pub struct Peer {
    pub address: SocketAddr,
    closed: Arc<SetOnce<()>>,
}

impl Peer {
    /// Makes the next read fail, which ends the connection.
    pub fn close(&self) {
        // It may be closed already.
        let _ = self.closed.set(());
    }
}

/// A connection. Reading fails when the peer is silent for too long or [`Peer::close`] is called.
pub struct Connection {
    stream: Box<dyn Transport>,
    peer: Peer,
    /// Completes when the peer is closed.
    closed: Pin<Box<dyn Future<Output = ()> + Send>>,
    max_silence: Duration,
    /// Completes when the peer has been silent for too long.
    silence: Pin<Box<Sleep>>,
    // Dropped after the stream, which uses the file descriptor until then.
    _permit: Permit,
}

impl Connection {
    /// The connection, once the peer has sent a byte and completed the TLS handshake, if any.
    async fn open(
        stream: TcpStream,
        permit: Permit,
        state: &'static Shared,
        tls: Option<&'static ServerTls>,
    ) -> Option<Self> {
        let address = stream.peer_addr().ok()?;
        // A probe of the port sends nothing.
        let first_byte = timeout(FIRST_BYTE_TIMEOUT, stream.peek(&mut [0])).await;
        if !matches!(first_byte, Ok(Ok(1))) {
            debug!("a connection ended before it was used");
            return None;
        }
        let stream: Box<dyn Transport> = match tls {
            None => Box::new(stream),
            Some(tls) => {
                let handshake = tls.acceptor().accept(stream);
                match timeout(HANDSHAKE_TIMEOUT, handshake).await {
                    Ok(Ok(stream)) => Box::new(stream),
                    failed => {
                        tls.log_failed_handshake(address, failed.ok().and_then(Result::err));
                        return None;
                    }
                }
            }
        };
        let closed = Arc::new(SetOnce::new());
        let max_silence = MAX_SILENCE + state.config.limits.request_timeout;
        Some(Self {
            stream,
            peer: Peer {
                address,
                closed: Arc::clone(&closed),
            },
            closed: Box::pin(async move { *closed.wait().await }),
            max_silence,
            silence: Box::pin(sleep(max_silence)),
            _permit: permit,
        })
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.peer.closed.initialized() || self.closed.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            let until = Instant::now() + self.max_silence;
            self.silence.as_mut().reset(until);
        } else if self.silence.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        polled
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Listens on the port that a setting names; returns the address with the port that was
/// picked.
pub async fn listen(
    setting: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let listener = TcpListener::bind(address).await;
    let listening = listener.and_then(|it| Ok((it.local_addr()?, it)));
    let (address, listener) = listening.map_err(|reason| StartError::Listen {
        setting,
        address,
        reason,
    })?;
    Ok((listener, address))
}

/// What to do if the server cannot listen on an address.
pub fn listen_advice(setting: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "the port is in use: stop the program that uses it, or set {setting} to another (port \
             0 picks a free one)"
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!("this machine does not have the address: set {setting} to one that it has")
        }
        io::ErrorKind::PermissionDenied => {
            format!("the system does not allow the port: set {setting} to a port of 1024 or higher")
        }
        _ => error.to_string(),
    }
}
