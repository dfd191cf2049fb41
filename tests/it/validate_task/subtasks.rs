//! Rules about subtask steps, and limits of guides.

use super::*;
use serde_json::json;

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

#[apply(on_both_databases)]
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

#[apply(on_both_databases)]
async fn a_task_that_refers_to_itself_is_a_circle(client: Client) {
    for published in [1, 0] {
        let one = task("One").with_published(published);
        let one = client.given_task(one).await;
        refer(&client, &one, &one).await;
        refer(&client, &one, &one).await;
        let found = rules(&client, &one).await;
        assert_eq!(of_rule(&found, "subtask/cycle").len(), 1);
        assert_eq!(of_rule(&found, "step/unreachable").len(), 0);
        assert_eq!(of_rule(&found, "subtask/unpublished").len(), 0);
    }
}

#[apply(on_both_databases)]
async fn a_circle_that_the_task_is_not_on_is_not_reported(client: Client) {
    let root = client.given_task(task("Root")).await;
    let one = client.given_task(task("One")).await;
    refer(&client, &one, &one).await;
    refer(&client, &root, &one).await;
    let found = rules(&client, &root).await;
    assert_eq!(of_rule(&found, "subtask/cycle").len(), 0);
}

#[apply(on_both_databases)]
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

/// Of the first step, the way by Y and Q comes before the shorter one by P.
#[apply(on_both_databases)]
async fn of_several_circles_through_a_step_the_shortest_is_reported(client: Client) {
    let mut tasks = Vec::new();
    for name in ["Root", "X", "Y", "P", "Q"] {
        tasks.push(client.given_task(task(name)).await);
    }
    let [root, x, y, p, q] = tasks.as_slice() else {
        panic!("five tasks");
    };
    let into_x = refer(&client, root, x).await;
    refer(&client, x, y).await;
    let into_p = refer(&client, x, p).await;
    refer(&client, y, q).await;
    refer(&client, q, root).await;
    let back = refer(&client, p, root).await;
    let found = rules(&client, root).await;
    let found = of_rule(&found, "subtask/cycle");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(fact(found[0], "tasks"), json!(["Root", "X", "P"]));
    assert_eq!(fact(found[0], "steps"), json!(3.0));
    let related = found[0].related.iter();
    let related: Vec<_> = related
        .map(|place| (&place.task, &place.step, place.path.as_str()))
        .collect();
    let expected = [(root, &into_x), (x, &into_p), (p, &back)];
    let expected = expected.map(|(task, step)| (&task.guid, &step.guid, "subtask_id"));
    assert_eq!(related, expected);
}

#[apply(on_both_databases)]
async fn subtask_steps_that_are_drafts_are_checked_with_the_option_alone(client: Client) {
    let inner = task("Inner").with_roles(vec![5]).with_published(0);
    let inner = client.given_task(inner).await;
    let outer = task("Outer").with_roles(vec![0, 5]);
    let outer = client.given_task(outer).await;
    for other in [&inner, &outer] {
        let draft = subtask(&outer, other).with_published(0);
        client.given_step(draft).await;
    }
    for (include_unpublished, expected) in [
        (false, vec![]),
        (true, vec!["subtask/levels", "subtask/cycle"]),
    ] {
        let options = ValidationOptions {
            include_unpublished,
            ..ValidationOptions::default()
        };
        let request = with_options(validation_of(&outer.guid), options);
        let found = client.validated(request).await.findings;
        let rules = found.iter().map(|one| one.rule.as_str());
        let rules: Vec<_> = rules.filter(|rule| rule.starts_with("subtask/")).collect();
        assert_eq!(rules, expected);
    }
}

#[apply(on_both_databases)]
async fn a_subtask_that_is_not_published_is_reported(client: Client) {
    for published in [0, 2] {
        let inner = task("Inner").with_published(published);
        let inner = client.given_task(inner).await;
        let outer = client.given_task(task("Outer")).await;
        let step = refer(&client, &outer, &inner).await;
        let found = rules(&client, &outer).await;
        let found = of_rule(&found, "subtask/unpublished");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].step, step.guid);
        assert_eq!(found[0].path, "subtask_id");
        assert_eq!(fact(found[0], "subtask"), json!("Inner"));
        assert_eq!(fact(found[0], "published"), json!(f64::from(published)));
    }
}

#[apply(on_both_databases)]
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

#[apply(on_both_databases)]
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

#[apply(on_both_databases)]
async fn nine_levels_of_subtasks_are_too_deep(client: Client) {
    let first = chain(&client, 9).await;
    let found = rules(&client, &first).await;
    let rules: Vec<_> = found.iter().map(|one| one.rule.as_str()).collect();
    assert_eq!(rules, ["analysis/too-large", "subtask/too-deep"]);
    assert_eq!(fact(&found[0], "limit"), json!("subtask_levels"));
    assert_eq!(fact(&found[0], "most"), json!(8.0));
    assert_eq!(
        (&found[1].step, found[1].path.as_str()),
        (&first.steps[0], "subtask_id")
    );
}

#[apply(on_both_databases)]
async fn what_speaks_of_walkthroughs_is_not_checked_beyond_a_limit(client: Client) {
    let deep = chain(&client, 8).await;
    let steps = vec![
        asks("twice", &["x", "y"]),
        asks("twice", &["x", "y"]),
        subtask(&Task::default(), &deep),
        shown(StepType::End, "Done"),
        shown(StepType::Solution, "After"),
    ];
    let found = findings(&client, steps).await;
    let path = |step| format!("document.steps[{step}].feedback_config[0].name");
    assert_eq!(
        places(&found),
        [
            ("analysis/too-large", "document.task"),
            ("observation/duplicate-name", &*path(1)),
            ("observation/unused", &*path(0)),
            ("observation/unused", &*path(1)),
            ("subtask/too-deep", "document.steps[2].subtask_id"),
        ]
    );
    let duplicate = of_rule(&found, "observation/duplicate-name")[0];
    assert_eq!(fact(duplicate, "together"), json!(null));
}

#[apply(on_both_databases)]
async fn eight_levels_of_subtasks_are_not_too_deep(client: Client) {
    let found = rules(&client, &chain(&client, 8).await).await;
    assert_eq!(found, []);
}

#[apply(on_both_databases)]
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
#[apply(on_both_databases)]
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
            let found = of_rule(&found, "analysis/too-large");
            assert_eq!(found.len(), too_large);
            for finding in found {
                assert_eq!(fact(finding, "limit"), json!("conditions"));
                assert_eq!(fact(finding, "most"), json!(20_000.0));
            }
        }
    }
}

/// The task that the first answer of the task's first step manages.
async fn first_managed_task(client: &Client, task: &str) -> String {
    let steps = client.exported(task).await.steps;
    answers_of(&steps[0])[0].link.clone()
}

#[apply(on_both_databases)]
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
