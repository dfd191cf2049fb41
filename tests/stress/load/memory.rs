//! Memory for large messages: bounded while they arrive, and released afterwards.

use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;

use super::prelude::*;
use crate::http2::Response;

on_both_databases![measuring:
    large_writes_at_once_stay_within_memory,
    large_reads_at_once_stay_within_memory,
];

/// How much is sent at once, and how much memory it may take.
struct Amounts {
    clients: usize,
    bytes: usize,
    /// A server for large messages in small numbers, so that some are refused.
    settings: &'static [(&'static str, &'static str)],
    peak: u64,
    after: u64,
}

fn amounts() -> Amounts {
    short_or_full(
        Amounts {
            clients: 48,
            bytes: 2_000_000,
            settings: &[
                ("EXPERTISE_MAX_INFLIGHT_BYTES", "25165824"),
                ("EXPERTISE_MAX_MESSAGE_BYTES", "25165824"),
            ],
            peak: 200 * MIB,
            after: 150 * MIB,
        },
        Amounts {
            clients: 64,
            bytes: 16_000_000,
            settings: &[],
            peak: 700 * MIB,
            after: 200 * MIB,
        },
    )
}

/// A body that a database cannot compress much.
fn body(bytes: usize) -> String {
    let mut seed = 1_u64;
    let mut letter = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        b'a' + (seed >> 33) as u8 % 26
    };
    let letters = (0..bytes).map(|_| letter()).collect();
    String::from_utf8(letters).expect("letters")
}

async fn large_writes_at_once_stay_within_memory(database: TestDatabase) {
    let amounts = amounts();
    let service = database.serve_with(amounts.settings);
    let client = service.client();
    let task = client.given_task(task("Large")).await;
    let body = body(amounts.bytes);
    let step = Step {
        body: Some(body.clone()),
        ..information_step(&task, "Large")
    };
    let request = framed(&CreateStepRequest {
        step: Some(step),
        ..CreateStepRequest::default()
    });
    service.print(&format!("before: {}", service.memory()));

    let mut made = Vec::new();
    for _ in 0..short_or_full(2, 3) {
        let method = "StepService/CreateStep";
        let account = client.account();
        let writing = call_in_parallel(&service, amounts.clients, account, method, &request);
        let responses = writing.await.join_all().await.into_iter();
        let steps = responses
            .filter(was_done)
            .filter_map(|response| response.message::<CreateStepResponse>().step);
        let written: Vec<String> = steps.map(|step| step.guid).collect();
        service.print(&format!("{} of {}", written.len(), amounts.clients));
        assert!(!written.is_empty(), "nothing was written");
        made.extend(written);
    }
    let peak = service.memory();
    let took = service.sinks_below(amounts.after, Duration::from_secs(30));
    let took = took.await;
    service.print(&format!("{peak}; after {took:?}: {}", service.memory()));
    service.stayed_within(amounts.peak);

    let listed = client.step_order(&task.guid).await;
    assert!(listed.len() == made.len() && made.iter().all(|guid| listed.contains(guid)));
    for guid in made {
        let read = client.get_step(&guid).await.accepted();
        assert!(read.body.as_deref() == Some(&*body), "as read");
    }
}

/// Calls a method in parallel, each client over a connection of its own.
async fn call_in_parallel(
    service: &Service,
    clients: usize,
    account: &str,
    method: &'static str,
    request: &Bytes,
) -> JoinSet<Response> {
    let mut calling = JoinSet::new();
    for _ in 0..clients {
        let connection = service.connect().await;
        let (account, request) = (account.to_owned(), request.clone());
        calling.spawn(async move {
            let call = Call {
                method,
                account: &account,
                headers: &[],
            };
            connection.call(call, request).await.expect("a response")
        });
    }
    calling
}

/// Whether a call was done; else it must have been refused as the server was full.
fn was_done(response: &Response) -> bool {
    let done = response.status.code() == Code::Ok;
    if !done {
        is_overloaded(&response.status);
    }
    done
}

/// Whether a read was done. The database may also be out of connections.
fn was_read(response: &Response) -> bool {
    response.status.code() != Code::Unavailable && was_done(response)
}

async fn large_reads_at_once_stay_within_memory(database: TestDatabase) {
    let amounts = amounts();
    let service = database.serve_with(amounts.settings);
    let client = service.client();
    let task = client.given_task(task("Large")).await;
    let body = body(amounts.bytes);
    let step = Step {
        body: Some(body.clone()),
        ..information_step(&task, "Large")
    };
    let guid = client.given_step(step).await.guid;
    let request = framed(&GetStepRequest { guid });
    let method = "StepService/GetStep";
    let reading = call_in_parallel(
        &service,
        amounts.clients,
        client.account(),
        method,
        &request,
    );
    let mut reading = reading.await;
    let mut read = 0;
    while let Some(response) = reading.join_next().await {
        let response = response.expect("the call ends");
        if was_read(&response) {
            let step = response.message::<GetStepResponse>().step.expect("a step");
            assert!(step.body.as_deref() == Some(&*body), "as read");
            read += 1;
        }
    }
    service.print(&format!("{read} were read; {}", service.memory()));
    assert!(read > 0, "nothing was read");
    service.stayed_within(amounts.peak);
    service
        .sinks_below(amounts.after, Duration::from_secs(30))
        .await;
}
