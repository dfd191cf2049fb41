//! Revisions that a guide gets before a change, if its newest revision is old.

use std::{collections::BTreeMap, time::Duration};

use proptest::{collection::vec, prelude::*, strategy::ValueTree, test_runner::TestRunner};

use super::{exported, given_guide, publish, retitle};
use crate::{
    api::deleted_steps::restore,
    kit::{
        random_writes::{self, Kind, Write},
        runtime::runtime,
        scratch::Scratch,
        server::{Settings, TestServer, with_metrics},
        sql::SqlConnection,
    },
    prelude::{at_once::at_once, *},
};

const HOUR: Duration = Duration::from_secs(60 * 60);
/// The most statements that a guide without managed tasks takes for a checkpoint, in both attempts.
const MAX_CHECKPOINT_STATEMENTS: f64 = 12.0;

/// A server with its database.
struct Aging {
    server: TestServer,
    client: Client,
    database: SqlConnection,
}

impl Aging {
    async fn start(url: &str) -> Self {
        Self::start_with(with_metrics(url), url).await
    }

    async fn start_with(settings: Settings, url: &str) -> Self {
        let server = TestServer::start(settings).await;
        Self {
            client: server.client(),
            server,
            database: SqlConnection::open(url).await,
        }
    }

    async fn age(&mut self, by: Duration) {
        age(&mut self.database, by).await;
    }

    /// The causes of a guide's revisions, the newest first.
    async fn causes(&self, guide: &str) -> Vec<RevisionCause> {
        let revisions = self.client.all_revisions(guide).await;
        revisions.iter().map(TaskRevision::cause).collect()
    }

    /// How many statements an update of a step takes.
    async fn statements_of_update(&self, step: &str, title: &str) -> f64 {
        const COUNT: &str = "expertise_database_statement_seconds_count";
        let before = self.server.metrics().await.sum(COUNT, &[]);
        self.client.retitle(step, title).await;
        self.server.metrics().await.sum(COUNT, &[]) - before
    }

    fn eve(&self) -> Client {
        self.client.with_metadata("x-subject", "eve")
    }

    /// Ages the guide, awaits a change by eve, and asserts that the guide was kept as it was before.
    async fn keeps<T>(&mut self, guide: &str, change: impl Future<Output = T>) -> T {
        self.age(HOUR).await;
        let before = exported(&self.client, guide).await;
        let kept = self.causes(guide).await.len();
        let changed = change.await;
        let revisions = self.client.all_revisions(guide).await;
        assert_eq!(revisions.len(), kept + 1);
        let newest = &revisions[0];
        assert_eq!(newest.cause(), RevisionCause::Checkpoint);
        assert_eq!(newest.subject, "eve");
        assert_eq!(newest.guide_etag, before.guide_etag);
        let found = self.client.get_revision(guide, newest.revision).await;
        assert_eq!(found.accepted().document, before.document);
        changed
    }
}

#[apply(on_both_databases)]
async fn a_change_keeps_the_guide_if_its_newest_revision_is_old(url: String) {
    let mut aging = Aging::start(&url).await;
    let guide = given_guide(&aging.client).await;
    let guid = guide.guid.as_str();
    retitle(&aging.client, guid, "New").await;
    assert_eq!(aging.causes(guid).await, [], "it is new");
    let eve = aging.eve();
    let new = information_step(&guide, "New");
    let step = aging.keeps(guid, eve.given_step(new)).await;
    // A burst of changes makes one.
    retitle(&aging.client, guid, "Newer").await;
    assert_eq!(aging.causes(guid).await.len(), 1);
    aging.keeps(guid, retitle(&eve, guid, "Newest")).await;
    let observation = aging.client.get_step(&guide.steps[0]).await.accepted();
    let managed = answers_of(&observation)[0].link.clone();
    let below = information_step(&task_of(&managed), "Below");
    let below = aging.keeps(guid, eve.given_step(below)).await;
    let below = eve.retitle(&below.guid, "Far below");
    aging.keeps(guid, below).await;
    let unpublished = task_of(&managed).with_published(0);
    let published = &["published"];
    aging
        .keeps(guid, eve.updated_task(unpublished, published))
        .await;
    assert_eq!(aging.causes(&managed).await, []);
    let document = exported(&eve, &managed).await.document;
    let mut document = document.expect("a document");
    document.steps[0].title = "Imported".to_owned();
    aging.keeps(guid, eve.imported(document)).await;
    aging.keeps(guid, eve.restored(&managed, 1)).await;
    // The managed task needs no revision of its own.
    eve.kept_revision(&managed).await;
    aging.keeps(guid, eve.restored(&managed, 2)).await;
    aging.keeps(guid, eve.rename(guid, "Renamed")).await;
    let work = eve.translation_work(&["fr"]).await;
    let work = work.iter().find(|work| work.guid == step.guid);
    let translation = automatic(work.expect("work"), "Français");
    aging.keeps(guid, eve.written(translation)).await;
    let deleted = aging.keeps(guid, eve.delete_step(&step.guid)).await;
    deleted.accepted();
    let restored = aging.keeps(guid, eve.call(restore(&step.guid))).await;
    restored.accepted();
    // Unlinks what it manages.
    let unlinked = eve.delete_step(&observation.guid);
    aging.keeps(guid, unlinked).await.accepted();
    aging.server.shut_down().await;
}

#[apply(on_both_databases)]
async fn what_changes_nothing_keeps_nothing(url: String) {
    let mut aging = Aging::start(&url).await;
    let guide = given_guide(&aging.client).await;
    let guid = guide.guid.as_str();
    retitle(&aging.client, guid, "Same").await;
    aging.age(2 * HOUR).await;
    retitle(&aging.client, guid, "Same").await;
    let create =
        create_step_request(information_step(&guide, "Dry")).with(|it| it.validate_only = true);
    aging.client.call(create).await.accepted();
    let wrong = step_of(&guide.steps[0]).with_etag("old").titled("Wrong");
    aging.client.update_step(wrong, &["title"]).await.refused();
    assert_eq!(aging.causes(guid).await, []);
    // The state that the newest revision has is not kept again.
    aging.client.kept_revision(guid).await;
    aging.age(HOUR).await;
    retitle(&aging.client, guid, "Changed").await;
    assert_eq!(aging.causes(guid).await, [RevisionCause::Requested]);
    let eve = aging.eve();
    let again = retitle(&eve, guid, "Again");
    aging.keeps(guid, again).await;
    // Before and after an update that publishes.
    aging.age(HOUR).await;
    publish(&aging.client, guid).await;
    let revisions = aging.client.all_revisions(guid).await;
    let mut kept = revisions.iter().map(|it| (it.revision, it.cause()));
    use RevisionCause::{Checkpoint, Published, Requested};
    let numbers: Vec<i64> = revisions.iter().map(|it| it.revision).collect();
    assert_eq!(kept.clone().next(), Some((numbers[0], Published)));
    assert!(numbers.is_sorted_by(|a, b| a > b), "{numbers:?}");
    assert_eq!(kept.clone().nth(1).map(|it| it.1), Some(Checkpoint));
    assert_eq!(kept.next_back(), Some((1, Requested)));
    aging.server.shut_down().await;
}

#[apply(on_both_databases)]
async fn a_requested_revision_counts_until_it_is_deleted(url: String) {
    let mut aging = Aging::start(&url).await;
    let guide = given_guide(&aging.client).await;
    let guid = guide.guid.as_str();
    aging.age(HOUR).await;
    let requested = aging.client.kept_revision(guid).await.revision;
    for name in ["New", "Newer"] {
        retitle(&aging.client, guid, name).await;
        assert_eq!(aging.causes(guid).await, [RevisionCause::Requested]);
    }
    aging
        .client
        .delete_revision(guid, &requested.to_string())
        .await
        .accepted();
    retitle(&aging.client, guid, "Newest").await;
    assert_eq!(aging.causes(guid).await, [RevisionCause::Checkpoint]);
    aging.server.shut_down().await;
}

#[apply(on_both_databases)]
async fn concurrent_changes_keep_one(url: String) {
    let mut aging = Aging::start(&url).await;
    let guide = given_guide(&aging.client).await;
    let question = aging.client.get_step(&guide.steps[0]).await.accepted();
    for round in 1..=4 {
        aging.age(HOUR).await;
        let question = question.clone();
        let updates = at_once(&aging.client, 8, move |client, number| {
            let mut question = question.clone();
            question.etag.clear();
            question.feedback_config[0].values[0].value = format!("Yes {round}.{number}");
            async move { client.update_step(question, &["feedback_config"]).await }
        });
        for updated in updates.await {
            updated.accepted();
        }
        let causes = aging.causes(&guide.guid).await;
        assert_eq!(causes, vec![RevisionCause::Checkpoint; round]);
    }
    aging.server.shut_down().await;
}

#[apply(on_both_databases)]
async fn a_checkpoint_locks_its_guide_once(url: String) {
    let mut aging = Aging::start(&url).await;
    let steps = vec![document_step(StepType::Information, "Read")];
    let guide = aging.client.given_guide(steps).await;
    let step = guide.steps[0].as_str();
    let without = aging.statements_of_update(step, "New").await;
    aging.age(HOUR).await;
    let with = aging.statements_of_update(step, "Newer").await;
    assert_eq!(aging.causes(&guide.guid).await.len(), 1);
    assert!(with > without);
    assert!(
        with - without <= MAX_CHECKPOINT_STATEMENTS,
        "{with} {without}"
    );
    aging.server.shut_down().await;
}

#[apply(on_both_databases)]
async fn a_guide_that_is_too_large_is_considered_once(url: String) {
    const LIMIT: usize = 64 * 1024;
    let settings = with_metrics(&url).set("EXPERTISE_MAX_MESSAGE_BYTES", LIMIT);
    let mut aging = Aging::start_with(settings, &url).await;
    let steps = vec![document_step(StepType::Information, "Read")];
    let guide = aging.client.given_guide(steps).await;
    for _ in 0..3 {
        let large = information_step(&guide, "Large").with_body("x".repeat(LIMIT / 2));
        aging.client.given_step(large).await;
    }
    let step = guide.steps[0].as_str();
    let new = aging.statements_of_update(step, "New").await;
    for titles in [["First", "Second"], ["Third", "Fourth"]] {
        aging.age(HOUR).await;
        assert!(aging.statements_of_update(step, titles[0]).await > new);
        assert_eq!(aging.statements_of_update(step, titles[1]).await, new);
    }
    assert_eq!(aging.causes(&guide.guid).await, []);
    // It is kept once it is small enough.
    for step in &aging.client.step_order(&guide.guid).await[1..] {
        aging.client.updated_step(step_of(step), &["body"]).await;
    }
    let eve = aging.eve();
    aging.keeps(&guide.guid, eve.retitle(step, "Small")).await;
    aging.server.shut_down().await;
}

/// Lack of memory for a checkpoint is no rejection of the write.
#[test]
fn a_checkpoint_is_left_out_while_responses_take_the_memory() {
    const LIMIT: usize = 16 * 1024 * 1024;
    runtime().block_on(async {
        let url = Scratch::of_this_run().sqlite_url("no_memory");
        let settings = with_metrics(&url)
            .set("EXPERTISE_MAX_MESSAGE_BYTES", LIMIT)
            .set("EXPERTISE_MAX_INFLIGHT_BYTES", LIMIT);
        let mut aging = Aging::start_with(settings, &url).await;
        let large = document_step(StepType::Information, "Read").with_body("x".repeat(3_500_000));
        let small = document_step(StepType::Information, "Small");
        let guide = aging.client.given_guide(vec![large, small]).await;
        aging.age(HOUR).await;
        let mut grpc = tonic::client::Grpc::new(aging.client.authenticated());
        grpc.ready().await.expect("a connection");
        let codec = tonic_prost::ProstCodec::<ExportTaskRequest, ExportTaskResponse>::default();
        let path = http::uri::PathAndQuery::from_static("/expertise.v1.TaskService/ExportTask");
        let request = ExportTaskRequest {
            guid: guide.guid.clone(),
        };
        let unread = grpc.server_streaming(tonic::Request::new(request), path, codec);
        let unread = unread.await.expect("a response");
        aging.client.retitle(&guide.steps[1], "Changed").await;
        let metrics = aging.server.metrics().await;
        assert!(metrics.sum("expertise_inflight_bytes", &[]) > 3_500_000.0);
        assert_eq!(aging.causes(&guide.guid).await, []);
        assert_eq!(metrics.sum("expertise_rejected_calls_total", &[]), 0.0);
        drop(unread);
        aging.server.shut_down().await;
    });
}

#[test]
fn no_checkpoint_is_made_without_an_interval() {
    runtime().block_on(async {
        let url = Scratch::of_this_run().sqlite_url("no_checkpoints");
        let settings = Settings::new(&url).set("EXPERTISE_CHECKPOINT_INTERVAL", "0");
        let server = TestServer::start(settings).await;
        let client = server.client();
        let guide = given_guide(&client).await;
        let mut database = SqlConnection::open(&url).await;
        age(&mut database, 2 * HOUR).await;
        retitle(&client, &guide.guid, "Changed").await;
        assert_eq!(client.all_revisions(&guide.guid).await, []);
        server.shut_down().await;
    });
}

/// Writes, each with the minutes that pass before it.
type History = Vec<(Write, u64)>;

/// Every checkpoint is of a state that an export showed, and none is made within the interval.
async fn laws_hold(url: String, histories: Vec<History>) {
    let mut aging = Aging::start(&url).await;
    let mut checkpoints = 0;
    for (account, history) in histories.into_iter().enumerate() {
        let account = format!("account-{account}");
        aging.client = aging.server.client().with_account(&account);
        let mut now = Duration::ZERO;
        // When the revisions of each guide were made.
        let mut made: BTreeMap<(String, i64), Duration> = BTreeMap::new();
        for (number, (write, minutes)) in history.iter().enumerate() {
            let by = Duration::from_secs(60 * minutes);
            aging.age(by).await;
            now += by;
            let mut before = BTreeMap::new();
            for task in aging.client.all_tasks().await {
                let state = exported(&aging.client, &task.guid).await;
                before.insert(task.guid, state);
            }
            random_writes::apply(&aging.client, write, number).await;
            for task in aging.client.all_tasks().await {
                let revisions = aging.client.all_revisions(&task.guid).await;
                for revision in revisions.iter().rev() {
                    let key = |number| (task.guid.clone(), number);
                    if made.contains_key(&key(revision.revision)) {
                        continue;
                    }
                    made.insert(key(revision.revision), now);
                    if revision.cause() != RevisionCause::Checkpoint {
                        continue;
                    }
                    checkpoints += 1;
                    let before = &before[&task.guid];
                    assert_eq!(revision.guide_etag, before.guide_etag);
                    let number = revision.revision;
                    let found = aging.client.get_revision(&task.guid, number).await;
                    assert_eq!(found.accepted().document, before.document);
                    if let Some(previous) = made.get(&key(number - 1)) {
                        assert!(now - *previous >= HOUR, "{now:?} {previous:?}");
                    }
                }
            }
        }
    }
    assert!(checkpoints > 0);
    aging.server.shut_down().await;
}

#[apply(on_both_databases)]
async fn checkpoints_are_states_that_were_shown(url: String) {
    let writes = vec((random_writes::write(), 0..50_u64), 10..24);
    let history = (writes, random_writes::write()).prop_map(|(mut history, last)| {
        // A change, and one that keeps what it has made.
        history.push((last.of_kind(Kind::CreateTask), 0));
        history.push((last.of_kind(Kind::AppendStep), 0));
        history.push((last.of_kind(Kind::AppendStep), 60));
        history
    });
    let histories = vec(history, 4).new_tree(&mut TestRunner::default());
    let histories = histories.expect("histories").current();
    println!("{histories:?}");
    laws_hold(url, histories).await;
}

/// Makes every revision and task older.
async fn age(database: &mut SqlConnection, by: Duration) {
    let micros = by.as_micros();
    let age = format!("SET created_ts = created_ts - {micros}");
    let skipped = format!("kept_ts = kept_ts - {micros}");
    let update = format!("UPDATE task_revisions {age}; UPDATE tasks {age}, {skipped}");
    database.execute(&update).await;
}
