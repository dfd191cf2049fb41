//! The change feed: what each write tells, and where a reader begins.

use std::collections::{BTreeMap, BTreeSet};

use prost_types::Duration as ProtoDuration;

use crate::kit::prelude::*;

mod copy;
mod expiry;
mod followers;
mod waiting;

/// A change in short: its kind, what it is about, and its fields.
type Told = (ChangeKind, String, Vec<String>);

fn told(changes: &[Change]) -> Vec<Told> {
    let told = changes.iter().map(|change| {
        let about = match change.step.as_str() {
            "" => &change.task,
            step => step,
        };
        (change.kind(), about.to_owned(), change.fields.clone())
    });
    told.collect()
}

fn tells(kind: ChangeKind, about: &str, fields: &[&str]) -> Told {
    let fields = fields.iter().map(|field| (*field).to_owned());
    (kind, about.to_owned(), fields.collect())
}

/// The changes of the last write: each has its name and time, and the etag of what it is about; the
/// last one says that it is the last.
async fn told_by(client: &Client, cursor: &mut String, rpc: &str) -> Vec<Change> {
    let (changes, next) = client.changes_after(cursor).await;
    *cursor = next;
    let transactions: BTreeSet<&str> = changes.iter().map(|it| &*it.transaction).collect();
    assert_eq!(transactions.len(), 1, "{rpc}: {changes:?}");
    let ends = changes.iter().map(|change| change.transaction_end);
    let count = changes.len();
    assert!(ends.eq((1..=count).map(|number| number == count)), "{rpc}");
    assert!(
        changes.iter().all(|change| change.rpc == rpc),
        "{rpc}: {changes:?}"
    );
    for change in &changes {
        use ChangeKind::*;
        let now = match change.kind() {
            TaskDeleted | StepDeleted => (String::new(), changes[0].changed_ts),
            TaskCreated | TaskUpdated => {
                let task = client.get_task(&change.task).await.accepted();
                (task.etag, task.modified_ts)
            }
            _ => {
                let step = client.get_step(&change.step).await.accepted();
                assert_eq!(change.task, step.task, "{rpc}: {change:?}");
                (step.etag, step.modified_ts)
            }
        };
        let told = (change.etag.clone(), change.changed_ts);
        assert_eq!(told, now, "{rpc}: {change:?}");
        let has_steps = matches!(change.kind(), TaskCreated | TaskDeleted);
        assert!(has_steps || change.step_count == 0, "{rpc}: {change:?}");
    }
    // By what they are about, as nothing is said of the order within a write.
    let mut changes = changes;
    changes.sort_by(|a, b| (a.kind, &a.step).cmp(&(b.kind, &b.step)));
    changes
}

#[apply(on_both_databases)]
async fn every_write_tells_what_it_changed(client: Client) {
    use ChangeKind::*;
    let client = client.with_metadata("x-subject", "ana");
    let start = client.cursor_now().await;
    let mut cursor = start.clone();
    let guide = client.given_task(task("Guide")).await;
    let created = told_by(&client, &mut cursor, "CreateTask").await;
    assert_eq!(told(&created), [tells(TaskCreated, &guide.guid, &[])]);
    assert_eq!(created[0].etag, guide.etag);
    assert_eq!(created[0].changed_ts, guide.modified_ts);
    assert_eq!(created[0].step_count, 0);

    let update = task_of(&guide.guid).named("Renamed").with_published(0);
    let guide = client.updated_task(update, &["name", "published"]).await;
    let updated = told_by(&client, &mut cursor, "UpdateTask").await;
    let fields = ["name", "published"];
    assert_eq!(told(&updated), [tells(TaskUpdated, &guide.guid, &fields)]);
    assert_eq!(updated[0].etag, guide.etag);
    assert_eq!(updated[0].changed_ts, guide.modified_ts);

    let step = client.given_step(information_step(&guide, "Step")).await;
    let created = told_by(&client, &mut cursor, "CreateStep").await;
    assert_eq!(told(&created), [tells(StepCreated, &step.guid, &[])]);
    assert_eq!(
        (&created[0].task, &created[0].etag),
        (&guide.guid, &step.etag)
    );

    let update = Step {
        body: Some("Text".to_owned()),
        tags: vec!["a".to_owned()],
        ..step_of(&step.guid).titled("Another")
    };
    let step = client
        .updated_step(update, &["title", "body", "tags"])
        .await;
    let updated = told_by(&client, &mut cursor, "UpdateStep").await;
    let fields = ["body", "tags", "title"];
    assert_eq!(told(&updated), [tells(StepUpdated, &step.guid, &fields)]);
    assert_eq!(updated[0].etag, step.etag);
    assert_eq!(updated[0].changed_ts, step.modified_ts);
    assert_eq!(updated[0].task, guide.guid);

    let work = client.translation_work(&["de"]).await;
    let work = work.iter().find(|work| work.guid == step.guid);
    let translation = AutomaticTranslation {
        guid: step.guid.clone(),
        language: "de".to_owned(),
        source_digest: work.expect("the work").source_digest.clone(),
        title: Some("Schritt".to_owned()),
        ..AutomaticTranslation::default()
    };
    client.written(translation).await;
    let translated = told_by(&client, &mut cursor, "WriteTranslations").await;
    let fields = ["translations.de"];
    assert_eq!(told(&translated), [tells(StepUpdated, &step.guid, &fields)]);
    let now = client.get_step(&step.guid).await.accepted();
    assert_eq!(translated[0].etag, now.etag);
    let work = client.translation_work(&["de"]).await;
    let work = work.iter().find(|work| work.guid == guide.guid);
    let name = automatic(work.expect("the work"), "Anleitung");
    let names = ["fr", "de"].map(|language| name.clone().in_language(language));
    let written = client.write_translations(names.to_vec()).await;
    written.accepted();
    let translated = told_by(&client, &mut cursor, "WriteTranslations").await;
    let fields = ["translations.de", "translations.fr"];
    assert_eq!(
        told(&translated),
        [tells(TaskUpdated, &guide.guid, &fields)]
    );
    let now = client.get_task(&guide.guid).await.accepted();
    assert_eq!(translated[0].etag, now.etag);

    let second = client.given_step(information_step(&guide, "Second")).await;
    told_by(&client, &mut cursor, "CreateStep").await;
    client.delete_step(&second.guid).await.accepted();
    let deleted = told_by(&client, &mut cursor, "DeleteStep").await;
    assert_eq!(told(&deleted), [tells(StepDeleted, &second.guid, &[])]);
    assert_eq!((&*deleted[0].task, &*deleted[0].etag), (&*guide.guid, ""));

    client.force_delete_task(&guide.guid).await.accepted();
    let deleted = told_by(&client, &mut cursor, "DeleteTask").await;
    assert_eq!(told(&deleted), [tells(TaskDeleted, &guide.guid, &[])]);
    assert_eq!((&*deleted[0].etag, deleted[0].step_count), ("", 1));
    let time = |time: Option<prost_types::Timestamp>| time.map(|at| (at.seconds, at.nanos));
    assert!(time(deleted[0].changed_ts) > time(second.modified_ts));
    let (all, _) = client.changes_after(&start).await;
    assert!(all.iter().all(|change| change.subject == "ana"), "{all:?}");
}

#[apply(on_both_databases)]
async fn every_field_of_a_step_is_named(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let bare = step(&guide, StepType::Observation, "Before");
    let before = client.given_step(bare.clone()).await;
    let mut cursor = client.cursor_now().await;
    let full = full_step(&guide).with_guid(&before.guid);
    let full = full
        .with_external_id("own")
        .with_question(question("other", &["a"]));
    client.updated_step(full, &["*"]).await;
    let updated = told_by(&client, &mut cursor, "UpdateStep").await;
    let fields = [
        "body",
        "dependencies",
        "external_id",
        "feedback_config",
        "instructions",
        "looping",
        "parts",
        "published",
        "skills",
        "tags",
        "title",
        "translations.de",
    ];
    let expected = tells(ChangeKind::StepUpdated, &before.guid, &fields);
    assert_eq!(told(&updated), [expected]);
    let bare = bare.with_guid(&before.guid);
    for field in fields {
        client.updated_step(bare.clone(), &[field]).await;
        let updated = told_by(&client, &mut cursor, "UpdateStep").await;
        let expected = tells(ChangeKind::StepUpdated, &before.guid, &[field]);
        assert_eq!(told(&updated), [expected]);
    }
}

#[apply(on_both_databases)]
async fn a_cost_and_a_subtask_are_named(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let solution = step(&guide, StepType::Solution, "Solution");
    let solution = client.given_step(solution).await;
    let first = client.given_task(task("Same")).await;
    let second = client.given_task(task("Same")).await;
    let third = client.given_task(task("Same").with_product(8)).await;
    let fourth = client.given_task(task("Other").with_product(8)).await;
    let naming = client.given_step(subtask(&guide, &first)).await;
    let mut cursor = client.cursor_now().await;
    let cost = step_of(&solution.guid).with_cost(3);
    let refers = |to: &Task| {
        let update = step_of(&naming.guid).with_subtask_id(&to.guid);
        update.with_subtask_pid(to.product_id())
    };
    for (update, fields) in [
        (cost, &["cost"][..]),
        (refers(&second), &["subtask_id"][..]),
        (refers(&third), &["subtask_id", "subtask_pid"][..]),
        (refers(&fourth), &["subtask_id", "title"][..]),
    ] {
        let step = client.updated_step(update, &[]).await;
        let updated = told_by(&client, &mut cursor, "UpdateStep").await;
        let expected = tells(ChangeKind::StepUpdated, &step.guid, fields);
        assert_eq!(told(&updated), [expected]);
    }
    // The title follows from another guide, too.
    let renamed = task_of(&fourth.guid).named("Renamed");
    client.updated_task(renamed, &["name"]).await;
    let updated = told_by(&client, &mut cursor, "UpdateTask").await;
    let expected = [
        tells(ChangeKind::TaskUpdated, &fourth.guid, &["name"]),
        tells(ChangeKind::StepUpdated, &naming.guid, &["title"]),
    ];
    assert_eq!(told(&updated), expected);
}

#[apply(on_both_databases)]
async fn what_follows_others_is_told_too(client: Client) {
    use ChangeKind::*;
    let steps = vec![linked_observation(&[("yes", "Yes"), ("no", "No")])];
    let client = client.with_metadata("x-subject", "ana");
    let start = client.cursor_now().await;
    let mut cursor = start.clone();
    let guide = client.imported(document("Guide", steps)).await;
    let created = told_by(&client, &mut cursor, "ImportTask").await;
    let mut counts: Vec<i32> = created.iter().map(|change| change.step_count).collect();
    counts.sort_unstable();
    assert!(
        created.iter().all(|change| change.kind() == TaskCreated),
        "{created:?}"
    );
    assert_eq!(counts, [0, 0, 3]);
    let root = created.iter().find(|change| change.task == guide.guid);
    let root = root.map(|change| (&*change.etag, change.step_count));
    assert_eq!(root, Some((&*guide.etag, 3)));

    // The names of two tasks and the titles of their wiring steps follow the answers.
    let steps = client.steps_of(&guide.guid, 0).await;
    let (question, wiring) = (&steps[0], &steps[1..]);
    let managed: Vec<&str> = wiring.iter().map(|step| &*step.link).collect();
    let mut update = step_of(&question.guid);
    update.feedback_config = question.feedback_config.clone();
    update.feedback_config[0].values[0].value = "Certainly".to_owned();
    let updated = client.updated_step(update, &["feedback_config"]).await;
    let changes = told_by(&client, &mut cursor, "UpdateStep").await;
    let fields = ["feedback_config"];
    let mut expected = vec![
        tells(TaskUpdated, managed[0], &["name"]),
        tells(StepUpdated, &question.guid, &fields),
        tells(StepUpdated, &wiring[0].guid, &["title"]),
    ];
    expected[1..].sort_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(told(&changes), expected);
    let wired = client.get_step(&wiring[0].guid).await.accepted();
    let etag = |step: &str| {
        changes
            .iter()
            .find(|change| change.step == step)
            .map(|it| &*it.etag)
    };
    assert_eq!(etag(&wired.guid), Some(&*wired.etag));
    assert_eq!(etag(&updated.guid), Some(&*updated.etag));

    // Deleting the question unlinks them.
    client.delete_step(&question.guid).await.accepted();
    let changes = told_by(&client, &mut cursor, "DeleteStep").await;
    let unlinked = ["idx", "parent_guid", "type"];
    let mut by_kind: BTreeMap<i32, BTreeSet<Told>> = BTreeMap::new();
    for (change, told) in changes.iter().zip(told(&changes)) {
        by_kind.entry(change.kind).or_default().insert(told);
    }
    let of = |kind: ChangeKind| by_kind.get(&kind.into()).cloned().unwrap_or_default();
    // The first value has the index 0, and that of no value is 0, too.
    let tasks = [
        tells(TaskUpdated, managed[0], &unlinked[1..]),
        tells(TaskUpdated, managed[1], &unlinked),
    ];
    assert_eq!(of(TaskUpdated), BTreeSet::from(tasks));
    let steps = wiring
        .iter()
        .map(|step| tells(StepUpdated, &step.guid, &["link"]));
    assert_eq!(of(StepUpdated), steps.collect());
    assert_eq!(
        of(StepDeleted),
        BTreeSet::from([tells(StepDeleted, &question.guid, &[])])
    );
    for change in changes.iter().filter(|change| change.kind() == StepUpdated) {
        let step = client.get_step(&change.step).await.accepted();
        assert_eq!(change.etag, step.etag);
        assert_eq!(change.changed_ts, step.modified_ts);
        assert_eq!(change.task, guide.guid);
    }
    let (all, _) = client.changes_after(&start).await;
    assert!(all.iter().all(|change| change.subject == "ana"), "{all:?}");
}

/// A document of a stored task with its steps in an order, each by its id alone.
fn reordered(guide: &str, steps: &[&str]) -> TaskDocument {
    TaskDocument {
        task: Some(task_of(guide)),
        steps: steps.iter().map(|step| step_of(step)).collect(),
    }
}

#[apply(on_both_databases)]
async fn a_new_order_is_told_as_steps(client: Client) {
    use ChangeKind::*;
    let steps = ["a", "b", "c"].map(|title| document_step(StepType::Information, title));
    let guide = client.imported(document("Guide", steps.to_vec())).await;
    let [a, b, c] = [0, 1, 2].map(|at| &*guide.steps[at]);
    let mut cursor = client.cursor_now().await;
    let guide = client.imported(reordered(&guide.guid, &[c, a, b])).await;
    let changes = told_by(&client, &mut cursor, "ImportTask").await;
    assert_eq!(
        told(&changes),
        [tells(TaskUpdated, &guide.guid, &["steps"])]
    );
    assert_eq!(changes[0].etag, guide.etag);

    // Renumbering is seen by nobody.
    let (guide, last) = client.nearly_full(&guide).await;
    let mut cursor = client.cursor_now().await;
    let mut created = Vec::new();
    for _ in 0..INSERTS_UNTIL_RENUMBERED {
        let step = information_step(&guide, "Between");
        let response = client.create_step_after(step, &last).await.accepted();
        created.push(response.step.expect("the step").guid);
    }
    let (changes, next) = client.changes_after(&cursor).await;
    cursor = next;
    let expected = created.iter().map(|step| tells(StepCreated, step, &[]));
    assert_eq!(told(&changes), expected.collect::<Vec<_>>());
    assert_eq!(client.changes_after(&cursor).await.0, []);
}

#[apply(on_both_databases)]
async fn an_import_tells_each_step_once(client: Client) {
    use ChangeKind::*;
    let steps = ["a", "b", "c"].map(|title| document_step(StepType::Information, title));
    let guide = client.imported(document("Guide", steps.to_vec())).await;
    let mut cursor = client.cursor_now().await;
    let [a, b, c] = [0, 1, 2].map(|at| guide.steps[at].clone());
    let mut document = reordered(&guide.guid, &[&a, &b]);
    document.steps[1].title = "changed".to_owned();
    document
        .steps
        .push(document_step(StepType::Information, "new"));
    let imported = client.import_with(AbsentSteps::Delete, document).await;
    let guide = imported.accepted().task.expect("the task");
    let new = &guide.steps[2];
    let changes = told_by(&client, &mut cursor, "ImportTask").await;
    // The created and the deleted step stand for the new list of steps.
    let expected = [
        tells(StepCreated, new, &[]),
        tells(StepUpdated, &b, &["title"]),
        tells(StepDeleted, &c, &[]),
    ];
    assert_eq!(told(&changes), expected);
}

#[apply(on_both_databases)]
async fn a_restore_tells_what_came_back(client: Client) {
    use ChangeKind::*;
    let steps = vec![
        document_step(StepType::Information, "a"),
        document_step(StepType::Information, "b"),
    ];
    let client = client.with_metadata("x-subject", "ana");
    let guide = client.imported(document("Guide", steps)).await;
    client.kept_revision(&guide.guid).await;
    client.delete_step(&guide.steps[1]).await.accepted();
    let retitled = step_of(&guide.steps[0]).titled("changed");
    client.updated_step(retitled, &["title"]).await;
    let mut cursor = client.cursor_now().await;
    client.restored(&guide.guid, 1).await;
    let changes = told_by(&client, &mut cursor, "RestoreRevision").await;
    let expected = [
        tells(StepCreated, &guide.steps[1], &[]),
        tells(StepUpdated, &guide.steps[0], &["title"]),
    ];
    assert_eq!(told(&changes), expected);
    assert!(changes.iter().all(|change| change.subject == "ana"));

    client.force_delete_task(&guide.guid).await.accepted();
    told_by(&client, &mut cursor, "DeleteTask").await;
    client.restored(&guide.guid, 1).await;
    let changes = told_by(&client, &mut cursor, "RestoreRevision").await;
    assert_eq!(told(&changes), [tells(TaskCreated, &guide.guid, &[])]);
    assert_eq!(changes[0].step_count, 2);

    // Also what leaves no history.
    let purge = DeleteTaskRequest {
        guid: guide.guid.clone(),
        force: true,
        purge_history: true,
        ..DeleteTaskRequest::default()
    };
    client.send_delete_task(purge).await.accepted();
    let changes = told_by(&client, &mut cursor, "DeleteTask").await;
    assert_eq!(told(&changes), [tells(TaskDeleted, &guide.guid, &[])]);
    assert_eq!(changes[0].step_count, 2);
}

#[apply(on_both_databases)]
async fn managed_tasks_are_told_with_their_answers(client: Client) {
    use ChangeKind::*;
    let steps = vec![linked_observation(&[("yes", "Yes"), ("no", "No")])];
    let guide = client.imported(document("Guide", steps)).await;
    let question = client.get_step(&guide.steps[0]).await.accepted();
    let managed = [0, 1].map(|at| answers_of(&question)[at].link.clone());
    let mut cursor = client.cursor_now().await;
    let sorted = |changes: &[Change]| BTreeSet::from_iter(told(changes));

    // Answers change their places, and one is added.
    let mut update = step_of(&question.guid);
    update.feedback_config = question.feedback_config.clone();
    update.feedback_config[0].values.reverse();
    client.updated_step(update, &["feedback_config"]).await;
    let changes = told_by(&client, &mut cursor, "UpdateStep").await;
    let fields = ["feedback_config"];
    let expected = [
        tells(TaskUpdated, &managed[0], &["idx"]),
        tells(TaskUpdated, &managed[1], &["idx"]),
        tells(StepUpdated, &question.guid, &fields),
    ];
    assert_eq!(sorted(&changes), BTreeSet::from(expected));
    let mut longer = client.exported(&guide.guid).await;
    let inner = document("Perhaps", document_steps(&["a", "b"]));
    let added = answer_with("perhaps", "Perhaps", inner);
    longer.steps[0].feedback_config[0].values.push(added);
    client.imported(longer).await;
    let changes = told_by(&client, &mut cursor, "ImportTask").await;
    let kinds: Vec<ChangeKind> = changes.iter().map(Change::kind).collect();
    assert_eq!(kinds, [TaskCreated, StepCreated, StepUpdated]);
    assert_eq!(changes[0].step_count, 2);
    assert_eq!(changes[2].fields, fields);
    let third = &changes[0].task;

    // Without their guide they are tasks of their own.
    client.force_delete_task(&guide.guid).await.accepted();
    let changes = told_by(&client, &mut cursor, "DeleteTask").await;
    let unlinked = ["idx", "parent_guid", "type"];
    let expected = [
        tells(TaskUpdated, &managed[0], &unlinked),
        tells(TaskUpdated, &managed[1], &unlinked[1..]),
        tells(TaskUpdated, third, &unlinked),
        tells(TaskDeleted, &guide.guid, &[]),
    ];
    assert_eq!(sorted(&changes), BTreeSet::from(expected));
    // The question and the wiring steps.
    let deleted = changes.last().map(|change| change.step_count);
    assert_eq!(deleted, Some(4));
}

#[apply(on_both_databases)]
async fn many_languages_are_told_as_one_field(client: Client) {
    use ChangeKind::*;
    let guide = client.given_task(task("Guide")).await;
    let mut cursor = client.cursor_now().await;
    // The names of 40 of them have 1,000 bytes.
    let languages = tags(41).into_iter().map(|tag| format!("{tag}-abcdefgh"));
    let languages: Vec<String> = languages.collect();
    let translated = |count: usize| {
        let rows = languages[..count].iter();
        let rows = rows.map(|language| (language.clone(), task_translation("Name")));
        task_of(&guide.guid).with_translations(rows.collect())
    };
    let each = languages[..40].iter();
    let each: Vec<String> = each.map(|it| format!("translations.{it}")).collect();
    let each: Vec<&str> = each.iter().map(String::as_str).collect();
    let languages_alone = &["translations"][..];
    let with_name = &["name", "translations"][..];
    for (update, mask, fields) in [
        (translated(40), languages_alone, &each[..]),
        (translated(0), languages_alone, &each[..]),
        (translated(41), languages_alone, languages_alone),
        (translated(0), languages_alone, languages_alone),
        (translated(40).named("Renamed"), with_name, with_name),
    ] {
        client.updated_task(update, mask).await;
        let changes = told_by(&client, &mut cursor, "UpdateTask").await;
        assert_eq!(told(&changes), [tells(TaskUpdated, &guide.guid, fields)]);
    }
}

#[apply(on_both_databases)]
async fn nothing_is_told_that_is_not_stored(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let step = client.given_step(information_step(&guide, "Step")).await;
    let retried = CreateTaskRequest {
        request_id: unknown_guid(),
        ..create_task_request(task("Retried"))
    };
    client.send_create_task(retried.clone()).await.accepted();
    let cursor = client.cursor_now().await;
    client.send_create_task(retried).await.accepted();
    client
        .updated_task(task_of(&guide.guid).named("Guide"), &["name"])
        .await;
    client
        .updated_step(step_of(&step.guid).titled("Step"), &["title"])
        .await;
    let dry_run = UpdateTaskRequest {
        task: Some(task_of(&guide.guid).named("Other")),
        validate_only: true,
        ..UpdateTaskRequest::default()
    };
    client.send_update_task(dry_run).await.accepted();
    let dry_run = ImportTaskRequest {
        document: Some(document("Other", Vec::new())),
        validate_only: true,
        ..ImportTaskRequest::default()
    };
    client.send_import(dry_run).await.accepted();
    let same = client.exported(&guide.guid).await;
    client.imported(same).await;
    let old = task_of(&guide.guid).named("Other").with_etag("old");
    client.update_task(old, &["name"]).await.refused();
    for work in client.translation_work(&["de"]).await {
        let stale = automatic(&work, "Deutsch").with_digest("old");
        client.written(stale).await;
    }
    client.given_role("Role").await;
    let kept = client.kept_revision(&guide.guid).await;
    let alias = client.set_revision_alias(&guide.guid, "live", kept.revision);
    alias.await.accepted();
    let restored = client.restored(&guide.guid, kept.revision).await;
    assert_eq!(restored.outcome(), ImportOutcome::Unchanged);
    assert_eq!(client.changes_after(&cursor).await.0, []);
}

#[apply(on_both_databases)]
async fn the_start_is_now_or_the_oldest(client: Client) {
    let oldest = ListChangesRequest {
        start: ChangeStart::Oldest.into(),
        ..ListChangesRequest::default()
    };
    let empty = client.list_changes(oldest.clone()).await.accepted();
    assert!(empty.changes.is_empty() && empty.caught_up);
    let first = client.given_task(task("First")).await;
    let now = client.cursor_now().await;
    let second = client.given_task(task("Second")).await;
    for (cursor, expected) in [
        (empty.next_cursor, vec![&first.guid, &second.guid]),
        (now, vec![&second.guid]),
    ] {
        let (changes, _) = client.changes_after(&cursor).await;
        let tasks: Vec<&String> = changes.iter().map(|change| &change.task).collect();
        assert_eq!(tasks, expected);
    }
    let all = client.list_changes(oldest).await.accepted();
    assert_eq!((all.changes.len(), all.caught_up), (2, true));
}

#[apply(on_both_databases)]
async fn a_task_narrows_the_changes(client: Client) {
    let (one, other) = (task("One"), task("Other"));
    let (one, other) = (client.given_task(one).await, client.given_task(other).await);
    let cursor = client.cursor_now().await;
    let step = client.given_step(information_step(&one, "Step")).await;
    client.given_step(information_step(&other, "Step")).await;
    client.delete_step(&step.guid).await.accepted();
    let narrowed = |task: &str| ListChangesRequest {
        cursor: cursor.clone(),
        task: task.to_owned(),
        ..ListChangesRequest::default()
    };
    let upper = one.guid.to_uppercase();
    let page = client.list_changes(narrowed(&upper)).await.accepted();
    let kinds: Vec<ChangeKind> = page.changes.iter().map(Change::kind).collect();
    assert_eq!(kinds, [ChangeKind::StepCreated, ChangeKind::StepDeleted]);
    assert!(page.caught_up);
    // It goes on behind all that it has looked at.
    assert_eq!(client.changes_after(&page.next_cursor).await.0, []);
    // A task that is gone has told so.
    client.force_delete_task(&one.guid).await.accepted();
    let page = client.list_changes(narrowed(&one.guid)).await.accepted();
    let kinds: Vec<ChangeKind> = page.changes.iter().map(Change::kind).collect();
    assert_eq!(kinds[2..], [ChangeKind::TaskDeleted]);
    let nobody = "01890a5d-ac96-774b-bcce-b302099a8057";
    let page = client.list_changes(narrowed(nobody)).await.accepted();
    assert!(page.changes.is_empty() && page.caught_up);
}

#[apply(on_one_database)]
async fn a_page_ends_at_its_size_or_after_2000_changes(client: Client) {
    let one = client.given_task(task("One")).await;
    let other = client.given_task(task("Other")).await;
    let cursor = client.cursor_now().await;
    let steps = document_steps(&vec!["Step"; 2_000]);
    client.imported(document_of(&other.guid, steps)).await;
    let step = client.given_step(information_step(&one, "Step")).await;
    let page = async |cursor: &str, task: &str, page_size: i32| {
        let request = ListChangesRequest {
            cursor: cursor.to_owned(),
            task: task.to_owned(),
            page_size,
            ..ListChangesRequest::default()
        };
        client.list_changes(request).await.accepted()
    };
    for (size, count) in [(0, 50), (3, 3), (500, 500), (501, 500)] {
        let page = page(&cursor, "", size).await;
        assert_eq!((page.changes.len(), page.caught_up), (count, false));
        assert!(page.changes.iter().all(|change| !change.transaction_end));
        assert_eq!(page.next_cursor, page.changes[count - 1].cursor);
    }
    let first = page(&cursor, &one.guid, 500).await;
    assert!(first.changes.is_empty() && !first.caught_up);
    let second = page(&first.next_cursor, &one.guid, 500).await;
    let expected = [tells(ChangeKind::StepCreated, &step.guid, &[])];
    assert_eq!(told(&second.changes), expected);
    assert!(second.caught_up);
}

#[apply(on_both_databases)]
async fn every_cursor_goes_on_behind_its_change(client: Client) {
    let cursor = client.cursor_now().await;
    let steps = vec![linked_observation(&[("yes", "Yes"), ("no", "No")])];
    client.imported(document("Guide", steps)).await;
    client.given_task(task("Other")).await;
    let (all, last) = client.changes_after(&cursor).await;
    assert_eq!(all.len(), 4);
    for (index, change) in all.iter().enumerate() {
        let (rest, end) = client.changes_after(&change.cursor).await;
        assert_eq!(rest, all[index + 1..]);
        assert_eq!(end, last);
        let one = ListChangesRequest {
            cursor: change.cursor.clone(),
            page_size: 1,
            ..ListChangesRequest::default()
        };
        let page = client.list_changes(one).await.accepted();
        let next = all.get(index + 1).map(std::slice::from_ref);
        assert_eq!(page.changes, next.unwrap_or_default());
        assert_eq!(page.caught_up, index + 2 >= all.len());
    }
}

#[apply(on_both_databases)]
async fn a_full_page_is_not_caught_up_while_later_changes_have_no_order(client: Client) {
    let start = client.cursor_now().await;
    client.given_task(task("First")).await;
    let page = async |cursor: &str| {
        let request = ListChangesRequest {
            cursor: cursor.to_owned(),
            page_size: 1,
            ..ListChangesRequest::default()
        };
        client.list_changes(request).await.accepted()
    };
    // Who reads changes puts them in order.
    let (first, end) = client.changes_after(&start).await;
    client.given_task(task("Second")).await;
    let full = page(&start).await;
    assert_eq!((full.changes, full.caught_up), (first, false));
    assert_eq!(full.next_cursor, end);
    assert_eq!(client.changes_after(&end).await.0.len(), 1);
}

#[apply(on_one_database)]
async fn wrong_requests_are_refused(client: Client) {
    let cursor = client.cursor_now().await;
    let refused = async |request: ListChangesRequest| client.list_changes(request).await.refused();
    let request = ListChangesRequest::default();
    refused(request.clone())
        .await
        .violates(&[("start", "FIELD_REQUIRED")]);
    let both = ListChangesRequest {
        cursor: cursor.clone(),
        start: ChangeStart::Now.into(),
        ..request.clone()
    };
    refused(both).await.violates(&[("start", "FIELD_INVALID")]);
    let wait = |seconds, nanos| Some(ProtoDuration { seconds, nanos });
    let fractions = [wait(0, 1_000_000_000), wait(1, -1)];
    let seconds = [
        wait(60, 1),
        wait(-1, 0),
        wait(i64::MAX, 0),
        wait(i64::MIN, 0),
    ];
    for wait in seconds.into_iter().chain(fractions) {
        let request = ListChangesRequest {
            wait,
            cursor: cursor.clone(),
            ..request.clone()
        };
        refused(request)
            .await
            .violates(&[("wait", "FIELD_OUT_OF_RANGE")]);
    }
    let all = ListChangesRequest {
        cursor: "?".to_owned(),
        start: 7,
        task: "?".to_owned(),
        page_size: -1,
        wait: wait(61, 0),
    };
    refused(all).await.violates(&[
        ("cursor", "CURSOR_INVALID"),
        ("start", "FIELD_INVALID"),
        ("task", "FIELD_INVALID"),
        ("page_size", "FIELD_OUT_OF_RANGE"),
        ("wait", "FIELD_OUT_OF_RANGE"),
    ]);
}
