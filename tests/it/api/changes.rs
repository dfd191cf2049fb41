//! The change feed: what each write tells, and where a reader begins.

use prost_types::Duration as ProtoDuration;

use crate::prelude::*;

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

/// The changes of the last write, by what they are about, as nothing is said of the order within
/// a write.
async fn told_by(client: &Client, cursor: &mut String, rpc: &str) -> Vec<Change> {
    let (mut changes, next) = client.changes_after(cursor).await;
    *cursor = next;
    assert!(
        changes.iter().all(|change| change.rpc == rpc),
        "{rpc}: {changes:?}"
    );
    changes.sort_by(|a, b| (a.kind, &a.step).cmp(&(b.kind, &b.step)));
    changes
}

#[apply(on_both_databases)]
async fn renumbering_is_seen_by_nobody(client: Client) {
    let guide = client.given_guide(document_steps(&["a", "b"])).await;
    let (guide, last) = client.nearly_full(&guide).await;
    let cursor = client.cursor_now().await;
    let mut created = Vec::new();
    for _ in 0..INSERTS_UNTIL_RENUMBERED {
        let step = information_step(&guide, "Between");
        let response = client.create_step_after(step, &last).await.accepted();
        created.push(response.step.expect("the step").guid);
    }
    let (changes, next) = client.changes_after(&cursor).await;
    let expected = created
        .iter()
        .map(|step| tells(ChangeKind::StepCreated, step, &[]));
    assert_eq!(told(&changes), expected.collect::<Vec<_>>());
    assert_eq!(client.changes_after(&next).await.0, []);
}

#[apply(on_both_databases)]
async fn a_restore_tells_what_came_back(client: Client) {
    use ChangeKind::*;
    let steps = vec![
        document_step(StepType::Information, "a"),
        document_step(StepType::Information, "b"),
    ];
    let client = client.with_metadata("x-subject", "ana");
    let guide = client.given_guide(steps).await;
    client.kept_revision(&guide.guid).await;
    client.delete_step(&guide.steps[1]).await.accepted();
    client.retitle(&guide.steps[0], "changed").await;
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
    client.purge(&guide.guid).await.accepted();
    let changes = told_by(&client, &mut cursor, "DeleteTask").await;
    assert_eq!(told(&changes), [tells(TaskDeleted, &guide.guid, &[])]);
    assert_eq!(changes[0].step_count, 2);
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
    let retried = create_task_request(task("Retried")).with(|it| it.request_id = unknown_guid());
    client.call(retried.clone()).await.accepted();
    let cursor = client.cursor_now().await;
    client.call(retried).await.accepted();
    client.rename(&guide.guid, "Guide").await;
    client.retitle(&step.guid, "Step").await;
    let dry_run = UpdateTaskRequest::default()
        .with(|it| it.task = Some(task_of(&guide.guid).named("Other")))
        .with(|it| it.validate_only = true);
    client.call(dry_run).await.accepted();
    let dry_run = import_of(document("Other", Vec::new())).with(|it| it.validate_only = true);
    client.call(dry_run).await.accepted();
    let same = client.exported(&guide.guid).await;
    client.imported(same).await;
    let old = task_of(&guide.guid).named("Other").with_etag("old");
    client.update_task(old, &["name"]).await.refused();
    for work in client.translation_work(&["de"]).await {
        let stale = automatic(&work, "Deutsch").with(|it| it.source_digest = "old".to_owned());
        client.written(stale).await;
    }
    client.given_role("Role").await;
    let kept = client.kept_revision(&guide.guid).await;
    client.alias(&guide.guid, "live", kept.revision).await;
    let restored = client.restored(&guide.guid, kept.revision).await;
    assert_eq!(restored.outcome(), ImportOutcome::Unchanged);
    assert_eq!(client.changes_after(&cursor).await.0, []);
}

#[apply(on_both_databases)]
async fn the_start_is_now_or_the_oldest(client: Client) {
    let oldest = changes_from(ChangeStart::Oldest);
    let empty = client.call(oldest.clone()).await.accepted();
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
    let all = client.call(oldest).await.accepted();
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
    let narrowed = |task: &str| changes_behind(&cursor).with(|it| it.task = task.to_owned());
    let upper = one.guid.to_uppercase();
    let page = client.call(narrowed(&upper)).await.accepted();
    let kinds: Vec<ChangeKind> = page.changes.iter().map(Change::kind).collect();
    assert_eq!(kinds, [ChangeKind::StepCreated, ChangeKind::StepDeleted]);
    assert!(page.caught_up);
    // It goes on behind all that it has looked at.
    assert_eq!(client.changes_after(&page.next_cursor).await.0, []);
    // A task that is gone has told so.
    client.force_delete_task(&one.guid).await.accepted();
    let page = client.call(narrowed(&one.guid)).await.accepted();
    let kinds: Vec<ChangeKind> = page.changes.iter().map(Change::kind).collect();
    assert_eq!(kinds[2..], [ChangeKind::TaskDeleted]);
    let nobody = "01890a5d-ac96-774b-bcce-b302099a8057";
    let page = client.call(narrowed(nobody)).await.accepted();
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
        let request = changes_behind(cursor)
            .with(|it| it.task = task.to_owned())
            .with(|it| it.page_size = page_size);
        client.call(request).await.accepted()
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
async fn a_full_page_is_not_caught_up_while_later_changes_have_no_order(client: Client) {
    let start = client.cursor_now().await;
    client.given_task(task("First")).await;
    let page = async |cursor: &str| {
        let request = changes_behind(cursor).with(|it| it.page_size = 1);
        client.call(request).await.accepted()
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
async fn a_wait_that_json_cannot_express_is_refused(client: Client) {
    let cursor = client.cursor_now().await;
    for (seconds, nanos) in [(0, 1_000_000_000), (1, -1), (i64::MAX, 0), (i64::MIN, 0)] {
        let wait = Some(ProtoDuration { seconds, nanos });
        let request = changes_behind(&cursor).with(|it| it.wait = wait);
        let failure = client.call(request).await.refused();
        failure.violates(&[("wait", "FIELD_OUT_OF_RANGE")]);
    }
}
