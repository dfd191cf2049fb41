//! Paging over the steps of a task while all of them get new places.

use crate::{kit::sample, prelude::*};

async fn page_of(
    client: &Client,
    task: &Task,
    token: &str,
) -> Result<ListStepsResponse, tonic::Status> {
    let request = ListStepsRequest {
        task: task.guid.clone(),
        page_size: 2,
        page_token: token.to_owned(),
        expand: Vec::new(),
    };
    client.call(request).await
}

/// A task of five steps with a small gap after its first step, where many others were inserted.
/// Returns the last of these.
async fn nearly_full_task(client: &Client) -> (Task, String) {
    let task = client.given_task(task("Nearly full")).await;
    client.given_steps(&task, &["a", "b", "c", "d", "e"]).await;
    client.nearly_full(&task).await
}

/// Inserts steps after a step until a renumbering invalidates the token.
async fn insert_until_refused(client: &Client, task: &Task, behind: &str, token: &str) {
    for _ in 0..INSERTS_UNTIL_RENUMBERED {
        let step = information_step(task, "inserted");
        client.create_step_after(step, behind).await.accepted();
        if let Err(refused) = page_of(client, task, token).await {
            let failure = Err::<(), _>(refused).refused();
            failure.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
            return;
        }
    }
    panic!("the token is still accepted");
}

/// The steps in pages, from the start.
async fn in_pages(client: &Client, task: &Task) -> Vec<String> {
    let steps = client.steps_of(&task.guid, 100).await;
    steps.into_iter().map(|step| step.guid).collect()
}

#[apply(on_both_databases)]
async fn a_token_from_before_a_new_numbering_is_refused(client: Client) {
    let (task, last) = nearly_full_task(&client).await;
    let token = page_of(&client, &task, "").await.accepted().next_page_token;
    insert_until_refused(&client, &task, &last, &token).await;
    let order = client.step_order(&task.guid).await;
    let kept: Vec<&String> = order
        .iter()
        .filter(|step| task.steps.contains(step))
        .collect();
    assert_eq!(kept, task.steps.iter().collect::<Vec<_>>());
    assert_eq!(in_pages(&client, &task).await, order);
}

#[apply(on_both_databases)]
async fn steps_are_appended_behind_all_others_after_a_new_numbering(client: Client) {
    let (task, last) = nearly_full_task(&client).await;
    let token = page_of(&client, &task, "").await.accepted().next_page_token;
    insert_until_refused(&client, &task, &last, &token).await;
    let before = client.step_order(&task.guid).await;
    let other = client.given_task(sample::task("Other")).await;
    let appended = client.given_step(information_step(&task, "appended")).await;
    let subtask = client.given_step(subtask(&task, &other)).await;
    let expected = [before, vec![appended.guid, subtask.guid]].concat();
    assert_eq!(client.step_order(&task.guid).await, expected);
    assert_eq!(in_pages(&client, &task).await, expected);
}

#[apply(on_both_databases)]
async fn a_token_from_before_an_import_that_reorders_is_refused(client: Client) {
    let task = client.given_task(task("Reordered")).await;
    client.given_steps(&task, &["a", "b", "c", "d", "e"]).await;
    for _ in 0..2 {
        let token = page_of(&client, &task, "").await.accepted().next_page_token;
        let mut document = client.exported(&task.guid).await;
        document.steps.reverse();
        let reordered = client.imported(document).await;
        let failure = page_of(&client, &task, &token).await.refused();
        failure.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
        assert_eq!(in_pages(&client, &task).await, reordered.steps);
    }
}

/// Its page would be empty.
#[apply(on_both_databases)]
async fn a_token_behind_all_renumbered_steps_is_refused(client: Client) {
    let task = client.given_task(task("Reordered")).await;
    let steps = client.given_steps(&task, &["a", "b", "c", "d", "e"]).await;
    let first = page_of(&client, &task, "").await.accepted();
    let second = page_of(&client, &task, &first.next_page_token).await;
    let token = second.accepted().next_page_token;
    let reversed = document_of(&task.guid, vec![step_of(&steps[1]), step_of(&steps[0])]);
    let imported = client.import_with(AbsentSteps::Delete, reversed).await;
    imported.accepted();
    let failure = page_of(&client, &task, &token).await.refused();
    failure.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
}

#[apply(on_both_databases)]
async fn a_token_outlives_an_import_that_keeps_the_order(client: Client) {
    let task = client.given_task(task("Kept")).await;
    let steps = client.given_steps(&task, &["a", "b", "c", "d"]).await;
    let token = page_of(&client, &task, "").await.accepted().next_page_token;
    let mut document = client.exported(&task.guid).await;
    document.steps.splice(1..1, document_steps(&["new"]));
    client.imported(document).await;
    let rest = page_of(&client, &task, &token).await.accepted().steps;
    let rest: Vec<&String> = rest.iter().map(|step| &step.guid).collect();
    assert_eq!(rest, [&steps[2], &steps[3]]);
}
