//! Dependencies: groups and conditions that are kept and that are refused.

use crate::kit::prelude::*;
use prost_types::Value;

on_both_databases![
    a_group_is_kept_as_sent,
    every_operator_is_kept,
    targets_may_be_strings_numbers_and_booleans,
    sixteen_groups_deep_is_accepted_and_seventeen_is_not,
    a_thousand_conditions_are_accepted_and_one_more_is_not,
    variable_and_path_may_have_1000_code_points,
    zero_and_minus_zero_are_different_targets,
    a_thousand_targets_are_accepted_and_one_more_is_not,
    targets_of_65536_bytes_are_accepted_and_one_more_is_not,
];

on_one_database![
    conditions_are_counted_across_groups,
    a_group_needs_an_operator,
    an_unknown_group_operator_is_refused,
    an_empty_group_is_refused_at_every_level,
    a_node_needs_a_condition_or_a_group,
    a_condition_needs_variable_operator_and_targets,
    an_unknown_operator_is_refused,
    a_target_that_is_no_string_number_or_boolean_is_refused,
    a_number_must_be_finite,
    steps_refuse_invalid_dependencies_too,
    a_shorthand_has_the_limits_of_targets,
];

async fn create(client: &Client, dependencies: DependencyGroup) -> Result<Task, tonic::Status> {
    let sent = task("Conditional").with_dependencies(dependencies);
    let created = client.create_task(sent).await?;
    Ok(created.task.expect("the task"))
}

async fn kept(client: &Client, dependencies: DependencyGroup) {
    let created = create(client, dependencies.clone()).await.accepted();
    let read = client.get_task(&created.guid).await.accepted();
    assert_eq!(read.dependencies, Some(dependencies));
}

fn condition() -> Condition {
    Condition {
        variable: "v".to_owned(),
        operator: "=".to_owned(),
        targets: vec![text("1")],
        path: String::new(),
    }
}

async fn refused(client: &Client, condition: Condition, violations: &[(&str, &str)]) {
    let created = create(client, all_of(vec![comparison(condition)])).await;
    let at = "task.dependencies.nodes[0].condition.";
    let violations: Vec<(String, &str)> = violations
        .iter()
        .map(|(field, reason)| (format!("{at}{field}"), *reason))
        .collect();
    let violations: Vec<(&str, &str)> = violations
        .iter()
        .map(|(field, reason)| (field.as_str(), *reason))
        .collect();
    created.refused().violates(&violations);
}

async fn a_group_is_kept_as_sent(client: Client) {
    let dependencies = full_task().dependencies.unwrap();
    kept(&client, dependencies).await;
    // Nothing is simplified, although the meaning would be the same.
    let single = all_of(vec![nested(any_of(vec![nested(all_of(vec![when(
        "a", "=", "1",
    )]))]))]);
    kept(&client, single).await;
    let twice = any_of(vec![when("a", "=", "1"), when("a", "=", "1")]);
    kept(&client, twice).await;
}

async fn every_operator_is_kept(client: Client) {
    for operator in ["=", "!=", ">", "<"] {
        kept(&client, all_of(vec![when("a", operator, "1")])).await;
    }
}

async fn targets_may_be_strings_numbers_and_booleans(client: Client) {
    let targets = vec![
        text(""),
        text("1"),
        number(1.0),
        number(-0.5),
        value(true.into()),
        text("true"),
        value(false.into()),
    ];
    let condition = Condition {
        targets,
        path: "any. path".to_owned(),
        ..condition()
    };
    kept(&client, all_of(vec![comparison(condition)])).await;
}

async fn sixteen_groups_deep_is_accepted_and_seventeen_is_not(client: Client) {
    kept(&client, groups_deep(16)).await;
    let failure = create(&client, groups_deep(17)).await.refused();
    let path = format!("task.dependencies{}", ".nodes[0].group".repeat(16));
    failure.violates(&[(&path, "NESTING_TOO_DEEP")]);
}

async fn a_thousand_conditions_are_accepted_and_one_more_is_not(client: Client) {
    kept(&client, conditions(1_000)).await;
    let failure = create(&client, conditions(1_001)).await.refused();
    failure.violates_below("task.dependencies", "TOO_MANY_ELEMENTS");
}

async fn conditions_are_counted_across_groups(client: Client) {
    let split = all_of(vec![nested(conditions(600)), nested(conditions(401))]);
    let failure = create(&client, split).await.refused();
    failure.violates_below("task.dependencies", "TOO_MANY_ELEMENTS");
}

fn operated(operator: i32) -> DependencyGroup {
    DependencyGroup {
        operator,
        nodes: vec![when("a", "=", "1")],
    }
}

async fn a_group_needs_an_operator(client: Client) {
    let failure = create(&client, operated(0)).await.refused();
    failure.violates(&[("task.dependencies.operator", "FIELD_REQUIRED")]);
}

async fn an_unknown_group_operator_is_refused(client: Client) {
    for operator in [3, -1, i32::MAX] {
        let failure = create(&client, operated(operator)).await.refused();
        failure.violates(&[("task.dependencies.operator", "FIELD_INVALID")]);
    }
}

async fn an_empty_group_is_refused_at_every_level(client: Client) {
    let failure = create(&client, all_of(Vec::new())).await.refused();
    failure.violates(&[("task.dependencies.nodes", "FIELD_REQUIRED")]);
    let inside = all_of(vec![when("a", "=", "1"), nested(any_of(Vec::new()))]);
    let failure = create(&client, inside).await.refused();
    failure.violates(&[("task.dependencies.nodes[1].group.nodes", "FIELD_REQUIRED")]);
}

async fn a_node_needs_a_condition_or_a_group(client: Client) {
    let empty = all_of(vec![DependencyNode { node: None }]);
    let failure = create(&client, empty).await.refused();
    failure.violates_below("task.dependencies.nodes[0]", "FIELD_REQUIRED");
}

async fn a_condition_needs_variable_operator_and_targets(client: Client) {
    let empty = Condition::default();
    let violations = [
        ("operator", "FIELD_REQUIRED"),
        ("targets", "FIELD_REQUIRED"),
        ("variable", "FIELD_REQUIRED"),
    ];
    refused(&client, empty, &violations).await;
    let blank = Condition {
        variable: " \t".to_owned(),
        ..condition()
    };
    refused(&client, blank, &[("variable", "FIELD_REQUIRED")]).await;
}

async fn an_unknown_operator_is_refused(client: Client) {
    for operator in ["==", ">=", "AND", "≠"] {
        let odd = Condition {
            operator: operator.to_owned(),
            ..condition()
        };
        refused(&client, odd, &[("operator", "FIELD_INVALID")]).await;
    }
}

async fn a_target_that_is_no_string_number_or_boolean_is_refused(client: Client) {
    for target in [
        Value { kind: None },
        value(serde_json::Value::Null),
        value(serde_json::json!([1])),
        value(serde_json::json!({"a": 1})),
    ] {
        let odd = Condition {
            targets: vec![text("fine"), target],
            ..condition()
        };
        refused(&client, odd, &[("targets[1]", "FIELD_INVALID")]).await;
    }
}

async fn a_number_must_be_finite(client: Client) {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let odd = Condition {
            targets: vec![number(odd)],
            ..condition()
        };
        refused(&client, odd, &[("targets[0]", "FIELD_INVALID")]).await;
    }
}

async fn variable_and_path_may_have_1000_code_points(client: Client) {
    let full = Condition {
        variable: "ä".repeat(1_000),
        path: "🔧".repeat(1_000),
        ..condition()
    };
    kept(&client, all_of(vec![comparison(full)])).await;
    let long = Condition {
        variable: "v".repeat(1_001),
        path: "p".repeat(1_001),
        ..condition()
    };
    let violations = [("path", "FIELD_TOO_LONG"), ("variable", "FIELD_TOO_LONG")];
    refused(&client, long, &violations).await;
}

async fn steps_refuse_invalid_dependencies_too(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let sent = Step {
        dependencies: Some(all_of(vec![when("", "=", "1"), nested(all_of(Vec::new()))])),
        ..information_step(&task, "conditional")
    };
    let failure = client.create_step(sent).await.refused();
    failure.violates(&[
        (
            "step.dependencies.nodes[0].condition.variable",
            "FIELD_REQUIRED",
        ),
        ("step.dependencies.nodes[1].group.nodes", "FIELD_REQUIRED"),
    ]);
}

async fn zero_and_minus_zero_are_different_targets(client: Client) {
    let with = |target: f64| {
        let condition = Condition {
            targets: vec![number(target)],
            ..condition()
        };
        all_of(vec![comparison(condition)])
    };
    let created = create(&client, with(0.0)).await.accepted();
    let changed = task_of(&created.guid).with_dependencies(with(-0.0));
    let updated = client.updated_task(changed, &["dependencies"]).await;
    assert_ne!(updated.etag, created.etag);
    let read = client.get_task(&created.guid).await.accepted();
    let sign = |task: &Task| {
        let group = task.dependencies.clone().unwrap();
        let Some(expertise::proto::v1::dependency_node::Node::Condition(condition)) =
            &group.nodes[0].node
        else {
            panic!("a condition expected");
        };
        let Some(prost_types::value::Kind::NumberValue(number)) = condition.targets[0].kind else {
            panic!("a number expected");
        };
        number.is_sign_negative()
    };
    assert!(sign(&updated) && sign(&read));
}

async fn a_thousand_targets_are_accepted_and_one_more_is_not(client: Client) {
    let with = |count: usize| Condition {
        targets: (0..count).map(|n| text(&n.to_string())).collect(),
        ..condition()
    };
    kept(&client, all_of(vec![comparison(with(1_000))])).await;
    refused(&client, with(1_001), &[("targets", "TOO_MANY_ELEMENTS")]).await;
}

/// As a JSON list: brackets, quotes and a comma, and a quote in a text has two bytes.
async fn targets_of_65536_bytes_are_accepted_and_one_more_is_not(client: Client) {
    let with = |count: usize| Condition {
        targets: vec![text(&"x".repeat(count)), text("\"")],
        ..condition()
    };
    kept(&client, all_of(vec![comparison(with(65_527))])).await;
    refused(&client, with(65_528), &[("targets", "FIELD_TOO_LONG")]).await;
}

async fn a_shorthand_has_the_limits_of_targets(client: Client) {
    let create = |values: Vec<String>| {
        let shorthand = format!("components.7.light = {}", values.join(", "));
        client.create_task(Task {
            dependency_shorthand: Some(shorthand),
            ..task("Conditional")
        })
    };
    let numbers = |count: usize| (0..count).map(|n| n.to_string()).collect();
    create(numbers(1_000)).await.accepted();
    for (values, reason) in [
        (numbers(1_001), "TOO_MANY_ELEMENTS"),
        (vec!["x".repeat(65_533)], "FIELD_TOO_LONG"),
    ] {
        let refused = create(values).await.refused();
        refused.violates(&[("task.dependency_shorthand", reason)]);
    }
    create(vec!["x".repeat(65_532)]).await.accepted();
}
