//! Writes that share a transaction on SQLite, or contend for a task's row on
//! PostgreSQL: each has its own result, and a failing one does not affect the others.

use std::{collections::BTreeSet, time::Instant};

use crate::kit::{deadline::WAIT_TIMEOUT, prelude::*};
use tokio::task::JoinSet;
use tonic::Status;

const WRITES: usize = 48;

/// The result of a concurrent write: the id of its step, or the error's code.
type WriteResult = Result<String, Code>;

async fn write_concurrently<F>(
    client: &Client,
    write: impl Fn(Client, usize) -> F + Clone + Send + 'static,
) -> Vec<WriteResult>
where
    F: Future<Output = WriteResult> + Send + 'static,
{
    let mut writes = JoinSet::new();
    for number in 0..WRITES {
        let (client, write) = (client.over_new_connection(), write.clone());
        writes.spawn(async move {
            let started = Instant::now();
            loop {
                let result = write(client.clone(), number).await;
                // On a busy machine a write may find no connection in time. Nothing of it
                // was done, and it may be repeated.
                if result != Err(Code::Unavailable) {
                    return result;
                }
                assert!(started.elapsed() < WAIT_TIMEOUT, "it is always refused");
            }
        });
    }
    writes.join_all().await
}

fn write_result(response: Result<CreateStepResponse, Status>) -> WriteResult {
    match response {
        Ok(response) => Ok(response.step.expect("a step").guid),
        Err(status) => Err(status.code()),
    }
}

#[apply(on_both_databases)]
async fn failing_writes_do_not_affect_others(client: Client) {
    let task = client.given_task(task("Busy")).await;
    let other = client.given_task(sample_of_another_product()).await;
    let missing = task_of(&unknown_guid());
    let sent = task.clone();
    let results = write_concurrently(&client, move |client, number| {
        let step = match number % 4 {
            // One is refused before the database is read, one after.
            0 => information_step(&missing, "nowhere"),
            1 => subtask(&sent, &other).with_subtask_pid(999_999),
            2 => subtask(&sent, &other),
            _ => information_step(&sent, "there"),
        };
        async move { write_result(client.create_step(step).await) }
    })
    .await;
    let codes = |code| {
        results
            .iter()
            .filter(|results| **results == Err(code))
            .count()
    };
    assert_eq!(codes(Code::NotFound), WRITES / 4);
    assert_eq!(codes(Code::InvalidArgument), WRITES / 4);
    let made: BTreeSet<String> = results.into_iter().flatten().collect();
    assert_eq!(made.len(), WRITES / 2);
    let order = client.step_order(&task.guid).await;
    assert_eq!(order.len(), made.len());
    assert_eq!(order.into_iter().collect::<BTreeSet<_>>(), made);
}

fn sample_of_another_product() -> Task {
    task("Other").with_product(8)
}

#[apply(on_both_databases)]
async fn a_dry_run_among_writes_leaves_nothing(client: Client) {
    let task = client.given_task(task("Busy")).await;
    let sent = task.clone();
    let results = write_concurrently(&client, move |client, number| {
        let request = CreateStepRequest {
            step: Some(information_step(&sent, "there")),
            validate_only: number % 2 == 0,
            ..CreateStepRequest::default()
        };
        async move { write_result(client.send_create_step(request).await) }
    })
    .await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let order: BTreeSet<String> = client.step_order(&task.guid).await.into_iter().collect();
    assert_eq!(order.len(), WRITES / 2);
    let stored = results
        .into_iter()
        .flatten()
        .filter(|guid| order.contains(guid));
    assert_eq!(stored.count(), WRITES / 2);
}

#[apply(on_both_databases)]
async fn concurrent_updates_and_appends_lose_nothing(client: Client) {
    let task = client.given_task(task("Busy")).await;
    let step = client.given_step(information_step(&task, "one")).await;
    let sent = (task.clone(), step.guid.clone());
    let results = write_concurrently(&client, move |client, number| {
        let (task, step) = sent.clone();
        async move {
            if number % 2 == 0 {
                return write_result(client.create_step(information_step(&task, "another")).await);
            }
            let language = format!("de-x-{number}");
            let mut update = step_of(&step);
            update.tags = vec![number.to_string()];
            update.title = format!("title {number}");
            let row = StepTranslation {
                title: Some(language.clone()),
                ..StepTranslation::default()
            };
            update.translations.insert(language, row);
            let mask = if number % 4 == 1 { &["title"][..] } else { &[] };
            let updated = client.update_step(update, mask).await;
            updated.map_err(|status| status.code())?;
            Ok(step)
        }
    })
    .await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(client.step_order(&task.guid).await.len(), 1 + WRITES / 2);
    let step = client.get_step(&step.guid).await.accepted();
    // Each update without a mask has added its own row.
    assert_eq!(step.translations.len(), WRITES / 4);
}

#[apply(on_both_databases)]
async fn an_appended_step_follows_every_place_ever_given_out(client: Client) {
    let task = client.given_task(task("Guide")).await;
    client.given_steps(&task, &["a", "b"]).await;
    let (full, last) = client.nearly_full(&task).await;
    let mut order = full.steps;
    let behind = order.iter().position(|step| *step == last).expect("it");
    for at in [order.len() - 1]
        .into_iter()
        .chain(std::iter::repeat_n(behind, INSERTS_UNTIL_RENUMBERED))
    {
        let made = client
            .create_step_after(information_step(&task, "between"), &order[at])
            .await;
        order.insert(at + 1, made.accepted().step.expect("a step").guid);
    }
    let appended = client.given_step(information_step(&task, "last")).await;
    order.push(appended.guid.clone());
    assert_eq!(client.step_order(&task.guid).await, order);
    // The next step is the last one, whether or not the deleted step's place is reused.
    client.delete_step(&appended.guid).await.accepted();
    order.pop();
    order.push(
        client
            .given_step(information_step(&task, "again"))
            .await
            .guid,
    );
    assert_eq!(client.step_order(&task.guid).await, order);
}

#[apply(on_both_databases)]
async fn an_appended_step_follows_the_last_step_of_an_import(client: Client) {
    let task = client
        .imported(document("Guide", document_steps(&["a", "b", "c"])))
        .await;
    let first = client.given_step(information_step(&task, "d")).await;
    let mut exported = client.exported(&task.guid).await;
    exported.steps.reverse();
    exported.steps.extend(document_steps(&["e", "f"]));
    client.imported(exported).await;
    client.given_step(information_step(&task, "g")).await;
    assert_eq!(first.title, "d");
    let titles = client.step_titles(&task.guid).await;
    assert_eq!(titles, ["d", "c", "b", "a", "e", "f", "g"]);
}
