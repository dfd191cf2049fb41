//! Steps of a task that its new document does not list.

use crate::harness::prelude::*;

on_both_databases![
    unless_said_otherwise_they_are_named_and_nothing_changes,
    twenty_of_them_are_named,
    they_are_kept_behind_the_listed_ones_in_their_former_order,
    keeping_them_may_change_nothing,
    they_are_deleted,
    all_steps_may_be_deleted,
    what_they_refer_to_is_left_alone,
    those_of_managed_tasks_are_treated_alike,
    without_any_all_ways_are_alike,
    a_task_without_its_steps_in_the_document_keeps_them_if_asked,
];

async fn guide(world: &World) -> Task {
    let steps = pieces(&["a", "b", "c", "d"]);
    world.imported(document("Guide", steps)).await
}

/// A document that lists two of the steps, the last one first.
fn two_of(task: &Task) -> TaskDocument {
    let steps = vec![
        step_of(&task.steps[3]),
        piece(StepType::Information, "new"),
        step_of(&task.steps[1]),
    ];
    document_of(&task.guid, steps)
}

async fn unless_said_otherwise_they_are_named_and_nothing_changes(world: World) {
    let made = guide(&world).await;
    let before = world.everything().await;
    let failure = world.import(two_of(&made)).await.refused();
    failure.is_precondition("ABSENT_STEPS");
    let expected = [
        ("ABSENT_STEPS", made.steps[0].as_str()),
        ("ABSENT_STEPS", made.steps[2].as_str()),
    ];
    assert_eq!(failure.preconditions(), expected);
    assert_eq!(world.everything().await, before);
}

async fn twenty_of_them_are_named(world: World) {
    let made = world.imported(document("Guide", pieces(&["a"; 21]))).await;
    let failure = world.import(document_of(&made.guid, Vec::new())).await;
    let failure = failure.refused();
    failure.is_precondition("ABSENT_STEPS");
    let named: Vec<&str> = failure
        .preconditions()
        .iter()
        .map(|named| named.1)
        .collect();
    assert_eq!(named, made.steps[..20]);
    assert!(failure.message.contains("21"), "{failure:?}");
}

async fn they_are_kept_behind_the_listed_ones_in_their_former_order(world: World) {
    let made = guide(&world).await;
    let response = world.import_and(AbsentSteps::Keep, two_of(&made)).await;
    let after = response.accepted().task.unwrap();
    assert_eq!(
        world.titles_of(&made.guid).await,
        ["d", "new", "b", "a", "c"]
    );
    assert_eq!(world.get_task(&made.guid).await.accepted(), after);
}

async fn keeping_them_may_change_nothing(world: World) {
    let made = guide(&world).await;
    let before = world.everything().await;
    let steps = vec![step_of(&made.steps[0]), step_of(&made.steps[1])];
    let sent = document_of(&made.guid, steps);
    world.import_and(AbsentSteps::Keep, sent).await.accepted();
    assert_eq!(world.everything().await, before);
}

async fn they_are_deleted(world: World) {
    let made = guide(&world).await;
    let response = world.import_and(AbsentSteps::Delete, two_of(&made)).await;
    let after = response.accepted().task.unwrap();
    assert_eq!(after.steps.len(), 3);
    assert_eq!(world.titles_of(&made.guid).await, ["d", "new", "b"]);
    for gone in [&made.steps[0], &made.steps[2]] {
        world.get_step(gone).await.refused().misses_step(gone);
    }
    assert_ne!(after.etag, made.etag);
}

async fn all_steps_may_be_deleted(world: World) {
    let made = guide(&world).await;
    let sent = document_of(&made.guid, Vec::new());
    let response = world.import_and(AbsentSteps::Delete, sent).await;
    assert_eq!(response.accepted().task.unwrap().steps, [""; 0]);
    world.delete_task(&made.guid).await.accepted();
}

async fn what_they_refer_to_is_left_alone(world: World) {
    let outside = world.given_task(task("Outside")).await;
    let steps = vec![subtask(&Task::default(), &outside)];
    let made = world.imported(document("Guide", steps)).await;
    let sent = document_of(&made.guid, Vec::new());
    world.import_and(AbsentSteps::Delete, sent).await.accepted();
    assert_eq!(world.get_task(&outside.guid).await.accepted(), outside);
    world.delete_task(&outside.guid).await.accepted();
}

/// An exported guide whose managed task has two steps, and the managed task.
async fn nested(world: &World) -> (TaskDocument, Task) {
    let inner = document("", pieces(&["a", "b"]));
    let question = linked_question(vec![answer_with("a", "A", inner)]);
    let made = world
        .imported(document("Guide", vec![asking(question)]))
        .await;
    let sent = world.exported(&made.guid).await;
    let link = answers_of(&sent.steps[0])[0].link.clone();
    (sent, world.get_task(&link).await.accepted())
}

fn inner(document: &mut TaskDocument) -> &mut TaskDocument {
    let values = &mut document.steps[0].feedback_config[0].values;
    values[0].task_json.as_mut().unwrap()
}

async fn those_of_managed_tasks_are_treated_alike(world: World) {
    let (mut sent, managed) = nested(&world).await;
    let gone = inner(&mut sent).steps.remove(0).guid;
    let failure = world.import(sent.clone()).await.refused();
    failure.is_precondition("ABSENT_STEPS");
    assert_eq!(failure.preconditions(), [("ABSENT_STEPS", gone.as_str())]);

    let kept = world.import_and(AbsentSteps::Keep, sent.clone()).await;
    kept.accepted();
    let [a, b] = [managed.steps[0].clone(), managed.steps[1].clone()];
    assert_eq!(world.order_of(&managed.guid).await, [b.clone(), a]);

    let deleted = world.import_and(AbsentSteps::Delete, sent).await;
    deleted.accepted();
    assert_eq!(world.order_of(&managed.guid).await, [b]);
}

async fn without_any_all_ways_are_alike(world: World) {
    let (sent, _) = nested(&world).await;
    let before = world.everything().await;
    for absent in [
        AbsentSteps::Unspecified,
        AbsentSteps::Keep,
        AbsentSteps::Delete,
    ] {
        world.import_and(absent, sent.clone()).await.accepted();
    }
    assert_eq!(world.everything().await, before);
}

async fn a_task_without_its_steps_in_the_document_keeps_them_if_asked(world: World) {
    let (mut sent, managed) = nested(&world).await;
    inner(&mut sent).steps.clear();
    let before = world.everything().await;
    world.import_and(AbsentSteps::Keep, sent).await.accepted();
    assert_eq!(world.order_of(&managed.guid).await, managed.steps);
    assert_eq!(world.everything().await, before);
}
