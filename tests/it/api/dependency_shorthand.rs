//! The short form of a single condition.

use crate::kit::prelude::*;
use prost_types::Value;

fn short(shorthand: &str) -> Task {
    task("Short").with_shorthand(shorthand)
}

/// The condition that a component's shorthand expands to.
fn expansion(product: i64, variable: &str, operator: &str, targets: &[&str]) -> DependencyGroup {
    all_of(vec![comparison(Condition {
        variable: variable.to_owned(),
        operator: operator.to_owned(),
        targets: targets.iter().map(|target| text(target)).collect(),
        path: format!("components.{product}"),
    })])
}

async fn expands(client: &Client, shorthand: &str, expected: DependencyGroup) {
    let created = client.given_task(short(shorthand)).await;
    assert_eq!(created.dependencies, Some(expected), "{shorthand}");
    assert_eq!(client.get_task(&created.guid).await.accepted(), created);
}

#[apply(on_one_database)]
async fn a_shorthand_expands_to_one_condition(client: Client) {
    for operator in ["=", "!=", ">", "<"] {
        let shorthand = format!("components.42.power {operator} on");
        expands(
            &client,
            &shorthand,
            expansion(42, "power", operator, &["on"]),
        )
        .await;
    }
    let expected = expansion(42, "power.level 2", "=", &["on"]);
    expands(&client, "components.42.power.level 2 = on", expected).await;
}

#[apply(on_one_database)]
async fn spaces_around_operator_and_commas_do_not_matter(client: Client) {
    let expected = expansion(7, "a", "=", &["x", "y z"]);
    for shorthand in [
        "components.7.a=x,y z",
        "components.7.a = x, y z",
        "components.7.a   =  x  ,  y z",
    ] {
        expands(&client, shorthand, expected.clone()).await;
    }
}

#[apply(on_one_database)]
async fn values_may_be_quoted(client: Client) {
    let expected = expansion(7, "a", "=", &["x, y", r#"say "\""#, " outer ", "", "plain"]);
    let shorthand = r#"components.7.a = "x, y", "say \"\\\"", " outer ", "", plain"#;
    expands(&client, shorthand, expected).await;
}

#[apply(on_one_database)]
async fn a_single_condition_is_rendered_on_read(client: Client) {
    let sent = task("Long").with_dependencies(expansion(7, "power", "=", &["on", "half, or less"]));
    let guid = client.given_task(sent).await.guid;
    let read = client.get_task(&guid).await.accepted();
    let expected = r#"components.7.power = on, "half, or less""#;
    assert_eq!(read.dependency_shorthand.as_deref(), Some(expected));
}

#[apply(on_one_database)]
async fn other_conditions_render_as_unset(client: Client) {
    let one = expansion(7, "a", "=", &["1"]);
    let with = |path: &str, target: Value| {
        all_of(vec![comparison(Condition {
            variable: "a".to_owned(),
            operator: "=".to_owned(),
            targets: vec![target],
            path: path.to_owned(),
        })])
    };
    let elsewhere = |path: &str| with(path, text("1"));
    let several = all_of([one.nodes.clone(), one.nodes.clone()].concat());
    for dependencies in [
        several,
        all_of(vec![nested(one.clone())]),
        any_of(one.nodes),
        elsewhere(""),
        elsewhere("components.x"),
        elsewhere("components.7.b"),
        elsewhere("parts.7"),
        with("components.7", number(1.0)),
        with("components.7", value(true.into())),
        expansion(7, "a=b", "=", &["1"]),
        expansion(7, " a", "=", &["1"]),
        expansion(7, "a", "<", &["1", "2"]),
    ] {
        let sent = task("Long").with_dependencies(dependencies);
        let created = client.given_task(sent).await;
        assert_eq!(created.dependency_shorthand, None, "{created:?}");
    }
}

#[apply(on_one_database)]
async fn steps_take_a_shorthand_too(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let sent = information_step(&task, "short").with_shorthand("components.7.a = 1");
    let created = client.given_step(sent.clone()).await;
    assert_eq!(created.dependencies, Some(expansion(7, "a", "=", &["1"])));
    assert_eq!(created.dependency_shorthand, sent.dependency_shorthand);
}
