//! Steps: which fields are stored, by type.

use crate::prelude::*;
use serde_json::json;
async fn a_task(client: &Client) -> Task {
    client.given_task(task("Guide")).await
}

#[apply(on_both_databases)]
async fn texts_lists_and_json_come_back_as_sent(client: Client) {
    let step = information_step(&a_task(&client).await, "Step");
    let body = "\u{feff}<p CLASS='a'>&nbsp;\r\n\t<br>e\u{301}<script>x</script>\u{fffd}</P> \u{1}";
    let instructions = vec![
        object(json!({"z": 1, "a": {"deep": [1, [2, {"x": null}]]}, "": "empty key"})),
        object(json!({})),
        object(json!({"$type": "?", "ключ": false, "z": 1})),
        object(json!({})),
    ];
    let list = ["b", "a", "b", "ä", "a,b", "'"].map(str::to_owned).to_vec();
    let numbers = [
        0.1,
        1e300,
        -2.5e-300,
        5e-324,
        f64::MAX,
        9_007_199_254_740_993.0,
        1e16,
        123_456_789.123_456_78,
    ];
    let numbers = value(json!(numbers));
    let null = value(serde_json::Value::Null);
    let looping =
        |array: Option<&prost_types::Value>, iterations: Option<&prost_types::Value>| Step {
            looping: Some(Looping {
                alias: "x".to_owned(),
                array: array.cloned(),
                iterations: iterations.cloned(),
            }),
            ..step.clone()
        };
    for (what, sent) in [
        ("a body, byte for byte", step.clone().with_body(body)),
        ("no body", step.clone()),
        (
            "the order and unknown members of instructions",
            step.clone().with_instructions(instructions),
        ),
        (
            "the order and duplicates of lists",
            Step {
                parts: list.clone(),
                skills: list.clone(),
                tags: list,
                ..step.clone()
            },
        ),
        (
            "numbers in JSON",
            looping(Some(&numbers), Some(&number(3.0))),
        ),
        ("no values of a loop", looping(None, None)),
        ("null as array", looping(Some(&null), None)),
        ("null as iterations", looping(None, Some(&null))),
    ] {
        let guid = client.given_step(sent.clone()).await.guid;
        let read = client.get_step(&guid).await.accepted();
        let found = Step {
            body: read.body,
            instructions: read.instructions,
            looping: read.looping,
            parts: read.parts,
            skills: read.skills,
            tags: read.tags,
            ..step.clone()
        };
        assert_eq!(found, sent, "{what}");
    }
}

/// Updates a field of a step to its value in the changed one, and asserts that nothing else has
/// changed but the version.
async fn changes_alone(client: &Client, changed: Step, field: &str) -> Step {
    let after = client.updated_step(changed.clone(), &[field]).await;
    assert_ne!(after.etag, changed.etag);
    assert_ne!(after.modified_ts, changed.modified_ts);
    let expected = changed
        .with_etag(after.etag.clone())
        .with(|it| it.modified_ts = after.modified_ts);
    assert_eq!(after, expected);
    assert_eq!(client.get_step(&after.guid).await.accepted(), after);
    after
}

#[apply(on_both_databases)]
async fn an_update_changes_etag_and_modified_ts_alone_of_the_other_fields(client: Client) {
    let task = a_task(&client).await;
    let step = client.given_step(full_step(&task)).await;
    let step = changes_alone(&client, step.with_published(3), "published").await;
    let question = question("other", &["a"]).with(|it| it.linked = Some(false));
    changes_alone(&client, step.with_question(question), "feedback_config").await;
    // A reference to another task is written under locks.
    let other = self::task("Other").with_product(PRODUCT + 1);
    let other = client.given_task(other).await;
    let step = client.given_step(subtask(&task, &task)).await;
    let referring = step
        .with(|it| it.subtask_id = other.guid)
        .with(|it| it.subtask_pid = other.product_id)
        .titled(other.name);
    changes_alone(&client, referring, "subtask_id").await;
}

#[apply(on_both_databases)]
async fn an_upper_case_guid_names_the_same_step(client: Client) {
    let task = a_task(&client).await;
    let sent = information_step(&task, "upper case").in_task(task.guid.to_uppercase());
    let created = client.given_step(sent).await;
    assert_eq!(created.task, task.guid);
    let read = client.get_step(&created.guid.to_uppercase()).await;
    assert_eq!(read.accepted(), created);
}

#[apply(on_both_databases)]
async fn a_deleted_step_is_gone(client: Client) {
    let task = a_task(&client).await;
    let guid = client.given_step(full_step(&task)).await.guid;
    let response = client.delete_step(&guid).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    client
        .get_step(&guid)
        .await
        .refused()
        .is_step_not_found(&guid);
    client
        .delete_step(&guid)
        .await
        .refused()
        .is_step_not_found(&guid);
    assert_eq!(client.step_order(&task.guid).await, [""; 0]);
}

#[apply(on_both_databases)]
async fn lists_leave_bodies_out_unless_expanded(client: Client) {
    let task = a_task(&client).await;
    let whole = client.given_step(full_step(&task)).await;
    let mut bare = whole.clone();
    bare.body = None;
    bare.translations.get_mut("de").unwrap().body = None;
    let mut request = list_steps_of(&task.guid);
    let listed = client.call(request.clone()).await.accepted();
    assert_eq!(listed.steps, [bare]);
    request.expand = vec!["body".to_owned()];
    let listed = client.call(request).await.accepted();
    assert_eq!(listed.steps, [whole]);
}
