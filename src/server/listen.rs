//! Ports, and the connections that are accepted on them.

use std::{
    future::{Future, ready},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Instant, Sleep, sleep, timeout},
};
use tonic::transport::server::{Connected, TcpConnectInfo, TcpIncoming};
use tracing::{debug, field, info, warn};

use super::{KEEPALIVE_INTERVAL, StartError, tls::ServerTls};
use crate::call_limits::{Limit, Permit};

/// The pause after a connection could not be accepted. If no file descriptor is free, for example,
/// an immediate retry would fail too.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(50);
/// How long a peer may take for its first byte, and then for the TLS handshake.
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
        let free = raise_descriptor_limit().saturating_sub(reserved);
        let max = usize::try_from(free).unwrap_or(MAX_CONNECTIONS);
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

/// The limit of file descriptors of the process, after raising it.
fn raise_descriptor_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current.unwrap_or(MAX_DESCRIPTORS);
    let wanted = maximum.unwrap_or(MAX_DESCRIPTORS).min(MAX_DESCRIPTORS);
    let raised = Rlimit {
        current: Some(wanted),
        maximum,
    };
    if wanted > current && setrlimit(Resource::Nofile, raised).is_ok() {
        wanted
    } else {
        current
    }
}

/// Accepted connections, after their TLS handshake if there is TLS. Connections that send nothing are
/// closed.
pub fn incoming(
    listener: TcpListener,
    connections: &'static ConnectionLimit,
    tls: Option<&'static ServerTls>,
    request_timeout: Duration,
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
        .map(move |(stream, permit)| Connection::open(stream, permit, tls, request_timeout))
        .buffer_unordered(connections.limit.max())
        .filter_map(|connection| ready(connection.map(Ok)))
}

/// Bytes in both directions, with or without TLS.
trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// A connection. Reading fails when the peer is silent for too long.
pub struct Connection {
    stream: Box<dyn Transport>,
    info: TcpConnectInfo,
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
        tls: Option<&'static ServerTls>,
        request_timeout: Duration,
    ) -> Option<Self> {
        let info = stream.connect_info();
        // A probe of the port sends nothing.
        let first_byte = timeout(HANDSHAKE_TIMEOUT, stream.peek(&mut [0])).await;
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
                        let cause = match failed {
                            Ok(Err(error)) => error.to_string(),
                            _ => "the client did not complete it in time".to_owned(),
                        };
                        let peer = info.remote_addr().map(field::display);
                        info!(peer, cause, "the TLS handshake failed");
                        return None;
                    }
                }
            }
        };
        let max_silence = MAX_SILENCE + request_timeout;
        Some(Self {
            stream,
            info,
            max_silence,
            silence: Box::pin(sleep(max_silence)),
            _permit: permit,
        })
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.info.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
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
