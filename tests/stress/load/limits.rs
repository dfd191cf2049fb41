//! The limits of a connection, and the responses beyond them.

use bytes::Bytes;

use super::prelude::*;

const STREAMS: u32 = 100;
const GET: &str = "StepService/GetStep";

/// A request that the service refuses with NOT_FOUND.
fn unknown_step() -> Bytes {
    framed(&GetStepRequest {
        guid: unknown_guid(),
    })
}

/// Asks for a step that is not there, with these headers.
async fn get(
    connection: &Http2Connection,
    headers: &[(&str, &str)],
    message: Bytes,
) -> Http2Response {
    let headers = [&[("x-account-id", "limits")], headers].concat();
    let response = connection.try_call(GET, &headers, message).await;
    response.expect("a response")
}

/// Asserts that calls are served on a connection.
async fn is_served(connection: &Http2Connection) {
    let answer = get(connection, &[], unknown_step()).await;
    answer.is(Code::NotFound, "STEP_NOT_FOUND");
}

#[apply(on_one_database)]
async fn settings_tell_the_limits_to_every_client(database: TestDatabase) {
    let service = database.serve();
    let peer = FramePeer::with_preface(service.address()).await;
    until_true("settings", || !peer.received().settings.is_empty()).await;
    let settings = peer.received().settings.clone();
    let of = |kind| settings.iter().find(|(k, _)| *k == kind).map(|(_, n)| *n);
    // Streams, window of a stream, bytes of a frame, bytes of headers.
    assert_eq!(of(3), Some(STREAMS));
    assert_eq!(of(4), Some(1024 * 1024));
    assert_eq!(of(5).unwrap_or(16_384), 16_384);
    assert_eq!(of(6), Some(40 * 1024));
}

#[apply(on_one_database)]
async fn streams_beyond_the_limit_are_refused_and_the_others_go_on(database: TestDatabase) {
    const BEYOND: u32 = 44;
    let service = database.serve();
    let mut peer = FramePeer::with_preface(service.address()).await;
    for n in 0..STREAMS + BEYOND {
        let call = frames::call(frames::stream(n), GET, &[]);
        peer.send(&call).await.expect("the server reads");
    }
    let beyond = || peer.received().resets.len() == BEYOND as usize;
    until_true("streams are refused", beyond).await;
    let resets = peer.received().resets.clone();
    for (stream, code) in resets {
        assert!(stream >= frames::stream(STREAMS));
        assert_eq!(code, frames::REFUSED_STREAM);
    }
    // The others are answered once their messages are there.
    for n in 0..STREAMS {
        let stream = frames::stream(n);
        let message = frames::frame(frames::DATA, frames::END_STREAM, stream, &unknown_step());
        peer.send(&message).await.expect("the server reads");
    }
    let all = || peer.received().answered.len() == STREAMS as usize;
    until_true("every call is answered", all).await;
    assert_eq!(peer.received().goaway, None);
}

#[apply(on_one_database)]
async fn headers_that_are_not_even_read_have_a_response_of_http_alone(database: TestDatabase) {
    let service = database.serve();
    let connection = service.connect().await;
    let far_too_long = "x".repeat(60_000);
    let headers = [("x-long", far_too_long.as_str())];
    let answer = get(&connection, &headers, unknown_step()).await;
    assert_eq!(answer.http, 431);
    is_served(&connection).await;
}

#[apply(on_one_database)]
async fn headers_without_end_end_the_connection(database: TestDatabase) {
    let service = database.serve();
    let mut peer = FramePeer::with_preface(service.address()).await;
    let begun = frames::frame(frames::HEADERS, 0, 1, &frames::header_block(GET, &[]));
    peer.send(&begun).await.expect("the server reads");
    // A literal header that claims to be longer than anything that is sent.
    let mut more = vec![0, 1, b'x'];
    more.extend([127, 255, 255, 255, 127]);
    more.resize(16_384, b'x');
    let mut sent = 0;
    while peer
        .send(&frames::frame(frames::CONTINUATION, 0, 1, &more))
        .await
        .is_ok()
    {
        sent += more.len() as u64;
        assert!(sent < 64 * MIB, "the server reads everything");
        more.fill(b'x');
    }
    until_true("it ends", || peer.received().ended).await;
    is_served(&service.connect().await).await;
    service.stayed_within(200 * MIB);
}

#[apply(on_one_database)]
async fn a_frame_that_is_too_large_ends_the_connection(database: TestDatabase) {
    let service = database.serve();
    let mut peer = FramePeer::with_preface(service.address()).await;
    let call = frames::call(1, GET, &[]);
    let data = frames::data(1, &[0; 16_385]);
    peer.send(&[call, data].concat())
        .await
        .expect("the server reads");
    until_true("it ends", || peer.received().ended).await;
    assert_eq!(peer.received().goaway, Some(frames::FRAME_SIZE_ERROR));
    is_served(&service.connect().await).await;
}

#[apply(on_one_database)]
async fn streams_reset_before_they_are_seen_end_the_connection(database: TestDatabase) {
    let service = database.serve();
    let mut peer = FramePeer::with_preface(service.address()).await;
    let mut next = 0;
    while peer.received().goaway.is_none() {
        let batch = next..next + 1000;
        next = batch.end;
        let batch = batch.flat_map(|n| {
            let stream = frames::stream(n);
            [frames::call(stream, GET, &[]), frames::reset(stream)].concat()
        });
        let batch: Vec<u8> = batch.collect();
        let sent = peer.send(&batch).await;
        assert!(next < 1_000_000, "the server reads everything");
        if sent.is_err() {
            break;
        }
    }
    until_true("it ends", || peer.received().ended).await;
    // A reset of TCP may lose the frame before it.
    let goaway = peer.received().goaway;
    assert!([None, Some(frames::ENHANCE_YOUR_CALM)].contains(&goaway));
    is_served(&service.connect().await).await;
}

#[apply(on_one_database)]
async fn a_message_in_tiny_frames_is_refused_before_its_end(database: TestDatabase) {
    let service = database.serve();
    for payload in [&b"x"[..], b""] {
        let mut peer = FramePeer::with_preface(service.address()).await;
        let mut bytes = frames::call(1, GET, &[]);
        bytes.extend(frames::data(1, &prefix(0, 1_000_000)));
        for _ in 0..2000 {
            bytes.extend(frames::data(1, payload));
        }
        // The server may close the connection before all are sent.
        let _ = peer.send(&bytes).await;
        let answered = || !peer.received().answered.is_empty() || peer.received().ended;
        until_true("it is answered", answered).await;
    }
    // It was not the deadline that ended them.
    let log = service.process().log();
    assert!(!log.contains("DEADLINE_EXCEEDED"), "{log}");
    is_served(&service.connect().await).await;
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
