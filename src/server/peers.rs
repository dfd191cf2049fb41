//! Who is connected: peers that say nothing, or do not take what they asked for,
//! are let go, and there are never more than the process has file descriptors for.

mod calls;
mod pace;

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep, sleep_until},
};
use tracing::{info, warn};

pub(super) use self::calls::AtHand;
use self::{calls::Calls, pace::Pace};

/// How long a peer may take for its first bytes, which every client sends at once.
const GREETING: Duration = Duration::from_secs(10);
/// The preface of HTTP/2, in bytes; TLS says hello with more.
const GREETING_BYTES: u64 = 24;
/// How long a peer may be silent. Every living client answers a PING in a shorter
/// time, whether or not it makes calls.
const SILENCE: Duration = Duration::from_secs(60);
/// Connections at most, however many file descriptors there are.
const MOST: usize = 16 * 1024;
/// File descriptors that are kept for the database, the log and so on, beside
/// those that the caller asks for.
const KEPT_DESCRIPTORS: u64 = 64;
/// Most that is asked of the system for a process.
const DESCRIPTORS: u64 = 64 * 1024;
/// At the end, a peer without calls that was quiet for this long has what it was
/// sent.
const QUIET: Duration = Duration::from_millis(500);
/// How often somebody is looked for who may be let go at the end.
const LOOK: Duration = Duration::from_millis(50);
/// How often those are looked for who do not take their answers.
const LATE_LOOK: Duration = Duration::from_secs(1);
/// How often it is said, at most, that there are too many connections.
const COMPLAINT: Duration = Duration::from_secs(10);

/// The peers that are connected.
pub(super) struct Peers {
    most: usize,
    began: Instant,
    /// By the order of their coming.
    connected: Mutex<BTreeMap<u64, Arc<Peer>>>,
    next: AtomicU64,
    pace: Mutex<Pace>,
    complained: Mutex<Option<Instant>>,
}

/// One peer.
struct Peer {
    began: Instant,
    /// Bytes that came from it.
    heard: AtomicU64,
    /// When something last came from it, in milliseconds since it all began.
    heard_at: AtomicU64,
    /// The same, or went to it.
    active: AtomicU64,
    /// Whether what was sent waits for the peer to take it.
    blocked: AtomicBool,
    calls: Calls,
    closing: AtomicBool,
    reader: AtomicWaker,
}

impl Peers {
    /// As many as there are file descriptors for, of which the process asks for
    /// more if it may have them; `kept` are for others.
    pub fn within_descriptors(kept: u32) -> Arc<Self> {
        let descriptors = descriptors();
        let free = descriptors.saturating_sub(KEPT_DESCRIPTORS + u64::from(kept));
        let most = usize::try_from(free).unwrap_or(MOST).clamp(1, MOST);
        Arc::new(Self {
            most,
            began: Instant::now(),
            connected: Mutex::default(),
            next: AtomicU64::new(0),
            pace: Mutex::default(),
            complained: Mutex::default(),
        })
    }

    /// Lets a peer in as [`Peers::admit`] does, when it is its address's turn.
    pub async fn admit_in_turn(self: Arc<Self>, stream: TcpStream) -> Option<Wire> {
        // Without an address it has gone already.
        let address = stream.peer_addr().ok()?.ip();
        let wait = lock(&self.pace).wait(address, Instant::now()).ok()?;
        if !wait.is_zero() {
            sleep(wait).await;
        }
        self.admit(stream)
    }

    /// Lets a peer in. When there are too many, the one that is longest there
    /// without having said anything gives way, or else this one.
    fn admit(self: &Arc<Self>, stream: TcpStream) -> Option<Wire> {
        let mut connected = lock(&self.connected);
        if connected.len() >= self.most {
            self.complain();
            let silent = connected.iter().find(|(_, peer)| !peer.has_greeted());
            let (&number, peer) = silent?;
            peer.close();
            connected.remove(&number);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let peer = Arc::new(Peer::at(self.began));
        connected.insert(number, Arc::clone(&peer));
        Some(Wire {
            stream,
            peer,
            patience: Box::pin(sleep(GREETING)),
            place: Place {
                peers: Arc::clone(self),
                number,
            },
        })
    }

    /// Lets go of those who have nothing more to expect, until all have gone;
    /// never ends by itself.
    pub async fn usher_out(&self) {
        // That it ends, and that health is NOT_SERVING, is told to those who were
        // quiet until now too.
        for peer in lock(&self.connected).values() {
            peer.stir();
        }
        loop {
            for peer in lock(&self.connected).values() {
                if peer.may_leave() {
                    peer.close();
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Lets go of those who do not take their answers; never ends by itself.
    pub async fn let_go_of_the_late(self: Arc<Self>) {
        loop {
            sleep(LATE_LOOK).await;
            for peer in lock(&self.connected).values() {
                if peer.calls.are_late() && !peer.is_closing() {
                    info!("a peer is let go: it does not take its answers");
                    peer.close();
                }
            }
        }
    }

    fn complain(&self) {
        let mut complained = lock(&self.complained);
        if complained.is_none_or(|last| last.elapsed() >= COMPLAINT) {
            *complained = Some(Instant::now());
            warn!(
                most = self.most,
                "there are as many connections as there may be: raise the limit of open files"
            );
        }
    }
}

/// The file descriptors that the process may have, after it asked for more.
fn descriptors() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // No limit is more than anybody asks for.
    let current = current.unwrap_or(DESCRIPTORS);
    let wanted = maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS);
    if wanted <= current {
        return current;
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => wanted,
        Err(_) => current,
    }
}

impl Peer {
    fn at(began: Instant) -> Self {
        let peer = Self {
            began,
            heard: AtomicU64::new(0),
            heard_at: AtomicU64::new(0),
            active: AtomicU64::new(0),
            blocked: AtomicBool::new(false),
            calls: Calls::default(),
            closing: AtomicBool::new(false),
            reader: AtomicWaker::new(),
        };
        peer.hear(0);
        peer
    }

    fn now(&self) -> u64 {
        let now = self.began.elapsed().as_millis();
        u64::try_from(now).unwrap_or(u64::MAX)
    }

    fn stir(&self) {
        self.active.store(self.now(), Ordering::Relaxed);
    }

    fn hear(&self, bytes: usize) {
        self.heard.fetch_add(bytes as u64, Ordering::Relaxed);
        let now = self.now();
        self.heard_at.store(now, Ordering::Relaxed);
        self.active.store(now, Ordering::Relaxed);
    }

    /// When it has been silent for too long, unless it says something.
    fn end_of_patience(&self) -> Instant {
        self.began + Duration::from_millis(self.heard_at.load(Ordering::Relaxed)) + SILENCE
    }

    fn is_quiet(&self) -> bool {
        let active = Duration::from_millis(self.active.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(active) >= QUIET
    }

    fn has_greeted(&self) -> bool {
        self.heard.load(Ordering::Relaxed) >= GREETING_BYTES
    }

    /// Whether it waits for nothing: no call, and nothing on its way to it.
    fn may_leave(&self) -> bool {
        let busy = !self.calls.are_none() || self.blocked.load(Ordering::Relaxed);
        !self.has_greeted() || (!busy && self.is_quiet())
    }

    /// Has its connection end at once.
    fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.reader.wake();
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// The peer as its calls know it.
#[derive(Clone)]
pub(super) struct Guest(Arc<Peer>);

impl Guest {
    /// A call of the peer's, until what is returned is dropped, which must be by
    /// then.
    pub fn called(&self, end: Instant) -> AtHand {
        AtHand::begin(&self.0, end)
    }
}

/// A peer's place among those connected.
struct Place {
    peers: Arc<Peers>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.peers.connected).remove(&self.number);
    }
}

/// A connection that ends when its peer is silent for too long.
pub(super) struct Wire {
    stream: TcpStream,
    peer: Arc<Peer>,
    patience: Pin<Box<Sleep>>,
    // Dropped after the stream, which has its descriptor until then.
    #[allow(dead_code)]
    place: Place,
}

impl Wire {
    /// Who is at the other end.
    pub fn guest(&self) -> Guest {
        Guest(Arc::clone(&self.peer))
    }

    /// Ready when the peer has been silent for too long.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            ready!(self.patience.as_mut().poll(context));
            let end = self.peer.end_of_patience();
            if !self.peer.has_greeted() || Instant::now() >= end {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.patience.set(sleep_until(end));
        }
    }

    fn note_sent<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.peer
            .blocked
            .store(polled.is_pending(), Ordering::Relaxed);
        if polled.is_ready() {
            self.peer.stir();
        }
        polled
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.peer.reader.register(context.waker());
        if self.peer.is_closing() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(Ok(())) => {
                self.peer.hear(buffer.filled().len() - before);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.poll_patience(context).map(Err),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_sent(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.note_sent(polled)
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

/// A panic elsewhere leaves nothing half-done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
