//! The limits of a connection, and the responses beyond them.

use super::prelude::*;
use crate::frame_peer;

const STREAMS: u32 = 100;
const GET: &str = "/expertise.v1.StepService/GetStep";
const CREATE: &str = "/expertise.v1.StepService/CreateStep";

/// Asks for a step that is not there, with these headers.
async fn get(service: &Service, headers: &[(&str, &str)]) -> Http2Response {
    let headers = [&[("x-account-id", "limits")], headers].concat();
    let request = framed(&GetStepRequest {
        guid: unknown_guid(),
    });
    let connection = service.connect().await;
    let response = connection.try_call("StepService/GetStep", &headers, request);
    response.await.expect("a response")
}

/// Waits until a call of another account is served.
async fn is_served(service: &Service) {
    until("a call is served", async || {
        let code = get(service, &[]).await.status().code();
        (code == Code::NotFound).then_some(())
    })
    .await;
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
    let far_too_long = "x".repeat(60_000);
    let answer = get(&service, &[("x-long", &far_too_long)]).await;
    assert_eq!(answer.http, 431);
}

#[apply(on_one_database)]
async fn a_message_in_tiny_frames_is_refused_before_its_end(database: TestDatabase) {
    let service = database.serve();
    for payload in [&b"x"[..], b""] {
        let mut peer = FramePeer::with_preface(service.address()).await;
        let mut bytes = frame_peer::call(1, GET, &[]);
        bytes.extend(frame_peer::data(1, &prefix(0, 1_000_000)));
        for _ in 0..2000 {
            bytes.extend(frame_peer::data(1, payload));
        }
        // The server may close the connection before all are sent.
        let _ = peer.send(&bytes).await;
        let answered = || peer.received().streams > 0 || peer.received().ended;
        until_true("it is answered", answered).await;
    }
    // It was not the deadline that ended them.
    let log = service.process().log();
    assert!(!log.contains("DEADLINE_EXCEEDED"), "{log}");
    is_served(&service).await;
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
    is_served(&service).await;
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
    is_served(&service).await;
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
