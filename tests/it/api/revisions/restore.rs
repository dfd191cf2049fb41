//! RestoreRevision.

use super::{exported, given_guide};
use crate::{kit::prelude::*, laws};

/// A document without what the system sets.
fn honored(document: Option<TaskDocument>) -> TaskDocument {
    laws::revisions::honored(&document.expect("a document"))
}

/// Asserts that a guide is as in a revision.
async fn is_as_in(client: &Client, task: &str, revision: i64) {
    let now = exported(client, task).await;
    let kept = client.revision_document(task, revision).await;
    assert_eq!(honored(now.document), honored(Some(kept)));
    let compared = client
        .compare_revisions(task, revision, "")
        .await
        .accepted();
    assert!(compared.same, "{compared:?}");
}

#[apply(on_both_databases)]
async fn a_restored_guide_is_as_in_the_revision(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    let mut document = client.exported(&guide.guid).await;
    document.steps.swap(3, 4);
    document.steps.remove(4);
    document
        .steps
        .push(document_step(StepType::Information, "New"));
    document.steps[3].title = "Other end".to_owned();
    document.task.as_mut().expect("a task").name = "Renamed".to_owned();
    client
        .import_with(AbsentSteps::Delete, document)
        .await
        .accepted();
    client.alias(&guide.guid, "live", 1).await;
    let mut restore = RestoreRevisionRequest {
        guide_etag: exported(&client, &guide.guid).await.guide_etag,
        validate_only: true,
        ..restore_of(&guide.guid, "live")
    };
    let planned = client.call(restore.clone()).await.accepted();
    assert_eq!(planned.outcome(), ImportOutcome::Updated);
    assert_eq!(planned.previous_revision, 0);
    restore.validate_only = false;
    let restored = client.call(restore.clone()).await.accepted();
    assert_eq!(restored.outcome(), ImportOutcome::Updated);
    assert_eq!(restored.previous_revision, 2);
    let now = exported(&client, &guide.guid).await;
    assert_eq!(restored.guide_etag, now.guide_etag);
    assert_eq!(
        restored.task.as_ref(),
        now.document.as_ref().and_then(|it| it.task.as_ref())
    );
    is_as_in(&client, &guide.guid, 1).await;
    // That of the guide before, which is restored already.
    let failure = client.call(restore).await.refused();
    failure.is(Code::Aborted, "ETAG_MISMATCH");
}

#[apply(on_both_databases)]
async fn restoring_the_present_state_changes_nothing(client: Client) {
    let guide = given_guide(&client).await;
    let kept = client.kept_revision(&guide.guid).await;
    let restored = client.restored(&guide.guid, 1).await;
    assert_eq!(restored.outcome(), ImportOutcome::Unchanged);
    assert_eq!(restored.previous_revision, 0);
    assert_eq!(restored.task, client.get_task(&guide.guid).await.ok());
    assert_eq!(restored.guide_etag, kept.guide_etag);
    assert_eq!(client.all_revisions(&guide.guid).await.len(), 1);
}

/// A guide that is deleted; the id of the task that it has managed, which is left, with a step; and
/// the revision that brings the guide back.
async fn given_deleted_guide(client: &Client) -> (Task, String, Step, i64) {
    let guide = given_guide(client).await;
    let managed = client.managed_by(&guide.steps[0], 0).await.guid;
    let task = client.get_task(&managed).await.accepted();
    let below = client.given_step(information_step(&task, "Below")).await;
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    (guide, managed, below, deleted.previous_revision)
}

#[apply(on_both_databases)]
async fn an_unlinked_task_that_was_changed_is_left_alone(client: Client) {
    let (guide, managed, below, revision) = given_deleted_guide(&client).await;
    let changed = below.clone().titled("Changed").with_etag("");
    client.updated_step(changed, &["title"]).await;
    let left_alone = client.exported(&managed).await;
    let restored = client.restored(&guide.guid, revision).await;
    assert_eq!(client.exported(&managed).await, left_alone);
    let new_task = &restored.replaced_ids[&managed];
    let new_step = &restored.replaced_ids[&below.guid];
    assert_eq!(restored.replaced_ids.len(), 2);
    let observation = client.get_step(&guide.steps[0]).await.accepted();
    assert_eq!(&answers_of(&observation)[0].link, new_task);
    assert_eq!(client.get_step(new_step).await.accepted().title, "Below");
    let wiring = client.get_step(&guide.steps[1]).await.accepted();
    assert_eq!((&wiring.link, &wiring.subtask_id), (new_task, new_task));
}

/// A guide that is in revision 1 with a task that manages another one; and the outer task, which
/// the guide manages no longer, with its question and the id of the lowest task.
async fn given_unlinked_task(client: &Client) -> (Task, Task, Step, String) {
    let with_task = |steps| {
        answer("a", "Red")
            .with(|it| it.task_json = Some(Box::new(TaskDocument { task: None, steps })))
    };
    let asking = |value| observation_asking(linked_question(vec![value]));
    let question = asking(with_task(Vec::new()));
    let guide = document("Guide", vec![asking(with_task(vec![question]))]);
    let guide = client.import(guide).await.accepted().task.expect("a task");
    client.kept_revision(&guide.guid).await;
    let mut unlinked = client.exported(&guide.guid).await;
    let outer = answers_of(&unlinked.steps[0])[0].link.clone();
    unlinked.steps.clear();
    client
        .import_with(AbsentSteps::Delete, unlinked)
        .await
        .accepted();
    let outer = client.get_task(&outer).await.accepted();
    let question = client.get_step(&outer.steps[0]).await.accepted();
    let lowest = answers_of(&question)[0].link.clone();
    (guide, outer, question, lowest)
}

/// The lowest task is as in the revision. The one that managed it is not, as its question is no
/// longer linked, and is made anew.
#[apply(on_both_databases)]
async fn a_new_task_does_not_come_to_manage_a_standard_task(client: Client) {
    let (guide, outer, mut question, lowest) = given_unlinked_task(&client).await;
    let outer = outer.guid;
    question.feedback_config[0].linked = Some(false);
    question.etag.clear();
    client.updated_step(question, &["feedback_config"]).await;
    let before = [
        exported(&client, &outer).await,
        exported(&client, &lowest).await,
    ];
    let restored = client.restored(&guide.guid, 1).await;
    for task in [&outer, &lowest] {
        assert!(restored.replaced_ids.contains_key(task), "{restored:?}");
    }
    client
        .restored(&guide.guid, restored.previous_revision)
        .await;
    let after = [
        exported(&client, &outer).await,
        exported(&client, &lowest).await,
    ];
    assert_eq!(after, before);
}

/// The outer task is managed no longer and was changed, and manages the lowest one still.
#[apply(on_both_databases)]
async fn what_a_changed_task_still_manages_is_made_anew_with_it(client: Client) {
    let (guide, outer, _, lowest) = given_unlinked_task(&client).await;
    client.given_step(information_step(&outer, "Added")).await;
    let before = exported(&client, &outer.guid).await;
    let restored = client.restored(&guide.guid, 1).await;
    for task in [&outer.guid, &lowest] {
        assert!(restored.replaced_ids.contains_key(task), "{restored:?}");
    }
    assert_eq!(exported(&client, &outer.guid).await, before);
}

#[apply(on_both_databases)]
async fn a_deleted_task_below_a_new_one_comes_back(client: Client) {
    let (guide, outer, mut question, lowest) = given_unlinked_task(&client).await;
    question.feedback_config[0].linked = Some(false);
    question.etag.clear();
    client.updated_step(question, &["feedback_config"]).await;
    client.delete_step(&outer.steps[1]).await.accepted();
    client.force_delete_task(&lowest).await.accepted();
    let before = exported(&client, &outer.guid).await;
    let restored = client.restored(&guide.guid, 1).await;
    let new = &restored.replaced_ids[&outer.guid];
    assert!(!restored.replaced_ids.contains_key(&lowest), "{restored:?}");
    let back = client.get_task(&lowest).await.accepted();
    assert_eq!((back.r#type(), &back.parent_guid), (TaskType::Linked, new));
    assert_eq!(exported(&client, &outer.guid).await, before);
}

#[apply(on_both_databases)]
async fn an_unlinked_task_with_any_change_is_left_alone(client: Client) {
    let given = async || given_deleted_guide(&client).await;
    let is_left = async |(guide, managed, _, revision): (Task, String, Step, i64)| {
        let restored = client.restored(&guide.guid, revision).await;
        assert!(restored.replaced_ids.contains_key(&managed), "{restored:?}");
    };
    for change in [
        Task::default().named("Own"),
        Task::default().with_published(0),
        Task::default().with_external_id("own"),
        Task::default().translated("de", task_translation("Eigene")),
    ] {
        let given = given().await;
        client.updated_task(change.with_guid(&given.1), &[]).await;
        is_left(given).await;
    }
    for change in [
        Step::default().with_body("<p>text</p>"),
        Step::default().with_published(0),
        Step::default().translated("de", step_translation("Unten")),
    ] {
        let given = given().await;
        let change = change.with_guid(&given.2.guid);
        client.updated_step(change, &[]).await;
        is_left(given).await;
    }
    let with_more = given().await;
    let added = information_step(&task_of(&with_more.1), "Added");
    client.given_step(added).await;
    is_left(with_more).await;
    let with_less = given().await;
    client.delete_step(&with_less.2.guid).await.accepted();
    is_left(with_less).await;
}

#[apply(on_both_databases)]
async fn a_managed_task_keeps_its_name_and_place(client: Client) {
    let guide = given_guide(&client).await;
    let observation = client.get_step(&guide.steps[0]).await.accepted();
    let managed = &answers_of(&observation)[1].link;
    client.kept_revision(managed).await;
    let mut question = observation.feedback_config[0].clone();
    question.values.swap(0, 1);
    question.values[0].value = "Never".to_owned();
    let changed = step_of(&observation.guid).with_question(question);
    client.updated_step(changed, &["feedback_config"]).await;
    let before = client.get_task(managed).await.accepted();
    client.given_step(information_step(&before, "Added")).await;
    client.restored(managed, 1).await;
    let after = client.get_task(managed).await.accepted();
    assert!(after.steps.is_empty(), "{after:?}");
    assert_eq!((&*after.name, after.idx), ("Never", 0));
    assert_eq!(after.r#type(), TaskType::Linked);
    assert_eq!(after.parent_guid, guide.guid);
}

#[apply(on_both_databases)]
async fn what_nests_too_deep_for_a_managed_task_is_named(client: Client) {
    let (guide, managed, below, revision) = given_deleted_guide(&client).await;
    // Nobody manages it, so its values may nest deeper.
    let with = |instructions| step_of(&below.guid).with_instructions(instructions);
    let deep = with(vec![objects_deep(1), objects_deep(32)]);
    client.updated_step(deep, &["instructions"]).await;
    let kept = client.kept_revision(&managed).await;
    client
        .updated_step(with(Vec::new()), &["instructions"])
        .await;
    let restored = client.restored(&guide.guid, revision).await;
    assert!(restored.replaced_ids.is_empty(), "{restored:?}");
    let restore = client.restore_revision(&managed, kept.revision).await;
    let failure = restore.refused();
    failure.violates(&[("revision", "NESTING_TOO_DEEP")]);
    let named = format!("step {}.instructions[1] nests too deep", below.guid);
    let description = failure.description();
    assert!(description.starts_with(&named), "{description}");
    // What just fits is restored.
    let mut depths = (1..32).rev();
    let deepest = loop {
        let depth = depths.next().expect("a depth that fits");
        let deep = with(vec![objects_deep(depth)]);
        let updated = client.update_step(deep, &["instructions"]).await;
        if updated.is_ok() {
            break client.kept_revision(&managed).await.revision;
        }
    };
    client
        .updated_step(with(Vec::new()), &["instructions"])
        .await;
    client.restored(&managed, deepest).await;
}

#[apply(on_both_databases)]
async fn a_deleted_managed_task_comes_back(client: Client) {
    let guide = given_guide(&client).await;
    let managed = client.managed_by(&guide.steps[0], 0).await.guid;
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    client.force_delete_task(&managed).await.accepted();
    let restored = client
        .restored(&guide.guid, deleted.previous_revision)
        .await;
    assert!(restored.replaced_ids.is_empty(), "{restored:?}");
    is_as_in(&client, &guide.guid, 1).await;
    let back = client.get_task(&managed).await.accepted();
    assert_eq!(back.parent_guid, guide.guid);
    // It has its history again, and is deleted no longer.
    assert_eq!(client.all_revisions(&managed).await.len(), 1);
    let request = ListDeletedTasksRequest::default();
    let listed = client.call(request).await;
    assert_eq!(listed.accepted().tasks, []);
}

#[apply(on_both_databases)]
async fn a_task_that_was_managed_comes_back_as_a_standard_task(client: Client) {
    let guide = given_guide(&client).await;
    let managed = &client.managed_by(&guide.steps[0], 1).await.guid;
    client.kept_revision(managed).await;
    client.force_delete_task(&guide.guid).await.accepted();
    client.force_delete_task(managed).await.accepted();
    client.restored(managed, 1).await;
    let back = client.get_task(managed).await.accepted();
    assert_eq!(back.r#type(), TaskType::Standard);
    assert_eq!((&*back.parent_guid, back.idx), ("", 0));
}

#[apply(on_both_databases)]
async fn a_task_that_the_revision_does_not_manage_becomes_a_standard_task(client: Client) {
    let steps = vec![document_step(StepType::End, "end")];
    let guide = client.given_guide(steps).await;
    client.kept_revision(&guide.guid).await;
    let mut linked = client.exported(&guide.guid).await;
    linked.steps.push(linked_observation(&[("yes", "Yes")]));
    client.imported(linked).await;
    let linked = client.exported(&guide.guid).await;
    let managed = &answers_of(&linked.steps[1])[0].link;
    client.restored(&guide.guid, 1).await;
    is_as_in(&client, &guide.guid, 1).await;
    let left = client.get_task(managed).await.accepted();
    assert_eq!(left.r#type(), TaskType::Standard);
    assert_eq!((&*left.parent_guid, &*left.name), ("", "Yes"));
}

#[apply(on_both_databases)]
async fn missing_subtasks_are_named_or_skipped(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let other = client.given_task(task("Other")).await;
    let first = client.given_step(information_step(&guide, "First")).await;
    let last = client.given_step(subtask(&guide, &other)).await.guid;
    // It stands before the one that has the smaller id.
    let middle = client
        .create_step_after(subtask(&guide, &other), &first.guid)
        .await;
    let middle = middle.accepted().step.expect("a step").guid;
    client.kept_revision(&guide.guid).await;
    for step in [&middle, &last] {
        client.delete_step(step).await.accepted();
    }
    client.delete_task(&other.guid).await.accepted();
    let failure = client.restore_revision(&guide.guid, 1).await.refused();
    failure.is(Code::FailedPrecondition, "REVISION_UNRESTORABLE");
    let subjects = [&middle, &last].map(|step| ("REVISION_UNRESTORABLE", step.as_str()));
    assert_eq!(failure.preconditions(), subjects);
    let restore = restore_of(&guide.guid, "1").with(|it| it.skip_missing_subtasks = true);
    let restored = client.call(restore).await.accepted();
    let mut skipped = [middle, last];
    skipped.sort();
    assert_eq!(restored.skipped_steps, skipped);
    assert_eq!(restored.outcome(), ImportOutcome::Unchanged);
    assert_eq!(restored.previous_revision, 0);
    assert_eq!(client.step_titles(&guide.guid).await, ["First"]);
    client.restored(&other.guid, 1).await;
    client.rename(&other.guid, "Renamed").await;
    client.restored(&guide.guid, 1).await;
    let titles = client.step_titles(&guide.guid).await;
    assert_eq!(titles, ["First", "Renamed", "Renamed"]);
}

#[apply(on_both_databases)]
async fn missing_subtasks_of_managed_tasks_are_named_or_skipped(client: Client) {
    let guide = given_guide(&client).await;
    let managed = client.managed_by(&guide.steps[0], 0).await;
    let other = client.given_task(task("Other")).await;
    let of_guide = client.given_step(subtask(&guide, &other)).await.guid;
    let of_managed = client.given_step(subtask(&managed, &other)).await.guid;
    let mut steps = [of_guide, of_managed];
    steps.sort();
    client.kept_revision(&guide.guid).await;
    for step in &steps {
        client.delete_step(step).await.accepted();
    }
    client.delete_task(&other.guid).await.accepted();
    for validate_only in [true, false] {
        let restore = restore_of(&guide.guid, 1).with(|it| it.validate_only = validate_only);
        let failure = client.call(restore.clone()).await.refused();
        failure.is(Code::FailedPrecondition, "REVISION_UNRESTORABLE");
        let mut named = failure.preconditions();
        named.sort_unstable();
        let expected = steps.each_ref();
        let expected = expected.map(|step| ("REVISION_UNRESTORABLE", step.as_str()));
        assert_eq!(named, expected);
        let skip = restore.with(|it| it.skip_missing_subtasks = true);
        let restored = client.call(skip).await.accepted();
        assert_eq!(restored.skipped_steps, steps);
        assert_eq!(restored.outcome(), ImportOutcome::Unchanged);
    }
}

#[apply(on_both_databases)]
async fn a_step_that_a_new_task_lacks_is_named_by_its_former_id(client: Client) {
    let guide = given_guide(&client).await;
    let managed = &client.managed_by(&guide.steps[0], 0).await.guid;
    let other = client.given_task(task("Other")).await;
    let lost = client
        .given_step(subtask(&task_of(managed), &other))
        .await
        .guid;
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    client.delete_step(&lost).await.accepted();
    client.delete_task(&other.guid).await.accepted();
    let before = client.all_tasks().await;
    for validate_only in [true, false] {
        let restore = restore_of(&guide.guid, deleted.previous_revision)
            .with(|it| it.skip_missing_subtasks = true)
            .with(|it| it.validate_only = validate_only);
        let restored = client.call(restore).await.accepted();
        assert_eq!(restored.outcome(), ImportOutcome::Created);
        assert_eq!(restored.skipped_steps, std::slice::from_ref(&lost));
        let replaced: Vec<&String> = restored.replaced_ids.keys().collect();
        assert_eq!(replaced, [managed]);
        if validate_only {
            assert_eq!(client.all_tasks().await, before);
        }
    }
}

#[apply(on_both_databases)]
async fn the_first_twenty_missing_subtasks_are_named(client: Client) {
    let other = client.given_task(task("Other")).await;
    let steps = vec![subtask(&Task::default(), &other); 21];
    let guide = client.given_guide(steps).await;
    client.force_delete_task(&guide.guid).await.accepted();
    client.delete_task(&other.guid).await.accepted();
    let failure = client.restore_revision(&guide.guid, 1).await.refused();
    let named: Vec<&str> = failure.preconditions().iter().map(|it| it.1).collect();
    assert_eq!(named, guide.steps[..20]);
    let metadata = failure.metadata();
    let counts = ["violations_shown", "violations_total"].map(|name| &*metadata[name]);
    assert_eq!(counts, ["20", "21"]);
}

#[apply(on_both_databases)]
async fn the_etag_of_a_deleted_guide_is_empty(client: Client) {
    let guide = given_guide(&client).await;
    let etag = exported(&client, &guide.guid).await.guide_etag;
    client.force_delete_task(&guide.guid).await.accepted();
    for validate_only in [true, false] {
        let restore = restore_of(&guide.guid, 1)
            .with(|it| it.guide_etag = etag.clone())
            .with(|it| it.validate_only = validate_only);
        let failure = client.call(restore).await.refused();
        failure.is(Code::Aborted, "ETAG_MISMATCH");
        assert!(
            failure.message.starts_with("guide_etag must be empty"),
            "{failure:?}"
        );
    }
    let failure = client.call(revision_of(&guide.guid)).await.refused();
    failure.is(Code::NotFound, "TASK_NOT_FOUND");
}

#[apply(on_both_databases)]
async fn a_name_that_is_published_with_its_translation_does_not_outdate_it(client: Client) {
    let name = |name| task_translation(name).with_lock(false);
    let guide = task("Guide").with_published(0);
    let guide = client.given_task(guide.translated("de", name("Alt"))).await;
    let renamed = task_of(&guide.guid).named("Renamed").with_published(1);
    let renamed = renamed.translated("de", name("Neu"));
    let mask = ["name", "published", "translations"];
    client.updated_task(renamed, &mask).await;
    assert_eq!(client.translation_work(&["de"]).await, []);
    client.force_delete_task(&guide.guid).await.accepted();
    client.restored(&guide.guid, 1).await;
    assert_eq!(client.translation_work(&["de"]).await, []);
}
