//! Peers that send nothing, next to nothing, or far too much, and a normal client
//! among them.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    normal_client::{ClientReport, median_alone},
    prelude::*,
};

const CREATE: &str = "StepService/CreateStep";
/// The size that a message claims, and what the server allows.
const CLAIM: usize = 64 * 1024 * 1024;

/// When the server may refuse calls of the normal client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusals {
    Never,
    /// The flood has as many calls under way as the server allows.
    WhileFull,
}

/// Runs a flood for a while, with a normal client beside it. The flood must end by
/// itself at the moment that it is given.
async fn withstand(
    database: TestDatabase,
    refusals: Refusals,
    flood: impl AsyncFnOnce(SocketAddr, Instant),
) {
    let service = database.serve();
    let alone = short_or_full(Duration::ZERO, Duration::from_secs(10));
    let alone = median_alone(&service, alone).await;
    let client = NormalClient::start(&service).await;
    let time = short_or_full(Duration::from_secs(1), Duration::from_secs(30));
    let flooded = flood(service.address(), Instant::now() + time);
    tokio::join!(flooded, client.is_served(20));
    let ClientReport { median, refused } = client.end().await;
    service.print(&format!(
        "a call takes {alone:?} alone, {median:?} in the flood, {refused} refused; {}",
        service.memory()
    ));
    service.stayed_within(200 * MIB);
    assert!(refusals == Refusals::WhileFull || refused == 0, "{refused}");
    if is_full() {
        assert!(median <= alone * 2, "{median:?} instead of {alone:?}");
    }
}

/// Runs so many peers in parallel, each of which ends by itself.
async fn in_parallel<F>(peers: usize, peer: impl Fn(usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let all: JoinSet<()> = (0..peers).map(peer).collect();
    all.join_all().await;
}

#[apply(measured_on_one_database)]
async fn a_thousand_silent_and_slow_peers_disturb_nobody(database: TestDatabase) {
    withstand(database, Refusals::Never, async |server, end| {
        in_parallel(1000, |n| async move {
            match n % 3 {
                0 => drop((FramePeer::connect(server).await, sleep_until(end).await)),
                1 => drop((
                    FramePeer::with_preface(server).await,
                    sleep_until(end).await,
                )),
                _ => {
                    let peer = FramePeer::with_preface(server).await;
                    peer.send_slowly(Duration::from_secs(1), CLAIM, end).await;
                }
            }
        })
        .await;
    })
    .await;
}

/// The bytes of a flood, in batches of streams. They are made once for all peers:
/// making them takes longer than sending them, and must not slow the server down.
struct Batches {
    streams: u32,
    of_stream: fn(u32) -> Vec<u8>,
    made: [OnceLock<Vec<u8>>; 256],
}

impl Batches {
    fn of(streams: u32, of_stream: fn(u32) -> Vec<u8>) -> Arc<Self> {
        Arc::new(Self {
            streams,
            of_stream,
            made: [const { OnceLock::new() }; 256],
        })
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.made.iter().zip(0..).map(|(made, n)| {
            let batch = || {
                let streams = n * self.streams..(n + 1) * self.streams;
                let of_stream = |n| (self.of_stream)(frames::stream(n));
                streams.flat_map(of_stream).collect()
            };
            made.get_or_init(batch).as_slice()
        })
    }
}

/// Sends the batches again and again, over a new connection when all are sent or the
/// server has closed the one before.
async fn flood(server: SocketAddr, end: Instant, batches: Arc<Batches>) {
    while Instant::now() < end {
        let mut peer = FramePeer::with_preface(server).await;
        for batch in batches.iter() {
            let sent = peer.send(batch).await;
            let closed = peer.received().goaway.is_some() || peer.received().ended;
            if sent.is_err() || closed || Instant::now() >= end {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

#[apply(measured_on_one_database)]
async fn streams_that_are_reset_at_once_disturb_nobody(database: TestDatabase) {
    withstand(database, Refusals::Never, async |server, end| {
        let batches = Batches::of(1000, |stream| {
            let call = frames::call(stream, CREATE, &[]);
            [call, frames::reset(stream)].concat()
        });
        in_parallel(8, |_| flood(server, end, Arc::clone(&batches))).await;
    })
    .await;
}

#[apply(measured_on_one_database)]
async fn floods_of_tiny_frames_disturb_nobody(database: TestDatabase) {
    withstand(database, Refusals::Never, async |server, end| {
        let batches = [
            Batches::of(1, |stream| tiny_frames(stream, b"x")),
            Batches::of(1, |stream| tiny_frames(stream, b"")),
        ];
        in_parallel(8, |n| flood(server, end, Arc::clone(&batches[n % 2]))).await;
    })
    .await;
}

fn tiny_frames(stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = frames::call(stream, CREATE, &[]);
    bytes.extend(frames::data(stream, &prefix(0, CLAIM)));
    for _ in 0..2000 {
        bytes.extend(frames::data(stream, payload));
    }
    bytes
}

#[apply(measured_on_one_database)]
async fn lengths_that_are_claimed_and_never_sent_take_no_memory(database: TestDatabase) {
    withstand(database, Refusals::WhileFull, async |server, end| {
        in_parallel(8, |_| async move {
            let mut peer = FramePeer::with_preface(server).await;
            for n in 0..250 {
                let stream = frames::stream(n);
                let call = frames::call(stream, CREATE, &[]);
                let claim = frames::data(stream, &prefix(0, CLAIM));
                peer.send(&[call, claim].concat())
                    .await
                    .expect("the server reads");
            }
            sleep_until(end).await;
            assert!(!peer.received().ended, "the server waits for the messages");
        })
        .await;
    })
    .await;
}

#[apply(measured_on_one_database)]
async fn floods_of_pings_and_settings_disturb_nobody(database: TestDatabase) {
    withstand(database, Refusals::Never, async |server, end| {
        let batches = [
            Batches::of(200, |_| frames::frame(frames::PING, 0, 0, &[7; 8])),
            Batches::of(200, |_| frames::frame(frames::SETTINGS, 0, 0, &[])),
        ];
        in_parallel(8, |n| flood(server, end, Arc::clone(&batches[n % 2]))).await;
    })
    .await;
}
