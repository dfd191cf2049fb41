//! References of variables.

use serde_json::json;

use super::{below, depending, observation, of_variable, places};
use crate::kit::prelude::*;

#[apply(on_both_databases)]
async fn a_variable_that_nothing_uses_has_none(client: Client) {
    let task = client.given_task(task("Guide")).await;
    client
        .given_step(observation(&task, "light", &["on"]))
        .await;
    for name in ["components.8.light", "components.7.lights", "light"] {
        assert_eq!(places(&client, of_variable(name)).await, [], "{name}");
    }
}

#[apply(on_both_databases)]
async fn an_observation_sets_the_name_of_its_product(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let step = observation(&task, "light", &["on"]).with_product(31);
    let step = client.given_step(step).await;
    let found = client.references(of_variable("components.31.light")).await;
    let expected = Reference {
        kind: ReferenceKind::Sets.into(),
        place: Some(Place {
            task: task.guid,
            step: step.guid,
            path: "feedback_config[0]".to_owned(),
            title: "Look at light".to_owned(),
        }),
        operator: String::new(),
        targets: Vec::new(),
    };
    assert_eq!(found, [expected]);
}

#[apply(on_both_databases)]
async fn configs_of_other_types_set_nothing(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let step = information_step(&task, "Read").with_question(question("light", &["on"]));
    client.given_step(step).await;
    let request = of_variable("components.7.light");
    assert_eq!(places(&client, request).await, []);
    let request = ListReferencesRequest {
        task: task.guid,
        ..of_variable("light")
    };
    assert_eq!(places(&client, request).await, []);
}

#[apply(on_both_databases)]
async fn a_path_and_a_variable_make_one_name(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let nodes = vec![
        below("components.7", "light", "=", text("on")),
        below("components", "7.light", "=", text("on")),
        below("", "components.7.light", "=", text("on")),
        below("components.7.", "light", "=", text("on")),
        below("components.7", "Light", "=", text("on")),
    ];
    client
        .given_step(depending(information_step(&task, "Step"), nodes))
        .await;
    let found = places(&client, of_variable("components.7.light")).await;
    assert_eq!(found.len(), 3, "{found:?}");
    let found = places(&client, of_variable("components.7..light")).await;
    assert_eq!(found.len(), 1, "{found:?}");
}

#[apply(on_both_databases)]
async fn each_condition_is_listed_with_its_path_operator_and_targets(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let several = comparison(Condition {
        variable: "age".to_owned(),
        operator: "!=".to_owned(),
        targets: vec![number(2.5), text("old"), value(json!(true))],
        path: String::new(),
    });
    let inner = any_of(vec![when("other", "=", "1"), nested(all_of(vec![several]))]);
    let nodes = vec![when("age", ">", "5"), nested(inner)];
    client
        .given_step(depending(information_step(&task, "Step"), nodes))
        .await;
    let found = client.references(of_variable("age")).await;
    let shown = |reference: &Reference| {
        let place = reference.place.clone().expect("a place");
        (
            place.path,
            reference.operator.clone(),
            reference.targets.clone(),
        )
    };
    let found: Vec<_> = found.iter().map(shown).collect();
    let nested = "dependencies.nodes[1].group.nodes[1].group.nodes[0].condition";
    let first = "dependencies.nodes[0].condition".to_owned();
    let targets = vec![number(2.5), text("old"), value(json!(true))];
    assert_eq!(
        found,
        [
            (first, ">".to_owned(), vec![text("5")]),
            (nested.to_owned(), "!=".to_owned(), targets),
        ]
    );
}

#[apply(on_both_databases)]
async fn an_answer_keeps_observations_that_have_it(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let both = client
        .given_step(observation(&task, "light", &["on", "off"]))
        .await;
    client
        .given_step(observation(&task, "light", &["on"]))
        .await;
    let request = ListReferencesRequest {
        answer: "off".to_owned(),
        ..of_variable("components.7.light")
    };
    let found = places(&client, request).await;
    assert_eq!(
        found,
        [(
            ReferenceKind::Sets,
            both.guid,
            "feedback_config[0]".to_owned()
        )]
    );
}

#[apply(on_both_databases)]
async fn an_answer_keeps_conditions_of_which_a_target_equals_it(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let targets = [
        text("5"),
        number(5.0),
        text("5.0"),
        text("true"),
        value(json!(true)),
    ];
    let mut nodes: Vec<DependencyNode> = Vec::new();
    for operator in ["=", "!="] {
        let nodes_of = targets
            .iter()
            .map(|target| below("", "level", operator, target.clone()));
        nodes.extend(nodes_of);
    }
    client
        .given_step(depending(information_step(&task, "Step"), nodes))
        .await;
    for (answer, indexes) in [
        ("5", vec![0, 1, 5, 6]),
        ("5.0", vec![1, 2, 6, 7]),
        ("true", vec![3, 4, 8, 9]),
        ("True", vec![]),
        ("6", vec![]),
    ] {
        let request = ListReferencesRequest {
            answer: answer.to_owned(),
            ..of_variable("level")
        };
        let found = places(&client, request).await;
        let found: Vec<&str> = found.iter().map(|(_, _, path)| path.as_str()).collect();
        let expected = indexes
            .iter()
            .map(|index| format!("dependencies.nodes[{index}].condition"));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{answer}");
    }
}

#[apply(on_both_databases)]
async fn greater_and_less_count_for_every_answer(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let nodes = vec![
        when("level", ">", "5"),
        when("level", "<", "5"),
        when("level", "=", "5"),
    ];
    client
        .given_step(depending(information_step(&task, "Step"), nodes))
        .await;
    let request = ListReferencesRequest {
        answer: "red".to_owned(),
        ..of_variable("level")
    };
    let found = client.references(request).await;
    let operators: Vec<&str> = found.iter().map(|found| found.operator.as_str()).collect();
    assert_eq!(operators, [">", "<"]);
}

#[apply(on_both_databases)]
async fn a_thousand_conditions_of_one_step_are_found(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let nodes = (0..1_000).map(|n| when(&format!("v{n}"), "=", "1"));
    let step = depending(information_step(&task, "Step"), nodes.collect());
    let step = client.given_step(step).await;
    for name in ["v0", "v500", "v999"] {
        assert_eq!(places(&client, of_variable(name)).await.len(), 1, "{name}");
    }
    let same = vec![when("v7", "=", "1"); 1_000];
    let update = depending(step_of(&step.guid), same);
    client.updated_step(update, &["dependencies"]).await;
    assert_eq!(places(&client, of_variable("v0")).await, []);
    let found = places(&client, of_variable("v7")).await;
    assert_eq!(found.len(), 1_000);
    assert!(found.is_sorted(), "by path");
}

#[apply(on_both_databases)]
async fn changed_conditions_move_their_references(client: Client) {
    let group = |name: &str| all_of(vec![when("kept", "=", "1"), when(name, "=", "1")]);
    let guide = client
        .given_task(task("Guide").with_dependencies(group("a")))
        .await;
    let step = Step {
        dependencies: Some(group("a")),
        ..information_step(&guide, "Step")
    };
    let step = client.given_step(step).await;
    let count = async |name: &str| places(&client, of_variable(name)).await.len();
    assert_eq!(
        (count("kept").await, count("a").await, count("b").await),
        (2, 2, 0)
    );
    let update = task_of(&guide.guid).with_dependencies(group("b"));
    client.updated_task(update, &["dependencies"]).await;
    let update = Step {
        dependencies: Some(group("b")),
        ..step_of(&step.guid)
    };
    client.updated_step(update, &["dependencies"]).await;
    assert_eq!(
        (count("kept").await, count("a").await, count("b").await),
        (2, 0, 2)
    );
    client
        .updated_task(task_of(&guide.guid), &["dependencies"])
        .await;
    client
        .updated_step(step_of(&step.guid), &["dependencies"])
        .await;
    assert_eq!(
        (count("kept").await, count("a").await, count("b").await),
        (0, 0, 0)
    );
}
