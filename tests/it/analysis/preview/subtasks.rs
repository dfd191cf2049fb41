//! Subtasks: which levels are listed, how their steps are reached, and circles.

use super::{observation, reasons, seen, title};
use crate::kit::prelude::*;

/// Tasks, each with a subtask step that refers to the next; their ids.
async fn chain(client: &Client, length: usize) -> Vec<String> {
    let mut tasks: Vec<Task> = Vec::new();
    for level in 0..length {
        tasks.push(client.given_task(task(&format!("level {level}"))).await);
    }
    for pair in tasks.windows(2) {
        client.given_step(subtask(&pair[0], &pair[1])).await;
    }
    tasks.into_iter().map(|task| task.guid).collect()
}

/// A task that is visible when `light` is `off`, with a step, and one that refers to it.
async fn dark(client: &Client) -> String {
    let condition = all_of(vec![when("components.7.light", "=", "off")]);
    let inner = task("dark").with_dependencies(condition);
    let inner = client.given_task(inner).await;
    client.given_step(information_step(&inner, "below")).await;
    let steps = vec![
        observation("light", &["off", "on"]),
        subtask(&Task::default(), &inner),
    ];
    client.imported(document("outer", steps)).await.guid
}

#[apply(on_both_databases)]
async fn a_subtask_step_is_hidden_with_its_task(client: Client) {
    let outer = dark(&client).await;
    let request = preview_of(&outer).answering("light", text("on"));
    let preview = client.previewed(request).await;
    assert_eq!(seen(&preview)["dark"], Visibility::Hidden);
    assert_eq!(reasons(&preview, "dark"), [VisibilityReason::SubtaskHidden]);
    let request = preview_of(&outer).answering("light", text("off"));
    let preview = client.previewed(request).await;
    assert_eq!(seen(&preview)["dark"], Visibility::Visible);
}

#[apply(on_both_databases)]
async fn steps_below_a_hidden_subtask_step_are_hidden(client: Client) {
    let outer = dark(&client).await;
    let request = preview_of(&outer).answering("light", text("on"));
    let preview = client.previewed(request.to_depth(1)).await;
    assert_eq!(seen(&preview)["below"], Visibility::Hidden);
    assert_eq!(reasons(&preview, "below"), [VisibilityReason::TaskHidden]);
}

#[apply(on_both_databases)]
async fn steps_below_an_undetermined_subtask_step_are_undetermined(client: Client) {
    let outer = dark(&client).await;
    let preview = client.previewed(preview_of(&outer).to_depth(1)).await;
    assert_eq!(seen(&preview)["below"], Visibility::Undetermined);
    let unknown = VisibilityReason::UnknownValue;
    assert_eq!(
        reasons(&preview, "below"),
        [VisibilityReason::TaskHidden, unknown]
    );
    assert_eq!(
        reasons(&preview, "dark"),
        [VisibilityReason::SubtaskHidden, unknown]
    );
    let light = OpenVariable {
        name: "components.7.light".to_owned(),
        steps: 2,
        keys: vec!["off".to_owned(), "on".to_owned()],
    };
    assert_eq!(preview.open_variables, std::slice::from_ref(&light));
    // The step below is not listed.
    let preview = client.previewed(preview_of(&outer)).await;
    assert_eq!(preview.open_variables, [OpenVariable { steps: 1, ..light }]);
}

#[apply(on_both_databases)]
async fn a_step_that_leads_back_is_a_cycle(client: Client) {
    let one = client.given_task(task("one")).await;
    let two = client.given_task(task("two")).await;
    client.given_step(subtask(&one, &two)).await;
    client.given_step(subtask(&two, &one)).await;
    client.given_step(subtask(&one, &one)).await;
    let preview = client.previewed(preview_of(&one.guid).to_depth(8)).await;
    let titles: Vec<&str> = preview.steps.iter().map(title).collect();
    assert_eq!(titles, ["two", "one", "one"]);
    for step in &preview.steps[1..] {
        let reasons: Vec<_> = step.reasons().collect();
        assert_eq!(reasons, [VisibilityReason::SubtaskCycle]);
        assert_eq!(step.visibility(), Visibility::Hidden);
    }
}

#[apply(on_both_databases)]
async fn the_next_observation_may_be_below_what_is_listed(client: Client) {
    let tasks = chain(&client, 9).await;
    let last = client.get_task(&tasks[8]).await.accepted();
    let asked = step(&last, StepType::Observation, "asked");
    let asked = client.given_step(asked).await;
    let preview = client.previewed(preview_of(&tasks[0])).await;
    assert_eq!(preview.steps.len(), 1);
    assert_eq!(preview.next_observation.len(), 9);
    assert_eq!(preview.next_observation[0], preview.steps[0].guid);
    assert_eq!(preview.next_observation[8], asked.guid);
    let request = preview_of(&tasks[0]).answering("components.7.answer", text("yes"));
    let preview = client.previewed(request).await;
    assert_eq!(preview.next_observation, Vec::<String>::new());
}

#[apply(on_both_databases)]
async fn the_ninth_level_decides_whether_its_step_is_visible(client: Client) {
    let tasks = chain(&client, 10).await;
    let hide = task_of(&tasks[9]).with_published(0);
    client.updated_task(hide, &["published"]).await;
    let preview = client.previewed(preview_of(&tasks[0]).to_depth(8)).await;
    let deepest = preview.steps.last().expect("a step");
    assert_eq!(title(deepest), "level 9");
    assert_eq!(deepest.visibility(), Visibility::Hidden);
}
