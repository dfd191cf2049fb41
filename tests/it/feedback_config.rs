//! `feedback_config`: the question that a step asks.

use crate::kit::prelude::*;

on_both_databases![linked_cannot_be_created, an_update_links_observations_only,];

async fn a_task(client: &Client) -> Task {
    client.given_task(task("Guide")).await
}

fn observation_asking(task: &Task, kind: StepType, config: FeedbackConfig) -> Step {
    step(task, kind, "asking").with_question(config)
}

fn linked_observation(linked: bool) -> FeedbackConfig {
    FeedbackConfig {
        linked: Some(linked),
        ..question("q", &["a", "b"])
    }
}

async fn linked_cannot_be_created(client: Client) {
    let task = a_task(&client).await;
    let sent = observation_asking(&task, StepType::Observation, linked_observation(true));
    let failure = client.create_step(sent).await.refused();
    failure.is_precondition("LINKED_IMPORT_ONLY");
    assert_eq!(client.step_order(&task.guid).await, [""; 0]);
}

async fn an_update_links_observations_only(client: Client) {
    let task = a_task(&client).await;
    let end = client.given_step(step(&task, StepType::End, "Done")).await;
    let update = step_of(&end.guid).with_question(linked_observation(true));
    let failure = client.update_step(update, &["feedback_config"]).await;
    failure
        .refused()
        .violates(&[("step.feedback_config[0].linked", "FIELD_INVALID")]);
    assert_eq!(client.get_step(&end.guid).await.accepted(), end);
}
