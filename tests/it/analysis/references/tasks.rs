//! References of tasks.

use super::{depending, of_task, places};
use crate::kit::prelude::*;

#[apply(on_both_databases)]
async fn a_task_that_nothing_refers_to_has_none(client: Client) {
    let task = client.given_task(task("Alone")).await;
    let step = depending(information_step(&task, "Step"), vec![when("a", "=", "1")]);
    client.given_step(step).await;
    assert_eq!(places(&client, of_task(&task)).await, []);
}

#[apply(on_both_databases)]
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

#[apply(on_both_databases)]
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
    // What is unlinked is an ordinary subtask step.
    let mut unlinked = client.get_step(&exported.steps[0].guid).await.accepted();
    unlinked.feedback_config[0].linked = Some(false);
    client.updated_step(unlinked, &["feedback_config"]).await;
    let found = places(&client, of_task(&managed)).await;
    let kinds: Vec<_> = found.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [ReferenceKind::Subtask; 2]);
}

#[apply(on_both_databases)]
async fn a_reference_names_its_task_and_the_title_of_its_step(client: Client) {
    let used = client.given_task(task("Used")).await;
    let parent = client.given_task(task("Parent")).await;
    let step = client.given_step(subtask(&parent, &used)).await;
    let found = client.references(of_task(&used)).await;
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
