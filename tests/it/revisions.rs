//! The history of guides.

use crate::kit::prelude::*;

mod aliases;
mod automatic;
mod compare;
mod laws;
mod races;
mod restore;
mod settings;

on_both_databases![
    a_revision_is_the_guide_as_it_was,
    nothing_changed_makes_no_revision,
    an_automatic_revision_becomes_requested,
    revisions_are_listed_newest_first,
    a_deleted_revision_is_gone_and_its_number_is_not_used_again,
    a_missing_revision_is_not_found,
    a_guide_etag_follows_every_change,
    an_old_guide_etag_is_a_mismatch,
    invalid_fields_are_named,
];

/// The guide as ExportTask returns it, with its etag.
async fn exported(client: &Client, guid: &str) -> ExportTaskResponse {
    let request = ExportTaskRequest {
        guid: guid.to_owned(),
    };
    client.send_export(request).await.accepted()
}

/// A guide with a linked question of two answers, a solution and an end.
async fn given_guide(client: &Client) -> Task {
    let steps = vec![
        linked_observation(&[("yes", "Yes"), ("no", "No")]),
        document_step(StepType::Information, "Read"),
        document_step(StepType::End, "end"),
    ];
    client.imported(document("Guide", steps)).await
}

/// A revision request with nothing but the task.
fn request(task: &str) -> CreateRevisionRequest {
    CreateRevisionRequest {
        task: task.to_owned(),
        ..CreateRevisionRequest::default()
    }
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

async fn a_revision_is_the_guide_as_it_was(client: Client) {
    let guide = given_guide(&client).await;
    // Steps of managed tasks are not counted.
    let observation = client.get_step(&guide.steps[0]).await.accepted();
    let managed = client.get_task(&answers_of(&observation)[0].link).await;
    let below = information_step(&managed.accepted(), "Below");
    client.given_step(below).await;
    let before = exported(&client, &guide.guid).await;
    let request = CreateRevisionRequest {
        note: "as reviewed".to_owned(),
        alias: "live".to_owned(),
        ..request(&guide.guid)
    };
    let made = client.create_revision(request).await.accepted();
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
    let found = client.send_get_revision(without_document).await;
    let expected = GetRevisionResponse {
        revision: Some(revision),
        document: None,
    };
    assert_eq!(found.accepted(), expected);
    client.force_delete_task(&guide.guid).await.accepted();
    let found = client.get_revision(&guide.guid, "live").await.accepted();
    assert_eq!(found.document, before.document);
}

async fn nothing_changed_makes_no_revision(client: Client) {
    let guide = given_guide(&client).await;
    let first = CreateRevisionRequest {
        note: "é".repeat(1_000),
        ..request(&guide.guid)
    };
    let first = client.create_revision(first).await.accepted();
    let again = CreateRevisionRequest {
        note: "again".to_owned(),
        alias: "live".to_owned(),
        ..request(&guide.guid)
    };
    let again = client.create_revision(again).await.accepted();
    assert!(again.unchanged);
    let expected = TaskRevision {
        aliases: vec!["live".to_owned()],
        ..first.revision.expect("a revision")
    };
    assert_eq!(again.revision, Some(expected));
    assert_eq!(client.all_revisions(&guide.guid).await.len(), 1);
}

async fn an_automatic_revision_becomes_requested(client: Client) {
    let guide = given_guide(&client).await;
    for published in [0, 1] {
        let update = task_of(&guide.guid).with_published(published);
        client.updated_task(update, &["published"]).await;
    }
    let [automatic] = &client.all_revisions(&guide.guid).await[..] else {
        panic!("one revision");
    };
    assert_eq!(automatic.cause(), RevisionCause::Published);
    let request = CreateRevisionRequest {
        note: "as published".to_owned(),
        ..request(&guide.guid)
    };
    let made = client.create_revision(request).await.accepted();
    assert!(made.unchanged);
    let expected = TaskRevision {
        cause: RevisionCause::Requested.into(),
        note: "as published".to_owned(),
        ..automatic.clone()
    };
    assert_eq!(client.all_revisions(&guide.guid).await, [expected]);
}

async fn revisions_are_listed_newest_first(client: Client) {
    let guide = given_guide(&client).await;
    assert!(client.all_revisions(&guide.guid).await.is_empty());
    for number in 1..=5 {
        retitle(&client, &guide.guid, &format!("Title {number}")).await;
        assert_eq!(client.kept_revision(&guide.guid).await.revision, number);
    }
    let request = ListRevisionsRequest {
        task: guide.guid.clone(),
        page_size: 2,
        page_token: String::new(),
    };
    let listed = client.list_all_revisions(request).await;
    let listed: Vec<i64> = listed.iter().map(|it| it.revision).collect();
    assert_eq!(listed, [5, 4, 3, 2, 1]);
}

async fn a_deleted_revision_is_gone_and_its_number_is_not_used_again(client: Client) {
    let guide = given_guide(&client).await;
    let kept = client.kept_revision(&guide.guid).await;
    let delete = DeleteRevisionRequest {
        task: guide.guid.clone(),
        revision: kept.revision.to_string(),
    };
    client.delete_revision(delete.clone()).await.accepted();
    let failure = client.delete_revision(delete).await.refused();
    failure.is(Code::NotFound, "REVISION_NOT_FOUND");
    assert_eq!(client.kept_revision(&guide.guid).await.revision, 2);
    // An alias of another revision does not keep it, and revisions before it stay.
    let alias = client.set_revision_alias(&guide.guid, "live", 2).await;
    alias.accepted();
    for number in [3, 4] {
        retitle(&client, &guide.guid, &format!("Title {number}")).await;
        assert_eq!(client.kept_revision(&guide.guid).await.revision, number);
        let delete = DeleteRevisionRequest {
            task: guide.guid.clone(),
            revision: number.to_string(),
        };
        client.delete_revision(delete).await.accepted();
    }
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    assert_eq!(deleted.previous_revision, 5);
    client.restored(&guide.guid, 5).await;
    client.kept_revision(&guide.guid).await;
    let revisions = client.all_revisions(&guide.guid).await;
    let numbers: Vec<i64> = revisions.iter().map(|it| it.revision).collect();
    assert_eq!(numbers, [6, 5, 2]);
}

async fn a_missing_revision_is_not_found(client: Client) {
    let guide = given_guide(&client).await;
    let guid = &guide.guid;
    let is_missing = |failure: Failure, revision: &str, field: &str| {
        failure.is(Code::NotFound, "REVISION_NOT_FOUND");
        assert_eq!(failure.metadata()["field"], field);
        let resource = failure.details.resource_info().expect("a resource");
        assert_eq!(resource.resource_name, format!("{guid}/{revision}"));
    };
    for revision in ["1", "live", "9223372036854775807"] {
        let failure = client.get_revision(guid, revision).await.refused();
        is_missing(failure, revision, "revision");
        let failure = client.restore_revision(guid, revision).await.refused();
        is_missing(failure, revision, "revision");
        let set = client.set_revision_alias(guid, "best", revision).await;
        is_missing(set.refused(), revision, "revision");
        let compared = client.compare_revisions(guid, revision, "").await;
        is_missing(compared.refused(), revision, "base");
    }
    client.kept_revision(guid).await;
    let compared = client.compare_revisions(guid, 1, 2).await;
    is_missing(compared.refused(), "2", "target");
    let failure = client
        .get_revision(guid, "99999999999999999999")
        .await
        .refused();
    failure.is(Code::NotFound, "REVISION_NOT_FOUND");
    let unknown = unknown_guid();
    let failure = client.get_revision(&unknown, 1).await.refused();
    failure.is(Code::NotFound, "TASK_NOT_FOUND");
    let failure = client.create_revision(request(&unknown)).await.refused();
    failure.is(Code::NotFound, "TASK_NOT_FOUND");
    let failure = client.restore_revision(&unknown, 1).await.refused();
    failure.is(Code::NotFound, "TASK_NOT_FOUND");
    let failure = client
        .set_revision_alias(&unknown, "live", "")
        .await
        .refused();
    failure.is(Code::NotFound, "TASK_NOT_FOUND");
}

async fn a_guide_etag_follows_every_change(client: Client) {
    let guide = given_guide(&client).await;
    let etag = async || exported(&client, &guide.guid).await.guide_etag;
    let mut last = etag().await;
    assert!(!last.is_empty());
    assert_eq!(etag().await, last);
    let mut changed = async |what: &str| {
        let now = etag().await;
        assert_ne!(now, last, "{what}");
        last = now;
    };
    retitle(&client, &guide.guid, "Other").await;
    changed("a title").await;
    let step = information_step(&guide, "New");
    let step = client
        .create_step_after(step, &guide.steps[0])
        .await
        .accepted();
    changed("a new step").await;
    let step = step.step.expect("a step");
    let locked = StepTranslation {
        locked: Some(true),
        ..StepTranslation::default()
    };
    let translated = Step {
        translations: [("de".to_owned(), locked)].into(),
        etag: String::new(),
        ..step.clone()
    };
    client.updated_step(translated, &["translations"]).await;
    changed("a lock").await;
    client.delete_step(&step.guid).await.accepted();
    changed("a deletion").await;
    let observation = client.get_step(&guide.steps[0]).await.accepted();
    let managed = answers_of(&observation)[0].link.clone();
    let managed = client.get_task(&managed).await.accepted();
    client.given_step(information_step(&managed, "Below")).await;
    changed("a step of a managed task").await;
    let hidden = task_of(&managed.guid).with_published(0);
    client.updated_task(hidden, &["published"]).await;
    changed("a managed task").await;
    let renamed = task_of(&guide.guid).named("Renamed");
    client.updated_task(renamed, &["name"]).await;
    changed("a name").await;
    let mut moved = client.exported(&guide.guid).await;
    moved.steps.swap(3, 4);
    client.imported(moved).await;
    changed("an order").await;
    // What the system sets is no change.
    let before = exported(&client, &guide.guid).await.guide_etag;
    let work = client.index_work().await.into_iter();
    let items = work.map(|work| IndexedItem {
        guid: work.guid,
        etag: work.etag,
        ..IndexedItem::default()
    });
    client.acknowledge(items.collect()).await;
    let after = exported(&client, &guide.guid).await;
    let task = after.document.expect("a document").task;
    assert!(!task.expect("a task").dirty_record);
    assert_eq!(after.guide_etag, before);
}

async fn an_old_guide_etag_is_a_mismatch(client: Client) {
    let guide = given_guide(&client).await;
    let before = exported(&client, &guide.guid).await;
    retitle(&client, &guide.guid, "Changed meanwhile").await;
    let create = CreateRevisionRequest {
        guide_etag: before.guide_etag.clone(),
        ..request(&guide.guid)
    };
    let failure = client.create_revision(create).await.refused();
    failure.is(Code::Aborted, "ETAG_MISMATCH");
    let mut import = ImportTaskRequest {
        document: before.document,
        guide_etag: before.guide_etag,
        ..ImportTaskRequest::default()
    };
    let failure = client.send_import(import.clone()).await.refused();
    failure.is(Code::Aborted, "ETAG_MISMATCH");
    let now = exported(&client, &guide.guid).await;
    import.guide_etag = now.guide_etag;
    let imported = client.send_import(import).await.accepted();
    assert_eq!(imported.outcome(), ImportOutcome::Updated);
    let after = exported(&client, &guide.guid).await;
    assert_eq!(imported.guide_etag, after.guide_etag);
    let new = ImportTaskRequest {
        document: Some(document("New", Vec::new())),
        guide_etag: after.guide_etag,
        ..ImportTaskRequest::default()
    };
    let failure = client.send_import(new).await.refused();
    failure.violates(&[("guide_etag", "FIELD_INVALID")]);
}

async fn invalid_fields_are_named(client: Client) {
    let failure = client.get_revision("", "").await.refused();
    failure.violates(&[("task", "FIELD_REQUIRED"), ("revision", "FIELD_REQUIRED")]);
    let failure = client.get_revision("x", "-1").await.refused();
    failure.violates(&[("task", "FIELD_INVALID"), ("revision", "FIELD_INVALID")]);
    let failure = client.restore_revision("", "?").await.refused();
    failure.violates(&[("task", "FIELD_REQUIRED"), ("revision", "FIELD_INVALID")]);
    let create = CreateRevisionRequest {
        note: "n".repeat(1_001),
        alias: "1live".to_owned(),
        ..request(&unknown_guid())
    };
    let failure = client.create_revision(create).await.refused();
    failure.violates(&[("note", "FIELD_TOO_LONG"), ("alias", "FIELD_INVALID")]);
    let failure = client
        .set_revision_alias(&unknown_guid(), "", "")
        .await
        .refused();
    failure.violates(&[("alias", "FIELD_REQUIRED")]);
    let failure = client
        .compare_revisions(&unknown_guid(), "", "?")
        .await
        .refused();
    failure.violates(&[("base", "FIELD_REQUIRED"), ("target", "FIELD_INVALID")]);
}
