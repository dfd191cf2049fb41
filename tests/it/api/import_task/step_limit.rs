//! A task has at most 10,000 steps, counting the wiring steps that an import adds.

use crate::prelude::*;

/// An observation that manages the task of a document.
fn observation_of(inner: TaskDocument) -> Step {
    observation_asking(linked_question(vec![answer_with("a", "Inner", inner)]))
}

/// Observations that manage forty tasks each.
fn observations_of_forty(observations: usize) -> Vec<Step> {
    let keys: Vec<String> = (0..40).map(|key| key.to_string()).collect();
    let answers: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "A")).collect();
    vec![linked_observation(&answers); observations]
}

#[apply(on_one_database)]
async fn too_many_steps_are_refused_with_everything_else(client: Client) {
    let untitled = document_step(StepType::Information, "");
    let mut steps = observations_of_forty(1_000);
    steps.push(observation_of(document("Inner", vec![untitled.clone()])));
    steps.push(untitled);
    let failure = client.import(document("Guide", steps)).await.refused();
    let inner = "document.steps[1000].feedback_config[0].values[0].task_json.steps[0].title";
    failure.violates(&[
        (inner, "FIELD_REQUIRED"),
        ("document.steps[1001].title", "FIELD_REQUIRED"),
        ("document.steps", "TOO_MANY_ELEMENTS"),
    ]);
}

#[apply(on_both_databases)]
async fn a_wiring_step_that_is_listed_counts_once(client: Client) {
    let observation = linked_observation(&[("a", "A"), ("b", "B"), ("c", "C")]);
    let made = client.given_guide(vec![observation]).await;
    let mut listed = client.exported(&made.guid).await.steps;
    // One wiring step is listed with its id, one without, and one is not listed.
    listed[2].guid.clear();
    listed.pop();
    let keep = async |added: usize| {
        let added = vec![document_step(StepType::Information, "one of many"); added];
        let guide = document_of(&made.guid, [listed.clone(), added].concat());
        client.import_with(AbsentSteps::Keep, guide).await
    };
    let failure = keep(9_997).await.refused();
    failure.violates(&[("document.steps", "TOO_MANY_ELEMENTS")]);
    let imported = keep(9_996).await.accepted();
    assert_eq!(imported.task.unwrap().steps.len(), 10_000);
}
