//! Paging while the list changes between two pages.

use crate::harness::prelude::*;

on_both_databases![
    steps_inserted_meanwhile_move_nothing_that_was_there,
    a_deleted_step_at_the_edge_of_a_page_loses_no_other,
    a_deleted_task_at_the_edge_of_a_page_loses_no_other,
    deleting_everything_ends_the_list,
];

async fn page_of(world: &World, task: &Task, token: &str) -> (Vec<String>, String) {
    let request = ListStepsRequest {
        task: task.guid.clone(),
        page_size: 2,
        page_token: token.to_owned(),
        expand: Vec::new(),
    };
    let listed = world.list_steps(request).await.accepted();
    let guids = listed.steps.into_iter().map(|step| step.guid).collect();
    (guids, listed.next_page_token)
}

async fn guide(world: &World) -> (Task, Vec<String>) {
    let task = world.given_task(task("Guide")).await;
    let steps = world.given_steps(&task, &["a", "b", "c", "d", "e"]).await;
    (task, steps)
}

async fn rest(world: &World, task: &Task, mut token: String) -> Vec<String> {
    let mut found = Vec::new();
    while !token.is_empty() {
        let (page, next) = page_of(world, task, &token).await;
        found.extend(page);
        token = next;
    }
    found
}

async fn steps_inserted_meanwhile_move_nothing_that_was_there(world: World) {
    let (task, steps) = guide(&world).await;
    let (mut found, token) = page_of(&world, &task, "").await;
    for prevstep in [&steps[0], &steps[1], &steps[3], &steps[4]] {
        let created = world.create_step_after(note(&task, "new"), prevstep).await;
        created.accepted();
    }
    found.extend(rest(&world, &task, token).await);
    found.retain(|guid| steps.contains(guid));
    assert_eq!(found, steps);
}

async fn a_deleted_step_at_the_edge_of_a_page_loses_no_other(world: World) {
    let (task, steps) = guide(&world).await;
    let (first, token) = page_of(&world, &task, "").await;
    assert_eq!(first, steps[..2]);
    for edge in [1, 0, 2] {
        world.delete_step(&steps[edge]).await.accepted();
    }
    assert_eq!(rest(&world, &task, token).await, steps[3..]);
}

async fn a_deleted_task_at_the_edge_of_a_page_loses_no_other(world: World) {
    let mut tasks = Vec::new();
    for n in 0..5 {
        tasks.push(world.given_task(task(&format!("task {n}"))).await);
    }
    let mut request = ListTasksRequest {
        page_size: 2,
        ..ListTasksRequest::default()
    };
    let first = world.list_tasks(request.clone()).await.accepted();
    assert_eq!(first.tasks, tasks[..2]);
    for edge in [1, 0, 2] {
        world.delete_task(&tasks[edge].guid).await.accepted();
    }
    request.page_token = first.next_page_token;
    let second = world.list_tasks(request).await.accepted();
    assert_eq!(second.tasks, tasks[3..]);
}

async fn deleting_everything_ends_the_list(world: World) {
    let (task, steps) = guide(&world).await;
    let (_, token) = page_of(&world, &task, "").await;
    for step in &steps {
        world.delete_step(step).await.accepted();
    }
    assert_eq!(rest(&world, &task, token).await, [""; 0]);
}
