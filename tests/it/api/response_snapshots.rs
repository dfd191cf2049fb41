//! Snapshots of whole errors. Whole responses are in `docs/reference.md`.
//!
//! `cargo insta review`, or `INSTA_UPDATE=always cargo test`, accepts intended changes.

use crate::{kit::snapshot::number_ids, prelude::*};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Compares with the snapshot of this name, the same one on every database.
fn matches(name: &str, value: &Value) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let pretty = serde_json::to_string_pretty(value).expect("JSON");
    settings.bind(|| insta::assert_snapshot!(name, number_ids(&pretty)));
}

/// An error with its details.
fn shown(failure: &Failure) -> Value {
    let details = &failure.details;
    let resource = details.resource_info();
    let metadata: BTreeMap<String, String> = failure.metadata().into_iter().collect();
    let violations = details.bad_request().map(|request| {
        let all = request.field_violations.iter();
        let all = all.map(|v| json!([v.field, v.reason, v.description]));
        all.collect::<Vec<Value>>()
    });
    let preconditions = details.precondition_failure().map(|failure| {
        let all = failure.violations.iter();
        let all = all.map(|v| json!([v.r#type, v.subject, v.description]));
        all.collect::<Vec<Value>>()
    });
    json!({
        "code": format!("{:?}", failure.code),
        "message": failure.message,
        "reason": failure.reason(),
        "metadata": metadata,
        "violations": violations,
        "preconditions": preconditions,
        "resource": resource.map(|r| {
            json!([r.resource_type, r.resource_name, r.owner, r.description])
        }),
    })
}

#[apply(on_one_database)]
async fn refused_fields(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let missing = client.create_task(Task::default()).await.refused();
    let limits = Step {
        title: "x".repeat(401),
        cost: Some(1),
        tags: vec!["x".repeat(1_001)],
        parts: vec!["x".to_owned(); 1_001],
        dependencies: Some(groups_deep(17)),
        instructions: vec![objects_deep(33)],
        translations: [
            ("de".to_owned(), step_translation(" ")),
            ("de_DE".to_owned(), step_translation("x")),
        ]
        .into(),
        ..step(&guide, StepType::End, "")
    };
    let limits = client.create_step(limits).await.refused();
    let shorthand = |shorthand: &str| task("Short").with_shorthand(shorthand);
    let unparsed = client.create_task(shorthand("components.7.a == 1")).await;
    let conflicting =
        shorthand("components.7.a = 1").with_dependencies(all_of(vec![when("a", "=", "1")]));
    let conflicting = client.create_task(conflicting).await;
    let mask = ["nome", "name", "roles.0", "dependencies.operator"];
    let masked = client.update_task(task_of(&guide.guid), &mask).await;
    let token = client.list_roles(-1, "odd").await.refused();
    let refusals = json!({
        "missing": shown(&missing),
        "past their limits": shown(&limits),
        "a shorthand that cannot be parsed": shown(&unparsed.refused()),
        "a shorthand that says something else": shown(&conflicting.refused()),
        "a mask": shown(&masked.refused()),
        "a page": shown(&token),
    });
    matches("refused_fields", &refusals);
}

#[apply(on_both_databases)]
async fn refused_references(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let lost = task("Nowhere").with_guid(unknown_guid());
    let refusals = json!({
        "GetTask": shown(&client.get_task(&lost.guid).await.refused()),
        "GetStep": shown(&client.get_step(&lost.guid).await.refused()),
        "DeleteRole": shown(&client.call(DeleteRoleRequest { id: 7 }).await.refused()),
        "CreateStep in a task": shown(
            &client.create_step(information_step(&lost, "lost")).await.refused(),
        ),
        "CreateStep of a subtask": shown(
            &client.create_step(subtask(&guide, &lost)).await.refused(),
        ),
    });
    matches("refused_references", &refusals);
}

#[apply(on_both_databases)]
async fn refused_preconditions(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let other = client.given_task(task("Other")).await;
    client.given_step(subtask(&guide, &other)).await;
    let mut linked = step(&guide, StepType::Observation, "asking");
    linked.feedback_config[0].linked = Some(true);
    let linked = client.create_step(linked).await.refused();
    let request = |name: &str| CreateTaskRequest {
        task: Some(task(name)),
        request_id: guide.guid.clone(),
        validate_only: false,
    };
    client.call(request("One")).await.accepted();
    let reused = client.call(request("Another")).await;
    let refusals = json!({
        "TASK_HAS_STEPS": shown(&client.delete_task(&guide.guid).await.refused()),
        "TASK_REFERENCED": shown(&client.delete_task(&other.guid).await.refused()),
        "LINKED_IMPORT_ONLY": shown(&linked),
        "REQUEST_ID_REUSED": shown(&reused.refused()),
    });
    matches("refused_preconditions", &refusals);
}

#[apply(on_both_databases)]
async fn refused_versions(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let update = task_of(&guide.guid).with_etag("old");
    let failure = client.update_task(update, &[]).await.refused();
    matches("refused_versions", &shown(&failure));
}

#[apply(on_one_database)]
async fn refused_credentials(client: Client) {
    let anonymous = client.without_credentials();
    let odd = client.with_account("a b");
    let reader = client.with_scopes("read");
    let refusals = json!({
        "none": shown(&anonymous.list_roles(0, "").await.refused()),
        "malformed": shown(&odd.list_roles(0, "").await.refused()),
        "without the scope": shown(&reader.create_role("x").await.refused()),
    });
    matches("refused_credentials", &refusals);
}

#[apply(on_one_database)]
async fn refused_messages(client: Client) {
    let send = async |message: &'static [u8]| {
        let sent = client.send_bytes("TaskService/GetTask", message.into());
        shown(&sent.await.refused())
    };
    let large = vec![0; 72 * 1024 * 1024 + 1].into();
    let large = client.send_bytes("TaskService/GetTask", large).await;
    let refusals = json!({
        "not UTF-8": send(b"\x0a\x01\xff").await,
        "broken off": send(b"\x0a\x09x").await,
        "too large": shown(&large.refused()),
    });
    matches("refused_messages", &refusals);
}
