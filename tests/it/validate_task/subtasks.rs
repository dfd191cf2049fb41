//! Rules about subtask steps, and limits of guides.

use super::*;
use serde_json::json;

on_both_databases![
    a_circle_of_tasks_is_reported_once,
    a_task_that_refers_to_itself_is_a_circle,
    a_circle_that_the_task_is_not_on_is_not_reported,
    each_circle_through_the_task_is_reported,
    a_subtask_that_is_not_published_is_reported,
    levels_that_may_not_see_a_subtask_are_reported,
    a_subtask_without_a_common_level_is_an_error,
    nine_levels_of_subtasks_are_too_deep,
    eight_levels_of_subtasks_are_not_too_deep,
    a_guide_of_more_steps_than_the_limit_is_too_large,
    a_guide_of_more_conditions_than_the_limit_is_too_large,
    managed_tasks_of_a_guide_that_is_too_large_are_checked_in_any_order_of_its_subtasks,
];

async fn rules(client: &Client, task: &Task) -> Vec<Finding> {
    client.validated(validation_of(&task.guid)).await.findings
}

/// A task with an end, to which subtask steps can be added before it.
async fn ending(client: &Client, name: &str) -> Task {
    client
        .imported(document(name, vec![shown(StepType::End, "End")]))
        .await
}

async fn refer(client: &Client, from: &Task, to: &Task) -> Step {
    let made = client.create_step(subtask(from, to)).await;
    made.accepted().step.expect("the step")
}

async fn a_circle_of_tasks_is_reported_once(client: Client) {
    let one = client.given_task(task("One")).await;
    let two = client.given_task(task("Two")).await;
    let there = refer(&client, &one, &two).await;
    let back = refer(&client, &two, &one).await;
    for (task, steps) in [(&one, [&there, &back]), (&two, [&back, &there])] {
        let found = rules(&client, task).await;
        let found = of_rule(&found, "subtask/cycle");
        let [finding] = found.as_slice() else {
            panic!("{found:#?}");
        };
        assert_eq!(finding.severity(), Severity::Error);
        assert_eq!(
            (&finding.step, finding.path.as_str()),
            (&steps[0].guid, "subtask_id")
        );
        let related: Vec<_> = finding.related.iter().map(|place| &place.step).collect();
        assert_eq!(related, steps.map(|step| &step.guid));
    }
}

async fn a_task_that_refers_to_itself_is_a_circle(client: Client) {
    for published in [1, 0] {
        let one = task("One").with_published(published);
        let one = client.given_task(one).await;
        refer(&client, &one, &one).await;
        refer(&client, &one, &one).await;
        let found = rules(&client, &one).await;
        assert_eq!(of_rule(&found, "subtask/cycle").len(), 1);
        assert_eq!(of_rule(&found, "step/unreachable").len(), 0);
    }
}

async fn a_circle_that_the_task_is_not_on_is_not_reported(client: Client) {
    let root = client.given_task(task("Root")).await;
    let one = client.given_task(task("One")).await;
    refer(&client, &one, &one).await;
    refer(&client, &root, &one).await;
    let found = rules(&client, &root).await;
    assert_eq!(of_rule(&found, "subtask/cycle").len(), 0);
}

async fn each_circle_through_the_task_is_reported(client: Client) {
    let root = client.given_task(task("Root")).await;
    for name in ["One", "Two"] {
        let other = client.given_task(task(name)).await;
        refer(&client, &root, &other).await;
        refer(&client, &other, &root).await;
    }
    let found = rules(&client, &root).await;
    assert_eq!(of_rule(&found, "subtask/cycle").len(), 2);
}

async fn a_subtask_that_is_not_published_is_reported(client: Client) {
    let inner = client.given_task(task("Inner").with_published(0)).await;
    let outer = client.given_task(task("Outer")).await;
    let step = refer(&client, &outer, &inner).await;
    let found = rules(&client, &outer).await;
    let found = of_rule(&found, "subtask/unpublished");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].step, step.guid);
}

async fn levels_that_may_not_see_a_subtask_are_reported(client: Client) {
    let inner = client
        .given_task(task("Inner").with_roles(vec![1, 5]))
        .await;
    let outer = client
        .given_task(task("Outer").with_roles(vec![0, 1, 2]))
        .await;
    refer(&client, &outer, &inner).await;
    let found = rules(&client, &outer).await;
    let found = of_rule(&found, "subtask/levels");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].levels, [0, 2]);
    assert_eq!(found[0].severity(), Severity::Warning);
    assert_eq!(fact(found[0], "levels"), json!(["USER", "TECH2"]));
}

async fn a_subtask_without_a_common_level_is_an_error(client: Client) {
    let inner = client.given_task(task("Inner").with_roles(vec![5])).await;
    let outer = client.given_task(task("Outer").with_roles(vec![0])).await;
    refer(&client, &outer, &inner).await;
    let found = rules(&client, &outer).await;
    let found = of_rule(&found, "subtask/levels");
    assert_eq!(found[0].severity(), Severity::Error);
}

/// A chain of this many subtask steps; the first task of it.
async fn chain(client: &Client, length: usize) -> Task {
    let mut below = ending(client, "Last").await;
    for level in 0..length {
        let document = document(
            &format!("Level {level}"),
            vec![subtask(&Task::default(), &below)],
        );
        below = client.imported(document).await;
    }
    below
}

async fn nine_levels_of_subtasks_are_too_deep(client: Client) {
    let found = rules(&client, &chain(&client, 9).await).await;
    let found: Vec<_> = found.iter().map(|one| one.rule.as_str()).collect();
    assert_eq!(found, ["analysis/too-large", "subtask/too-deep"]);
}

async fn eight_levels_of_subtasks_are_not_too_deep(client: Client) {
    let found = rules(&client, &chain(&client, 8).await).await;
    assert_eq!(found, []);
}

async fn a_guide_of_more_steps_than_the_limit_is_too_large(client: Client) {
    let steps = |count| vec![shown(StepType::Solution, "Step"); count];
    let inner = client.imported(document("Inner", steps(2_499))).await;
    let refer = |times: usize| vec![subtask(&Task::default(), &inner); times];
    for (times, own, expected) in [(4, 0, vec![]), (4, 1, vec!["analysis/too-large"])] {
        let steps = [refer(times), steps(own)].concat();
        let found = findings(&client, steps).await;
        let found: Vec<_> = found.iter().map(|one| one.rule.as_str()).collect();
        assert_eq!(found, expected, "{own}");
    }
    let last = ending(&client, "Last").await;
    let refer = vec![subtask(&Task::default(), &last)];
    for (steps, expected) in [
        (steps(10_000), vec![]),
        ([refer, steps(9_999)].concat(), vec!["analysis/too-large"]),
    ] {
        let found = findings(&client, steps).await;
        let found: Vec<_> = found.iter().map(|one| one.rule.as_str()).collect();
        assert_eq!(found, expected);
    }
}

/// Conditions count at each subtask step that enters their task.
async fn a_guide_of_more_conditions_than_the_limit_is_too_large(client: Client) {
    let thousand = || {
        let nodes = vec![reads("light", "=", &["on"]); 1_000];
        Step {
            dependencies: Some(any_of(nodes)),
            ..shown(StepType::Solution, "Step")
        }
    };
    let one = || {
        needing(
            shown(StepType::End, "Done"),
            vec![reads("light", "=", &["on"])],
        )
    };
    let inner = client
        .imported(document("Inner", vec![thousand(); 5]))
        .await;
    let entered = vec![subtask(&Task::default(), &inner); 4];
    for twenty_thousand in [entered, vec![thousand(); 20]] {
        for (more, too_large) in [(vec![], 0), (vec![one()], 1)] {
            let first = vec![asks("light", &["on", "off"])];
            let steps = [first, twenty_thousand.clone(), more].concat();
            let found = findings(&client, steps).await;
            assert_eq!(of_rule(&found, "analysis/too-large").len(), too_large);
        }
    }
}

/// The task that the first answer of the task's first step manages.
async fn first_managed_task(client: &Client, task: &str) -> String {
    let steps = client.exported(task).await.steps;
    answers_of(&steps[0])[0].link.clone()
}

async fn managed_tasks_of_a_guide_that_is_too_large_are_checked_in_any_order_of_its_subtasks(
    client: Client,
) {
    let managing = |inner| {
        let values = vec![answer_with("open", "Open", inner)];
        document("Outer", vec![observation_asking(linked_question(values))])
    };
    let innermost = document("", vec![asks("nobody_reads_this", &["x"])]);
    let nested = managing(managing(managing(managing(innermost))));
    let outer = client.imported(nested).await;
    let mut managed = vec![outer.guid.clone()];
    for depth in 0..4 {
        managed.push(first_managed_task(&client, &managed[depth]).await);
    }
    let innermost = client.get_task(&managed[4]).await.expect("a task");
    // The outer task refers to the third one, which is so above the second, its manager.
    let third = client.get_task(&managed[3]).await.expect("a task");
    refer(&client, &outer, &third).await;
    // Each level has ten ways into the next: more than 10,000 steps.
    let mut below = ending(&client, "Last").await;
    for _ in 0..4 {
        let ways = vec![subtask(&Task::default(), &below); 10];
        below = client.imported(document("Level", ways)).await;
    }
    refer(&client, &outer, &below).await;
    let found = rules(&client, &outer).await;
    assert_eq!(of_rule(&found, "analysis/too-large").len(), 1);
    let unused = of_rule(&found, "observation/unused").into_iter();
    let steps: Vec<_> = unused.map(|finding| &finding.step).collect();
    assert!(steps.contains(&&innermost.steps[0]), "{found:#?}");
}
