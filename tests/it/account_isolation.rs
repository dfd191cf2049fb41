//! An account sees its own resources alone: those of others answer as if they did not
//! exist.

mod accounts;
mod equal_guids;
mod every_field;
mod reference_fields;
mod response;

use crate::kit::prelude::*;

on_both_databases![
    lists_hold_the_accounts_own_resources,
    a_rename_stays_within_its_account,
];

/// A task with a step in an account of its own.
async fn foreign(client: &Client) -> (Task, Step) {
    let other = client.other_account();
    let task = other.given_task(task("Theirs")).await;
    let step = other.given_step(information_step(&task, "theirs")).await;
    (task, step)
}

async fn lists_hold_the_accounts_own_resources(client: Client) {
    foreign(&client).await;
    client.other_account().given_role("theirs").await;
    let mine = client.given_task(task("Mine")).await;
    let role = client.given_role("mine").await;
    let tasks = client.list_tasks(ListTasksRequest::default()).await;
    assert_eq!(tasks.accepted().tasks, [mine]);
    let roles = client.list_roles(0, "").await;
    assert_eq!(roles.accepted().roles, [role]);
}

async fn a_rename_stays_within_its_account(client: Client) {
    let other = client.other_account();
    let theirs = other.given_task(task("Theirs")).await;
    let step = other.given_step(subtask(&theirs, &theirs)).await;
    let mine = client.given_task(task("Theirs")).await;
    let update = task_of(&mine.guid).named("Mine");
    client.updated_task(update, &[]).await;
    assert_eq!(other.get_task(&theirs.guid).await.accepted().name, "Theirs");
    assert_eq!(other.get_step(&step.guid).await.accepted(), step);
}
