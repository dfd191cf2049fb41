//! The limits of a connection, and the responses beyond them.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::time::sleep;

use super::prelude::*;
use crate::frame_peer;

const STREAMS: u32 = 100;
const GET: &str = "/expertise.v1.StepService/GetStep";
const CREATE: &str = "/expertise.v1.StepService/CreateStep";

/// Asks for a step that is not there.
fn unknown_step() -> Bytes {
    framed(&GetStepRequest {
        guid: unknown_guid(),
    })
}

/// Asks for a step that is not there, with these headers.
async fn get(connection: &Http2Connection, headers: &[(&str, &str)]) -> Http2Response {
    let headers = [&[("x-account-id", "limits")], headers].concat();
    let response = connection.try_call("StepService/GetStep", &headers, unknown_step());
    response.await.expect("a response")
}

/// Asserts that a call of another account is served on a connection.
async fn is_served(connection: &Http2Connection) {
    let answer = get(connection, &[]).await;
    answer.is(Code::NotFound, "STEP_NOT_FOUND");
}

#[apply(on_one_database)]
async fn settings_tell_the_limits_to_every_client(database: TestDatabase) {
    let service = database.serve();
    let peer = FramePeer::with_preface(service.address()).await;
    until_true("settings", || !peer.received().settings.is_empty()).await;
    let settings = peer.received().settings.clone();
    let of = |kind| settings.iter().find(|(k, _)| *k == kind).map(|(_, n)| *n);
    // Streams, window of a stream, bytes of headers.
    assert_eq!(of(3), Some(STREAMS));
    assert_eq!(of(4), Some(1024 * 1024));
    assert_eq!(of(6), Some(40 * 1024));
}

#[apply(on_one_database)]
async fn headers_that_are_not_even_read_have_a_response_of_http_alone(database: TestDatabase) {
    let service = database.serve();
    let connection = service.connect().await;
    let far_too_long = "x".repeat(60_000);
    let answer = get(&connection, &[("x-long", &far_too_long)]).await;
    assert_eq!(answer.http, 431);
    is_served(&connection).await;
}

/// Callers with short deadlines may reset all their streams together.
#[apply(on_one_database)]
async fn streams_reset_together_keep_the_connection(database: TestDatabase) {
    let service = database.serve();
    let mut peer = FramePeer::with_preface(service.address()).await;
    let resets = (0..STREAMS).flat_map(begun_and_reset);
    let later = frame_peer::stream(STREAMS);
    let call = frame_peer::call(later, GET, &[]);
    let message = frame_peer::last_data(later, &unknown_step());
    let bytes: Vec<u8> = resets.chain(call).chain(message).collect();
    peer.send(&bytes).await.expect("the server reads");
    until_true("a later call is answered", || peer.received().streams > 0).await;
    assert!(!peer.received().ended);
}

#[apply(on_one_database)]
async fn streams_reset_before_they_are_seen_end_the_connection(database: TestDatabase) {
    let service = database.serve();
    let mut peer = FramePeer::with_preface(service.address()).await;
    for batch in 0..1_000 {
        let streams = batch * 1_000..(batch + 1) * 1_000;
        let resets: Vec<u8> = streams.flat_map(begun_and_reset).collect();
        if peer.send(&resets).await.is_err() {
            break;
        }
    }
    until_true("it ends", || peer.received().ended).await;
    is_served(&service.connect().await).await;
}

/// The n-th stream of a client, which is reset at once.
fn begun_and_reset(n: u32) -> Vec<u8> {
    let stream = frame_peer::stream(n);
    [
        frame_peer::call(stream, GET, &[]),
        frame_peer::reset(stream),
    ]
    .concat()
}

#[apply(on_one_database)]
async fn peers_that_send_byte_by_byte_disturb_nobody(database: TestDatabase) {
    let service = database.serve();
    let address = service.address();
    let end = Instant::now() + short_or_full(Duration::from_secs(2), Duration::from_secs(30));
    let slow = (0..100).map(|_| async move {
        let mut peer = FramePeer::with_preface(address).await;
        let message = [prefix(0, 1_000_000), vec![0; 16_000]].concat();
        let call = frame_peer::call(1, CREATE, &[]);
        for byte in [call, frame_peer::data(1, &message)].concat() {
            if Instant::now() > end || peer.send(&[byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
    });
    let client = async {
        let connection = service.connect().await;
        while Instant::now() < end {
            is_served(&connection).await;
        }
    };
    tokio::join!(join_all(slow), client);
    service.stayed_within(200 * MIB);
}

#[apply(on_one_database)]
async fn lengths_that_are_claimed_and_never_sent_take_no_memory(database: TestDatabase) {
    let service = database.serve();
    let mut peers = Vec::new();
    for _ in 0..8 {
        let mut peer = FramePeer::with_preface(service.address()).await;
        for stream in (0..STREAMS).map(frame_peer::stream) {
            let call = frame_peer::call(stream, CREATE, &[]);
            let claim = frame_peer::data(stream, &prefix(0, 64 * 1024 * 1024));
            let begun = [call, claim].concat();
            peer.send(&begun).await.expect("the server reads");
        }
        peers.push(peer);
    }
    let connection = service.connect().await;
    until("a call is served", async || {
        let status = get(&connection, &[]).await.status();
        if status.code() != Code::NotFound {
            is_overloaded(&status);
            return None;
        }
        Some(())
    })
    .await;
    let waits = peers.iter().all(|peer| !peer.received().ended);
    assert!(waits, "the server waits for the messages");
    service.stayed_within(200 * MIB);
}

#[apply(on_one_database)]
async fn connections_that_send_nothing_are_closed(database: TestDatabase) {
    let service = database.serve();
    let mut silent = Vec::new();
    for _ in 0..500 {
        silent.push(FramePeer::connect(service.address()).await);
    }
    is_served(&service.connect().await).await;
    let closed = || silent.iter().all(|peer| peer.received().ended);
    until_true("they are closed", closed).await;
    service.stayed_within(60 * MIB);
}

#[apply(measured_on_one_database)]
async fn streams_without_end_take_no_memory(database: TestDatabase) {
    let service = database.serve_with(&[("EXPERTISE_REQUEST_TIMEOUT", "5s")]);
    let before = service.process().resident_peak();
    let padding = "x".repeat(250_000);
    let padded: &[(&str, &str)] = &[("x-pad", &padding)];
    let body = [&prefix(0, 60_000)[..], &vec![0; 59_000]].concat();
    let check = "/grpc.health.v1.Health/Check";
    let reflect = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let streams = 250;
    for (method, headers, data) in [
        (check, padded, &[][..]),
        (check, &[], &body[..]),
        (check, &[], &[]),
        (reflect, padded, &[]),
        (reflect, &[], &body),
        (reflect, &[], &[]),
    ] {
        let mut peers = Vec::new();
        for _ in 0..short_or_full(4, 20) {
            let mut peer = FramePeer::with_preface(service.address()).await;
            for stream in (0..streams).map(frame_peer::stream) {
                let mut bytes = frame_peer::call(stream, method, headers);
                for piece in data.chunks(16_000) {
                    bytes.extend(frame_peer::data(stream, piece));
                }
                // The server may have closed the connection.
                let _ = peer.send(&bytes).await;
            }
            peers.push(peer);
        }
        for peer in &peers {
            until_true("the streams end", || {
                let received = peer.received();
                received.streams >= streams as usize || received.ended
            })
            .await;
        }
        service.print(&format!("{method}: {}", service.memory()));
        let grown = service.process().resident_peak() - before;
        assert!(grown < 100 * MIB, "{method}: {} MiB", grown / MIB);
    }
}
