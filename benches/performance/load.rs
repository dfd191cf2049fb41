//! Generates load: connections that each make one call at a time.
//!
//! It uses the h2 crate and no code of the service. Known load tools can neither send a different
//! request each time nor check `grpc-status`. Here a response that is not OK ends the run.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request};
use prost::Message;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep_until},
};

use super::servers::Server;

/// Flow control windows, larger than any response.
const WINDOW: u32 = 64 << 20;

/// A message in the framing of gRPC, uncompressed.
pub fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(5 + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).expect("a length"));
    message.encode(&mut frame).expect("there is room");
    frame.freeze()
}

/// Requests of one rpc.
pub struct Requests {
    path: &'static str,
    make: Box<dyn Fn(usize) -> Bytes + Send + Sync>,
    next_number: AtomicUsize,
}

impl Requests {
    /// Requests to `/SERVICE/METHOD`. `make` returns the framed request for a number. Each number
    /// is used once.
    pub fn new(path: &'static str, make: impl Fn(usize) -> Bytes + Send + Sync + 'static) -> Self {
        Self {
            path,
            make: Box::new(make),
            next_number: AtomicUsize::new(0),
        }
    }

    fn next(&self) -> Bytes {
        (self.make)(self.next_number.fetch_add(1, Ordering::Relaxed))
    }
}

/// The load of one turn.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub connections: u32,
    /// The time before calls are counted.
    pub warm_up: Duration,
    /// The time in which counted calls begin.
    pub time: Duration,
}

/// The result of a turn.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub calls_per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
    /// CPU time of the server for each call.
    pub server_cpu: Duration,
    /// CPU time of PostgreSQL for each call.
    pub database_cpu: Option<Duration>,
}

impl Load {
    /// # Panics
    /// If a response is not OK.
    pub async fn run(self, server: &Server, requests: &Arc<Requests>) -> Measured {
        let from = Instant::now() + self.warm_up;
        let until = from + self.time;
        let connections: Vec<_> = (0..self.connections)
            .map(|_| {
                let (address, requests) = (server.address(), Arc::clone(requests));
                tokio::spawn(latencies(address, requests, from, until))
            })
            .collect();
        sleep_until(from).await;
        let before = server.cpu_time();
        let mut latencies = Vec::new();
        for connection in connections {
            latencies.extend(connection.await.expect("a connection without an error"));
        }
        let (elapsed, cpu) = (from.elapsed(), server.cpu_time() - before);
        latencies.sort_unstable();
        let calls = u32::try_from(latencies.len()).expect("a number of calls");
        assert_ne!(
            calls, 0,
            "{}: a turn is too short for a call",
            requests.path
        );
        let percentile = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
        Measured {
            calls_per_second: f64::from(calls) / elapsed.as_secs_f64(),
            p50: percentile(50),
            p99: percentile(99),
            server_cpu: cpu.server / calls,
            database_cpu: cpu.database.map(|used| used / calls),
        }
    }
}

/// Makes calls over one connection, and returns the durations of the calls that began between
/// `from` and `until`.
async fn latencies(
    server: SocketAddr,
    requests: Arc<Requests>,
    from: Instant,
    until: Instant,
) -> Vec<Duration> {
    let client = Client::connect(server).await;
    let mut latencies = Vec::new();
    loop {
        let request = requests.next();
        let begun = Instant::now();
        if begun >= until {
            return latencies;
        }
        client.call(requests.path, request).await;
        if begun >= from {
            latencies.push(begun.elapsed());
        }
    }
}

/// A client with one connection.
pub struct Client {
    sender: h2::client::SendRequest<Bytes>,
}

impl Client {
    pub async fn connect(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).await.expect("it listens");
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

    /// Makes a call with a framed message, and returns the pieces of its response.
    ///
    /// # Panics
    /// If the response is not OK.
    pub async fn call(&self, path: &str, message: Bytes) -> Vec<Bytes> {
        let request = Request::post(format!("http://localhost{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("x-account-id", "demo")
            .body(())
            .expect("a request");
        let mut sender = self.sender.clone().ready().await.expect("a connection");
        let sent = sender.send_request(request, false);
        let (response, mut stream) = sent.expect("a connection");
        stream.send_data(message, true).expect("a stream");
        let (head, mut body) = response.await.expect("a response").into_parts();
        let mut pieces = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece.expect("a response");
            let window = body.flow_control();
            window.release_capacity(piece.len()).expect("a window");
            pieces.push(piece);
        }
        let trailers = body.trailers().await.expect("a response");
        assert_ok(path, trailers.as_ref().unwrap_or(&head.headers));
        pieces
    }
}

fn assert_ok(path: &str, headers: &HeaderMap) {
    let header = |name| headers.get(name).map(HeaderValue::as_bytes);
    let status = header("grpc-status");
    let why = String::from_utf8_lossy(header("grpc-message").unwrap_or_default());
    assert_eq!(status, Some(b"0".as_slice()), "{path}: {why}");
}
