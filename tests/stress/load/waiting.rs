//! Calls that wait for changes.

use std::time::Duration;

use prost_types::Duration as ProtoDuration;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use super::prelude::*;
use crate::kit::server::http_get;

/// As many as wait at most, in all and of one account.
const ACCOUNTS: usize = 10;
const CALLS: usize = 100;
const PAUSE: Duration = Duration::from_millis(100);

fn changes_from_now() -> ListChangesRequest {
    changes_from(ChangeStart::Now)
}

/// One write to another task of each account at a time, and the processor time that each took.
async fn time_of_a_write(service: &Service, tasks: &[(Client, Task)], rounds: u32) -> Duration {
    let before = service.process().processor_time();
    // Slower than changes are gathered, so that each write wakes the calls.
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..rounds {
        ticks.tick().await;
        for (client, task) in tasks {
            client.given_step(information_step(task, "New")).await;
        }
    }
    let used = service.process().processor_time() - before;
    used / (rounds * u32::try_from(tasks.len()).unwrap())
}

#[apply(on_both_databases)]
async fn a_thousand_waiting_calls_cost_little(database: TestDatabase) {
    let service = database.serve_with(&[("EXPERTISE_METRICS_LISTEN", "127.0.0.1:0")]);
    let mut quiet = Vec::new();
    let mut busy = Vec::new();
    for _ in 0..ACCOUNTS {
        let client = service.client();
        quiet.push((client.clone(), client.given_task(task("Quiet")).await));
        let task = client.given_task(task("Busy")).await;
        busy.push((client, task));
    }
    let rounds = short_or_full(10, 50);
    let alone = time_of_a_write(&service, &busy, rounds).await;

    // The same reads without a wait, to exclude memory that the database keeps.
    for _ in 0..CALLS {
        for (client, task) in &quiet {
            let read = changes_from_now().with(|it| it.task = task.guid.clone());
            client.call(read).await.accepted();
        }
    }
    let before = service.process().resident();
    let mut waiting = JoinSet::new();
    for (client, task) in &quiet {
        let now = client.call(changes_from_now()).await;
        let cursor = now.accepted().next_cursor;
        let request = framed(&ListChangesRequest {
            cursor,
            task: task.guid.clone(),
            wait: Some(ProtoDuration {
                seconds: 60,
                nanos: 0,
            }),
            ..ListChangesRequest::default()
        });
        let connection = service.connect().await;
        for _ in 0..CALLS {
            let (connection, request) = (connection.clone(), request.clone());
            let account = client.account().to_owned();
            waiting.spawn(async move {
                let headers = [("x-account-id", account.as_str())];
                let method = "ChangeService/ListChanges";
                let call = connection.try_call(method, &headers, request);
                let response = call.await.expect("a response");
                response.message::<ListChangesResponse>().changes.len()
            });
        }
    }
    until("the calls wait", async || {
        let (_, text) = http_get(service.process().metrics_address(), "/metrics").await;
        let all = format!("\nexpertise_waiting_calls {}\n", ACCOUNTS * CALLS);
        text.contains(&all).then_some(())
    })
    .await;
    let more = service.process().resident().saturating_sub(before);
    let beside = time_of_a_write(&service, &busy, rounds).await;
    service.print(&format!(
        "1,000 calls wait: {} KiB more; a write takes {beside:?} of processor time, {alone:?} without them",
        more / 1024
    ));
    for (client, task) in &quiet {
        client.given_step(information_step(task, "Awaited")).await;
    }
    let changes = waiting.join_all().await;
    assert_eq!(changes, vec![1; ACCOUNTS * CALLS]);
    if is_full() {
        assert!(more <= 20 * MIB, "{} MiB", more / MIB);
        let cost = beside.saturating_sub(alone);
        assert!(cost <= Duration::from_millis(2), "{cost:?}");
    }
}
