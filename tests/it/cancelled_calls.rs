//! A call that its caller cancels takes effect completely or not at all.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::kit::prelude::*;
use tokio::task::JoinSet;

on_both_databases![
    a_cancelled_create_leaves_a_complete_step_or_none,
    acknowledged_writes_survive_cancellations_of_others,
    a_cancelled_rename_renames_everything_or_nothing,
    the_service_keeps_serving_after_many_cancellations,
];

/// Lets the call run for `moment` ticks of 150 µs, then drops it; 0 polls it once.
async fn cancel_after<T>(call: impl Future<Output = T>, moment: u64) -> Option<T> {
    let mut call = pin!(call);
    if moment == 0 {
        let mut context = Context::from_waker(Waker::noop());
        return match call.as_mut().poll(&mut context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        };
    }
    let limit = Duration::from_micros(moment * 150);
    tokio::time::timeout(limit, call).await.ok()
}

/// The task's order and its steps, read while the task's etag did not change. An unchanged
/// etag proves only that no step was added or removed between the reads.
async fn read_one_state(client: &Client, task: &str) -> (Vec<String>, Vec<Step>) {
    loop {
        let before = client.get_task(task).await.accepted();
        let steps = client.steps_of(task, 500).await;
        let after = client.get_task(task).await.accepted();
        if before.etag == after.etag {
            return (after.steps, steps);
        }
    }
}

fn translated_step(task: &Task) -> Step {
    let rows = ["de", "fr", "it"].map(|tag| (tag.to_owned(), step_translation(tag)));
    Step {
        translations: rows.into(),
        tags: vec!["whole".to_owned()],
        ..information_step(task, "whole")
    }
}

async fn a_cancelled_create_leaves_a_complete_step_or_none(client: Client) {
    let task = client.given_task(task("Abandoned")).await;
    let mut answered = BTreeSet::new();
    for moment in 0..60 {
        let call = client.create_step(translated_step(&task));
        if let Some(answer) = cancel_after(call, moment).await {
            answered.insert(answer.accepted().step.unwrap().guid);
        }
    }
    let (order, steps) = read_one_state(&client, &task.guid).await;
    let listed: Vec<&String> = steps.iter().map(|step| &step.guid).collect();
    assert_eq!(listed, order.iter().collect::<Vec<_>>());
    for step in &steps {
        assert_eq!(step.translations.len(), 3);
        assert_eq!(step.tags, ["whole"]);
    }
    assert!(answered.iter().all(|guid| order.contains(guid)));
}

async fn acknowledged_writes_survive_cancellations_of_others(client: Client) {
    let task = client.given_task(task("Crowded")).await;
    let mut callers = JoinSet::new();
    for caller in 0..16_u64 {
        let (client, task) = (client.over_new_connection(), task.clone());
        callers.spawn(async move {
            let mut answered = Vec::new();
            for round in 0..20_u64 {
                let call = client.create_step(information_step(&task, "answered"));
                let answer = if caller % 2 == 0 {
                    cancel_after(call, (caller + round) % 20).await
                } else {
                    Some(call.await)
                };
                let step = answer.map(|answer| answer.accepted().step.unwrap());
                answered.extend(step.map(|step| step.guid));
            }
            answered
        });
    }
    let answered = callers.join_all().await.concat();
    assert!(answered.len() >= 8 * 20);
    let order: BTreeSet<String> = client.step_order(&task.guid).await.into_iter().collect();
    for guid in answered {
        assert!(
            order.contains(&guid),
            "{guid} was answered and is not there"
        );
    }
}

async fn a_cancelled_rename_renames_everything_or_nothing(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let other = client.given_task(task("Name")).await;
    for _ in 0..3 {
        client.given_step(subtask(&guide, &other)).await;
    }
    for moment in 0..40 {
        let update = task_of(&other.guid).named(format!("Name {moment}"));
        let call = client.update_task(update, &["name"]);
        if let Some(answer) = cancel_after(call, moment).await {
            answer.accepted();
        }
        let (_, steps) = read_one_state(&client, &guide.guid).await;
        // One statement reads the list, so it sees all of a rename or nothing.
        assert!(steps.iter().all(|step| step.title == steps[0].title));
    }
    let update = task_of(&other.guid).named("Last");
    client.updated_task(update, &["name"]).await;
    let renamed = client.get_task(&other.guid).await.accepted().name;
    let (_, steps) = read_one_state(&client, &guide.guid).await;
    assert!(steps.iter().all(|step| step.title == renamed));
}

async fn the_service_keeps_serving_after_many_cancellations(client: Client) {
    let task = client.given_task(task("Left")).await;
    let mut callers = JoinSet::new();
    for caller in 0..32 {
        let (client, task) = (client.over_new_connection(), task.clone());
        callers.spawn(async move {
            for round in 0..10 {
                cancel_after(
                    client.create_step(information_step(&task, "left")),
                    (caller + round) % 8,
                )
                .await;
                cancel_after(client.get_task(&task.guid), round % 3).await;
            }
        });
    }
    callers.join_all().await;
    for _ in 0..40 {
        let step = client.given_step(information_step(&task, "after")).await;
        client.delete_step(&step.guid).await.accepted();
    }
}
