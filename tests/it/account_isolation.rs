//! An account sees its own resources alone: those of others answer as if they did not
//! exist.

mod accounts;
mod equal_guids;
mod every_field;
mod reference_fields;
mod response;

use crate::kit::prelude::*;
use tonic::Status;

on_both_databases![
    a_foreign_task_answers_like_one_that_does_not_exist,
    a_foreign_step_answers_like_one_that_does_not_exist,
    a_foreign_task_in_a_new_step_answers_like_one_that_does_not_exist,
    a_foreign_subtask_answers_like_one_that_does_not_exist,
    a_foreign_role_answers_like_one_that_does_not_exist,
    a_foreign_prevstep_is_unknown,
    lists_hold_the_accounts_own_resources,
    a_rename_stays_within_its_account,
    scopes_do_not_open_other_accounts,
];

/// A task with a step in an account of its own.
async fn foreign(client: &Client) -> (Task, Step) {
    let other = client.other_account();
    let task = other.given_task(task("Theirs")).await;
    let step = other.given_step(information_step(&task, "theirs")).await;
    (task, step)
}

/// Asserts that the two errors differ in the id of the request alone.
#[track_caller]
fn assert_equal_but_for_the_id<T: std::fmt::Debug>(
    [first, second]: [Result<T, Status>; 2],
    ids: [&str; 2],
) {
    let shown = |outcome: Result<T, Status>, id: &str| {
        let failure = outcome.refused();
        assert_eq!(failure.code, Code::NotFound, "{failure:?}");
        format!("{failure:?}").replace(id, "ID")
    };
    assert_eq!(shown(first, ids[0]), shown(second, ids[1]));
}

async fn a_foreign_task_answers_like_one_that_does_not_exist(client: Client) {
    let (task, _) = foreign(&client).await;
    let (theirs, none) = (task.guid.as_str(), &*unknown_guid());
    let update = |guid| task_of(guid).named("Mine");
    let list = |guid: &str| ListStepsRequest {
        task: guid.to_owned(),
        ..ListStepsRequest::default()
    };
    assert_equal_but_for_the_id(
        [client.get_task(theirs).await, client.get_task(none).await],
        [theirs, none],
    );
    assert_equal_but_for_the_id(
        [
            client.update_task(update(theirs), &[]).await,
            client.update_task(update(none), &[]).await,
        ],
        [theirs, none],
    );
    assert_equal_but_for_the_id(
        [
            client.delete_task(theirs).await,
            client.delete_task(none).await,
        ],
        [theirs, none],
    );
    assert_equal_but_for_the_id(
        [
            client.list_steps(list(theirs)).await,
            client.list_steps(list(none)).await,
        ],
        [theirs, none],
    );
}

async fn a_foreign_step_answers_like_one_that_does_not_exist(client: Client) {
    let (_, step) = foreign(&client).await;
    let (theirs, none) = (step.guid.as_str(), &*unknown_guid());
    let update = |guid| step_of(guid).titled("Mine");
    assert_equal_but_for_the_id(
        [client.get_step(theirs).await, client.get_step(none).await],
        [theirs, none],
    );
    assert_equal_but_for_the_id(
        [
            client.update_step(update(theirs), &[]).await,
            client.update_step(update(none), &[]).await,
        ],
        [theirs, none],
    );
    assert_equal_but_for_the_id(
        [
            client.delete_step(theirs).await,
            client.delete_step(none).await,
        ],
        [theirs, none],
    );
}

async fn a_foreign_task_in_a_new_step_answers_like_one_that_does_not_exist(client: Client) {
    let (theirs, _) = foreign(&client).await;
    let none = theirs.clone().with_guid(unknown_guid());
    let outcomes = [
        client.create_step(information_step(&theirs, "mine")).await,
        client.create_step(information_step(&none, "mine")).await,
    ];
    assert_equal_but_for_the_id(outcomes, [&theirs.guid, &none.guid]);
}

async fn a_foreign_subtask_answers_like_one_that_does_not_exist(client: Client) {
    let (theirs, _) = foreign(&client).await;
    let none = theirs.clone().with_guid(unknown_guid());
    let mine = client.given_task(task("Mine")).await;
    let outcomes = [
        client.create_step(subtask(&mine, &theirs)).await,
        client.create_step(subtask(&mine, &none)).await,
    ];
    assert_equal_but_for_the_id(outcomes, [&theirs.guid, &none.guid]);

    let step = client.given_step(subtask(&mine, &mine)).await;
    let update = |other: &Task| step_of(&step.guid).with_subtask_id(other.guid.clone());
    let outcomes = [
        client.update_step(update(&theirs), &[]).await,
        client.update_step(update(&none), &[]).await,
    ];
    assert_equal_but_for_the_id(outcomes, [&theirs.guid, &none.guid]);
}

async fn a_foreign_role_answers_like_one_that_does_not_exist(client: Client) {
    let other = client.other_account();
    let role = other.given_role("theirs").await;
    client
        .delete_role(role.id)
        .await
        .refused()
        .is_role_not_found(role.id);
    let listed = other.list_roles(0, "").await.accepted();
    assert_eq!(listed.roles, [role]);
}

async fn a_foreign_prevstep_is_unknown(client: Client) {
    let (_, theirs) = foreign(&client).await;
    let mine = client.given_task(task("Mine")).await;
    let created = client
        .create_step_after(information_step(&mine, "first"), &theirs.guid)
        .await;
    let placement = created.accepted().placement();
    assert_eq!(placement, Placement::AppendedPrevstepUnknown);
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

async fn scopes_do_not_open_other_accounts(client: Client) {
    let (task, _) = foreign(&client).await;
    let privileged = client.with_scopes("read write translate admin");
    let read = privileged.get_task(&task.guid).await;
    read.refused().is_task_not_found(&task.guid);
}
