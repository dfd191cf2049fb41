//! Peers that say nothing, next to nothing, or far too much, and an honest client
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

use crate::harness::{honest::quiet_median, prelude::*, wire::prefix};

on_both_databases![
    a_thousand_silent_and_slow_peers_disturb_nobody,
    streams_that_are_reset_at_once_disturb_nobody,
    floods_of_tiny_frames_disturb_nobody,
    lengths_that_are_claimed_and_never_sent_take_no_memory,
    floods_of_pings_and_settings_disturb_nobody,
];

const CREATE: &str = "StepService/CreateStep";
/// The size that a message claims, and what the server allows.
const CLAIM: usize = 64 * 1024 * 1024;

/// Has peers do it for a while, with an honest client among them. They must end
/// by themselves at the moment that they are given.
async fn withstand(place: Place, flood: impl AsyncFnOnce(SocketAddr, Instant)) {
    let service = place.serve();
    let alone = short_or_full(Duration::ZERO, Duration::from_secs(10));
    let quiet = quiet_median(&service, alone).await;
    let honest = Honest::begin(&service).await;
    let time = short_or_full(Duration::from_secs(1), Duration::from_secs(30));
    let flooded = flood(service.process().address(), Instant::now() + time);
    tokio::join!(flooded, honest.is_served(20));
    let median = honest.end().await;
    service.note(&format!(
        "an honest call takes {quiet:?} alone, {median:?} among them; {}",
        service.memory()
    ));
    service.stayed_within(200 * MIB);
    if is_full() {
        assert!(median <= quiet * 2, "{median:?} instead of {quiet:?}");
    }
}

/// Runs so many peers at once, each of which ends by itself.
async fn at_once<F>(peers: usize, peer: impl Fn(usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let all: JoinSet<()> = (0..peers).map(peer).collect();
    all.join_all().await;
}

async fn a_thousand_silent_and_slow_peers_disturb_nobody(place: Place) {
    withstand(place, async |server, end| {
        at_once(1000, |n| async move {
            match n % 3 {
                0 => drop((Peer::connect(server).await, sleep_until(end).await)),
                1 => drop((Peer::greet(server).await, sleep_until(end).await)),
                _ => trickle(server, end).await,
            }
        })
        .await;
    })
    .await;
}

/// A message that arrives byte by byte, one a second.
async fn trickle(server: SocketAddr, end: Instant) {
    let mut peer = Peer::greet(server).await;
    let head = [
        frames::call(1, CREATE, &[]),
        frames::data(1, &prefix(false, CLAIM)),
    ]
    .concat();
    // The server may let it go at any time.
    let mut sent = peer.send(&head).await;
    while sent.is_ok() && Instant::now() < end {
        sleep(Duration::from_secs(1)).await;
        sent = peer.send(&frames::data(1, b"x")).await;
    }
}

/// What is sent over a connection, a batch of streams after the other. They are made
/// once, for all: to make one takes longer than to send it, and the work of those who
/// flood must not be what slows the others.
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
/// server has ended the one before.
async fn flood(server: SocketAddr, end: Instant, batches: Arc<Batches>) {
    while Instant::now() < end {
        let mut peer = Peer::greet(server).await;
        for batch in batches.iter() {
            let sent = peer.send(batch).await;
            let heard = peer.heard().goaway.is_some() || peer.heard().ended;
            if sent.is_err() || heard || Instant::now() >= end {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn streams_that_are_reset_at_once_disturb_nobody(place: Place) {
    withstand(place, async |server, end| {
        let batches = Batches::of(1000, |stream| {
            let call = frames::call(stream, CREATE, &[]);
            [call, frames::reset(stream)].concat()
        });
        at_once(8, |_| flood(server, end, Arc::clone(&batches))).await;
    })
    .await;
}

async fn floods_of_tiny_frames_disturb_nobody(place: Place) {
    withstand(place, async |server, end| {
        let batches = [
            Batches::of(1, |stream| tiny_frames(stream, b"x")),
            Batches::of(1, |stream| tiny_frames(stream, b"")),
        ];
        at_once(8, |n| flood(server, end, Arc::clone(&batches[n % 2]))).await;
    })
    .await;
}

fn tiny_frames(stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = frames::call(stream, CREATE, &[]);
    bytes.extend(frames::data(stream, &prefix(false, CLAIM)));
    for _ in 0..2000 {
        bytes.extend(frames::data(stream, payload));
    }
    bytes
}

async fn lengths_that_are_claimed_and_never_sent_take_no_memory(place: Place) {
    withstand(place, async |server, end| {
        at_once(8, |_| async move {
            let mut peer = Peer::greet(server).await;
            for n in 0..250 {
                let stream = frames::stream(n);
                let call = frames::call(stream, CREATE, &[]);
                let claim = frames::data(stream, &prefix(false, CLAIM));
                peer.send(&[call, claim].concat())
                    .await
                    .expect("it listens");
            }
            sleep_until(end).await;
            assert!(!peer.heard().ended, "it waits for the messages");
        })
        .await;
    })
    .await;
}

async fn floods_of_pings_and_settings_disturb_nobody(place: Place) {
    withstand(place, async |server, end| {
        let batches = [
            Batches::of(200, |_| frames::frame(frames::PING, 0, 0, &[7; 8])),
            Batches::of(200, |_| frames::frame(frames::SETTINGS, 0, 0, &[])),
        ];
        at_once(8, |n| flood(server, end, Arc::clone(&batches[n % 2]))).await;
    })
    .await;
}
