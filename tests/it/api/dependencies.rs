//! Dependencies: groups and conditions that are kept and that are refused.

use crate::prelude::*;

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

#[apply(on_both_databases)]
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

#[apply(on_both_databases)]
async fn sixteen_groups_deep_is_accepted_and_seventeen_is_not(client: Client) {
    kept(&client, groups_deep(16)).await;
    let failure = create(&client, groups_deep(17)).await.refused();
    let path = format!("task.dependencies{}", ".nodes[0].group".repeat(16));
    failure.violates(&[(&path, "NESTING_TOO_DEEP")]);
}

#[apply(on_one_database)]
async fn a_number_must_be_finite(client: Client) {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let odd = condition("v", "=", "1").with(|it| it.targets = vec![number(odd)]);
        let created = create(&client, all_of(vec![comparison(odd)])).await;
        let path = "task.dependencies.nodes[0].condition.targets[0]";
        created.refused().violates(&[(path, "FIELD_INVALID")]);
    }
}

#[apply(on_both_databases)]
async fn zero_and_minus_zero_are_different_targets(client: Client) {
    let with = |target: f64| {
        let condition = condition("v", "=", "1").with(|it| it.targets = vec![number(target)]);
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
