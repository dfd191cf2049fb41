//! The place of a new step, and the order of a task's steps.

use crate::kit::prelude::*;

on_both_databases![
    omitted_prevstep_appends,
    prevstep_inserts_right_after_it,
    prevstep_that_is_last_appends_but_says_after,
    unknown_prevstep_appends_and_says_so,
    prevstep_of_another_task_appends_and_says_so,
    prevstep_of_another_task_appends_a_subtask_step_and_says_so,
    deleted_prevstep_appends_and_says_so,
    upper_case_prevstep_is_the_same_step,
    malformed_prevstep_is_refused_and_creates_nothing,
    each_task_has_an_order_of_its_own,
    updating_a_step_keeps_its_place,
];

async fn task_with_steps(client: &Client, titles: &[&str]) -> (Task, Vec<String>) {
    let task = client.given_task(task("Ordered")).await;
    let steps = client.given_steps(&task, titles).await;
    (task, steps)
}

/// Creates a step after `prevstep`; its id and its placement.
async fn create_after(client: &Client, task: &Task, prevstep: &str) -> (String, Placement) {
    let created = client
        .create_step_after(information_step(task, "new"), prevstep)
        .await;
    let created = created.accepted();
    let placement = created.placement();
    (created.step.expect("the step").guid, placement)
}

async fn omitted_prevstep_appends(client: Client) {
    let (task, steps) = task_with_steps(&client, &["a", "b"]).await;
    let (new, placement) = create_after(&client, &task, "").await;
    assert_eq!(placement, Placement::Appended);
    let order = client.step_order(&task.guid).await;
    assert_eq!(order, [steps[0].clone(), steps[1].clone(), new]);
}

async fn prevstep_inserts_right_after_it(client: Client) {
    let (task, steps) = task_with_steps(&client, &["a", "b"]).await;
    let (new, placement) = create_after(&client, &task, &steps[0]).await;
    assert_eq!(placement, Placement::AfterPrevstep);
    let order = client.step_order(&task.guid).await;
    assert_eq!(order, [steps[0].clone(), new, steps[1].clone()]);
}

async fn prevstep_that_is_last_appends_but_says_after(client: Client) {
    let (task, steps) = task_with_steps(&client, &["a"]).await;
    let (new, placement) = create_after(&client, &task, &steps[0]).await;
    assert_eq!(placement, Placement::AfterPrevstep);
    let order = client.step_order(&task.guid).await;
    assert_eq!(order, [steps[0].clone(), new]);
}

async fn assert_appended_as_unknown(
    client: &Client,
    task: &Task,
    steps: &[String],
    prevstep: &str,
) {
    let (new, placement) = create_after(client, task, prevstep).await;
    assert_eq!(placement, Placement::AppendedPrevstepUnknown);
    let order = client.step_order(&task.guid).await;
    assert_eq!(order, [steps, &[new]].concat());
}

async fn unknown_prevstep_appends_and_says_so(client: Client) {
    let (task, steps) = task_with_steps(&client, &["a", "b"]).await;
    assert_appended_as_unknown(&client, &task, &steps, &unknown_guid()).await;
}

async fn prevstep_of_another_task_appends_and_says_so(client: Client) {
    let (task, steps) = task_with_steps(&client, &["a", "b"]).await;
    let (_, others) = task_with_steps(&client, &["c"]).await;
    assert_appended_as_unknown(&client, &task, &steps, &others[0]).await;
}

/// A subtask step is created under locks, any other without.
async fn prevstep_of_another_task_appends_a_subtask_step_and_says_so(client: Client) {
    let (task, steps) = task_with_steps(&client, &["a", "b"]).await;
    let (other, others) = task_with_steps(&client, &["c"]).await;
    let created = client
        .create_step_after(subtask(&task, &other), &others[0])
        .await;
    let created = created.accepted();
    assert_eq!(created.placement(), Placement::AppendedPrevstepUnknown);
    let new = created.step.expect("the step").guid;
    let order = client.step_order(&task.guid).await;
    assert_eq!(order, [steps, vec![new]].concat());
}

async fn deleted_prevstep_appends_and_says_so(client: Client) {
    let (task, mut steps) = task_with_steps(&client, &["a", "b", "c"]).await;
    let deleted = steps.remove(1);
    client.delete_step(&deleted).await.accepted();
    assert_appended_as_unknown(&client, &task, &steps, &deleted).await;
}

async fn upper_case_prevstep_is_the_same_step(client: Client) {
    let (task, steps) = task_with_steps(&client, &["a", "b"]).await;
    let (new, placement) = create_after(&client, &task, &steps[0].to_uppercase()).await;
    assert_eq!(placement, Placement::AfterPrevstep);
    assert_eq!(client.step_order(&task.guid).await[1], new);
}

async fn malformed_prevstep_is_refused_and_creates_nothing(client: Client) {
    let (task, steps) = task_with_steps(&client, &["a"]).await;
    let created = client
        .create_step_after(information_step(&task, "b"), "first")
        .await;
    created.refused().violates(&[("prevstep", "FIELD_INVALID")]);
    assert_eq!(client.step_order(&task.guid).await, steps);
}

async fn each_task_has_an_order_of_its_own(client: Client) {
    let (first, first_steps) = task_with_steps(&client, &["a"]).await;
    let (second, second_steps) = task_with_steps(&client, &["b", "c"]).await;
    let (new, _) = create_after(&client, &first, &first_steps[0]).await;
    let order = client.step_order(&first.guid).await;
    assert_eq!(order, [first_steps[0].clone(), new]);
    assert_eq!(client.step_order(&second.guid).await, second_steps);
}

async fn updating_a_step_keeps_its_place(client: Client) {
    let (task, steps) = task_with_steps(&client, &["a", "b", "c"]).await;
    let renamed = step_of(&steps[0]).titled("renamed");
    client.updated_step(renamed, &["title"]).await;
    assert_eq!(client.step_order(&task.guid).await, steps);
}
