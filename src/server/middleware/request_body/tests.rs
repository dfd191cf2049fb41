#![allow(clippy::expect_used, clippy::indexing_slicing)]

use futures_util::stream;
use http_body_util::StreamBody;
use tonic::Code;
use tonic_types::StatusExt;

use super::{super::admission::RejectedCalls, *};

fn message(bytes: usize) -> Vec<u8> {
    let length = u32::try_from(bytes).expect("a length");
    let content = (0..bytes).map(|n| (n % 251) as u8);
    [0].into_iter()
        .chain(length.to_be_bytes())
        .chain(content)
        .collect()
}

fn frames(bytes: &[u8], each: usize) -> VecDeque<Bytes> {
    bytes.chunks(each).map(Bytes::copy_from_slice).collect()
}

async fn take(frames: VecDeque<Bytes>, breaks: bool) -> Result<(Vec<u8>, usize), Status> {
    let frames = frames.into_iter().map(|data| Ok(Frame::data(data)));
    let reset = breaks.then(|| Err(Status::unknown("reset")));
    let body = Body::new(StreamBody::new(stream::iter(frames.chain(reset))));
    let budget = MemoryBudget::new(2_000_000, &RejectedCalls::default());
    let account = AccountId::parse("42").expect("an account");
    let received = ReceivedBody::default();
    let message = receive(body, &received, &budget, &account, 3_000_000).await?;
    let mut bytes = Vec::new();
    let mut reader = message.body.message();
    let content = reader.copy_to_bytes(reader.remaining());
    drop(reader);
    let mut body = Body::new(message.body);
    while let Some(frame) = next_frame(&mut body).await {
        bytes.extend_from_slice(&frame.expect("data").into_data().expect("data"));
    }
    assert_eq!(content, bytes[PREFIX_BYTES.min(bytes.len())..]);
    Ok((bytes, message.bytes))
}

fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    info.map(|info| info.reason).unwrap_or_default()
}

#[tokio::test]
async fn a_message_arrives_complete_however_it_is_framed() {
    for bytes in [0, 1, 100, 5_000, 1_500_000] {
        let sent = message(bytes);
        for each in [3, 4, 5, 6, 4096, 2_000_000] {
            if sent.len() / each > MAX_SPARE_FRAMES {
                continue;
            }
            let (taken, counted) = take(frames(&sent, each), false)
                .await
                .expect("a complete message");
            assert!(taken == sent && counted == sent.len(), "{bytes} by {each}");
        }
    }
}

#[tokio::test]
async fn a_request_that_breaks_off_never_starts() {
    let refused = take(frames(&message(100), 20), true).await;
    assert_eq!(refused.expect_err("it broke off").code(), Code::Unknown);
}

#[tokio::test]
async fn a_flood_of_tiny_or_empty_frames_is_refused() {
    let sent = message(2000);
    let mut empty = frames(&sent, 4096);
    empty.extend(std::iter::repeat_n(Bytes::new(), MAX_SPARE_FRAMES + 100));
    for flood in [frames(&sent, 1), empty] {
        let refused = take(flood, false).await.expect_err("a flood");
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn a_message_beyond_the_whole_budget_is_too_large() {
    let refused = take(frames(&message(2_500_000), 16_384), false).await;
    let refused = refused.expect_err("it is too large");
    assert_eq!(reason(&refused), "MESSAGE_TOO_LARGE");
}

#[tokio::test]
async fn a_message_of_wrong_framing_is_refused() {
    let mut compressed = message(100);
    compressed[0] = 1;
    let cut = &message(100)[..50];
    for (sent, right) in [
        (&compressed[..], "FIELD_INVALID"),
        (&message(3_500_000)[..PREFIX_BYTES], "MESSAGE_TOO_LARGE"),
        (&cut[..PREFIX_BYTES - 1], "FIELD_INVALID"),
        (cut, "FIELD_INVALID"),
        (&[], "FIELD_INVALID"),
    ] {
        for each in [3, 16_384] {
            let refused = take(frames(sent, each), false).await;
            assert_eq!(reason(&refused.expect_err("a refusal")), right, "by {each}");
        }
    }
}
