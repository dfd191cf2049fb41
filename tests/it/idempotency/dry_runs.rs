//! `validate_only`: everything is checked and nothing is stored.

use crate::kit::prelude::*;

on_both_databases![
    a_dry_create_shows_the_task_and_stores_nothing,
    a_dry_create_shows_the_step_and_its_place_and_stores_nothing,
    a_dry_update_shows_the_task_and_stores_nothing,
    a_dry_update_shows_the_step_and_stores_nothing,
    a_dry_rename_renames_no_step,
    a_dry_run_checks_fields,
    a_dry_run_checks_references,
    a_dry_run_checks_the_etag,
    a_dry_run_does_not_use_up_its_request_id,
    a_dry_run_lists_what_it_ignores,
    the_etag_of_a_dry_run_matches_no_later_write,
];

fn dry_task(task: Task) -> CreateTaskRequest {
    CreateTaskRequest {
        task: Some(task),
        validate_only: true,
        ..CreateTaskRequest::default()
    }
}

fn dry_step(step: Step) -> CreateStepRequest {
    CreateStepRequest {
        step: Some(step),
        validate_only: true,
        ..CreateStepRequest::default()
    }
}

fn dry_update(task: Task) -> UpdateTaskRequest {
    UpdateTaskRequest {
        task: Some(task),
        update_mask: None,
        validate_only: true,
    }
}

async fn a_dry_create_shows_the_task_and_stores_nothing(client: Client) {
    let dry_run = client.tasks().create_task(dry_task(full_task())).await;
    let dry_run = dry_run.accepted().into_inner().task.unwrap();
    assert_eq!(dry_run.name, full_task().name);
    assert_eq!(dry_run.roles, full_task().roles);
    let read = client.get_task(&dry_run.guid).await;
    read.refused().is_task_not_found(&dry_run.guid);
    let listed = client.list_tasks(ListTasksRequest::default()).await;
    assert_eq!(listed.accepted().tasks, []);
}

async fn a_dry_create_shows_the_step_and_its_place_and_stores_nothing(client: Client) {
    let created = client.given_task(task("Guide")).await;
    let steps = client.given_steps(&created, &["a", "b"]).await;
    let before = client.get_task(&created.guid).await.accepted();
    let request = CreateStepRequest {
        prevstep: steps[0].clone(),
        ..dry_step(full_step(&created))
    };
    let response = client.steps().create_step(request).await;
    let response = response.accepted().into_inner();
    assert_eq!(response.placement(), Placement::AfterPrevstep);
    let dry_run = response.step.unwrap();
    assert_eq!(dry_run.title, full_step(&created).title);
    let read = client.get_step(&dry_run.guid).await;
    read.refused().is_step_not_found(&dry_run.guid);
    assert_eq!(client.get_task(&created.guid).await.accepted(), before);
}

async fn a_dry_update_shows_the_task_and_stores_nothing(client: Client) {
    let before = client.given_task(full_task()).await;
    let update = task_of(&before.guid).named("After");
    let dry_run = client.tasks().update_task(dry_update(update)).await;
    let dry_run = dry_run.accepted().into_inner().task.unwrap();
    assert_eq!(dry_run.name, "After");
    assert_eq!(dry_run.roles, before.roles);
    assert_eq!(client.get_task(&before.guid).await.accepted(), before);
}

async fn a_dry_update_shows_the_step_and_stores_nothing(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let before = client.given_step(full_step(&task)).await;
    let request = UpdateStepRequest {
        step: Some(step_of(&before.guid).titled("After")),
        update_mask: None,
        validate_only: true,
    };
    let dry_run = client.steps().update_step(request).await;
    let dry_run = dry_run.accepted().into_inner().step.unwrap();
    assert_eq!(dry_run.title, "After");
    assert_eq!(client.get_step(&before.guid).await.accepted(), before);
}

async fn a_dry_rename_renames_no_step(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let other = client.given_task(task("Other")).await;
    let step = client.given_step(subtask(&guide, &other)).await;
    let update = task_of(&other.guid).named("After");
    client
        .tasks()
        .update_task(dry_update(update))
        .await
        .accepted();
    assert_eq!(client.get_step(&step.guid).await.accepted(), step);
}

async fn a_dry_run_checks_fields(client: Client) {
    let dry_run = client.tasks().create_task(dry_task(task(""))).await;
    let failure = dry_run.refused();
    failure.violates(&[("task.name", "FIELD_REQUIRED")]);
}

async fn a_dry_run_checks_references(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let unknown = task("Nowhere").with_guid(unknown_guid());
    for step in [
        information_step(&unknown, "lost"),
        subtask(&guide, &unknown),
    ] {
        let dry_run = client.steps().create_step(dry_step(step)).await;
        dry_run.refused().is_task_not_found(&unknown.guid);
    }
    let update = task_of(&unknown.guid);
    let dry_run = client.tasks().update_task(dry_update(update)).await;
    dry_run.refused().is_task_not_found(&unknown.guid);
}

async fn a_dry_run_checks_the_etag(client: Client) {
    let before = client.given_task(task("Before")).await;
    let update = task_of(&before.guid).named("After").with_etag("old");
    let dry_run = client.tasks().update_task(dry_update(update)).await;
    dry_run.refused().is(Code::Aborted, "ETAG_MISMATCH");
}

async fn a_dry_run_does_not_use_up_its_request_id(client: Client) {
    let mut request = CreateTaskRequest {
        request_id: unknown_guid(),
        ..dry_task(task("Twice"))
    };
    let dry_run = client.tasks().create_task(request.clone()).await.accepted();
    request.validate_only = false;
    let created = client.tasks().create_task(request).await.accepted();
    let created = created.into_inner().task.unwrap();
    assert_ne!(created.guid, dry_run.into_inner().task.unwrap().guid);
    client.get_task(&created.guid).await.accepted();
}

async fn a_dry_run_lists_what_it_ignores(client: Client) {
    let sent = Task {
        parent_guid: unknown_guid(),
        ..task("Ignoring")
    };
    let dry_run = client.tasks().create_task(dry_task(sent)).await.accepted();
    assert_eq!(dry_run.into_inner().ignored_paths, ["task.parent_guid"]);
}

async fn the_etag_of_a_dry_run_matches_no_later_write(client: Client) {
    let created = client.given_task(task("Guide")).await;
    let renamed = |name: &str| task_of(&created.guid).named(name);
    let dry_run = client.tasks().update_task(dry_update(renamed("dry"))).await;
    let dry_run = dry_run.accepted().into_inner().task.unwrap();
    client.updated_task(renamed("theirs"), &[]).await;
    let mine = renamed("mine").with_etag(dry_run.etag);
    let outcome = client.update_task(mine, &[]).await;
    outcome.refused().is(Code::Aborted, "ETAG_MISMATCH");
    let read = client.get_task(&created.guid).await.accepted();
    assert_eq!(read.name, "theirs");
}
