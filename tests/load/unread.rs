//! Answers that are asked for and never taken.

use std::time::{Duration, Instant};

use expertise::proto::v1::*;
use tokio::task::JoinSet;

use crate::harness::{
    prelude::*,
    wire::{Call, framed},
};

on_both_databases![answers_that_nobody_takes_are_let_go];

const CONNECTIONS: usize = 4;

async fn answers_that_nobody_takes_are_let_go(place: Place) {
    let (bytes, calls) = short_or_full((2_000_000, 25), (16_000_000, 100));
    let service = place.serve_with(&[
        ("EXPERTISE_REQUEST_TIMEOUT", short_or_full("5s", "30s")),
        (
            "EXPERTISE_MAX_INFLIGHT_BYTES",
            short_or_full("67108864", "268435456"),
        ),
    ]);
    let world = service.world();
    let task = world.given_task(task("Large")).await;
    let step = Step {
        body: Some("x".repeat(bytes)),
        ..note(&task, "Large")
    };
    let guid = world.given_step(step).await.guid;
    let request = framed(&GetStepRequest { guid: guid.clone() });
    let mut asking = JoinSet::new();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let address = service.process().address();
        let connection = Connection::with_window(address, 65_535).await;
        for _ in 0..calls {
            let call = connection.clone();
            let (account, request) = (world.account().to_owned(), request.clone());
            asking.spawn(async move {
                let call_of = Call {
                    method: "StepService/GetStep",
                    account: &account,
                    headers: &[],
                };
                call.begin(call_of, request).await
            });
        }
        connections.push(connection);
    }
    // Held, and never read.
    let held = asking.join_all().await;
    service.note(&format!("{} answers; {}", held.len(), service.memory()));
    service.stayed_within(short_or_full(200, 700) * MIB);
    // They do not stand in the way of others for ever.
    let begun = Instant::now();
    let read = loop {
        match world.get_step(&guid).await {
            Ok(step) => break step,
            Err(status) => assert!(begun.elapsed() < BOUND, "{status:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(read.body.map(|body| body.len()), Some(bytes));
    service.note(&format!(
        "{:?} later: {}",
        begun.elapsed(),
        service.memory()
    ));
    drop((held, connections));
}
