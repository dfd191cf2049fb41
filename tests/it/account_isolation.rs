//! An account sees its own resources alone: those of others answer as if they did not
//! exist.

mod accounts;
mod equal_guids;
mod every_field;
mod reference_fields;
mod response;

use crate::kit::prelude::*;

#[apply(on_both_databases)]
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
