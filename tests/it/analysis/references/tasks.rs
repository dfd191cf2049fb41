//! References of tasks.

use super::{depending, of_task, place, places, references};
use crate::kit::prelude::*;

on_both_databases![
    a_task_that_nothing_refers_to_has_none,
    subtask_steps_of_other_tasks_and_its_own_are_listed,
    a_managed_task_is_wired_and_managed,
    an_unlinked_task_is_an_ordinary_subtask,
    a_reference_names_its_task_and_the_title_of_its_step,
    a_step_that_refers_elsewhere_is_no_longer_listed,
    references_that_prevent_delete_task_are_listed,
];

async fn a_task_that_nothing_refers_to_has_none(client: Client) {
    let task = client.given_task(task("Alone")).await;
    let step = depending(information_step(&task, "Step"), vec![when("a", "=", "1")]);
    client.given_step(step).await;
    assert_eq!(places(&client, of_task(&task)).await, []);
}

async fn subtask_steps_of_other_tasks_and_its_own_are_listed(client: Client) {
    let used = client.given_task(task("Used")).await;
    let other = client.given_task(task("Other")).await;
    let mut expected = Vec::new();
    for parent in [&other, &used, &other] {
        let step = client.given_step(subtask(parent, &used)).await;
        expected.push((ReferenceKind::Subtask, step.guid, "subtask_id".to_owned()));
    }
    assert_eq!(places(&client, of_task(&used)).await, expected);
}

async fn a_managed_task_is_wired_and_managed(client: Client) {
    let observation = linked_observation(&[("off", "Off"), ("on", "On")]);
    let parent = client.imported(document("Guide", vec![observation])).await;
    let exported = client.exported(&parent.guid).await;
    let link = answers_of(&exported.steps[0])[1].link.clone();
    let managed = client.get_task(&link).await.accepted();
    let elsewhere = client.given_task(task("Elsewhere")).await;
    let subtask = client.given_step(subtask(&elsewhere, &managed)).await;
    let wiring = exported.steps.iter().find(|step| step.link == link);
    let wiring = wiring.expect("the wiring step");
    let value = "feedback_config[0].values[1]".to_owned();
    assert_eq!(
        places(&client, of_task(&managed)).await,
        [
            (
                ReferenceKind::Subtask,
                subtask.guid,
                "subtask_id".to_owned()
            ),
            (
                ReferenceKind::Wiring,
                wiring.guid.clone(),
                "link".to_owned()
            ),
            (
                ReferenceKind::Manages,
                exported.steps[0].guid.clone(),
                value
            ),
        ]
    );
}

async fn an_unlinked_task_is_an_ordinary_subtask(client: Client) {
    let observation = linked_observation(&[("on", "On")]);
    let parent = client.imported(document("Guide", vec![observation])).await;
    let steps = client.steps_with_bodies(&parent.guid).await;
    let managed = task_of(&answers_of(&steps[0])[0].link);
    let unlinked = step_of(&steps[0].guid).with_question(question("it", &["on"]));
    client.updated_step(unlinked, &["feedback_config"]).await;
    let wiring = steps[1].guid.clone();
    assert_eq!(
        places(&client, of_task(&managed)).await,
        [(ReferenceKind::Subtask, wiring, "subtask_id".to_owned())]
    );
}

async fn a_reference_names_its_task_and_the_title_of_its_step(client: Client) {
    let used = client.given_task(task("Used")).await;
    let parent = client.given_task(task("Parent")).await;
    let step = client.given_step(subtask(&parent, &used)).await;
    let found = references(&client, of_task(&used)).await;
    let expected = Reference {
        kind: ReferenceKind::Subtask.into(),
        place: Some(Place {
            task: parent.guid,
            step: step.guid,
            path: "subtask_id".to_owned(),
            title: "Used".to_owned(),
        }),
        operator: String::new(),
        targets: Vec::new(),
    };
    assert_eq!(found, [expected]);
}

async fn a_step_that_refers_elsewhere_is_no_longer_listed(client: Client) {
    let before = client.given_task(task("Before")).await;
    let after = client.given_task(task("After")).await;
    let parent = client.given_task(task("Parent")).await;
    let step = client.given_step(subtask(&parent, &before)).await;
    let update = step_of(&step.guid).with_subtask_id(&after.guid);
    client.updated_step(update, &["subtask_id"]).await;
    assert_eq!(places(&client, of_task(&before)).await, []);
    assert_eq!(places(&client, of_task(&after)).await.len(), 1);
    client.delete_step(&step.guid).await.accepted();
    assert_eq!(places(&client, of_task(&after)).await, []);
}

async fn references_that_prevent_delete_task_are_listed(client: Client) {
    let used = client.given_task(task("Used")).await;
    let parent = client.given_task(task("Parent")).await;
    client.given_step(subtask(&used, &used)).await;
    client.given_step(subtask(&parent, &used)).await;
    let refused = client.force_delete_task(&used.guid).await.refused();
    assert_eq!(refused.reason(), "TASK_REFERENCED");
    let found = references(&client, of_task(&used)).await;
    let others = found.iter().filter(|reference| {
        let place = reference.place.as_ref().expect("a place");
        place.task != used.guid
    });
    for (_, step, _) in others.map(place) {
        client.delete_step(&step).await.accepted();
    }
    client.force_delete_task(&used.guid).await.accepted();
}
