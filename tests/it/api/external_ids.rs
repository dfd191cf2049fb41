//! Ids of tasks and steps that callers choose: unique, kept by every write, and found again.

mod imports;
mod races;

use crate::kit::prelude::*;

const TAKEN: &str = "EXTERNAL_ID_TAKEN";

/// Asserts that another task has the external id at this field.
#[track_caller]
fn is_taken_by_task(failure: &Failure, field: &str, owner: &str) {
    is_taken(failure, field, ("expertise.v1.Task", owner));
}

/// Asserts that another step has the external id at this field.
#[track_caller]
fn is_taken_by_step(failure: &Failure, field: &str, owner: &str) {
    is_taken(failure, field, ("expertise.v1.Step", owner));
}

#[track_caller]
fn is_taken(failure: &Failure, field: &str, owner: (&str, &str)) {
    failure.is(Code::AlreadyExists, TAKEN);
    assert_eq!(failure.violations(), [(field, TAKEN)], "{failure:?}");
    let resource = failure.details.resource_info();
    let resource = resource.map(|it| (it.resource_type.as_str(), it.resource_name.as_str()));
    assert_eq!(resource, Some(owner), "{failure:?}");
}

#[apply(on_both_databases)]
async fn an_empty_id_counts_as_not_sent(client: Client) {
    let first = client.given_task(task("First").with_external_id("")).await;
    let steps = ["a", "b"].map(|title| document_step(StepType::End, title).with_external_id(""));
    let sent = document_with(task("Second").with_external_id(""), steps.to_vec());
    let second = client.imported(sent).await;
    for guid in [&first.guid, &second.guid] {
        let read = client.get_task(guid).await.accepted();
        assert_eq!(read.external_id, None);
    }
    let step = information_step(&first, "Step").with_external_id("");
    let step = client.given_step(step).await;
    assert_eq!(step.external_id, None);
    let update = step_of(&step.guid).with_external_id("s");
    client.updated_step(update, &[]).await;
    let empty = step_of(&step.guid).with_external_id("");
    let kept = client.updated_step(empty.clone(), &[]).await;
    assert_eq!(kept.external_id(), "s");
    let cleared = client.updated_step(empty, &["external_id"]).await;
    assert_eq!(cleared.external_id, None);
}

#[apply(on_both_databases)]
async fn an_id_that_another_task_has_is_refused(client: Client) {
    let create = create_task_request(task("Owner").with_external_id("a"))
        .with(|it| it.request_id = unknown_guid());
    let made = client.call(create.clone()).await.accepted();
    // A retry makes no other task.
    let again = client.call(create).await.accepted();
    assert_eq!(again, made);
    let owner = made.task.unwrap();
    let other = client.given_task(task("Other").with_external_id("b")).await;
    let before = client.all_tasks().await;
    let created = client.create_task(task("New").with_external_id("a")).await;
    is_taken_by_task(&created.refused(), "task.external_id", &owner.guid);
    let update = task_of(&other.guid).with_external_id("a");
    for update in [update.clone(), update.named("Renamed")] {
        let updated = client.update_task(update, &[]).await.refused();
        is_taken_by_task(&updated, "task.external_id", &owner.guid);
    }
    let steps = document_steps(&["step"]);
    let sent = document_with(task("New").with_external_id("a"), steps);
    let imported = client.import(sent.clone()).await.refused();
    is_taken_by_task(&imported, "document.task.external_id", &owner.guid);
    let mut again = client.exported(&other.guid).await;
    again.task.as_mut().unwrap().external_id = Some("a".to_owned());
    let imported = client.import(again).await.refused();
    is_taken_by_task(&imported, "document.task.external_id", &owner.guid);
    assert_eq!(client.all_tasks().await, before);
}

#[apply(on_both_databases)]
async fn an_id_that_another_step_of_the_task_has_is_refused(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let with = |title: &str, id: &str| information_step(&guide, title).with_external_id(id);
    let owner = client.given_step(with("Owner", "a")).await;
    let other = client.given_step(with("Other", "b")).await;
    let before = client.tasks_with_steps().await;
    let created = client.create_step(with("New", "a")).await.refused();
    is_taken_by_step(&created, "step.external_id", &owner.guid);
    let inserted = client
        .create_step_after(with("New", "a"), &owner.guid)
        .await;
    is_taken_by_step(&inserted.refused(), "step.external_id", &owner.guid);
    let update = step_of(&other.guid).with_external_id("a");
    let updated = client.update_step(update, &[]).await.refused();
    is_taken_by_step(&updated, "step.external_id", &owner.guid);
    // The step that is not listed keeps its id.
    let kept = document_of(&guide.guid, vec![with("New", "a")]);
    let imported = client.import_with(AbsentSteps::Keep, kept).await.refused();
    is_taken_by_step(&imported, "document.steps[0].external_id", &owner.guid);
    let listed = vec![
        step_of(&owner.guid),
        step_of(&other.guid).with_external_id("a"),
    ];
    let imported = client.import(document_of(&guide.guid, listed)).await;
    is_taken_by_step(
        &imported.refused(),
        "document.steps[1].external_id",
        &owner.guid,
    );
    assert_eq!(client.tasks_with_steps().await, before);
}

#[apply(on_both_databases)]
async fn an_id_is_free_again_once_it_was_cleared_or_its_owner_deleted(client: Client) {
    let owner = client.given_task(task("Owner").with_external_id("a")).await;
    client
        .updated_task(task_of(&owner.guid), &["external_id"])
        .await;
    let owner = client.given_task(task("Next").with_external_id("a")).await;
    let step = information_step(&owner, "Step").with_external_id("s");
    let first = client.given_step(step.clone()).await;
    client
        .updated_step(step_of(&first.guid), &["external_id"])
        .await;
    let second = client.given_step(step.clone()).await;
    client.delete_step(&second.guid).await.accepted();
    client.given_step(step).await;
    client.force_delete_task(&owner.guid).await.accepted();
    client.given_task(task("Last").with_external_id("a")).await;
}

#[apply(on_both_databases)]
async fn accounts_and_tasks_have_ids_of_their_own(client: Client) {
    let other = client.other_account();
    for client in [&client, &other] {
        client.given_task(task("Guide").with_external_id("a")).await;
        let guides = [task("One"), task("Two")];
        for guide in guides {
            let guide = client.given_task(guide).await;
            let step = information_step(&guide, "Step").with_external_id("a");
            client.given_step(step).await;
        }
    }
    let request = ListTasksRequest::default().with(|it| it.external_id = "a".to_owned());
    for client in [&client, &other] {
        let found = client.list(request.clone()).await;
        let accounts: Vec<&str> = found.iter().map(|task| &*task.account_id).collect();
        assert_eq!(accounts, [client.account()]);
    }
}

#[apply(on_both_databases)]
async fn ids_differ_by_every_byte(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    // Composed and decomposed, upper and lower case, with and without a space inside.
    for id in ["ü", "u\u{308}", "U", "u", "a b", "a  b"] {
        client.given_task(task("Guide").with_external_id(id)).await;
        let request = ListTasksRequest::default().with(|it| it.external_id = id.to_owned());
        assert_eq!(client.list(request).await.len(), 1, "{id:?}");
        let step = information_step(&guide, "Step").with_external_id(id);
        client.given_step(step).await;
    }
}

/// A guide whose answer manages a task.
async fn linked_guide(client: &Client) -> (Task, TaskDocument) {
    let steps = vec![linked_observation(&[("a", "A")])];
    let made = client.given_guide(steps).await;
    let exported = client.exported(&made.guid).await;
    (made, exported)
}

/// The document of the first managed task.
fn managed(document: &mut TaskDocument) -> &mut TaskDocument {
    let value = &mut document.steps[0].feedback_config[0].values[0];
    value.task_json.as_mut().expect("a managed task")
}

#[apply(on_both_databases)]
async fn a_managed_task_has_no_external_id(client: Client) {
    let ignored = "document.steps.feedback_config.values.task_json.task.external_id";
    let with_id = task("A").with_external_id(" not even valid");
    let inner = answer_with("a", "A", document_with(with_id, Vec::new()));
    let sent = document(
        "Guide",
        vec![observation_asking(linked_question(vec![inner]))],
    );
    let made = client.import(sent).await.accepted();
    assert_eq!(made.ignored_paths, [ignored]);
    let mut exported = client.exported(&made.task.unwrap().guid).await;
    let inner = managed(&mut exported).task.as_mut().unwrap();
    assert_eq!(inner.external_id, None);
    let guid = inner.guid.clone();
    inner.external_id = Some("a".to_owned());
    let again = client.import(exported).await.accepted();
    assert_eq!(again.outcome(), ImportOutcome::Unchanged);
    assert_eq!(again.ignored_paths, [ignored]);
    let update = task_of(&guid).with_external_id("a").with_published(0);
    for mask in [&[][..], &["external_id", "published"]] {
        let updated = client.update_task(update.clone(), mask).await.accepted();
        assert_eq!(updated.ignored_paths, ["task.external_id"]);
        assert_eq!(updated.task.unwrap().external_id, None);
    }
    let alone = document_with(task_of(&guid).with_external_id("a"), Vec::new());
    let alone = client.import(alone).await.accepted();
    assert_eq!(alone.ignored_paths, ["document.task.external_id"]);
}

#[apply(on_both_databases)]
async fn a_restore_sets_external_ids_back(client: Client) {
    let steps = ["a", "b", "c"].map(|id| document_step(StepType::End, id).with_external_id(id));
    let sent = document_with(task("Guide").with_external_id("guide"), steps.to_vec());
    let made = client.imported(sent).await;
    client.kept_revision(&made.guid).await;
    let kept = client.exported(&made.guid).await;
    // Two steps change their ids, and one that is deleted leaves its own to a new one.
    let mut changed = kept.clone();
    changed.task.as_mut().unwrap().external_id = Some("other".to_owned());
    changed.steps[0].external_id = Some("b".to_owned());
    changed.steps[1].external_id = Some("a".to_owned());
    changed.steps[2].guid.clear();
    client
        .import_with(AbsentSteps::Delete, changed)
        .await
        .accepted();
    let compared = client.compare_revisions(&made.guid, 1, "").await.accepted();
    assert_eq!(compared.task_paths, ["external_id"]);
    assert_eq!(compared.steps[0].paths, ["external_id"]);
    client.restored(&made.guid, 1).await;
    assert_eq!(
        canonical(client.exported(&made.guid).await),
        canonical(kept)
    );
    let order = client.step_order(&made.guid).await;
    assert_eq!(order, made.steps);
}

#[apply(on_both_databases)]
async fn a_deleted_task_keeps_its_external_id(client: Client) {
    let made = client.given_task(task("Guide").with_external_id("a")).await;
    let deleted = client.delete_task(&made.guid).await.accepted();
    let other = client.given_task(task("Other").with_external_id("a")).await;
    let restored = client
        .restore_revision(&made.guid, deleted.previous_revision)
        .await;
    // Nothing is lost: the other one gives the id up first.
    is_taken_by_task(&restored.refused(), "revision", &other.guid);
    let dry_run =
        restore_of(&made.guid, deleted.previous_revision).with(|it| it.validate_only = true);
    let shown = client.call(dry_run).await;
    is_taken_by_task(&shown.refused(), "revision", &other.guid);
    client
        .updated_task(task_of(&other.guid), &["external_id"])
        .await;
    let restored = client.restored(&made.guid, deleted.previous_revision).await;
    assert_eq!(restored.task.unwrap().external_id(), "a");
    // A guide that exists does not take its former one either.
    client
        .updated_task(task_of(&made.guid), &["external_id"])
        .await;
    let update = task_of(&other.guid).with_external_id("a");
    client.updated_task(update, &[]).await;
    let restored = client
        .restore_revision(&made.guid, deleted.previous_revision)
        .await;
    is_taken_by_task(&restored.refused(), "revision", &other.guid);
}

#[apply(on_both_databases)]
async fn a_task_that_is_managed_again_has_none(client: Client) {
    let (guide, exported) = linked_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    let observation = &exported.steps[0];
    let task = observation.feedback_config[0].values[0].link.clone();
    let unlinked = step_of(&observation.guid).with_question(question("it", &["a"]));
    client.updated_step(unlinked, &["feedback_config"]).await;
    client
        .updated_task(task_of(&task).with_external_id("a"), &[])
        .await;
    client.kept_revision(&task).await;
    client.updated_task(task_of(&task), &["external_id"]).await;
    client.restored(&guide.guid, 1).await;
    let now = client.get_task(&task).await.accepted();
    assert_eq!((now.r#type(), now.external_id), (TaskType::Linked, None));
    // Its own revision is of a time when it was a standard task.
    client.restored(&task, 1).await;
    let now = client.get_task(&task).await.accepted();
    assert_eq!((now.r#type(), now.external_id), (TaskType::Linked, None));
}

#[apply(on_both_databases)]
async fn tasks_are_listed_by_external_id_and_by_name(client: Client) {
    let named = "n".repeat(200);
    let first = client.given_task(task(&named).with_external_id("a")).await;
    let second = client.given_task(task(&named).with_external_id("b")).await;
    client.given_task(task(&named.to_uppercase())).await;
    let spaced = client.given_task(task(" Lamp")).await;
    client.given_task(task("Lamp")).await;
    let by = |external_id: &str, name: &str| ListTasksRequest {
        external_id: external_id.to_owned(),
        name: name.to_owned(),
        page_size: 1,
        ..ListTasksRequest::default()
    };
    let both = [first.clone(), second.clone()];
    assert_eq!(client.list(by("", &named)).await, both);
    assert_eq!(client.list(by("b", "")).await, [second]);
    assert_eq!(client.list(by("a", &named)).await, [first]);
    assert_eq!(client.list(by("a", "other")).await, []);
    assert_eq!(client.list(by("A", "")).await, []);
    assert_eq!(client.list(by("", " Lamp")).await, [spaced]);
}
