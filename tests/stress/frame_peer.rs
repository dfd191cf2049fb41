//! A peer that sends any frames of HTTP/2, and never answers the server.

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
};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const CANCEL: u32 = 8;
const MAX_FRAME_BYTES: usize = 16_384;

/// Its connection.
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
    /// How many streams were answered or reset.
    pub streams: usize,
    /// The connection has ended.
    pub ended: bool,
}

impl FramePeer {
    /// A TCP connection on which nothing was sent.
    pub async fn connect(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).await.expect("it listens");
        let (reader, writing) = stream.into_split();
        let received = Arc::<Mutex<Received>>::default();
        let reading = tokio::spawn(read(reader, Arc::clone(&received)));
        Self {
            writing,
            received,
            reading,
        }
    }

    /// A connection on which the preface and empty settings were sent.
    pub async fn with_preface(server: SocketAddr) -> Self {
        let mut peer = Self::connect(server).await;
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let preface = [&preface[..], &frame(SETTINGS, 0, 0, &[])].concat();
        peer.send(&preface).await.expect("it listens");
        peer
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
    while let Ok((kind, flags, payload)) = read_frame(&mut reader).await {
        let mut received = received.lock().expect("what was received");
        match kind {
            SETTINGS if flags == 0 => received.settings = settings(&payload),
            HEADERS | RST_STREAM => received.streams += 1,
            _ => {}
        }
    }
    received.lock().expect("what was received").ended = true;
}

async fn read_frame(reader: &mut OwnedReadHalf) -> io::Result<(u8, u8, Vec<u8>)> {
    let mut head = [0; 9];
    reader.read_exact(&mut head).await?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    reader.read_exact(&mut payload).await?;
    Ok((head[3], head[4], payload))
}

fn settings(payload: &[u8]) -> Vec<(u16, u32)> {
    let each = payload.as_chunks::<6>().0.iter();
    each.map(|[a, b, c, d, e, f]| {
        (
            u16::from_be_bytes([*a, *b]),
            u32::from_be_bytes([*c, *d, *e, *f]),
        )
    })
    .collect()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a length");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The number of the n-th stream that a client opens.
pub fn stream(n: u32) -> u32 {
    2 * n + 1
}

pub fn data(stream: u32, payload: &[u8]) -> Vec<u8> {
    frame(DATA, 0, stream, payload)
}

pub fn last_data(stream: u32, payload: &[u8]) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, payload)
}

pub fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

/// HEADERS that begin a call at this path, none of them indexed. CONTINUATION has what exceeds a
/// frame.
pub fn call(stream: u32, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", path),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("x-account-id", "flood"),
    ];
    let mut block = Vec::new();
    for (name, value) in headers.iter().chain(more) {
        block.push(0);
        for text in [name, value] {
            add_length(&mut block, text.len());
            block.extend(text.as_bytes());
        }
    }
    let mut pieces = block.chunks(MAX_FRAME_BYTES).peekable();
    let mut bytes = Vec::new();
    let mut kind = HEADERS;
    while let Some(piece) = pieces.next() {
        let flags = pieces.peek().map_or(END_HEADERS, |_| 0);
        bytes.extend(frame(kind, flags, stream, piece));
        kind = CONTINUATION;
    }
    bytes
}

/// The length of a string in HPACK, with a prefix of 7 bits.
fn add_length(block: &mut Vec<u8>, length: usize) {
    if length < 127 {
        return block.push(length as u8);
    }
    block.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        block.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    block.push(rest as u8);
}
