//! Tasks that answers manage, and that are shown whatever is answered.

use serde_json::json;

use super::*;

const RULE: &str = "linked/always-shown";

fn idp() -> Vec<Step> {
    vec![shown(StepType::Idp, "Inner")]
}

/// A linked observation `it` with the answers `a` and `b`.
fn linked(tasks: [TaskDocument; 2]) -> Step {
    let [a, b] = tasks;
    let values = vec![answer_with("a", "A", a), answer_with("b", "B", b)];
    observation_asking(linked_question(values))
}

#[apply(on_both_databases)]
async fn a_managed_task_that_does_not_read_the_answer_is_reported_at_the_answer(client: Client) {
    let steps = vec![
        linked([shown_after("a", idp()), document("", idp())]),
        shown(StepType::End, "Done"),
    ];
    let path = "feedback_config[0].values[1]";
    let found = only_finding(&client, steps.clone(), RULE, 0, path).await;
    assert_eq!(found.severity(), Severity::Warning);
    assert_eq!(fact(&found, "key"), json!("b"));
    assert_eq!(fact(&found, "name"), json!("it"));
    assert!(
        found.hint.contains("`components.7.it = b`"),
        "{}",
        found.hint
    );

    let made = client.imported(document("Guide", steps)).await;
    let stored = client.validated(validation_of(&made.guid)).await.findings;
    assert_eq!(places(&stored), [(RULE, path)]);
    assert_eq!(stored[0].step, made.steps[0]);
    // The shorthand of the hint mends it.
    let managed = answers_of(&client.get_step(&made.steps[0]).await.accepted())[1]
        .link
        .clone();
    let task = Task {
        dependencies: Some(all_of(vec![reads("it", "=", &["b"])])),
        ..task_of(&managed)
    };
    client.updated_task(task, &["dependencies"]).await;
    let mended = client.validated(validation_of(&made.guid)).await.findings;
    assert_eq!(mended, []);
}

#[apply(on_one_database)]
async fn a_condition_of_the_task_or_of_its_wiring_step_reads_the_answer(client: Client) {
    let steps = vec![
        linked([shown_after("a", idp()), document("", idp())]),
        shown(StepType::End, "Done"),
    ];
    let made = client.imported(document("Guide", steps)).await;
    // The wiring step of `b`, by the observation's own name.
    let own_name = comparison(Condition {
        variable: "it".to_owned(),
        operator: "!=".to_owned(),
        targets: vec![text("a")],
        path: String::new(),
    });
    let wiring = Step {
        dependencies: Some(any_of(vec![nested(all_of(vec![own_name]))])),
        ..step_of(&made.steps[2])
    };
    client
        .update_step(wiring, &["dependencies"])
        .await
        .accepted();
    let found = client.validated(validation_of(&made.guid)).await.findings;
    assert_eq!(of_rule(&found, RULE), Vec::<&Finding>::new());
}

#[apply(on_one_database)]
async fn a_condition_on_another_observation_does_not_read_the_answer(client: Client) {
    let other = Task {
        dependencies: Some(all_of(vec![reads("light", "=", &["on"])])),
        ..Task::default()
    };
    let mut steps = clean();
    let tasks = [shown_after("a", idp()), document_with(other, idp())];
    steps.insert(1, linked(tasks));
    only_finding(&client, steps, RULE, 1, "feedback_config[0].values[1]").await;
}

#[apply(on_one_database)]
async fn the_hint_quotes_an_answer_with_a_comma(client: Client) {
    let values = vec![
        answer_with("a, or \"b\"", "A", document("", idp())),
        answer_with("c", "C", shown_after("c", idp())),
    ];
    let steps = vec![
        observation_asking(linked_question(values)),
        shown(StepType::End, "Done"),
    ];
    let found = findings(&client, steps).await;
    let hint = &of_rule(&found, RULE)[0].hint;
    let shorthand = "`components.7.it = \"a, or \\\"b\\\"\"`";
    assert!(hint.contains(shorthand), "{hint}");
}

/// What the task depends on is not known.
#[apply(on_both_databases)]
async fn a_managed_task_beyond_a_limit_is_not_reported(client: Client) {
    let inner = vec![shown(StepType::Information, "Inner"); 6_000];
    let tasks = [shown_after("a", inner.clone()), shown_after("b", inner)];
    let made = client
        .imported(document("Guide", vec![linked(tasks)]))
        .await;
    let found = client.validated(validation_of(&made.guid)).await.findings;
    assert_eq!(of_rule(&found, "analysis/too-large").len(), 1);
    assert_eq!(of_rule(&found, RULE), Vec::<&Finding>::new());
}

#[apply(on_one_database)]
async fn findings_about_steps_that_an_import_adds_are_at_their_answers(client: Client) {
    let for_technicians = |key| {
        let task = Task {
            roles: vec![AccessLevel::Tech.into()],
            ..shown_after(key, Vec::new()).task.expect("a task")
        };
        document_with(task, idp())
    };
    let steps = vec![
        linked([for_technicians("a"), for_technicians("b")]),
        shown(StepType::End, "Done"),
    ];
    let found = findings(&client, steps).await;
    let path = |index| format!("document.steps[0].feedback_config[0].values[{index}]");
    assert_eq!(
        places(&found),
        [("subtask/levels", &*path(0)), ("subtask/levels", &*path(1))]
    );
    assert_ne!(found[0].id, found[1].id);
}
