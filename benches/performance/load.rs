//! The load: connections with one call at a time each, over the h2 crate.
//!
//! h2load sends one request again and again, and says nothing of `grpc-status`.
//! Here requests may differ from call to call, and an answer that is not OK ends
//! the run. Neither tonic nor hyper nor any code of the service is in it.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep_until},
};

use super::watch::{Cpu, Watched};

/// What an answer may hold; beyond it the server waits for us.
const WINDOW: u32 = 64 * 1024 * 1024;

/// Requests to one method.
pub struct Requests {
    path: &'static str,
    make: Box<dyn Fn(usize) -> Bytes + Send + Sync>,
    /// Numbers that were used.
    used: AtomicUsize,
}

impl Requests {
    /// Requests to `/SERVICE/METHOD`; `make` frames the one of a number. Each number
    /// is used once, and the connection of a number is its remainder by the number
    /// of connections.
    pub fn new(path: &'static str, make: impl Fn(usize) -> Bytes + Send + Sync + 'static) -> Self {
        Self {
            path,
            make: Box::new(make),
            used: AtomicUsize::new(0),
        }
    }
}

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Dose {
    /// Connections.
    pub connections: usize,
    /// How long before anything is counted.
    pub warm_up: Duration,
    /// How long then.
    pub time: Duration,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Calls that were begun in the time.
    pub calls: usize,
    /// Until the last of them was answered.
    pub elapsed: Duration,
    /// How long each took, sorted.
    pub latencies: Vec<Duration>,
    /// Bytes of all answers.
    pub bytes: usize,
    /// What the server and its database used meanwhile.
    pub cpu: Cpu,
}

impl Measured {
    /// Calls a second.
    pub fn rate(&self) -> f64 {
        self.calls as f64 / self.elapsed.as_secs_f64()
    }

    /// What this share of the calls was at most, in milliseconds.
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        let latency = self.latencies.get(index).copied();
        latency.unwrap_or_default().as_secs_f64() * 1e3
    }

    /// Bytes of an answer.
    pub fn size(&self) -> f64 {
        self.bytes as f64 / self.calls.max(1) as f64
    }

    /// Microseconds that a processor spent on a call.
    pub fn per_call(&self, spent: Duration) -> f64 {
        spent.as_secs_f64() * 1e6 / self.calls.max(1) as f64
    }
}

/// Calls a server for as long as the dose says.
///
/// # Panics
/// When a call is not answered with OK.
pub async fn load(
    server: SocketAddr,
    requests: &Arc<Requests>,
    dose: Dose,
    watched: &Watched,
) -> Measured {
    let from = Instant::now() + dose.warm_up;
    let until = from + dose.time;
    // A whole number of rounds, so that numbers stay with their connections.
    let used = requests.used.load(Ordering::Relaxed);
    let base = used.next_multiple_of(dose.connections);
    let connections: Vec<_> = (0..dose.connections)
        .map(|index| {
            let requests = Arc::clone(requests);
            let numbers = (base + index..).step_by(dose.connections);
            tokio::spawn(connection(server, requests, numbers, from, until))
        })
        .collect();
    sleep_until(from).await;
    let before = watched.cpu();
    let mut all = Vec::new();
    let mut bytes = 0;
    for connection in connections {
        let seen = connection.await.expect("a connection");
        requests.used.fetch_max(seen.last + 1, Ordering::Relaxed);
        all.extend(seen.latencies);
        bytes += seen.bytes;
    }
    let elapsed = from.elapsed();
    assert!(!all.is_empty(), "a turn is too short for a call");
    all.sort_unstable();
    Measured {
        calls: all.len(),
        elapsed,
        latencies: all,
        bytes,
        cpu: watched.cpu() - before,
    }
}

struct Seen {
    latencies: Vec<Duration>,
    bytes: usize,
    last: usize,
}

async fn connection(
    server: SocketAddr,
    requests: Arc<Requests>,
    numbers: impl Iterator<Item = usize>,
    from: Instant,
    until: Instant,
) -> Seen {
    let mut client = Client::connect(server).await;
    let mut seen = Seen {
        latencies: Vec::new(),
        bytes: 0,
        last: 0,
    };
    for number in numbers {
        let request = (requests.make)(number);
        seen.last = number;
        let begun = Instant::now();
        if begun >= until {
            break;
        }
        let answer = client.call(requests.path, request).await;
        if begun >= from {
            seen.latencies.push(begun.elapsed());
            seen.bytes += answer;
        }
    }
    seen
}

/// One connection.
pub struct Client {
    sender: h2::client::SendRequest<Bytes>,
}

impl Client {
    /// A connection to a server that listens.
    pub async fn connect(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).await.expect("it listens");
        Self::over(stream).await
    }

    /// The same over a stream.
    pub async fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a socket");
        let (sender, connection) = h2::client::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(stream)
            .await
            .expect("HTTP/2");
        tokio::spawn(connection);
        Self { sender }
    }

    /// Makes a call of a framed message and waits for all of the answer; its bytes.
    ///
    /// # Panics
    /// When that is not OK.
    pub async fn call(&mut self, path: &str, message: Bytes) -> usize {
        let request = Request::post(format!("http://localhost{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("x-account-id", super::floor::ACCOUNT)
            .body(())
            .expect("a request");
        let mut sender = self.sender.clone().ready().await.expect("a connection");
        let sent = sender.send_request(request, false);
        let (response, mut stream) = sent.expect("a connection");
        stream.send_data(message, true).expect("a stream");
        let (head, mut body) = response.await.expect("an answer").into_parts();
        let mut bytes = 0;
        while let Some(chunk) = body.data().await {
            let chunk = chunk.expect("an answer");
            bytes += chunk.len();
            let window = body.flow_control();
            window.release_capacity(chunk.len()).expect("a window");
        }
        let trailers = body.trailers().await.expect("an answer");
        is_ok(path, trailers.as_ref().unwrap_or(&head.headers));
        bytes
    }
}

fn is_ok(path: &str, headers: &HeaderMap) {
    let header = |name| headers.get(name).map(HeaderValue::as_bytes);
    let status = header("grpc-status");
    let why = String::from_utf8_lossy(header("grpc-message").unwrap_or_default());
    assert_eq!(status, Some(b"0".as_slice()), "{path}: {why}");
}
