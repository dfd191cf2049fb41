//! What would not fit into the largest message is not stored, and not read to be returned.

use crate::kit::{prelude::*, store_server, stored_sizes::stored_sizes_are_those_of_the_content};

/// The largest message that is stored here, in bytes.
const LIMIT: usize = 64 * 1024;
const ACCOUNT: &str = "limits";

on_own_databases![
    a_task_too_large_to_return_is_refused,
    a_task_takes_no_more_steps_than_it_can_be_returned_with,
    a_guide_too_large_to_export_is_read_step_by_step,
    stored_sizes_follow_renames_and_automatic_translations,
];

/// A client of a store with a small limit. Messages have the usual one, so that it is the
/// store that refuses.
async fn client(url: &str) -> Client {
    let store = store_server::open_with_limit(url, 2, LIMIT).await;
    store_server::serve_store(store, ACCOUNT).await
}

/// Conditions whose texts have so many bytes.
fn conditions_of(bytes: usize) -> DependencyGroup {
    let long = "x".repeat(1_000);
    all_of((0..bytes / 1_000).map(|_| when(&long, "=", "y")).collect())
}

async fn a_task_too_large_to_return_is_refused(url: String) {
    let client = client(&url).await;
    let too_large = || conditions_of(LIMIT - 5_000);
    let new = task("Large").with_dependencies(too_large());
    let failure = client.create_task(new).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(
        failure.message,
        "the task would be too large to return: more than 65536 bytes"
    );
    assert_eq!(client.all_tasks().await, []);
    let small = client.given_task(task("Small")).await;
    let update = task_of(&small.guid).with_dependencies(too_large());
    let failure = client.update_task(update, &[]).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(client.get_task(&small.guid).await.accepted(), small);
}

/// Whether a step is created without locks or, as a subtask step, under them.
async fn a_task_takes_no_more_steps_than_it_can_be_returned_with(url: String) {
    let client = client(&url).await;
    let full = task("Full").with_dependencies(conditions_of(LIMIT - 10_000));
    let task = client.given_task(full).await;
    let mut count = 0;
    let refused = loop {
        match client.create_step(information_step(&task, "Step")).await {
            Ok(_) => count += 1,
            Err(refused) => break Err::<(), _>(refused),
        }
        assert!(count < LIMIT / 38, "no step was refused");
    };
    let failure = refused.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    let refused = client.create_step(subtask(&task, &task)).await.refused();
    refused.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(client.step_order(&task.guid).await.len(), count);
}

async fn a_guide_too_large_to_export_is_read_step_by_step(url: String) {
    let client = client(&url).await;
    let task = client.given_task(task("Guide")).await;
    let body = "x".repeat(LIMIT / 4);
    for _ in 0..5 {
        let step = information_step(&task, "Step").with_body(&body);
        client.given_step(step).await;
    }
    let failure = client.export(&task.guid).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    for step in client.step_order(&task.guid).await {
        let step = client.get_step(&step).await.accepted();
        assert_eq!(step.body, Some(body.clone()));
    }
}

/// A rename changes subtask steps unread, and a translation changes sizes by a difference.
async fn stored_sizes_follow_renames_and_automatic_translations(url: String) {
    let client = client(&url).await;
    let guide = client.given_task(task("Guide")).await;
    let other = client.given_task(task("x")).await;
    client.given_step(subtask(&guide, &other)).await;
    let renamed = task_of(&other.guid).named("x".repeat(100));
    client.updated_task(renamed, &["name"]).await;
    let work = client.translation_work(&["fr", "de"]).await;
    let items = work.iter().map(|item| automatic(item, "un texte"));
    client.write_translations(items.collect()).await.accepted();
    let store = store_server::open(&url, 1).await;
    stored_sizes_are_those_of_the_content(&store, &url, ACCOUNT).await;
}
