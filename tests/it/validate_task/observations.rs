//! Rules about observations.

use super::*;
use serde_json::json;

#[apply(on_one_database)]
async fn two_observations_of_one_name_are_reported_with_whether_one_walkthrough_sees_both(
    client: Client,
) {
    for (conditions, together) in [(["on", "on"], true), (["on", "off"], false)] {
        let mut steps = clean();
        for key in conditions {
            let ask = needing(
                asks("again", &["x", "y"]),
                vec![reads("light", "=", &[key])],
            );
            steps.insert(3, ask);
        }
        let solution = |key| {
            let needs = vec![reads("again", "=", &[key])];
            needing(shown(StepType::Solution, "Again"), needs)
        };
        steps.insert(5, solution("x"));
        steps.insert(6, solution("y"));
        let path = "feedback_config[0].name";
        let found = only_finding(&client, steps, "observation/duplicate-name", 4, path).await;
        assert_eq!(fact(&found, "together"), json!(together));
        assert_eq!(
            found.related[0].path,
            "document.steps[3].feedback_config[0].name"
        );
    }
}

/// Whatever their products are.
#[apply(on_one_database)]
async fn each_later_observation_of_a_name_names_the_earlier_ones_of_its_task(client: Client) {
    let inner = document("", vec![asks("light", &["on", "off"])]);
    let linked = linked_question(vec![answer_with("a", "A", inner)]);
    let mut steps = vec![asks("light", &["on", "off"]); 3];
    steps[2].product_id = Some(8);
    steps.push(observation_asking(linked));
    let found = findings(&client, steps).await;
    let found = of_rule(&found, "observation/duplicate-name").into_iter();
    let found: Vec<(String, Vec<String>)> = found
        .map(|one| {
            let related = one.related.iter().map(|place| place.path.clone());
            (one.path.clone(), related.collect())
        })
        .collect();
    let path = |step| format!("document.steps[{step}].feedback_config[0].name");
    let expected = [(path(1), vec![path(0)]), (path(2), vec![path(0), path(1)])];
    assert_eq!(found, expected);
}

#[apply(on_one_database)]
async fn an_observation_that_nothing_reads_is_unused(client: Client) {
    let mut steps = clean();
    steps.insert(1, asks("serial", &["x", "y"]));
    let path = "feedback_config[0].name";
    let found = only_finding(&client, steps, "observation/unused", 1, path).await;
    assert_eq!(fact(&found, "variable"), json!("serial"));
    assert_eq!(found.severity(), Severity::Info);
}

/// In drafts and subtasks, and in the dependencies of tasks of the guide and of others.
#[apply(on_both_databases)]
async fn an_observation_that_any_task_reads_is_used(client: Client) {
    let needs = |name: &str| all_of(vec![reads(name, "=", &["x"])]);
    let depending = |name: &str| task("Reader").with_dependencies(needs(name));
    let draft = shown(StepType::Information, "Draft").depending_on(needs("of_draft"));
    let drafts = document("Drafts", vec![draft.with_published(0)]);
    let drafts = client.imported(drafts).await;
    let entered = client.given_task(depending("of_entered")).await;
    client.given_task(depending("of_other")).await;
    let managed = document_with(depending("of_managed"), vec![shown(StepType::Idp, "Inner")]);
    let linked = linked_question(vec![answer_with("a", "A", managed)]);
    let names = [
        "of_draft",
        "of_entered",
        "of_other",
        "of_managed",
        "of_nobody",
    ];
    let mut steps: Vec<Step> = names.map(|name| asks(name, &["x", "y"])).into();
    steps.extend([
        subtask(&Task::default(), &drafts),
        subtask(&Task::default(), &entered),
        observation_asking(linked),
    ]);
    let found = findings(&client, steps).await;
    let unused = of_rule(&found, "observation/unused").into_iter();
    let paths: Vec<_> = unused.map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["document.steps[4].feedback_config[0].name"]);
}

#[apply(on_both_databases)]
async fn an_observation_that_another_guide_reads_is_used(client: Client) {
    let reader = needing(
        shown(StepType::Information, "Reader"),
        vec![reads("serial", "=", &["x", "y"])],
    );
    client.imported(document("Other", vec![reader])).await;
    let mut steps = clean();
    steps.insert(1, asks("serial", &["x", "y"]));
    assert_eq!(findings(&client, steps).await, []);
}

#[apply(on_one_database)]
async fn an_observation_that_manages_tasks_is_used(client: Client) {
    let mut steps = clean();
    let inner = || document("", vec![shown(StepType::Idp, "Inner")]);
    let values = vec![
        answer_with("a", "A", inner()),
        answer_with("b", "B", inner()),
    ];
    steps.insert(1, observation_asking(linked_question(values)));
    let found = findings(&client, steps).await;
    let rules: Vec<_> = found.iter().map(|one| one.rule.as_str()).collect();
    assert_eq!(rules, ["linked/always-shown", "linked/always-shown"]);
}

#[apply(on_one_database)]
async fn an_answer_that_no_condition_names_is_unused(client: Client) {
    let mut steps = clean();
    steps[0] = asks("light", &["on", "off", "blinking"]);
    let path = "feedback_config[0].values[2]";
    let found = only_finding(&client, steps, "observation/unused-answer", 0, path).await;
    assert_eq!(fact(&found, "answer"), json!("blinking"));
}

#[apply(on_one_database)]
async fn answers_are_distinguished_by_both_names_and_by_what_they_are_not(client: Client) {
    let path = "document.steps[0].feedback_config[0].values[0]";
    for (own, unused) in [
        (when("light", "=", "on"), vec![]),
        (
            when("light", "!=", "off"),
            vec![("observation/unused-answer", path)],
        ),
    ] {
        let by_full_name = reads("light", "!=", &["off"]);
        let steps = vec![
            asks("light", &["on", "off"]),
            needing(shown(StepType::Solution, "Own"), vec![own]),
            needing(shown(StepType::Solution, "Full"), vec![by_full_name]),
            shown(StepType::End, "Done"),
        ];
        assert_eq!(places(&findings(&client, steps).await), unused);
    }
}

/// An answer manages a task in a document as in a stored guide.
#[apply(on_both_databases)]
async fn an_answer_that_no_condition_names_and_that_manages_a_task_is_used(client: Client) {
    let inner = || document("", vec![shown(StepType::Idp, "Inner")]);
    let values = vec![
        answer_with("a", "A", inner()),
        answer_with("b", "B", inner()),
    ];
    let steps = vec![
        observation_asking(linked_question(values)),
        needing(
            shown(StepType::Information, "Reader"),
            vec![reads("it", "=", &["a"])],
        ),
        shown(StepType::End, "Done"),
    ];
    let of_document = findings(&client, steps.clone()).await;
    let made = client.imported(document("Guide", steps)).await;
    let of_stored = client.validated(validation_of(&made.guid)).await.findings;
    for found in [of_document, of_stored] {
        let rules: Vec<_> = found.iter().map(|one| one.rule.as_str()).collect();
        assert_eq!(rules, ["linked/always-shown", "linked/always-shown"]);
    }
}

#[apply(on_one_database)]
async fn an_answer_that_equals_the_only_bound_is_unused(client: Client) {
    for (operator, bound, unused) in [("<", "3", 2), (">", "1", 0)] {
        let counted = vec![reads("count", operator, &[bound])];
        let steps = vec![
            asks("count", &["1", "2", "3"]),
            needing(shown(StepType::Solution, "Counted"), counted),
            shown(StepType::End, "Done"),
        ];
        let path = format!("feedback_config[0].values[{unused}]");
        let found = only_finding(&client, steps, "observation/unused-answer", 0, &path).await;
        assert_eq!(fact(&found, "answer"), json!(bound));
    }
}

#[apply(on_one_database)]
async fn answers_with_the_same_text_are_reported_in_every_language(client: Client) {
    let mut steps = clean();
    steps[0] = asks("light", &["on", "off", "dim"]);
    for value in &mut steps[0].feedback_config[0].values {
        value.value = "Text".to_owned();
    }
    let found = findings(&client, steps).await;
    let found = of_rule(&found, "observation/duplicate-text").into_iter();
    let found: Vec<_> = found
        .map(|one| (one.path.as_str(), fact(one, "answers")))
        .collect();
    let path = "document.steps[0].feedback_config[0].values";
    assert_eq!(
        found,
        [
            (&*format!("{path}[1]"), json!(["on", "off"])),
            (&*format!("{path}[2]"), json!(["on", "dim"])),
        ]
    );

    let mut steps = clean();
    let values = vec![answer("on", "an"), answer("off", "an")];
    let row = StepTranslation {
        feedback_config: vec![question("light", &[]).with_values(values)],
        ..step_translation("Frage")
    };
    steps[0] = steps[0].clone().translated("de", row);
    let found = findings(&client, steps).await;
    let found = of_rule(&found, "observation/duplicate-text");
    assert_eq!(found.len(), 1, "{found:#?}");
    let path = "document.steps[0].translations[\"de\"].feedback_config[0].values[1]";
    assert_eq!(
        (found[0].path.as_str(), found[0].language.as_str()),
        (path, "de")
    );
}

#[apply(on_one_database)]
async fn one_answer_leaves_nothing_to_choose(client: Client) {
    let mut steps = clean();
    steps.insert(1, asks("ready", &["ok"]));
    let needs = vec![reads("ready", "=", &["ok"]), reads("light", "=", &["on"])];
    steps.insert(2, needing(shown(StepType::Information, "Ready"), needs));
    let path = "feedback_config[0].values";
    only_finding(&client, steps, "observation/single-answer", 1, path).await;
}

#[apply(on_one_database)]
async fn unpublished_observations_are_checked(client: Client) {
    let mut steps = clean();
    let mut draft = asks("serial", &["x", "y"]);
    draft.published = Some(0);
    steps.insert(1, draft);
    let path = "feedback_config[0].name";
    only_finding(&client, steps, "observation/unused", 1, path).await;
}
