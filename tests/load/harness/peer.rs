//! A peer that sends whatever bytes a test wants, and hears what comes back.

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

use super::frames;

/// A connection of its own.
pub struct Peer {
    writing: OwnedWriteHalf,
    heard: Arc<Mutex<Heard>>,
    reading: JoinHandle<()>,
}

/// What the server said.
#[derive(Debug, Default)]
pub struct Heard {
    /// Settings by their numbers.
    pub settings: Vec<(u16, u32)>,
    /// Streams that were answered.
    pub answered: Vec<u32>,
    /// Streams that were reset, and the error codes.
    pub resets: Vec<(u32, u32)>,
    /// The error code of GOAWAY.
    pub goaway: Option<u32>,
    /// Bytes of answers.
    pub data: usize,
    /// The connection has ended.
    pub ended: bool,
}

impl Peer {
    /// A TCP connection on which nothing was said.
    pub async fn connect(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).await.expect("it listens");
        stream.set_nodelay(true).expect("an option of TCP");
        let (reader, writing) = stream.into_split();
        let heard = Arc::<Mutex<Heard>>::default();
        let reading = tokio::spawn(listen(reader, Arc::clone(&heard)));
        Self {
            writing,
            heard,
            reading,
        }
    }

    /// A connection that has greeted.
    pub async fn greet(server: SocketAddr) -> Self {
        let mut peer = Self::connect(server).await;
        peer.send(&frames::greeting()).await.expect("it listens");
        peer
    }

    /// Sends bytes; an error when the server has ended the connection.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writing.write_all(bytes).await
    }

    /// What was heard so far.
    pub fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().expect("nobody panics with it")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

async fn listen(mut reader: OwnedReadHalf, heard: Arc<Mutex<Heard>>) {
    while let Ok((kind, flags, stream, payload)) = read_frame(&mut reader).await {
        let mut heard = heard.lock().expect("nobody panics with it");
        match kind {
            frames::SETTINGS if flags == 0 => heard.settings = settings(&payload),
            frames::HEADERS => heard.answered.push(stream),
            frames::DATA => heard.data += payload.len(),
            frames::RST_STREAM => heard.resets.push((stream, number(&payload))),
            frames::GOAWAY => heard.goaway = Some(number(&payload[4..])),
            _ => {}
        }
    }
    heard.lock().expect("nobody panics with it").ended = true;
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
