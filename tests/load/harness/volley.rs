//! Calls by the ten thousand at next to no cost: the load has its part of the same
//! machine, and what it takes to make calls must not be what is measured. So frames are
//! written as they are, with headers that the server has seen before, and of answers
//! only the frames are looked at.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};

use super::frames;

/// How often new calls begin.
const TICK: Duration = Duration::from_millis(5);
/// How long answers are waited for in the end.
const REST: Duration = Duration::from_secs(10);
/// Streams that a connection may have open, within what the server allows.
const STREAMS: usize = 250;
/// All that a connection may be sent.
const WINDOW: u32 = (1 << 31) - 1 - 65_535;
/// What is called, one after the other and again, and by whom.
pub struct Calls {
    pub account: String,
    pub timeout: Duration,
    /// Methods and their messages, with their prefixes.
    pub kinds: Vec<(&'static str, Bytes)>,
}

/// When calls begin, on each connection.
#[derive(Clone, Copy)]
pub enum Pace {
    /// So many are at hand, a new one with each answer.
    AtOnce(usize),
    /// So many begin each second, whatever becomes of those before.
    ASecond(f64),
}

/// What calls came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Answered with a message, before their time was over and the volley's.
    pub served: u32,
    /// Answered with a message after that.
    pub late: u32,
    /// Answered with an error.
    pub refused: u32,
}

impl Tally {
    fn add(mut self, other: Self) -> Self {
        self.served += other.served;
        self.late += other.late;
        self.refused += other.refused;
        self
    }
}

/// Connections that make calls.
pub struct Volley(Vec<Line>);

impl Volley {
    pub async fn open(server: SocketAddr, connections: usize, calls: Calls) -> Self {
        let calls = Arc::new(calls);
        let mut lines = Vec::new();
        for _ in 0..connections {
            lines.push(Line::open(server, Arc::clone(&calls)).await);
        }
        Self(lines)
    }

    /// Makes calls for some time, and waits for their answers.
    ///
    /// # Panics
    /// When a call gets no answer.
    pub async fn fire(&mut self, pace: Pace, time: Duration) -> Tally {
        let end = Instant::now() + time;
        let mut firing = JoinSet::new();
        for mut line in self.0.drain(..) {
            firing.spawn(async move {
                let tally = line.fire(pace, end).await;
                (line, tally)
            });
        }
        let mut all = Tally::default();
        for (line, tally) in firing.join_all().await {
            self.0.push(line);
            all = all.add(tally);
        }
        all
    }
}

/// A call that has no answer yet.
struct Waiting {
    due: Instant,
    has_message: bool,
}

struct Line {
    stream: TcpStream,
    calls: Arc<Calls>,
    received: BytesMut,
    sending: Vec<u8>,
    next: u32,
    waiting: HashMap<u32, Waiting>,
}

impl Line {
    async fn open(server: SocketAddr, calls: Arc<Calls>) -> Self {
        let stream = TcpStream::connect(server).await.expect("it listens");
        stream.set_nodelay(true).expect("an option of TCP");
        let mut sending = frames::greeting();
        let window = WINDOW.to_be_bytes();
        sending.extend(frames::frame(frames::WINDOW_UPDATE, 0, 0, &window));
        Self {
            stream,
            calls,
            received: BytesMut::new(),
            sending,
            next: 0,
            waiting: HashMap::new(),
        }
    }

    async fn fire(&mut self, pace: Pace, end: Instant) -> Tally {
        let begun = Instant::now();
        let mut fired = 0;
        let mut tally = Tally::default();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let now = Instant::now();
            if now < end {
                fired += self.begin(pace, fired, begun, now);
            } else if self.waiting.is_empty() {
                return tally;
            }
            assert!(now < end + REST, "{} without answers", self.waiting.len());
            if !self.sending.is_empty() {
                let sent = self.stream.write_all(&self.sending).await;
                sent.expect("it takes calls");
                self.sending.clear();
            }
            tokio::select! {
                _ = ticks.tick() => {}
                read = self.stream.read_buf(&mut self.received) => {
                    assert!(read.expect("it answers") > 0, "it has hung up");
                    self.hear(end, &mut tally);
                }
            }
        }
    }

    /// Begins what is due after `fired` calls; how many that are.
    fn begin(&mut self, pace: Pace, fired: u32, begun: Instant, now: Instant) -> u32 {
        let room = STREAMS - self.waiting.len();
        let (calls, each) = match pace {
            Pace::AtOnce(calls) => (calls - self.waiting.len(), None),
            Pace::ASecond(rate) => {
                let due = ((now - begun).as_secs_f64() * rate) as u32;
                (due.saturating_sub(fired) as usize, Some(rate.recip()))
            }
        };
        let calls = u32::try_from(calls.min(room)).expect("few");
        for n in fired..fired + calls {
            let due = each.map_or(now, |each| begun + Duration::from_secs_f64(each) * n);
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
        self.waiting.insert(stream, Waiting { due, has_message });
        self.next += 1;
    }

    /// Takes in the frames that are there.
    fn hear(&mut self, end: Instant, tally: &mut Tally) {
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
                frames::GOAWAY => panic!("it lets go of the connection"),
                frames::RST_STREAM => {
                    // What of a call is not read is of no use once that is answered.
                    assert!(!self.waiting.contains_key(&stream), "a call is broken off");
                }
                frames::DATA => {
                    let call = self.waiting.get_mut(&stream).expect("a call");
                    call.has_message = true;
                }
                frames::HEADERS if flags & frames::END_STREAM != 0 => {
                    let call = self.waiting.remove(&stream).expect("a call");
                    let by = end.min(call.due + self.calls.timeout);
                    match call.has_message {
                        true if Instant::now() <= by => tally.served += 1,
                        true => tally.late += 1,
                        false => tally.refused += 1,
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

    /// The headers of the n-th call on a connection. The first call names them all, the
    /// first of each other kind its path; later ones refer to those by their places in
    /// the table of HPACK, where the last to come has the first of its places.
    fn head(&self, n: u32) -> Vec<u8> {
        const POST: u8 = 0x83;
        const HTTP: u8 = 0x86;
        const INDEXED: u8 = 0x80;
        const FIRST_PLACE: usize = 62;
        /// What comes with the first call: the authority, its path and four more.
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
        // Of so many in the table, the one that came in that place.
        let indexed = |all: usize, came: usize| {
            let place = FIRST_PLACE + all - 1 - came;
            INDEXED | u8::try_from(place).expect("few")
        };
        let known = OF_FIRST + self.kinds.len().min(n as usize) - 1;
        let mut head = vec![POST, HTTP, indexed(known, 0)];
        let all = match n as usize {
            n if n < self.kinds.len() => {
                head.extend(path);
                known + 1
            }
            _ => {
                let came = if kind == 0 { 1 } else { OF_FIRST + kind - 1 };
                head.push(indexed(known, came));
                known
            }
        };
        head.extend((2..OF_FIRST).map(|came| indexed(all, came)));
        head
    }
}
