//! Generates load: connections with one call at a time each, over the h2 crate.
//!
//! h2load can neither send different requests nor check `grpc-status`. Here a response
//! that is not OK ends the run. The load uses neither tonic nor hyper nor code of the
//! service.

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

use super::usage::{Cpu, Processes};

/// Flow control windows, larger than any response.
const WINDOW: u32 = 64 * 1024 * 1024;

/// Requests to one method.
pub struct Requests {
    path: &'static str,
    make: Box<dyn Fn(usize) -> Bytes + Send + Sync>,
    /// The smallest number such that no request has had it or a larger one.
    next_number: AtomicUsize,
}

impl Requests {
    /// Requests to `/SERVICE/METHOD`; `make` returns the framed request of a number. Each
    /// number is used once, on the connection `number % connections`.
    pub fn new(path: &'static str, make: impl Fn(usize) -> Bytes + Send + Sync + 'static) -> Self {
        Self {
            path,
            make: Box::new(make),
            next_number: AtomicUsize::new(0),
        }
    }
}

/// Connections and duration of a load.
#[derive(Clone, Copy, Debug)]
pub struct LoadSpec {
    pub connections: usize,
    /// The time before calls are counted.
    pub warm_up: Duration,
    /// The time in which calls are counted.
    pub time: Duration,
}

/// The result of a load.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Calls that began in the time.
    pub calls: usize,
    /// The time until the last of them ended.
    pub elapsed: Duration,
    /// Their durations, sorted.
    pub latencies: Vec<Duration>,
    /// Bytes of all responses.
    pub bytes: usize,
    /// Processor time of the server and its database.
    pub cpu: Cpu,
}

impl Measured {
    /// Calls a second.
    pub fn rate(&self) -> f64 {
        self.calls as f64 / self.elapsed.as_secs_f64()
    }

    /// The percentile of the durations for a share such as 0.99, in milliseconds.
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        let latency = self.latencies.get(index).copied();
        latency.unwrap_or_default().as_secs_f64() * 1e3
    }

    /// The mean bytes of a response.
    pub fn size(&self) -> f64 {
        self.bytes as f64 / self.calls.max(1) as f64
    }

    /// Microseconds of processor time for each call.
    pub fn per_call(&self, cpu: Duration) -> f64 {
        cpu.as_secs_f64() * 1e6 / self.calls.max(1) as f64
    }
}

/// Generates load on a server.
///
/// # Panics
/// When a response is not OK.
pub async fn load(
    server: SocketAddr,
    requests: &Arc<Requests>,
    spec: LoadSpec,
    processes: &Processes,
) -> Measured {
    let from = Instant::now() + spec.warm_up;
    let until = from + spec.time;
    // A multiple of the connections, so that each number stays on its connection.
    let next_number = requests.next_number.load(Ordering::Relaxed);
    let base = next_number.next_multiple_of(spec.connections);
    let connections: Vec<_> = (0..spec.connections)
        .map(|index| {
            let requests = Arc::clone(requests);
            let numbers = (base + index..).step_by(spec.connections);
            tokio::spawn(connection(server, requests, numbers, from, until))
        })
        .collect();
    sleep_until(from).await;
    let before = processes.cpu();
    let mut all = Vec::new();
    let mut bytes = 0;
    for connection in connections {
        let result = connection.await.expect("a connection");
        requests
            .next_number
            .fetch_max(result.last + 1, Ordering::Relaxed);
        all.extend(result.latencies);
        bytes += result.bytes;
    }
    let elapsed = from.elapsed();
    assert!(!all.is_empty(), "a turn is too short for a call");
    all.sort_unstable();
    Measured {
        calls: all.len(),
        elapsed,
        latencies: all,
        bytes,
        cpu: processes.cpu() - before,
    }
}

struct ConnectionResult {
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
) -> ConnectionResult {
    let mut client = Client::connect(server).await;
    let mut result = ConnectionResult {
        latencies: Vec::new(),
        bytes: 0,
        last: 0,
    };
    for number in numbers {
        let request = (requests.make)(number);
        result.last = number;
        let begun = Instant::now();
        if begun >= until {
            break;
        }
        let bytes = client.call(requests.path, request).await;
        if begun >= from {
            result.latencies.push(begun.elapsed());
            result.bytes += bytes;
        }
    }
    result
}

/// A client with one connection.
pub struct Client {
    sender: h2::client::SendRequest<Bytes>,
}

impl Client {
    /// A connection to a server that listens.
    pub async fn connect(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).await.expect("it listens");
        Self::over(stream).await
    }

    /// A connection over a TCP stream.
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

    /// Makes a call with a framed message and returns the bytes of its response.
    ///
    /// # Panics
    /// When the response is not OK.
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
        assert_ok(path, trailers.as_ref().unwrap_or(&head.headers));
        bytes
    }
}

fn assert_ok(path: &str, headers: &HeaderMap) {
    let header = |name| headers.get(name).map(HeaderValue::as_bytes);
    let status = header("grpc-status");
    let why = String::from_utf8_lossy(header("grpc-message").unwrap_or_default());
    assert_eq!(status, Some(b"0".as_slice()), "{path}: {why}");
}
