//! Memory under large messages: bounded while they come, and given back after.

use std::time::Duration;

use bytes::Bytes;
use expertise::proto::v1::*;
use tokio::task::JoinSet;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::harness::{
    prelude::*,
    wire::{Answer, Call, framed},
};

on_both_databases![
    large_writes_at_once_stay_within_memory,
    large_reads_at_once_stay_within_memory,
];

/// What is written at once, and what it may take.
struct Load {
    clients: usize,
    bytes: usize,
    /// A server for large messages in small numbers, so that some are refused.
    settings: &'static [(&'static str, &'static str)],
    peak: u64,
    after: u64,
}

fn load() -> Load {
    short_or_full(
        Load {
            clients: 48,
            bytes: 2_000_000,
            settings: &[("EXPERTISE_MAX_INFLIGHT_BYTES", "25165824")],
            peak: 200 * MIB,
            after: 150 * MIB,
        },
        Load {
            clients: 64,
            bytes: 16_000_000,
            settings: &[],
            peak: 700 * MIB,
            after: 200 * MIB,
        },
    )
}

/// A body that no compression of a database makes small.
fn body(bytes: usize) -> String {
    let mut seed = 1_u64;
    let mut letter = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        b'a' + (seed >> 33) as u8 % 26
    };
    let letters = (0..bytes).map(|_| letter()).collect();
    String::from_utf8(letters).expect("letters")
}

async fn large_writes_at_once_stay_within_memory(place: Place) {
    let load = load();
    let service = place.serve_with(load.settings);
    let world = service.world();
    let task = world.given_task(task("Large")).await;
    let body = body(load.bytes);
    let step = Step {
        body: Some(body.clone()),
        ..note(&task, "Large")
    };
    let request = framed(&CreateStepRequest {
        step: Some(step),
        ..CreateStepRequest::default()
    });
    service.note(&format!("at first: {}", service.memory()));

    let mut made = Vec::new();
    for _ in 0..short_or_full(2, 3) {
        let written = write_at_once(&service, world.account(), &load, &request).await;
        service.note(&format!("{} of {}", written.len(), load.clients));
        assert!(!written.is_empty(), "nothing was written");
        made.extend(written);
    }
    let peak = service.memory();
    let took = service.sinks_below(load.after, Duration::from_secs(30));
    let took = took.await;
    service.note(&format!("{peak}; after {took:?}: {}", service.memory()));
    service.stayed_within(load.peak);

    let listed = world.order_of(&task.guid).await;
    assert!(listed.len() == made.len() && made.iter().all(|guid| listed.contains(guid)));
    for guid in made {
        let read = world.get_step(&guid).await.accepted();
        assert!(read.body.as_deref() == Some(&*body), "as read");
    }
}

/// Writes over as many connections; the steps that were made.
async fn write_at_once(
    service: &Service,
    account: &str,
    load: &Load,
    request: &Bytes,
) -> Vec<String> {
    let mut writing = JoinSet::new();
    for _ in 0..load.clients {
        let connection = service.connect().await;
        let (account, request) = (account.to_owned(), request.clone());
        writing.spawn(async move {
            let call = Call {
                method: "StepService/CreateStep",
                account: &account,
                headers: &[],
            };
            connection.call(call, request).await.expect("an answer")
        });
    }
    let answers = writing.join_all().await;
    let done = answers.into_iter().filter(was_done);
    let made = done.filter_map(|answer| answer.message::<CreateStepResponse>().step);
    made.map(|step| step.guid).collect()
}

/// Whether a call was done. Where it was not, the server must have had too much
/// at hand, and say so as it should.
fn was_done(answer: &Answer) -> bool {
    let done = answer.status.code() == Code::Ok;
    if !done {
        is_overloaded(&answer.status);
    }
    done
}

/// Asserts that a refusal tells the caller to come again.
#[track_caller]
pub fn is_overloaded(status: &Status) {
    Failure::from(status.clone()).is(Code::ResourceExhausted, "OVERLOADED");
    let retry = status.get_details_retry_info();
    assert!(retry.is_some_and(|info| info.retry_delay.is_some()));
}

/// Whether a read was answered. The database may be what has too much at hand.
fn read_now(answer: &Answer) -> bool {
    answer.status.code() != Code::Unavailable && was_done(answer)
}

async fn large_reads_at_once_stay_within_memory(place: Place) {
    let load = load();
    let service = place.serve_with(load.settings);
    let world = service.world();
    let task = world.given_task(task("Large")).await;
    let body = body(load.bytes);
    let step = Step {
        body: Some(body.clone()),
        ..note(&task, "Large")
    };
    let guid = world.given_step(step).await.guid;
    let request = framed(&GetStepRequest { guid });
    let mut reading = JoinSet::new();
    for _ in 0..load.clients {
        let connection = service.connect().await;
        let (account, request) = (world.account().to_owned(), request.clone());
        reading.spawn(async move {
            let call = Call {
                method: "StepService/GetStep",
                account: &account,
                headers: &[],
            };
            connection.call(call, request).await.expect("an answer")
        });
    }
    let mut read = 0;
    while let Some(answer) = reading.join_next().await {
        let answer = answer.expect("it ends");
        if read_now(&answer) {
            let step = answer.message::<GetStepResponse>().step.expect("a step");
            assert!(step.body.as_deref() == Some(&*body), "as read");
            read += 1;
        }
    }
    service.note(&format!("{read} were read; {}", service.memory()));
    assert!(read > 0, "nothing was read");
    service.stayed_within(load.peak);
    service
        .sinks_below(load.after, Duration::from_secs(30))
        .await;
}
