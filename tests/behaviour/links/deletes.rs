//! What is managed and what manages, deleted.

use super::{guide, managed_by, unlinked};
use crate::harness::prelude::*;

on_both_databases![
    a_managed_task_is_not_deleted,
    a_managed_task_is_not_deleted_whoever_refers_to_it,
    a_wiring_step_is_not_deleted,
    a_linked_observation_is_unlinked_before_it_is_deleted,
    a_task_that_manages_others_is_not_deleted_unless_forced,
    a_task_that_manages_others_leaves_them_as_ordinary_tasks,
    a_task_whose_managed_task_refers_to_it_is_referenced,
    a_refused_delete_unlinks_nothing,
];

async fn a_managed_task_is_not_deleted(world: World) {
    let (_, question, _) = guide(&world, &[("a", "A")]).await;
    let managed = managed_by(&world, &question).await.remove(0);
    let before = world.everything().await;
    let failure = world.delete_task(&managed.guid).await.refused();
    failure.is_precondition("TASK_MANAGED");
    let failure = world.force_delete_task(&managed.guid).await.refused();
    failure.is_precondition("TASK_MANAGED");
    assert_eq!(world.everything().await, before);
}

async fn a_managed_task_is_not_deleted_whoever_refers_to_it(world: World) {
    let (_, question, _) = guide(&world, &[("a", "A")]).await;
    let managed = managed_by(&world, &question).await.remove(0);
    world.given_step(note(&managed, "step")).await;
    let elsewhere = world.given_task(task("Elsewhere")).await;
    world.given_step(subtask(&elsewhere, &managed)).await;
    let failure = world.delete_task(&managed.guid).await.refused();
    failure.is_precondition("TASK_MANAGED");
}

async fn a_wiring_step_is_not_deleted(world: World) {
    let (made, _, wiring) = guide(&world, &[("a", "A")]).await;
    let before = world.everything().await;
    let failure = world.delete_step(&wiring[0].guid).await.refused();
    failure.is_precondition("STEP_MANAGED");
    let named = failure.preconditions();
    assert_eq!(named, [("STEP_MANAGED", made.steps[1].as_str())]);
    assert_eq!(world.everything().await, before);
}

async fn a_linked_observation_is_unlinked_before_it_is_deleted(world: World) {
    let (made, question, wiring) = guide(&world, &[("a", "A"), ("b", "B")]).await;
    let managed = managed_by(&world, &question).await;
    world.delete_step(&question.guid).await.accepted();
    assert_eq!(world.order_of(&made.guid).await, made.steps[1..]);
    for (task, step) in managed.iter().zip(&wiring) {
        unlinked(&world, task, step).await;
        world.delete_step(&step.guid).await.accepted();
        world.delete_task(&task.guid).await.accepted();
    }
}

async fn a_task_that_manages_others_is_not_deleted_unless_forced(world: World) {
    let (made, _, _) = guide(&world, &[("a", "A")]).await;
    let before = world.everything().await;
    let failure = world.delete_task(&made.guid).await.refused();
    failure.is_precondition("TASK_HAS_STEPS");
    assert_eq!(world.everything().await, before);
}

async fn a_task_that_manages_others_leaves_them_as_ordinary_tasks(world: World) {
    let inner = document("A", pieces(&["inner"]));
    let question = linked_question(vec![answer_with("a", "A", inner), answer("b", "B")]);
    let made = world
        .imported(document("Guide", vec![asking(question)]))
        .await;
    let question = world.get_step(&made.steps[0]).await.accepted();
    let managed = managed_by(&world, &question).await;
    world.force_delete_task(&made.guid).await.accepted();
    let survivors = world.all_tasks().await;
    assert_eq!(survivors.len(), 2);
    for (survivor, task) in survivors.iter().zip(&managed) {
        assert_eq!((&survivor.guid, &survivor.name), (&task.guid, &task.name));
        assert_eq!(survivor.r#type(), TaskType::Standard);
        assert_eq!((survivor.parent_guid.as_str(), survivor.idx), ("", 0));
        assert_eq!(survivor.steps, task.steps);
    }
    world.force_delete_task(&managed[0].guid).await.accepted();
    world.delete_task(&managed[1].guid).await.accepted();
}

async fn a_task_whose_managed_task_refers_to_it_is_referenced(world: World) {
    let (made, question, _) = guide(&world, &[("a", "A")]).await;
    let managed = managed_by(&world, &question).await.remove(0);
    world.given_step(subtask(&managed, &made)).await;
    let failure = world.force_delete_task(&made.guid).await.refused();
    failure.is_precondition("TASK_REFERENCED");
}

async fn a_refused_delete_unlinks_nothing(world: World) {
    let (made, question, _) = guide(&world, &[("a", "A")]).await;
    let elsewhere = world.given_task(task("Elsewhere")).await;
    world.given_step(subtask(&elsewhere, &made)).await;
    let before = world.everything().await;
    let failure = world.force_delete_task(&made.guid).await.refused();
    failure.is_precondition("TASK_REFERENCED");
    let request = DeleteStepRequest {
        guid: question.guid,
        etag: "old".to_owned(),
    };
    let failure = world.steps().delete_step(request).await.refused();
    failure.is(Code::Aborted, "ETAG_MISMATCH");
    assert_eq!(world.everything().await, before);
}
