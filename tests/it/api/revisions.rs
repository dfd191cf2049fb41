//! The history of guides.

use crate::prelude::*;

mod aliases;
mod automatic;
mod checkpoints;
mod compare;
mod races;
mod restore;
mod settings;

/// The guide as ExportTask returns it, with its etag.
pub async fn exported(client: &Client, guid: &str) -> ExportTaskResponse {
    let request = ExportTaskRequest {
        guid: guid.to_owned(),
    };
    client.call(request).await.accepted()
}

/// A guide with a linked question of two answers, a solution and an end.
async fn given_guide(client: &Client) -> Task {
    let steps = vec![
        linked_observation(&[("yes", "Yes"), ("no", "No")]),
        document_step(StepType::Information, "Read"),
        document_step(StepType::End, "end"),
    ];
    client.given_guide(steps).await
}

/// The numbers of a task's revisions, the newest first.
async fn numbers(client: &Client, task: &str) -> Vec<i64> {
    let revisions = client.all_revisions(task).await;
    revisions.iter().map(|it| it.revision).collect()
}

/// Hides a task, and publishes it.
async fn publish(client: &Client, task: &str) {
    for published in [0, 1] {
        let update = task_of(task).with_published(published);
        client.updated_task(update, &["published"]).await;
    }
}

/// The first page of the deleted tasks.
async fn deleted_tasks(client: &Client) -> Vec<DeletedTask> {
    let request = ListDeletedTasksRequest::default();
    client.call(request).await.accepted().tasks
}

/// Changes the title of a task's first step of the type information.
async fn retitle(client: &Client, task: &str, title: &str) -> Step {
    let steps = client.steps_of(task, 0).await;
    let information = StepType::Information as i32;
    let mut step = steps.into_iter().find(|step| step.r#type == information);
    let step = step.as_mut().expect("a step of the type information");
    step.title = title.to_owned();
    step.etag = String::new();
    client.updated_step(step.clone(), &["title"]).await
}

#[apply(on_both_databases)]
async fn a_revision_is_the_guide_as_it_was(client: Client) {
    let guide = given_guide(&client).await;
    // Steps of managed tasks are not counted.
    let observation = client.get_step(&guide.steps[0]).await.accepted();
    let managed = client.get_task(&answers_of(&observation)[0].link).await;
    let below = information_step(&managed.accepted(), "Below");
    client.given_step(below).await;
    let before = exported(&client, &guide.guid).await;
    let request = revision_of(&guide.guid)
        .with(|it| it.note = "as reviewed".to_owned())
        .with(|it| it.alias = "live".to_owned());
    let made = client.call(request).await.accepted();
    assert!(!made.unchanged);
    let revision = made.revision.expect("the revision");
    assert_eq!(revision.revision, 1);
    assert_eq!(revision.cause(), RevisionCause::Requested);
    assert_eq!(revision.note, "as reviewed");
    assert_eq!(revision.aliases, ["live"]);
    assert_eq!(revision.guide_etag, before.guide_etag);
    assert_eq!(
        (&revision.task, &*revision.task_name),
        (&guide.guid, "Guide")
    );
    assert_eq!((revision.product_id, revision.step_count), (PRODUCT, 5));
    assert!(revision.size_bytes > 0);
    retitle(&client, &guide.guid, "Changed").await;
    client.rename(&guide.guid, "Renamed").await;
    assert_eq!(
        client.all_revisions(&guide.guid).await,
        std::slice::from_ref(&revision)
    );
    for name in ["1", "live"] {
        let found = client.get_revision(&guide.guid, name).await.accepted();
        assert_eq!(found.document, before.document);
        assert_eq!(found.revision.as_ref(), Some(&revision));
    }
    let without_document = GetRevisionRequest {
        task: guide.guid.clone(),
        revision: "live".to_owned(),
        without_document: true,
    };
    let found = client.call(without_document).await;
    let expected = GetRevisionResponse {
        revision: Some(revision),
        document: None,
    };
    assert_eq!(found.accepted(), expected);
    client.force_delete_task(&guide.guid).await.accepted();
    let found = client.get_revision(&guide.guid, "live").await.accepted();
    assert_eq!(found.document, before.document);
}

#[apply(on_both_databases)]
async fn nothing_changed_makes_no_revision(client: Client) {
    let guide = given_guide(&client).await;
    let first = revision_of(&guide.guid).with(|it| it.note = "é".repeat(1_000));
    let first = client.call(first).await.accepted();
    let mut expected = first.revision.expect("a revision");
    let guide_etag = exported(&client, &guide.guid).await.guide_etag;
    let again = async |alias: &str, guide_etag: &str| {
        let again = CreateRevisionRequest {
            note: "again".to_owned(),
            alias: alias.to_owned(),
            guide_etag: guide_etag.to_owned(),
            ..revision_of(&guide.guid)
        };
        client.call(again).await
    };
    for aliases in [&["live"][..], &["live"], &["best", "live"]] {
        let failure = again(aliases[0], "old").await.refused();
        failure.is(Code::Aborted, "ETAG_MISMATCH");
        assert_eq!(client.all_revisions(&guide.guid).await, [expected.clone()]);
        let made = again(aliases[0], &guide_etag).await.accepted();
        assert!(made.unchanged);
        expected.aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        assert_eq!(made.revision.as_ref(), Some(&expected));
    }
    assert_eq!(client.all_revisions(&guide.guid).await, [expected]);
}

#[apply(on_both_databases)]
async fn an_automatic_revision_becomes_requested(client: Client) {
    let guide = given_guide(&client).await;
    publish(&client, &guide.guid).await;
    let [automatic] = &client.all_revisions(&guide.guid).await[..] else {
        panic!("one revision");
    };
    assert_eq!(automatic.cause(), RevisionCause::Published);
    let expected = TaskRevision {
        cause: RevisionCause::Requested.into(),
        note: "as published".to_owned(),
        aliases: vec!["live".to_owned()],
        ..automatic.clone()
    };
    // It is still of the author who published it, and then it keeps its note.
    let eve = client.with_metadata("x-subject", "eve");
    for note in ["as published", "again"] {
        let request = revision_of(&guide.guid)
            .with(|it| it.note = note.to_owned())
            .with(|it| it.alias = "live".to_owned());
        let made = eve.call(request).await.accepted();
        assert!(made.unchanged);
        assert_eq!(made.revision.as_ref(), Some(&expected));
    }
    assert_eq!(client.all_revisions(&guide.guid).await, [expected]);
}

#[apply(on_both_databases)]
async fn a_deleted_revision_is_gone_and_its_number_is_not_used_again(client: Client) {
    let guide = given_guide(&client).await;
    let kept = client.kept_revision(&guide.guid).await;
    let delete = async || client.delete_revision(&guide.guid, kept.revision).await;
    delete().await.accepted();
    let failure = delete().await.refused();
    failure.is(Code::NotFound, "REVISION_NOT_FOUND");
    assert_eq!(client.kept_revision(&guide.guid).await.revision, 2);
    // An alias of another revision does not keep it, and revisions before it stay.
    client.alias(&guide.guid, "live", 2).await;
    for number in [3, 4] {
        retitle(&client, &guide.guid, &format!("Title {number}")).await;
        assert_eq!(client.kept_revision(&guide.guid).await.revision, number);
        let deleted = client.delete_revision(&guide.guid, number).await;
        deleted.accepted();
    }
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    assert_eq!(deleted.previous_revision, 5);
    client.restored(&guide.guid, 5).await;
    client.kept_revision(&guide.guid).await;
    assert_eq!(numbers(&client, &guide.guid).await, [6, 5, 2]);
    let live = client.get_revision(&guide.guid, "live").await.accepted();
    assert_eq!(live.revision.expect("a revision").revision, 2);
}

#[apply(on_both_databases)]
async fn a_missing_revision_is_not_found(client: Client) {
    let guide = given_guide(&client).await;
    let guid = &guide.guid;
    let is_missing = |failure: Failure, revision: &str, field: &str| {
        failure.is(Code::NotFound, "REVISION_NOT_FOUND");
        assert_eq!(failure.metadata()["field"], field);
        let resource = failure.details.resource_info().expect("a resource");
        assert_eq!(resource.resource_name, format!("{guid}/{revision}"));
    };
    let longest = "a".repeat(64);
    let largest = "9223372036854775807";
    let larger = "99999999999999999999";
    for revision in ["1", "live", "v1.2_rc-3", &longest, largest, larger] {
        let failure = client.get_revision(guid, revision).await.refused();
        is_missing(failure, revision, "revision");
        let failure = client.call(restore_of(guid, revision)).await.refused();
        is_missing(failure, revision, "revision");
        let set = client.set_revision_alias(guid, "best", revision).await;
        is_missing(set.refused(), revision, "revision");
        let deleted = client.delete_revision(guid, revision).await;
        is_missing(deleted.refused(), revision, "revision");
        let compared = client.compare_revisions(guid, revision, "").await;
        is_missing(compared.refused(), revision, "base");
    }
    client.kept_revision(guid).await;
    client.get_revision(guid, "0001").await.accepted();
    let compared = client.compare_revisions(guid, 1, 2).await;
    is_missing(compared.refused(), "2", "target");
    let failure = client.get_revision(guid, "9".repeat(2_000)).await;
    is_missing(
        failure.refused(),
        &format!("{}…", "9".repeat(1_021)),
        "revision",
    );
}

#[apply(on_both_databases)]
async fn histories_of_two_tasks_are_apart(client: Client) {
    let keep = async |guide: &Task, alias: &str| {
        let request = revision_of(&guide.guid).with(|it| it.alias = alias.to_owned());
        client.call(request).await.accepted();
    };
    let (one, other) = (given_guide(&client).await, given_guide(&client).await);
    keep(&one, "live").await;
    keep(&other, "live").await;
    retitle(&client, &one.guid, "Changed").await;
    keep(&one, "new").await;
    for name in ["2", "new"] {
        let failure = client.get_revision(&other.guid, name).await.refused();
        failure.is(Code::NotFound, "REVISION_NOT_FOUND");
    }
    let before = client.all_revisions(&other.guid).await;
    assert_eq!(before.len(), 1);
    assert_eq!(before[0].aliases, ["live"]);
    // Of one task an alias is moved and removed, and a revision and all of them are deleted.
    for revision in ["2", ""] {
        client.alias(&one.guid, "live", revision).await;
    }
    let deleted = client.delete_revision(&one.guid, 1).await;
    deleted.accepted();
    assert_eq!(client.all_revisions(&other.guid).await, before);
    client.purge(&one.guid).await.accepted();
    assert_eq!(client.all_revisions(&other.guid).await, before);
}

#[apply(on_both_databases)]
async fn a_guide_etag_follows_every_change(client: Client) {
    let guide = given_guide(&client).await;
    let etag = async || exported(&client, &guide.guid).await.guide_etag;
    let first = etag().await;
    assert!(!first.is_empty());
    assert_eq!(etag().await, first);
    let mut seen = vec![first];
    let mut changed = async |what: &str| {
        let now = etag().await;
        assert!(!seen.contains(&now), "{what}");
        seen.push(now);
    };
    retitle(&client, &guide.guid, "Other").await;
    changed("a title").await;
    retitle(&client, &guide.guid, "Read").await;
    changed("a title that is changed back").await;
    let row = task_translation("Anleitung");
    let translated = task_of(&guide.guid).translated("de", row);
    client.updated_task(translated, &["translations"]).await;
    changed("a translation").await;
    let work = client.translation_work(&["fr"]).await;
    let work = work.iter().find(|work| work.guid == guide.guid);
    let work = work.expect("work of the task");
    client.written(automatic(work, "Guide")).await;
    changed("an automatic translation").await;
    let step = information_step(&guide, "New");
    let step = client
        .create_step_after(step, &guide.steps[0])
        .await
        .accepted();
    changed("a new step").await;
    let step = step.step.expect("a step");
    let locked = StepTranslation::default().with(|it| it.locked = Some(true));
    let translated = step
        .clone()
        .with_translations([("de".to_owned(), locked)].into())
        .with_etag("");
    client.updated_step(translated, &["translations"]).await;
    changed("a lock").await;
    client.delete_step(&step.guid).await.accepted();
    changed("a deletion").await;
    let managed = client.managed_by(&guide.steps[0], 0).await;
    client.given_step(information_step(&managed, "Below")).await;
    changed("a step of a managed task").await;
    let hidden = task_of(&managed.guid).with_published(0);
    client.updated_task(hidden, &["published"]).await;
    changed("a managed task").await;
    client.rename(&guide.guid, "Renamed").await;
    changed("a name").await;
    // None of these keeps a revision.
    assert_eq!(client.all_revisions(&guide.guid).await, []);
    let mut moved = client.exported(&guide.guid).await;
    moved.steps.swap(3, 4);
    client.imported(moved).await;
    changed("an order").await;
    // What the system sets is no change.
    let before = exported(&client, &guide.guid).await.guide_etag;
    let work = client.index_work().await.into_iter();
    let items = work.map(|work| {
        IndexedItem::default()
            .with(|it| it.guid = work.guid)
            .with(|it| it.etag = work.etag)
    });
    client.acknowledge(items.collect()).await;
    let after = exported(&client, &guide.guid).await;
    let task = after.document.expect("a document").task;
    assert!(!task.expect("a task").dirty_record);
    assert_eq!(after.guide_etag, before);
}

#[apply(on_both_databases)]
async fn an_old_guide_etag_is_a_mismatch(client: Client) {
    let guide = given_guide(&client).await;
    let before = exported(&client, &guide.guid).await;
    retitle(&client, &guide.guid, "Changed meanwhile").await;
    let create = revision_of(&guide.guid).with(|it| it.guide_etag = before.guide_etag.clone());
    let failure = client.call(create).await.refused();
    failure.is(Code::Aborted, "ETAG_MISMATCH");
    let mut import = ImportTaskRequest::default()
        .with(|it| it.document = before.document)
        .with(|it| it.guide_etag = before.guide_etag);
    for validate_only in [false, true] {
        import.validate_only = validate_only;
        let failure = client.call(import.clone()).await.refused();
        failure.is(Code::Aborted, "ETAG_MISMATCH");
    }
    import.validate_only = false;
    let now = exported(&client, &guide.guid).await;
    import.guide_etag = now.guide_etag;
    let imported = client.call(import).await.accepted();
    assert_eq!(imported.outcome(), ImportOutcome::Updated);
    let after = exported(&client, &guide.guid).await;
    assert_eq!(imported.guide_etag, after.guide_etag);
    let keep = |task: &str| revision_of(task).with(|it| it.guide_etag = after.guide_etag.clone());
    let other = given_guide(&client).await;
    let failure = client.call(keep(&other.guid)).await.refused();
    failure.is(Code::Aborted, "ETAG_MISMATCH");
    let kept = client.call(keep(&guide.guid)).await.accepted();
    assert!(!kept.unchanged);
    let new = import_of(document("New", Vec::new())).with(|it| it.guide_etag = after.guide_etag);
    let failure = client.call(new).await.refused();
    failure.violates(&[("guide_etag", "FIELD_INVALID")]);
}
