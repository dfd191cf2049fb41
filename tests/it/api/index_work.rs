//! The work of an index: what is new, changed or deleted, and what is acknowledged.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};

use crate::{
    kit::random_writes::{self, Write},
    prelude::*,
};

fn item(work: &IndexWork) -> IndexedItem {
    IndexedItem::default()
        .with(|it| it.guid = work.guid.clone())
        .with(|it| it.etag = work.etag.clone())
}

type Work = (String, IndexKind, IndexState);

async fn work_of(client: &Client) -> Vec<Work> {
    let work = client.index_work().await;
    let work = work
        .iter()
        .map(|it| (it.guid.clone(), it.kind(), it.state()));
    work.collect()
}

/// Acknowledges all work.
async fn index_all(client: &Client) {
    let items: Vec<IndexedItem> = client.index_work().await.iter().map(item).collect();
    for result in client.acknowledge(items).await {
        assert_eq!(result, IndexResult::Acknowledged);
    }
    assert_eq!(client.index_work().await, []);
}

#[apply(on_both_databases)]
async fn what_was_written_is_work_until_it_is_acknowledged(client: Client) {
    use {IndexKind::*, IndexState::*};
    assert_eq!(client.index_work().await, []);
    let guide = client.given_task(task("Guide")).await;
    let step = client.given_step(information_step(&guide, "Step")).await;
    let new = [
        (guide.guid.clone(), Task, New),
        (step.guid.clone(), Step, New),
    ];
    assert_eq!(work_of(&client).await, new);
    let work = client.index_work().await;
    assert!(work.iter().all(|work| work.task == guide.guid));
    assert_eq!(work[1].etag, step.etag);
    let mut items: Vec<IndexedItem> = work.iter().map(item).collect();
    items[0].index_version = 7;
    items[0].info = "indexed by a".to_owned();
    client.acknowledge(items).await;
    assert_eq!(client.index_work().await, []);
    let read = client.get_task(&guide.guid).await.accepted();
    assert!(read.mvn_indexed && !read.dirty_record);
    assert_eq!((read.mvn_version, &*read.mvn_info), (7, "indexed by a"));
    assert!(read.mvn_ts.is_some());
    assert_eq!(client.all_tasks().await, [read]);
    assert!(!client.get_step(&step.guid).await.accepted().dirty_record);

    client.retitle(&step.guid, "Changed").await;
    assert_eq!(work_of(&client).await, [(step.guid, Step, Changed)]);
}

#[apply(on_both_databases)]
async fn a_deletion_is_work_if_the_index_holds_it(client: Client) {
    use {IndexKind::*, IndexState::*};
    let steps = ["a", "b", "c", "d"].map(|title| document_step(StepType::Information, title));
    let guide = client.given_guide(steps.to_vec()).await;
    let [a, b, c, d] = [0, 1, 2, 3].map(|at| guide.steps[at].clone());
    let mut items: Vec<IndexedItem> = client.index_work().await.iter().map(item).collect();
    for item in &mut items {
        item.indexed = Some(item.guid != b);
    }
    client.acknowledge(items).await;
    // By the index alone, by an import, and with its task.
    client.delete_step(&a).await.accepted();
    client.delete_step(&b).await.accepted();
    let rest = document_with(task_of(&guide.guid), vec![step_of(&d)]);
    client
        .import_with(AbsentSteps::Delete, rest)
        .await
        .accepted();
    let deleted = |work: Vec<Work>| {
        let deleted = work.into_iter().filter(|(_, _, state)| *state == Deleted);
        let deleted: Vec<_> = deleted.map(|(guid, kind, _)| (guid, kind)).collect();
        deleted
    };
    let mut expected = vec![(a, Step), (c, Step)];
    expected.sort();
    assert_eq!(deleted(work_of(&client).await), expected);
    client.force_delete_task(&guide.guid).await.accepted();
    expected.extend([(d, Step), (guide.guid.clone(), Task)]);
    expected.sort();
    assert_eq!(deleted(work_of(&client).await), expected);
    let work = client.index_work().await;
    assert!(work.iter().all(|work| work.task == guide.guid));
    let wrong = work
        .iter()
        .map(|work| item(work).with(|it| it.etag = guide.etag.clone()));
    let results = client.acknowledge(wrong.collect()).await;
    assert!(results.iter().all(|result| *result == IndexResult::Stale));
    let of_another = client.other_account();
    let results = of_another.acknowledge(work.iter().map(item).collect());
    assert_eq!(results.await, [IndexResult::NotFound; 4]);
    index_all(&client).await;
    let gone = client.acknowledge(work.iter().map(item).collect()).await;
    assert!(gone.iter().all(|result| *result == IndexResult::NotFound));
}

#[apply(on_both_databases)]
async fn what_comes_back_is_no_deletion(client: Client) {
    use {IndexKind::*, IndexState::*};
    let steps = ["a", "b"].map(|title| document_step(StepType::Information, title));
    let guide = client.given_guide(steps.to_vec()).await;
    client.kept_revision(&guide.guid).await;
    let (task, step, never) = (&guide.guid, &guide.steps[0], &guide.steps[1]);
    let items = client.index_work().await;
    let items = items.iter().map(item).filter(|item| item.guid != *never);
    client.acknowledge(items.collect()).await;
    client.force_delete_task(task).await.accepted();
    let deletions: Vec<IndexedItem> = client.index_work().await.iter().map(item).collect();
    let restored = client.restored(task, 1).await.task;
    assert_eq!(restored, Some(client.get_task(task).await.accepted()));
    let mut expected = vec![
        (task.clone(), Task, Changed),
        (step.clone(), Step, Changed),
        (never.clone(), Step, New),
    ];
    expected[1..].sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(work_of(&client).await, expected);
    // The index is still told when it goes for good.
    client.force_delete_task(task).await.accepted();
    let mut expected = vec![
        (task.clone(), Task, Deleted),
        (step.clone(), Step, Deleted),
        (never.clone(), Step, Deleted),
    ];
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(work_of(&client).await, expected);
    // The first deletions are not these.
    assert_eq!(client.acknowledge(deletions).await, [IndexResult::Stale; 3]);
    assert_eq!(work_of(&client).await, expected);

    // What it has forgotten is new, and no work once it is deleted again.
    index_all(&client).await;
    client.restored(task, 1).await;
    client.force_delete_task(task).await.accepted();
    assert_eq!(work_of(&client).await, []);
    client.restored(task, 1).await;
    let states: Vec<IndexState> = work_of(&client).await.iter().map(|it| it.2).collect();
    assert_eq!(states, [New; 3]);
}

/// The index may have read it, although it never said so.
#[apply(on_both_databases)]
async fn a_deletion_is_work_if_it_was_listed(client: Client) {
    use {IndexKind::*, IndexResult::*, IndexState::*};
    let steps = ["a", "b"].map(|title| document_step(StepType::Information, title));
    let guide = client.given_guide(steps.to_vec()).await;
    let [a, b] = [0, 1].map(|at| guide.steps[at].clone());
    let listed = client.index_work().await;
    let items: Vec<IndexedItem> = listed.iter().map(item).collect();
    let never = client.given_step(information_step(&guide, "never")).await;
    // Changed, acknowledged too late, and deleted.
    client.retitle(&a, "Changed").await;
    let at = |guid: &str| items.iter().position(|item| item.guid == guid);
    let of_a = items[at(&a).expect("its work")].clone();
    assert_eq!(client.acknowledge(vec![of_a]).await, [Stale]);
    for step in [&a, &b, &never.guid] {
        client.delete_step(step).await.accepted();
    }
    let mut expected = vec![(a, Step, Deleted), (b.clone(), Step, Deleted)];
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    expected.insert(0, (guide.guid.clone(), Task, New));
    assert_eq!(work_of(&client).await, expected);
    // An acknowledgement of what is deleted does not end its work.
    let of_b = items[at(&b).expect("its work")].clone();
    assert_eq!(client.acknowledge(vec![of_b]).await, [Stale]);
    assert_eq!(work_of(&client).await, expected);
    // What the index does not hold needs no deletion.
    let etag = client.get_task(&guide.guid).await.accepted().etag;
    let of_guide = IndexedItem {
        guid: guide.guid.clone(),
        etag,
        indexed: Some(false),
        ..IndexedItem::default()
    };
    client.acknowledge(vec![of_guide]).await;
    client.force_delete_task(&guide.guid).await.accepted();
    assert_eq!(work_of(&client).await, expected[1..]);
    index_all(&client).await;
}

#[apply(on_both_databases)]
async fn an_acknowledgement_changes_no_version(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let step = client.given_step(information_step(&guide, "Step")).await;
    let guide = client.get_task(&guide.guid).await.accepted();
    let cursor = client.cursor_now().await;
    let guide_etag = async || {
        let guid = guide.guid.clone();
        let exported = client.call(ExportTaskRequest { guid }).await;
        exported.accepted().guide_etag
    };
    let before = guide_etag().await;
    index_all(&client).await;
    assert_eq!(guide_etag().await, before);
    let read = client.get_task(&guide.guid).await.accepted();
    assert_eq!(
        (&read.etag, read.modified_ts),
        (&guide.etag, guide.modified_ts)
    );
    let read = client.get_step(&step.guid).await.accepted();
    assert_eq!(
        (&read.etag, read.modified_ts),
        (&step.etag, step.modified_ts)
    );
    assert_eq!(client.changes_after(&cursor).await.0, []);
}

#[apply(on_both_databases)]
async fn work_is_listed_by_kind_and_id(client: Client) {
    use {IndexKind::*, IndexState::*};
    let steps = document_steps(&["a", "b", "c"]);
    let first = client.imported(document("First", steps)).await;
    let steps = document_steps(&["d", "e"]);
    let second = client.imported(document("Second", steps)).await;
    let gone = client.given_task(task("Gone")).await;
    index_all(&client).await;
    // Written in another order than that of the ids.
    client.delete_task(&gone.guid).await.accepted();
    client.delete_step(&first.steps[2]).await.accepted();
    let mut steps = [&second.steps[..], &first.steps[..2]].concat();
    steps.sort();
    for step in steps.iter().rev() {
        client.retitle(step, "Changed").await;
    }
    for task in [&second, &first] {
        let update = task_of(&task.guid).with_published(0);
        client.updated_task(update, &["published"]).await;
    }
    let mut expected = vec![
        (first.guid.clone(), Task, Changed),
        (second.guid.clone(), Task, Changed),
    ];
    expected.extend(steps.into_iter().map(|step| (step, Step, Changed)));
    let mut deleted = [
        (first.steps[2].clone(), Step, Deleted),
        (gone.guid.clone(), Task, Deleted),
    ];
    deleted.sort_by(|a, b| a.0.cmp(&b.0));
    expected.extend(deleted);
    for page_size in [1, 2, 500] {
        let request = ListIndexWorkRequest::default().with(|it| it.page_size = page_size);
        let work = client.list(request).await;
        let work = work.iter();
        let work = work.map(|it| (it.guid.clone(), it.kind(), it.state()));
        assert_eq!(work.collect::<Vec<_>>(), expected, "{page_size}");
    }
}

#[apply(on_both_databases)]
async fn an_acknowledgement_is_of_its_item_and_replaces_the_one_before(client: Client) {
    use {IndexKind::*, IndexState::*};
    let one = client.given_task(task("One")).await.guid;
    let two = client.given_task(task("Two")).await.guid;
    let step = client.given_step(information_step(&task_of(&two), "Step"));
    let step = step.await.guid;
    let long = "ü".repeat(4_000);
    let work = client.index_work().await;
    let mut items: Vec<IndexedItem> = work.iter().rev().map(item).collect();
    (items[1].index_version, items[1].info) = (2, long.clone());
    (items[2].index_version, items[2].info) = (1, "one".to_owned());
    items[2].indexed = Some(false);
    client.acknowledge(items).await;
    let told = async |guid: &str| {
        let task = client.get_task(guid).await.accepted();
        let is_held = (task.mvn_indexed, task.dirty_record);
        (is_held, task.mvn_version, task.mvn_info)
    };
    assert_eq!(told(&one).await, ((false, false), 1, "one".to_owned()));
    assert_eq!(told(&two).await, ((true, false), 2, long.clone()));
    let before = client.get_task(&two).await.accepted();
    let time = |time: Option<prost_types::Timestamp>| time.map(|at| (at.seconds, at.nanos));
    assert!(time(before.mvn_ts) > time(before.modified_ts));

    // A change leaves what was said.
    for guid in [&one, &two] {
        let update = task_of(guid).with_published(0);
        client.updated_task(update, &["published"]).await;
    }
    assert_eq!(told(&two).await, ((true, true), 2, long));
    let changed = client.get_task(&two).await.accepted();
    assert_eq!(changed.mvn_ts, before.mvn_ts);
    let expected = [(one.clone(), Task, New), (two.clone(), Task, Changed)];
    assert_eq!(work_of(&client).await, expected);
    index_all(&client).await;
    for guid in [&one, &two] {
        assert_eq!(told(guid).await, ((true, false), 0, String::new()));
    }
    let after = client.get_task(&two).await.accepted();
    assert!(time(after.mvn_ts) > time(before.mvn_ts));

    // What the index does not hold any more need not be forgotten.
    let forgotten = |guid: &str, etag: String| IndexedItem {
        guid: guid.to_owned(),
        etag,
        indexed: Some(false),
        ..IndexedItem::default()
    };
    let etag_of_one = client.get_task(&one).await.accepted().etag;
    let etag_of_step = client.get_step(&step).await.accepted().etag;
    let items = vec![forgotten(&one, etag_of_one), forgotten(&step, etag_of_step)];
    client.acknowledge(items).await;
    client.retitle(&step, "Changed").await;
    assert_eq!(work_of(&client).await, [(step.clone(), Step, New)]);
    client.delete_step(&step).await.accepted();
    client.delete_task(&one).await.accepted();
    let expected = [(two, Task, Changed), (step, Step, Deleted)];
    assert_eq!(work_of(&client).await, expected);
}

#[apply(on_both_databases)]
async fn each_item_has_its_own_result(client: Client) {
    use {IndexKind::*, IndexResult::*, IndexState::*};
    let guide = client.given_guide(document_steps(&["a", "b"])).await;
    index_all(&client).await;
    let [changed, deleted] = [0, 1].map(|at| guide.steps[at].clone());
    client.retitle(&changed, "Changed").await;
    client.delete_step(&deleted).await.accepted();
    let work = client.index_work().await;
    let [mut of_guide, mut of_changed, mut of_deleted] = [0, 1, 2].map(|at| item(&work[at]));
    assert_eq!(of_deleted.guid, deleted);
    of_changed.etag = "old".to_owned();
    // It means nothing on a deletion.
    of_deleted.indexed = Some(false);
    (of_deleted.index_version, of_deleted.info) = (7, "gone".to_owned());
    of_guide.guid = of_guide.guid.to_uppercase();
    let unknown = || {
        IndexedItem::default()
            .with(|it| it.guid = unknown_guid())
            .with(|it| it.etag = "x".to_owned())
    };
    let items = vec![unknown(), of_deleted, of_changed, of_guide];
    let results = client.acknowledge(items).await;
    assert_eq!(results, [NotFound, Acknowledged, Stale, Acknowledged]);
    assert_eq!(work_of(&client).await, [(changed, Step, Changed)]);
    let most = (0..500).map(|_| unknown()).collect();
    assert_eq!(client.acknowledge(most).await, [NotFound; 500]);
}

/// An update that has read the step before the acknowledgement is written after it.
#[apply(on_both_databases)]
async fn a_change_during_an_acknowledgement_is_work(client: Client) {
    const ROUNDS: usize = 100;
    let guide = client.given_task(task("Guide")).await;
    let step = client.given_step(information_step(&guide, "Step")).await;
    let worker = client.over_new_connection();
    for round in 0..ROUNDS {
        let work = client.index_work().await;
        let items: Vec<IndexedItem> = work.iter().map(item).collect();
        let titled = step_of(&step.guid).titled(format!("title {round}"));
        let renamed = task_of(&guide.guid).with_published(2 + round as i32);
        tokio::join!(
            worker.acknowledge(items),
            client.updated_step(titled, &["title"]),
            client.updated_task(renamed, &["published"]),
        );
        let work: Vec<String> = client
            .index_work()
            .await
            .into_iter()
            .map(|it| it.guid)
            .collect();
        assert_eq!(
            work,
            [guide.guid.clone(), step.guid.clone()],
            "round {round}"
        );
    }
}

/// What an index holds: the etag of each task and step.
#[derive(Default)]
struct Index(BTreeMap<String, String>);

impl Index {
    /// Does some of the work: reads what is named, and says what it has. The etag is that of what it
    /// has read, which may be newer than that of the work. A worker that crashes has read some of the
    /// work, and acknowledges less of it.
    async fn do_work(&mut self, client: &Client, skip: usize, crash: Option<Crash>) {
        let work = client.index_work().await;
        let mut items = Vec::new();
        let crash = crash.unwrap_or(Crash(usize::MAX, usize::MAX));
        for work in work.iter().skip(skip).take(crash.0) {
            let etag = match (work.state(), work.kind()) {
                (IndexState::Deleted, _) => None,
                (_, IndexKind::Task) => client.get_task(&work.guid).await.ok().map(|it| it.etag),
                _ => client.get_step(&work.guid).await.ok().map(|it| it.etag),
            };
            match &etag {
                Some(etag) => self.0.insert(work.guid.clone(), etag.clone()),
                None => self.0.remove(&work.guid),
            };
            items.push(item(work).with(|it| it.etag = etag.unwrap_or_else(|| work.etag.clone())));
        }
        items.truncate(crash.1);
        if !items.is_empty() {
            client.acknowledge(items).await;
        }
    }
}

/// After how many items read and acknowledged a worker crashes.
#[derive(Clone, Copy, Debug)]
struct Crash(usize, usize);

/// What happens after a write.
#[derive(Clone, Debug)]
enum Worker {
    Sleeps,
    Works { skip: usize },
    Crashes(Crash),
}

fn worker() -> impl Strategy<Value = Worker> {
    prop_oneof![
        2 => Just(Worker::Sleeps),
        1 => (0..2_usize).prop_map(|skip| Worker::Works { skip }),
        2 => (0..6_usize, 0..3_usize)
            .prop_map(|(read, acknowledged)| Worker::Crashes(Crash(read, acknowledged))),
    ]
}

#[apply(property_on_both_databases)]
#[cases(10, vec((random_writes::write(), worker()), 1..24))]
async fn an_index_equals_the_exports(client: Client, writes: Vec<(Write, Worker)>) {
    let mut index = Index::default();
    for (number, (write, worker)) in writes.iter().enumerate() {
        random_writes::apply(&client, write, number).await;
        match worker {
            Worker::Sleeps => {}
            Worker::Works { skip } => index.do_work(&client, *skip, None).await,
            Worker::Crashes(crash) => index.do_work(&client, 0, Some(*crash)).await,
        }
    }
    index.do_work(&client, 0, None).await;
    assert_eq!(client.index_work().await, []);
    let mut stored = BTreeMap::new();
    for (task, steps) in client.tasks_with_steps().await {
        stored.insert(task.guid, task.etag);
        stored.extend(steps.into_iter().map(|step| (step.guid, step.etag)));
    }
    assert_eq!(index.0, stored);
}
