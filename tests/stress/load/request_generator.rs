//! Tens of thousands of calls a second at little cost: the generator runs on the same
//! machine as the server, and must not be what is measured. It writes HTTP/2 frames with
//! headers from the compression table, and reads nothing but the frames of responses.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};

use crate::frames;

/// How often new calls begin.
const TICK: Duration = Duration::from_millis(5);
/// How long to wait for the last responses.
const LAST_RESPONSES_TIMEOUT: Duration = Duration::from_secs(10);
/// Open streams of a connection: fewer than the server allows.
const MAX_STREAMS: usize = 250;
/// The largest window of a connection.
const WINDOW: u32 = (1 << 31) - 1 - 65_535;

/// The calls, made in turn.
pub struct Calls {
    pub account: String,
    pub timeout: Duration,
    /// Methods and their framed messages.
    pub kinds: Vec<(&'static str, Bytes)>,
}

/// When each connection starts calls.
#[derive(Clone, Copy)]
pub enum Rate {
    /// So many are under way; each response starts another.
    Parallel(usize),
    /// So many start each second, however many are under way.
    PerSecond(f64),
}

/// The results of calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallCounts {
    /// Answered with a message within their time-out and the run.
    pub served: u32,
    /// Answered with a message after that.
    pub late: u32,
    /// Answered with an error.
    pub refused: u32,
}

impl CallCounts {
    fn add(mut self, other: Self) -> Self {
        self.served += other.served;
        self.late += other.late;
        self.refused += other.refused;
        self
    }
}

/// Connections that make calls.
pub struct RequestGenerator(Vec<Connection>);

impl RequestGenerator {
    pub async fn open(server: SocketAddr, connections: usize, calls: Calls) -> Self {
        let calls = Arc::new(calls);
        let mut all = Vec::new();
        for _ in 0..connections {
            all.push(Connection::open(server, Arc::clone(&calls)).await);
        }
        Self(all)
    }

    /// Makes calls for some time, and waits for their responses.
    ///
    /// # Panics
    /// When a call gets no response.
    pub async fn run(&mut self, rate: Rate, time: Duration) -> CallCounts {
        let end = Instant::now() + time;
        let mut running = JoinSet::new();
        for mut connection in self.0.drain(..) {
            running.spawn(async move {
                let counts = connection.run(rate, end).await;
                (connection, counts)
            });
        }
        let mut all = CallCounts::default();
        for (connection, counts) in running.join_all().await {
            self.0.push(connection);
            all = all.add(counts);
        }
        all
    }
}

/// A call that has no response yet.
struct PendingCall {
    due: Instant,
    has_message: bool,
}

struct Connection {
    stream: TcpStream,
    calls: Arc<Calls>,
    received: BytesMut,
    sending: Vec<u8>,
    next: u32,
    pending: HashMap<u32, PendingCall>,
}

impl Connection {
    async fn open(server: SocketAddr, calls: Arc<Calls>) -> Self {
        let stream = TcpStream::connect(server).await.expect("a connection");
        stream.set_nodelay(true).expect("an option of TCP");
        let mut sending = frames::preface();
        let window = WINDOW.to_be_bytes();
        sending.extend(frames::frame(frames::WINDOW_UPDATE, 0, 0, &window));
        Self {
            stream,
            calls,
            received: BytesMut::new(),
            sending,
            next: 0,
            pending: HashMap::new(),
        }
    }

    async fn run(&mut self, rate: Rate, end: Instant) -> CallCounts {
        let begun = Instant::now();
        let mut started = 0;
        let mut counts = CallCounts::default();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let now = Instant::now();
            if now < end {
                started += self.start_due(rate, started, begun, now);
            } else if self.pending.is_empty() {
                return counts;
            }
            assert!(
                now < end + LAST_RESPONSES_TIMEOUT,
                "{} without responses",
                self.pending.len()
            );
            if !self.sending.is_empty() {
                let sent = self.stream.write_all(&self.sending).await;
                sent.expect("the server reads");
                self.sending.clear();
            }
            tokio::select! {
                _ = ticks.tick() => {}
                read = self.stream.read_buf(&mut self.received) => {
                    assert!(read.expect("bytes") > 0, "the server has closed it");
                    self.receive_frames(end, &mut counts);
                }
            }
        }
    }

    /// Starts the calls that are due after the first `started`; how many these are.
    fn start_due(&mut self, rate: Rate, started: u32, begun: Instant, now: Instant) -> u32 {
        let room = MAX_STREAMS - self.pending.len();
        let (calls, period) = match rate {
            Rate::Parallel(calls) => (calls - self.pending.len(), None),
            Rate::PerSecond(per_second) => {
                let due = ((now - begun).as_secs_f64() * per_second) as u32;
                (
                    due.saturating_sub(started) as usize,
                    Some(per_second.recip()),
                )
            }
        };
        let calls = u32::try_from(calls.min(room)).expect("few");
        for n in started..started + calls {
            let due = period.map_or(now, |period| begun + Duration::from_secs_f64(period) * n);
            self.call(due);
        }
        calls
    }

    fn call(&mut self, due: Instant) {
        let (_, message) = &self.calls.kinds[self.calls.kind(self.next)];
        let stream = frames::stream(self.next);
        let head = self.calls.head(self.next);
        let (head_kind, end) = (frames::HEADERS, frames::END_STREAM);
        self.sending
            .extend(frames::frame(head_kind, frames::END_HEADERS, stream, &head));
        self.sending
            .extend(frames::frame(frames::DATA, end, stream, message));
        let has_message = false;
        self.pending
            .insert(stream, PendingCall { due, has_message });
        self.next += 1;
    }

    /// Handles the frames that have arrived.
    fn receive_frames(&mut self, end: Instant, counts: &mut CallCounts) {
        while let Some(&[a, b, c, kind, flags, s, t, u, v]) = self.received.first_chunk() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if self.received.len() < 9 + length {
                return;
            }
            self.received.advance(9);
            let payload = self.received.split_to(length);
            let stream = u32::from_be_bytes([s, t, u, v]);
            match kind {
                frames::SETTINGS if flags == 0 => self.acknowledge(kind, &[]),
                frames::PING if flags == 0 => self.acknowledge(kind, &payload),
                frames::GOAWAY => panic!("the server closes the connection"),
                frames::RST_STREAM => {
                    // The server may reset a stream whose call it has answered.
                    assert!(!self.pending.contains_key(&stream), "a call is reset");
                }
                frames::DATA => {
                    let call = self.pending.get_mut(&stream).expect("a call");
                    call.has_message = true;
                }
                frames::HEADERS if flags & frames::END_STREAM != 0 => {
                    let call = self.pending.remove(&stream).expect("a call");
                    let by = end.min(call.due + self.calls.timeout);
                    match call.has_message {
                        true if Instant::now() <= by => counts.served += 1,
                        true => counts.late += 1,
                        false => counts.refused += 1,
                    }
                }
                _ => {}
            }
        }
    }

    fn acknowledge(&mut self, kind: u8, payload: &[u8]) {
        const ACK: u8 = 1;
        self.sending.extend(frames::frame(kind, ACK, 0, payload));
    }
}

impl Calls {
    /// The kind of the n-th call on a connection.
    fn kind(&self, n: u32) -> usize {
        n as usize % self.kinds.len()
    }

    /// The headers of the n-th call on a connection. The first call sends them all, and
    /// the first of each other kind its path. Later ones send indexes of HPACK's dynamic
    /// table, whose newest entry comes first.
    fn head(&self, n: u32) -> Vec<u8> {
        const POST: u8 = 0x83;
        const HTTP: u8 = 0x86;
        const INDEXED: u8 = 0x80;
        const FIRST_INDEX: usize = 62;
        /// Entries of the first call: the authority, its path and four more.
        const OF_FIRST: usize = 6;
        let named = |name: &str, value: &str| {
            let text = |text: &str| {
                let length = u8::try_from(text.len()).expect("a short text");
                [&[length], text.as_bytes()].concat()
            };
            [vec![0x40], text(name), text(value)].concat()
        };
        let kind = self.kind(n);
        let path = named(":path", &format!("/expertise.v1.{}", self.kinds[kind].0));
        if n == 0 {
            return [
                vec![POST, HTTP],
                named(":authority", "test"),
                path,
                named("content-type", "application/grpc"),
                named("te", "trailers"),
                named("x-account-id", &self.account),
                named("grpc-timeout", &format!("{}m", self.timeout.as_millis())),
            ]
            .concat();
        }
        // The entry that was added as number `added` of `all`.
        let indexed = |all: usize, added: usize| {
            let index = FIRST_INDEX + all - 1 - added;
            INDEXED | u8::try_from(index).expect("few")
        };
        let known = OF_FIRST + self.kinds.len().min(n as usize) - 1;
        let mut head = vec![POST, HTTP, indexed(known, 0)];
        let all = match n as usize {
            n if n < self.kinds.len() => {
                head.extend(path);
                known + 1
            }
            _ => {
                let added = if kind == 0 { 1 } else { OF_FIRST + kind - 1 };
                head.push(indexed(known, added));
                known
            }
        };
        head.extend((2..OF_FIRST).map(|added| indexed(all, added)));
        head
    }
}
