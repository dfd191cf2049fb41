//! Snapshots of whole errors. Whole responses are in `docs/reference.md`.
//!
//! `cargo insta review`, or `INSTA_UPDATE=always cargo test`, accepts intended changes.

use crate::{kit::snapshot, prelude::*};
use serde_json::{Value, json};

/// Compares with the snapshot of this name, the same one on every database.
fn matches(name: &str, value: &Value) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, snapshot::text(value)));
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
        "missing": snapshot::failure(&missing),
        "past their limits": snapshot::failure(&limits),
        "a shorthand that cannot be parsed": snapshot::failure(&unparsed.refused()),
        "a shorthand that says something else": snapshot::failure(&conflicting.refused()),
        "a mask": snapshot::failure(&masked.refused()),
        "a page": snapshot::failure(&token),
    });
    matches("refused_fields", &refusals);
}

#[apply(on_both_databases)]
async fn refused_references(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let lost = task("Nowhere").with_guid(unknown_guid());
    let refusals = json!({
        "GetTask": snapshot::failure(&client.get_task(&lost.guid).await.refused()),
        "GetStep": snapshot::failure(&client.get_step(&lost.guid).await.refused()),
        "DeleteRole": snapshot::failure(&client.call(DeleteRoleRequest { id: 7 }).await.refused()),
        "CreateStep in a task": snapshot::failure(
            &client.create_step(information_step(&lost, "lost")).await.refused(),
        ),
        "CreateStep of a subtask": snapshot::failure(
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
        "TASK_HAS_STEPS": snapshot::failure(&client.delete_task(&guide.guid).await.refused()),
        "TASK_REFERENCED": snapshot::failure(&client.delete_task(&other.guid).await.refused()),
        "LINKED_IMPORT_ONLY": snapshot::failure(&linked),
        "REQUEST_ID_REUSED": snapshot::failure(&reused.refused()),
    });
    matches("refused_preconditions", &refusals);
}

#[apply(on_both_databases)]
async fn refused_versions(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let update = task_of(&guide.guid).with_etag("old");
    let failure = client.update_task(update, &[]).await.refused();
    matches("refused_versions", &snapshot::failure(&failure));
}

#[apply(on_one_database)]
async fn refused_credentials(client: Client) {
    let anonymous = client.without_credentials();
    let odd = client.with_account("a b");
    let reader = client.with_scopes("read");
    let refusals = json!({
        "none": snapshot::failure(&anonymous.list_roles(0, "").await.refused()),
        "malformed": snapshot::failure(&odd.list_roles(0, "").await.refused()),
        "without the scope": snapshot::failure(&reader.create_role("x").await.refused()),
    });
    matches("refused_credentials", &refusals);
}

#[apply(on_one_database)]
async fn refused_messages(client: Client) {
    let send = async |message: &'static [u8]| {
        let sent = client.send_bytes("TaskService/GetTask", message.into());
        snapshot::failure(&sent.await.refused())
    };
    let large = vec![0; 72 * 1024 * 1024 + 1].into();
    let large = client.send_bytes("TaskService/GetTask", large).await;
    let refusals = json!({
        "not UTF-8": send(b"\x0a\x01\xff").await,
        "broken off": send(b"\x0a\x09x").await,
        "too large": snapshot::failure(&large.refused()),
    });
    matches("refused_messages", &refusals);
}
