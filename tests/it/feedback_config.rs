//! `feedback_config`: the question that a step asks.

use crate::kit::prelude::*;

on_both_databases![
    an_observation_needs_a_feedback_config,
    other_types_keep_a_feedback_config,
    a_step_has_one_feedback_config_at_most,
    a_question_may_have_1000_answers,
    linked_cannot_be_created,
    linked_is_for_observations_only,
    an_update_links_observations_only,
    linked_may_be_false,
];

async fn a_task(client: &Client) -> Task {
    client.given_task(task("Guide")).await
}

async fn an_observation_needs_a_feedback_config(client: Client) {
    let task = a_task(&client).await;
    let sent = Step {
        feedback_config: Vec::new(),
        ..step(&task, StepType::Observation, "unasked")
    };
    let failure = client.create_step(sent).await.refused();
    failure.violates(&[("step.feedback_config", "FIELD_REQUIRED")]);
}

fn observation_asking(task: &Task, kind: StepType, config: FeedbackConfig) -> Step {
    step(task, kind, "asking").with_question(config)
}

async fn other_types_keep_a_feedback_config(client: Client) {
    let task = a_task(&client).await;
    let sent = observation_asking(&task, StepType::Information, question("q", &["a"]));
    let guid = client.given_step(sent).await.guid;
    let read = client.get_step(&guid).await.accepted();
    assert_eq!(read.feedback_config[0].name, "q");
}

async fn a_step_has_one_feedback_config_at_most(client: Client) {
    let task = a_task(&client).await;
    for kind in [StepType::Observation, StepType::Solution] {
        let sent = Step {
            feedback_config: vec![question("q", &["a"]), question("r", &["a"])],
            ..step(&task, kind, "asking twice")
        };
        let failure = client.create_step(sent).await.refused();
        failure.violates(&[("step.feedback_config", "TOO_MANY_ELEMENTS")]);
    }
}

async fn a_question_may_have_1000_answers(client: Client) {
    let task = a_task(&client).await;
    let keys: Vec<String> = (0..1_001).map(|key| key.to_string()).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let sent = observation_asking(&task, StepType::Observation, question("q", &keys[..1_000]));
    let created = client.given_step(sent).await;
    assert_eq!(created.feedback_config[0].values.len(), 1_000);

    let sent = observation_asking(&task, StepType::Observation, question("q", &keys));
    let failure = client.create_step(sent).await.refused();
    failure.violates(&[("step.feedback_config[0].values", "TOO_MANY_ELEMENTS")]);
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

async fn linked_is_for_observations_only(client: Client) {
    let task = a_task(&client).await;
    let sent = observation_asking(&task, StepType::Information, linked_observation(true));
    let failure = client.create_step(sent).await.refused();
    failure.violates(&[("step.feedback_config[0].linked", "FIELD_INVALID")]);
}

async fn linked_may_be_false(client: Client) {
    let task = a_task(&client).await;
    for kind in [StepType::Observation, StepType::Information] {
        let created = client
            .given_step(observation_asking(&task, kind, linked_observation(false)))
            .await;
        let config = &created.feedback_config[0];
        assert!(!config.linked.unwrap_or_default());
        assert_eq!(config.values[0].link, "");
    }
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
