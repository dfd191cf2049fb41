//! A peer that sends any bytes, and reads the frames that come back.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::{
    io::{self, AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinHandle,
    time::{Duration, Instant, sleep},
};

use crate::{frames, kit::http2::prefix};

/// A connection that never answers the server.
pub struct FramePeer {
    writing: OwnedWriteHalf,
    received: Arc<Mutex<Received>>,
    reading: JoinHandle<()>,
}

/// What the server sent.
#[derive(Debug, Default)]
pub struct Received {
    /// Settings by their numbers.
    pub settings: Vec<(u16, u32)>,
    /// Streams that were answered.
    pub answered: Vec<u32>,
    /// Streams that were reset, and the error codes.
    pub resets: Vec<(u32, u32)>,
    /// The error code of GOAWAY.
    pub goaway: Option<u32>,
    /// The connection has ended.
    pub ended: bool,
}

impl FramePeer {
    /// A TCP connection on which nothing was sent.
    pub async fn connect(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).await.expect("it listens");
        stream.set_nodelay(true).expect("an option of TCP");
        let (reader, writing) = stream.into_split();
        let received = Arc::<Mutex<Received>>::default();
        let reading = tokio::spawn(read(reader, Arc::clone(&received)));
        Self {
            writing,
            received,
            reading,
        }
    }

    /// A connection on which the preface was sent.
    pub async fn with_preface(server: SocketAddr) -> Self {
        let mut peer = Self::connect(server).await;
        peer.send(&frames::preface()).await.expect("it listens");
        peer
    }

    /// Sends a request to create a step, byte by byte, until this moment or until the
    /// server has closed the connection.
    pub async fn send_slowly(mut self, interval: Duration, length: usize, end: Instant) {
        let call = frames::call(1, "StepService/CreateStep", &[]);
        let start = frames::data(1, &prefix(0, length));
        let mut sent = self.send(&[call, start].concat()).await;
        while sent.is_ok() && Instant::now() < end {
            sleep(interval).await;
            sent = self.send(&frames::data(1, b"x")).await;
        }
    }

    /// Sends bytes; an error when the server has ended the connection.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writing.write_all(bytes).await
    }

    /// What the server sent so far.
    pub fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().expect("what was received")
    }
}

impl Drop for FramePeer {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

async fn read(mut reader: OwnedReadHalf, received: Arc<Mutex<Received>>) {
    while let Ok((kind, flags, stream, payload)) = read_frame(&mut reader).await {
        let mut received = received.lock().expect("what was received");
        match kind {
            frames::SETTINGS if flags == 0 => received.settings = settings(&payload),
            frames::HEADERS => received.answered.push(stream),
            frames::RST_STREAM => received.resets.push((stream, number(&payload))),
            frames::GOAWAY => received.goaway = Some(number(&payload[4..])),
            _ => {}
        }
    }
    received.lock().expect("what was received").ended = true;
}

async fn read_frame(reader: &mut OwnedReadHalf) -> io::Result<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    reader.read_exact(&mut head).await?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    reader.read_exact(&mut payload).await?;
    Ok((head[3], head[4], number(&head[5..]), payload))
}

fn settings(payload: &[u8]) -> Vec<(u16, u32)> {
    let each = payload.chunks_exact(6);
    each.map(|setting| {
        let kind = u16::from_be_bytes([setting[0], setting[1]]);
        (kind, number(&setting[2..]))
    })
    .collect()
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
