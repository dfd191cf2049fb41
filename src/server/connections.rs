//! Tracks the open connections. Closes those whose peers are silent or do not read their
//! responses, and keeps their number within the process's file descriptors.

mod limits;
mod pending_calls;
mod rate_limit;

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep, sleep_until},
};
use tracing::{info, warn};

use self::{limits::ConnectionLimits, pending_calls::PendingCalls, rate_limit::ConnectRateLimiter};
pub use self::{limits::MAX_DELAYED_CONNECTIONS, pending_calls::PendingCall};

/// How long a peer may take for its first bytes, which every client sends at once.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(10);
/// The preface of HTTP/2; a TLS hello is longer.
const PREFACE_BYTES: u64 = 24;
/// How long a peer may be silent. A living client answers PINGs more often, whether or
/// not it makes calls.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// At shutdown, a connection without calls is closed after this time without traffic.
const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_millis(500);
/// How often idle connections are closed at shutdown.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How often connections are closed whose peers do not read their responses.
const STALLED_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often, at most, the log warns that there are too many connections.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// All open connections.
pub struct Connections {
    max: usize,
    started: Instant,
    /// In the order in which they were accepted.
    open: Mutex<BTreeMap<u64, Arc<ConnectionState>>>,
    next_number: AtomicU64,
    rate_limiter: Mutex<ConnectRateLimiter>,
    warned: Mutex<Option<Instant>>,
}

/// The state of a connection. Times are milliseconds since `started`.
pub struct ConnectionState {
    started: Instant,
    peer: SocketAddr,
    received_bytes: AtomicU64,
    last_received: AtomicU64,
    /// Sent, received, or a call that ended.
    last_active: AtomicU64,
    /// Whether data waits for the peer to read.
    write_blocked: AtomicBool,
    calls: PendingCalls,
    closing: AtomicBool,
    reader: AtomicWaker,
}

impl Connections {
    /// As many connections as there are file descriptors for, without those reserved for
    /// the database and for delayed connections. The process raises its limit of descriptors.
    pub fn within_descriptors(database_connections: u32) -> Arc<Self> {
        let ConnectionLimits { open, delayed } = ConnectionLimits::of_process(database_connections);
        Arc::new(Self {
            max: open,
            started: Instant::now(),
            open: Mutex::default(),
            next_number: AtomicU64::new(0),
            rate_limiter: Mutex::new(ConnectRateLimiter::new(delayed)),
            warned: Mutex::default(),
        })
    }

    /// Adds a connection, as soon as the rate limit of its address allows. `None` when it
    /// is refused or already gone.
    pub async fn admit(self: Arc<Self>, stream: TcpStream) -> Option<TrackedStream> {
        let peer = stream.peer_addr().ok()?;
        let delay = lock(&self.rate_limiter)
            .reserve_slot(peer.ip(), Instant::now())
            .ok()?;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        self.add(stream, peer)
    }

    /// The number of open connections.
    pub fn count(&self) -> usize {
        lock(&self.open).len()
    }

    /// The most connections at once.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Adds a connection. When there are too many, the oldest one that has sent no preface
    /// is closed, or else the new one.
    fn add(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) -> Option<TrackedStream> {
        let mut open = lock(&self.open);
        if open.len() >= self.max {
            self.warn_too_many();
            let (&number, state) = open.iter().find(|(_, state)| !state.has_preface())?;
            state.close();
            open.remove(&number);
        }
        let number = self.next_number.fetch_add(1, Relaxed);
        let state = Arc::new(ConnectionState::new(self.started, peer));
        open.insert(number, Arc::clone(&state));
        Some(TrackedStream {
            stream,
            state,
            read_timeout: Box::pin(sleep(PREFACE_TIMEOUT)),
            _entry: ConnectionEntry {
                connections: Arc::clone(self),
                number,
            },
        })
    }

    /// Closes idle connections until the future is dropped.
    pub async fn close_idle(&self) {
        // GOAWAY and NOT_SERVING are still to be sent to connections that are idle now.
        for state in lock(&self.open).values() {
            state.touch();
        }
        loop {
            for state in lock(&self.open).values() {
                if state.is_idle() {
                    state.close();
                }
            }
            sleep(DRAIN_CHECK_INTERVAL).await;
        }
    }

    /// Closes connections whose peers do not read their responses, until the future is
    /// dropped.
    pub async fn close_stalled_readers(self: Arc<Self>) {
        loop {
            sleep(STALLED_CHECK_INTERVAL).await;
            for state in lock(&self.open).values() {
                if state.calls.is_stalled() && !state.is_closing() {
                    info!("a connection is closed: its peer does not read its responses");
                    state.close();
                }
            }
        }
    }

    fn warn_too_many(&self) {
        let mut warned = lock(&self.warned);
        if warned.is_none_or(|last| last.elapsed() >= WARNING_INTERVAL) {
            *warned = Some(Instant::now());
            warn!(
                max = self.max,
                "too many connections: raise the limit of open files"
            );
        }
    }
}

impl ConnectionState {
    fn new(started: Instant, peer: SocketAddr) -> Self {
        let state = Self {
            started,
            peer,
            received_bytes: AtomicU64::new(0),
            last_received: AtomicU64::new(0),
            last_active: AtomicU64::new(0),
            write_blocked: AtomicBool::new(false),
            calls: PendingCalls::default(),
            closing: AtomicBool::new(false),
            reader: AtomicWaker::new(),
        };
        // Sets the times to now.
        state.count_received(0);
        state
    }

    fn now(&self) -> u64 {
        let now = self.started.elapsed().as_millis();
        u64::try_from(now).unwrap_or(u64::MAX)
    }

    /// The address at the other end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether the peer has sent anything.
    pub fn has_received(&self) -> bool {
        self.received_bytes.load(Relaxed) > 0
    }

    /// A call that must end by the deadline. It ends when the result is dropped.
    pub fn begin_call(self: Arc<Self>, deadline: Instant) -> PendingCall {
        PendingCall::begin(self, deadline)
    }

    /// Notes activity.
    fn touch(&self) {
        self.last_active.store(self.now(), Relaxed);
    }

    fn count_received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
        let now = self.now();
        self.last_received.store(now, Relaxed);
        self.last_active.store(now, Relaxed);
    }

    /// When the peer has been silent for too long, if it sends nothing until then.
    fn read_deadline(&self) -> Instant {
        let last_received = Duration::from_millis(self.last_received.load(Relaxed));
        self.started + last_received + READ_TIMEOUT
    }

    fn has_preface(&self) -> bool {
        self.received_bytes.load(Relaxed) >= PREFACE_BYTES
    }

    /// Whether its preface has not arrived, or it has no calls, nothing to send, and no traffic
    /// for a moment.
    fn is_idle(&self) -> bool {
        if !self.has_preface() {
            return true;
        }
        let is_busy = !self.calls.is_empty() || self.write_blocked.load(Relaxed);
        let last_active = Duration::from_millis(self.last_active.load(Relaxed));
        let quiet = self.started.elapsed().saturating_sub(last_active);
        !is_busy && quiet >= DRAIN_IDLE_TIMEOUT
    }

    /// Makes the next read fail, which ends the connection.
    fn close(&self) {
        self.closing.store(true, Relaxed);
        self.reader.wake();
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }
}

/// The entry of a connection, removed when this is dropped.
struct ConnectionEntry {
    connections: Arc<Connections>,
    number: u64,
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        lock(&self.connections.open).remove(&self.number);
    }
}

/// The stream of a connection. Reading fails when the peer is silent for too long or
/// the connection is closed.
pub struct TrackedStream {
    stream: TcpStream,
    state: Arc<ConnectionState>,
    read_timeout: Pin<Box<Sleep>>,
    // Dropped after the stream, which has its descriptor until then.
    _entry: ConnectionEntry,
}

impl TrackedStream {
    pub fn state(&self) -> Arc<ConnectionState> {
        Arc::clone(&self.state)
    }

    /// Ready when the peer has been silent for too long, or has not sent its preface in time.
    fn poll_timeout(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            ready!(self.read_timeout.as_mut().poll(context));
            let deadline = self.state.read_deadline();
            if !self.state.has_preface() || Instant::now() >= deadline {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.read_timeout.set(sleep_until(deadline));
        }
    }

    fn note_write<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.state.write_blocked.store(polled.is_pending(), Relaxed);
        if polled.is_ready() {
            self.state.touch();
        }
        polled
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.state.reader.register(context.waker());
        if self.state.is_closing() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(Ok(())) => {
                self.state.count_received(buffer.filled().len() - before);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.poll_timeout(context).map(Err),
        }
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_write(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.note_write(polled)
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

/// Locks, ignoring poison: no panic leaves these values inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
