//! The index of names has no rows of tasks and steps that are deleted.

use crate::kit::{
    prelude::*, store_server, stored_sizes::name_uses_are_those_of_stored_tasks_and_steps,
};

const ACCOUNT: &str = "deletions";

on_own_databases![name_uses_are_deleted_with_their_tasks_and_steps];

fn condition() -> DependencyGroup {
    all_of(vec![when("pump", "=", "on"), when("valve", "=", "off")])
}

fn reading(step: Step) -> Step {
    Step {
        dependencies: Some(condition()),
        ..step
    }
}

/// By the step alone, by an import and with the task, which has conditions of its own.
async fn name_uses_are_deleted_with_their_tasks_and_steps(url: String) {
    let store = store_server::open(&url, 2).await;
    let client = store_server::serve_store(store, ACCOUNT).await;
    let new = task("Guide").with_dependencies(condition());
    let guide = client.given_task(new).await;
    let mut steps = Vec::new();
    for title in ["first", "second", "third"] {
        let step = reading(information_step(&guide, title));
        steps.push(client.given_step(step).await);
    }
    client.delete_step(&steps[0].guid).await.accepted();
    name_uses_are_those_of_stored_tasks_and_steps(&url, ACCOUNT).await;
    let kept = document_of(&guide.guid, vec![steps[1].clone()]);
    let import = client.import_with(AbsentSteps::Delete, kept).await;
    import.accepted();
    name_uses_are_those_of_stored_tasks_and_steps(&url, ACCOUNT).await;
    client.force_delete_task(&guide.guid).await.accepted();
    name_uses_are_those_of_stored_tasks_and_steps(&url, ACCOUNT).await;
}
