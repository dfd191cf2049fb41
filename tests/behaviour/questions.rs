//! The question that a step asks.

use crate::harness::prelude::*;

on_both_databases![
    an_observation_needs_a_feedback_config,
    other_types_keep_a_feedback_config,
    a_step_has_one_feedback_config_at_most,
    a_question_may_have_1000_answers,
    linked_cannot_be_created,
    linked_is_for_observations_alone,
    linked_may_be_said_to_be_false,
];

async fn a_task(world: &World) -> Task {
    world.given_task(task("Guide")).await
}

async fn an_observation_needs_a_feedback_config(world: World) {
    let task = a_task(&world).await;
    let sent = Step {
        feedback_config: Vec::new(),
        ..step(&task, StepType::Observation, "unasked")
    };
    let failure = world.create_step(sent).await.refused();
    failure.violates(&[("step.feedback_config", "FIELD_REQUIRED")]);
}

fn asking(task: &Task, kind: StepType, config: FeedbackConfig) -> Step {
    Step {
        feedback_config: vec![config],
        ..step(task, kind, "asking")
    }
}

async fn other_types_keep_a_feedback_config(world: World) {
    let task = a_task(&world).await;
    let sent = asking(&task, StepType::Information, question("q", &["a"]));
    let guid = world.given_step(sent).await.guid;
    let read = world.get_step(&guid).await.accepted();
    assert_eq!(read.feedback_config[0].name, "q");
}

async fn a_step_has_one_feedback_config_at_most(world: World) {
    let task = a_task(&world).await;
    for kind in [StepType::Observation, StepType::Solution] {
        let sent = Step {
            feedback_config: vec![question("q", &["a"]), question("r", &["a"])],
            ..step(&task, kind, "asking twice")
        };
        let failure = world.create_step(sent).await.refused();
        failure.violates(&[("step.feedback_config", "TOO_MANY_ELEMENTS")]);
    }
}

async fn a_question_may_have_1000_answers(world: World) {
    let task = a_task(&world).await;
    let keys: Vec<String> = (0..1_001).map(|key| key.to_string()).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let sent = asking(&task, StepType::Observation, question("q", &keys[..1_000]));
    let created = world.given_step(sent).await;
    assert_eq!(created.feedback_config[0].values.len(), 1_000);

    let sent = asking(&task, StepType::Observation, question("q", &keys));
    let failure = world.create_step(sent).await.refused();
    failure.violates(&[("step.feedback_config[0].values", "TOO_MANY_ELEMENTS")]);
}

fn linked(linked: bool) -> FeedbackConfig {
    FeedbackConfig {
        linked: Some(linked),
        ..question("q", &["a", "b"])
    }
}

async fn linked_cannot_be_created(world: World) {
    let task = a_task(&world).await;
    let sent = asking(&task, StepType::Observation, linked(true));
    let failure = world.create_step(sent).await.refused();
    failure.is_precondition("LINKED_IMPORT_ONLY");
    assert_eq!(world.order_of(&task.guid).await, [""; 0]);
}

async fn linked_is_for_observations_alone(world: World) {
    let task = a_task(&world).await;
    let sent = asking(&task, StepType::Information, linked(true));
    let failure = world.create_step(sent).await.refused();
    failure.violates(&[("step.feedback_config[0].linked", "FIELD_INVALID")]);
}

async fn linked_may_be_said_to_be_false(world: World) {
    let task = a_task(&world).await;
    for kind in [StepType::Observation, StepType::Information] {
        let created = world.given_step(asking(&task, kind, linked(false))).await;
        let config = &created.feedback_config[0];
        assert!(!config.linked.unwrap_or_default());
        assert_eq!(config.values[0].link, "");
    }
}
