//! `feedback_config`: the question that a step asks.

use crate::kit::{prelude::*, sample};

async fn a_task(client: &Client) -> Task {
    client.given_task(task("Guide")).await
}

fn linked_observation(linked: bool) -> FeedbackConfig {
    question("q", &["a", "b"]).with(|it| it.linked = Some(linked))
}

#[apply(on_both_databases)]
async fn an_update_links_nothing_new(client: Client) {
    let task = a_task(&client).await;
    let plain = step(&task, StepType::Observation, "plain");
    let plain = client.given_step(plain).await;
    let steps = vec![sample::linked_observation(&[("a", "A"), ("b", "B")])];
    let guide = client.given_guide(steps).await;
    let before = client.tasks_with_steps().await;
    let linked =
        |values: &[(&str, &str)]| sample::linked_observation(values).feedback_config.remove(0);
    let values = "step.feedback_config[0].values";
    for (step, config, paths) in [
        (
            &plain.guid,
            linked_observation(true),
            vec!["step.feedback_config[0].linked".to_owned()],
        ),
        (
            &guide.steps[0],
            linked(&[("c", "C"), ("b", "B"), ("d", "D")]),
            vec![format!("{values}[0].key"), format!("{values}[2].key")],
        ),
    ] {
        let update = step_of(step).with_question(config);
        let failure = client.update_step(update, &[]).await.refused();
        failure.is_precondition("LINKED_IMPORT_ONLY");
        let named = failure.preconditions().into_iter();
        let named: Vec<&str> = named.map(|(_, subject)| subject).collect();
        assert_eq!(named, paths);
    }
    assert_eq!(client.tasks_with_steps().await, before);
}
