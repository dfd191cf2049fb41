//! Responses that clients never read.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::prelude::*;

const CONNECTIONS: usize = 4;

#[apply(on_both_databases)]
async fn responses_that_are_never_read_are_dropped(database: TestDatabase) {
    let (bytes, calls) = short_or_full((2_000_000, 25), (16_000_000, 100));
    let service = database.serve_with(&[
        ("EXPERTISE_REQUEST_TIMEOUT", short_or_full("5s", "30s")),
        (
            "EXPERTISE_MAX_INFLIGHT_BYTES",
            short_or_full("67108864", "268435456"),
        ),
        ("EXPERTISE_MAX_MESSAGE_BYTES", "67108864"),
    ]);
    let client = service.client();
    let task = client.given_task(task("Large")).await;
    let step = information_step(&task, "Large").with_body("x".repeat(bytes));
    let guid = client.given_step(step).await.guid;
    let request = framed(&GetStepRequest { guid: guid.clone() });
    let mut calling = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let connection = Http2Connection::with_window(service.address(), 65_535).await;
        for _ in 0..calls {
            let connection = connection.clone();
            let (account, request) = (client.account().to_owned(), request.clone());
            calling.spawn(async move {
                let headers = [("x-account-id", account.as_str())];
                let call = connection.begin_call("StepService/GetStep", &headers, request);
                (call.await, connection)
            });
        }
    }
    // The responses stay open and are never read.
    let held = calling.join_all().await;
    service.print(&format!("{} responses; {}", held.len(), service.memory()));
    service.stayed_within(short_or_full(200, 700) * MIB);
    // They do not block other calls forever.
    let started = Instant::now();
    let read = loop {
        match client.get_step(&guid).await {
            Ok(step) => break step,
            Err(status) => assert!(started.elapsed() < WAIT_TIMEOUT, "{status:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(read.body.map(|body| body.len()), Some(bytes));
    service.print(&format!(
        "{:?} later: {}",
        started.elapsed(),
        service.memory()
    ));
    // Nor do their connections stay open.
    let headers = [("x-account-id", client.account())];
    let request = framed(&ListRolesRequest::default());
    let is_unread = |response: &http::Response<_>| !response.headers().contains_key("grpc-status");
    let unread = held
        .iter()
        .filter(|(response, _)| response.as_ref().is_ok_and(is_unread));
    let mut closed = 0;
    for (_, connection) in unread {
        let list = || connection.try_call("RoleService/ListRoles", &headers, request.clone());
        let end = async {
            while list().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        in_time("the end of the connection", end).await;
        closed += 1;
    }
    assert!(closed > 0, "no response was unread");
}
