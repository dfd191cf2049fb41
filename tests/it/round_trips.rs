//! How often a call waits for PostgreSQL, which is what it costs there: a read once, a
//! write without locks twice at most. What must lock several resources before it knows
//! what to write takes more, BEGIN and COMMIT counted, and is named here too.
//!
//! A round trip ends where the driver asks PostgreSQL to say that it is ready again, after
//! it has sent something else: the driver's pool asks once more when a connection is given
//! back, for which no call waits. A relay between the two counts.

use std::{collections::BTreeSet, fmt::Debug};

use sqlx::{Connection, PgConnection};
use tonic::Status;

use crate::kit::{
    contract, databases::postgres, deadline::until, prelude::*, relay::Relay, sample, store_server,
};

/// How often a call is tried: a connection that was idle for a while is tested before it
/// is used, which on a busy machine happens between any two calls.
const TRIES: usize = 5;

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_read_is_one_round_trip_and_a_write_two_at_most() {
    let url = postgres("round_trips");
    let (client, relay) = client_through_relay(&url).await;
    let mut counts = Counts::new(relay);
    reads(&client, &mut counts).await;
    writes(&client, &mut counts).await;
    translations(&client, &mut counts).await;
    references(&client, &mut counts).await;
    writes_of_several_resources(&client, &mut counts).await;
    history(&client, &mut counts).await;
    followers(&client, &mut counts).await;
    println!("{}", counts.lines.join("\n"));
    assert!(counts.too_many.is_empty(), "{:#?}", counts.too_many);
    counts.cover_every_rpc();
}

/// The text of a large step crosses the wire once when it is returned, and else never.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn large_texts_are_read_once_and_only_when_they_are_returned() {
    const TEXT_BYTES: usize = 2_000_000;
    let url = postgres("large_texts");
    let (client, relay) = client_through_relay(&url).await;
    let task = client.given_task(task("Large")).await;
    let mut steps = Vec::new();
    for title in ["first", "second"] {
        let step = information_step(&task, title).with_body("x".repeat(TEXT_BYTES));
        steps.push(client.given_step(step).await.guid);
    }
    let mut before = 0;
    let mut has_read = |call: &str, texts: usize| {
        let now = relay.answered_bytes() as usize;
        let read = now - std::mem::replace(&mut before, now);
        let most = texts * TEXT_BYTES + TEXT_BYTES / 10;
        assert!(read <= most, "{call} has read {read} bytes");
    };
    has_read("CreateStep", 0);
    let page = ListStepsRequest {
        task: task.guid.clone(),
        expand: vec!["body".to_owned()],
        page_size: 1,
        ..ListStepsRequest::default()
    };
    let page = client.list_steps(page).await.accepted();
    assert_eq!(page.steps.len(), 1);
    assert_ne!(page.next_page_token, "");
    has_read("ListSteps", 1);
    let update = step_of(&steps[0]).titled("Changed");
    client.updated_step(update, &["title"]).await;
    has_read("UpdateStep", 1);
    client.delete_step(&steps[0]).await.accepted();
    has_read("DeleteStep", 0);
}

/// Violations are found without the store. Those of an update join others that depend on what is
/// stored, such as the type of a step, so that all come at once.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn an_invalid_request_costs_no_round_trip_and_an_invalid_update_one() {
    let url = postgres("refused_requests");
    let (client, relay) = client_through_relay(&url).await;
    let task = client.given_task(task("Task")).await;
    let step = client.given_step(information_step(&task, "Step")).await;
    let mut least = [u64::MAX; 3];
    for _ in 0..TRIES {
        let trips = || relay.round_trips();
        let before = trips();
        let invalid = information_step(&task, "Step").with_body("a\0b");
        let refused = client.create_step(invalid).await.refused();
        refused.violates(&[("step.body", "FIELD_INVALID")]);
        let created = trips();
        let invalid = step_of(&step.guid).with_body("a\0b").with_cost(2);
        let refused = client
            .update_step(invalid, &["body", "cost"])
            .await
            .refused();
        refused.violates(&[
            ("step.body", "FIELD_INVALID"),
            // An information step has none.
            ("step.cost", "FIELD_OUT_OF_RANGE"),
        ]);
        let updated_step = trips();
        let update = client.update_task(task_of(&task.guid), &["nosuch"]).await;
        update
            .refused()
            .is(Code::InvalidArgument, "MASK_PATH_UNKNOWN");
        let updated_task = trips();
        let took = [
            created - before,
            updated_step - created,
            updated_task - updated_step,
        ];
        least = std::array::from_fn(|call| least[call].min(took[call]));
    }
    assert_eq!(least, [0, 1, 1]);
}

/// What a write without a lock relies on may change while its statement waits.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_step_that_changed_while_its_deletion_waited_is_not_deleted() {
    let url = postgres("contended");
    let (_, client) = store_server::serve(&url, 1).await;
    let (_, other) = store_server::serve(&url, 1).await;
    let task = client.given_task(task("Contended")).await;
    let step = client.given_step(information_step(&task, "Step")).await;

    let mut holder = PgConnection::connect(&url).await.expect("PostgreSQL");
    let held = sqlx::query("SELECT 1 FROM tasks WHERE guid = $1 FOR UPDATE");
    let guid = uuid::Uuid::parse_str(&task.guid).expect("an id");
    let mut lock = holder.begin().await.expect("a transaction");
    held.bind(guid).execute(&mut *lock).await.expect("the lock");
    let deletion = DeleteStepRequest {
        guid: step.guid.clone(),
        etag: step.etag.clone(),
    };
    let mut steps = client.steps();
    let deleting = tokio::spawn(async move { steps.delete_step(deletion).await });
    wait_until_a_statement_waits(&url, "WITH guard%").await;
    let update = step_of(&step.guid).titled("Changed");
    // An update needs no lock of the task.
    other.updated_step(update, &["title"]).await;
    lock.commit().await.expect("the end of the lock");

    let refused = deleting.await.expect("an answer").refused();
    assert_eq!(refused.code, Code::Aborted, "{refused:?}");
    assert_eq!(client.step_order(&task.guid).await, [step.guid]);
    let refused = client.delete_task(&task.guid).await.refused();
    assert_eq!(refused.code, Code::FailedPrecondition, "{refused:?}");
}

/// An import locks the steps that change after it has read them.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_step_that_changed_while_an_import_waited_keeps_the_change() {
    let url = postgres("changed_during_import");
    let (_, client) = store_server::serve(&url, 1).await;
    let task = client.given_task(task("Contended")).await;
    let step = client.given_step(information_step(&task, "Step")).await;

    let mut holder = PgConnection::connect(&url).await.expect("PostgreSQL");
    let mut update = holder.begin().await.expect("a transaction");
    let retitle = "UPDATE steps SET title = 'Changed', version = version + 1 WHERE guid = $1";
    let guid = uuid::Uuid::parse_str(&step.guid).expect("an id");
    let retitled = sqlx::query(retitle).bind(guid).execute(&mut *update).await;
    retitled.expect("the update");
    let texts = Step {
        body: Some("Imported".to_owned()),
        ..step_of(&step.guid)
    };
    let document = sample::document_of(&task.guid, vec![texts]);
    let importer = client.clone();
    let importing = tokio::spawn(async move { importer.import(document).await });
    let locking = r#"SELECT %"version", %"modified_ts" FROM "steps" %FOR UPDATE"#;
    wait_until_a_statement_waits(&url, locking).await;
    update.commit().await.expect("the end of the update");

    importing.await.expect("an answer").accepted();
    let stored = client.get_step(&step.guid).await.accepted();
    assert_eq!(stored.title, "Changed");
    assert_eq!(stored.body(), "Imported");
}

/// Waits until a statement like this waits for a lock. It asks outside of a transaction:
/// inside one PostgreSQL repeats its first answer.
async fn wait_until_a_statement_waits(url: &str, statement: &str) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
         AND datname = current_database() AND query LIKE $1";
    let mut watcher = PgConnection::connect(url).await.expect("PostgreSQL");
    until("the statement waits for the lock", async || {
        let found = sqlx::query_scalar::<_, i64>(waiting).bind(statement);
        let found = found.fetch_one(&mut watcher).await.expect("a count");
        (found > 0).then_some(())
    })
    .await;
}

/// A client of the services on a store whose one connection leads through a relay, and
/// the round trips that the relay counts.
async fn client_through_relay(url: &str) -> (Client, Relay) {
    let relay = Relay::to_database(url);
    let url = relay.url(url);
    // What is encrypted cannot be counted.
    let and = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{and}sslmode=disable");
    let (_, client) = store_server::serve(&url, 1).await;
    (client, relay)
}

/// The round trips of calls.
struct Counts {
    relay: Relay,
    lines: Vec<String>,
    too_many: Vec<String>,
    rpcs: BTreeSet<&'static str>,
}

impl Counts {
    fn new(relay: Relay) -> Self {
        Self {
            relay,
            lines: Vec::new(),
            too_many: Vec::new(),
            rpcs: BTreeSet::new(),
        }
    }

    /// Counts the round trips of a call several times; the least may be `most`.
    async fn count<T: Debug>(
        &mut self,
        rpc: &'static str,
        case: &str,
        most: u64,
        call: impl AsyncFn() -> Result<T, Status>,
    ) {
        self.count_prepared(rpc, case, most, async || (), async |()| call().await)
            .await;
    }

    /// The same of a call that takes what was prepared for it each time.
    async fn count_prepared<P, T: Debug>(
        &mut self,
        rpc: &'static str,
        case: &str,
        most: u64,
        prepare: impl AsyncFn() -> P,
        call: impl AsyncFn(P) -> Result<T, Status>,
    ) {
        let mut least = u64::MAX;
        for _ in 0..TRIES {
            let prepared = prepare().await;
            let before = self.relay.round_trips();
            call(prepared).await.accepted();
            let took = self.relay.round_trips() - before;
            least = least.min(took);
        }
        self.rpcs.insert(rpc);
        let line = format!("{rpc}, {case}: {least} round trips, {most} at most");
        if least > most || (least == 0 && most > 0) {
            self.too_many.push(line.clone());
        }
        self.lines.push(line);
    }

    fn cover_every_rpc(&self) {
        for method in contract::methods() {
            let counted = self
                .rpcs
                .iter()
                .any(|rpc| method.ends_with(&format!("/{rpc}")));
            assert!(counted, "{method} is not counted");
        }
    }
}

async fn reads(client: &Client, counts: &mut Counts) {
    let task = &client.given_task(task("Read")).await;
    let steps = client.given_steps(task, &["a", "b", "c", "d"]).await;
    let list = async || client.list_tasks(ListTasksRequest::default()).await;
    counts.count("ListTasks", "a page", 1, list).await;
    let get = async || client.get_task(&task.guid).await;
    counts.count("GetTask", "a task", 1, get).await;
    let get = async || client.get_step(&steps[3]).await;
    counts.count("GetStep", "a step", 1, get).await;
    for expand in [vec![], vec!["body".to_owned()]] {
        let request = ListStepsRequest {
            task: task.guid.clone(),
            expand,
            page_size: 2,
            ..ListStepsRequest::default()
        };
        let list = async || client.list_steps(request.clone()).await;
        counts.count("ListSteps", "a page", 1, list).await;
    }
    // One state: the task, its steps, and a transaction around them.
    let preview = async || client.preview(preview_of(&task.guid)).await;
    counts.count("PreviewTask", "a task", 4, preview).await;
    let validate = async || client.validate(validation_of(&task.guid)).await;
    counts.count("ValidateTask", "a task", 4, validate).await;
    // The tasks, and then each as ValidateTask reads it.
    let list = async || client.findings(ListFindingsRequest::default()).await;
    counts.count("ListFindings", "a page", 6, list).await;
    counts
        .count("ListRules", "all", 0, async || client.rules().await)
        .await;
    let list = async || client.list_roles(0, "").await;
    counts.count("ListRoles", "a page", 1, list).await;
    translated_reads(client, counts).await;
}

/// Once a read has found translations, the next one expects some.
async fn translated_reads(client: &Client, counts: &mut Counts) {
    let translated = task("Read").translated("de", task_translation("Lesen"));
    let task = &client.given_task(translated).await;
    let step = Step {
        translations: [("de".to_owned(), step_translation("Schritt"))].into(),
        ..information_step(task, "Step")
    };
    let step = client.given_step(step).await.guid;
    let get = async || client.get_task(&task.guid).await;
    counts.count("GetTask", "a translated task", 1, get).await;
    let get = async || client.get_step(&step).await;
    counts.count("GetStep", "a translated step", 1, get).await;
}

async fn writes(client: &Client, counts: &mut Counts) {
    let translated = task("Write").translated("de", task_translation("Lesen"));
    for task in [task("Write"), translated] {
        for with_id in [false, true] {
            let create = async || {
                let request = CreateTaskRequest {
                    task: Some(task.clone()),
                    request_id: request_id(with_id),
                    ..CreateTaskRequest::default()
                };
                client.tasks().create_task(request).await
            };
            counts.count("CreateTask", "new", 1, create).await;
        }
    }
    let task = &client.given_task(task("Write")).await;
    let first = client.given_step(information_step(task, "Step")).await;
    let translated = Step {
        body: Some("text".to_owned()),
        translations: [("de".to_owned(), step_translation("Schritt"))].into(),
        ..information_step(task, "Step")
    };
    for step in [information_step(task, "Step"), translated.clone()] {
        for with_id in [false, true] {
            for prevstep in [String::new(), first.guid.clone()] {
                let create = async || {
                    let request = CreateStepRequest {
                        step: Some(step.clone()),
                        prevstep: prevstep.clone(),
                        request_id: request_id(with_id),
                        ..CreateStepRequest::default()
                    };
                    client.steps().create_step(request).await
                };
                counts.count("CreateStep", "new", 2, create).await;
            }
        }
    }
    let create = async || {
        let new = sample::task("Write").with_external_id(unknown_guid());
        client.create_task(new).await
    };
    counts
        .count("CreateTask", "with an external id", 1, create)
        .await;
    let create = async || {
        let new = information_step(task, "Step").with_external_id(unknown_guid());
        client.create_step(new).await
    };
    counts
        .count("CreateStep", "with an external id", 1, create)
        .await;
    let update = async || {
        let update = step_of(&first.guid).with_external_id(unknown_guid());
        client.update_step(update, &["external_id"]).await
    };
    counts
        .count("UpdateStep", "of an external id", 2, update)
        .await;
    let created = client.create_step_after(translated, &first.guid).await;
    let last = created.accepted().step.expect("the step").guid;
    let update = async || {
        let update = step_of(&last).titled(unknown_guid());
        client.update_step(update, &["title"]).await
    };
    counts.count("UpdateStep", "of a title", 2, update).await;
    let update = async || {
        let update = step_of(&last).with_body(unknown_guid());
        client.update_step(update, &["body"]).await
    };
    counts.count("UpdateStep", "of a body", 2, update).await;
    // A read stands between two writes, as it usually does.
    let read = async || client.get_task(&task.guid).await.accepted();
    let update = async |read: Task| {
        let update = task_of(&read.guid).with_published(1 - read.published.unwrap_or_default());
        client.update_task(update, &["published"]).await
    };
    counts
        .count_prepared("UpdateTask", "of its publication", 2, read, update)
        .await;
    let create = async || client.create_role("Technician").await;
    counts.count("CreateRole", "new", 1, create).await;
    let create = async || client.given_role("Technician").await.id;
    let delete = async |id| client.delete_role(id).await;
    counts
        .count_prepared("DeleteRole", "that is there", 1, create, delete)
        .await;
    let create = async || client.given_step(information_step(task, "Step")).await.guid;
    let delete = async |guid: String| client.delete_step(&guid).await;
    counts
        .count_prepared("DeleteStep", "of no links", 2, create, delete)
        .await;
}

async fn translations(client: &Client, counts: &mut Counts) {
    let task = client.given_task(task("Translate")).await;
    let step = client.given_step(information_step(&task, "Step")).await;
    let request = translation_work_request(&["fr"]).of_task(task.guid.clone());
    // Of tasks and of steps: which there are, and the texts of those that are shown.
    let list = async || client.list_translation_work(request.clone()).await;
    counts
        .count("ListTranslationWork", "of a task", 5, list)
        .await;
    let work = client.all_translation_work(request.clone()).await;
    let work = work.iter().find(|item| item.guid == step.guid);
    let work = work.expect("work on the step");
    let write = async || {
        let translation = automatic(work, &unknown_guid());
        client.write_translations(vec![translation]).await
    };
    counts
        .count("WriteTranslations", "of a step", 8, write)
        .await;
}

/// Conditions and observations cost a write no round trip. Whether a task exists, what sets
/// a variable and what reads it are a statement each.
async fn references(client: &Client, counts: &mut Counts) {
    let name = "components.7.light";
    let group = |target: &str| {
        let names = [name, "power", "fuse"];
        all_of(names.map(|name| when(name, "=", target)).to_vec())
    };
    let create = async || {
        let new = task("Names").with_dependencies(group("on"));
        client.create_task(new).await
    };
    counts
        .count("CreateTask", "with conditions", 1, create)
        .await;
    let task = &client.given_task(task("Names")).await;
    let asks = Step {
        dependencies: Some(group("on")),
        ..step(task, StepType::Observation, "Look").with_question(question("light", &["on"]))
    };
    let first = client.given_step(asks.clone()).await.guid;
    for prevstep in ["", &first] {
        let create = async || {
            let request = CreateStepRequest {
                prevstep: prevstep.to_owned(),
                ..create_step_request(asks.clone())
            };
            client.steps().create_step(request).await
        };
        let most = 1 + u64::from(!prevstep.is_empty());
        let case = "with a question and conditions";
        counts.count("CreateStep", case, most, create).await;
    }
    let update = async || {
        let update = Step {
            dependencies: Some(all_of(vec![when(&unknown_guid(), "=", "on")])),
            ..step_of(&first)
        };
        client.update_step(update, &["dependencies"]).await
    };
    counts.count("UpdateStep", "of conditions", 2, update).await;
    let update = async || {
        let group = all_of(vec![when(&unknown_guid(), "=", "on")]);
        let update = task_of(&task.guid).with_dependencies(group);
        client.update_task(update, &["dependencies"]).await
    };
    counts.count("UpdateTask", "of conditions", 2, update).await;
    let import = async || {
        let step = Step {
            dependencies: Some(group("on")),
            ..document_step(StepType::Observation, "Look")
        };
        client.import(document("Imported", vec![step; 3])).await
    };
    counts
        .count("ImportTask", "with conditions", 4, import)
        .await;
    for (case, variable, task, most) in [
        ("of a task", "", task.guid.as_str(), 2),
        ("of a variable", name, "", 2),
        ("of a variable that is set outside", "power", "", 2),
        ("of a task's own variable", "light", &task.guid, 3),
    ] {
        let list = async || {
            let request = ListReferencesRequest {
                task: task.to_owned(),
                variable: variable.to_owned(),
                ..ListReferencesRequest::default()
            };
            client.analysis().list_references(request).await
        };
        counts.count("ListReferences", case, most, list).await;
    }
}

/// Writes of more than one resource: what they lock is known only once it has been looked
/// up, and others must not change it meanwhile.
async fn writes_of_several_resources(client: &Client, counts: &mut Counts) {
    let task = &client.given_task(task("Several")).await;
    let other = &client.given_task(sample::task("Other")).await;
    let create = async || client.create_step(subtask(task, other)).await;
    counts
        .count("CreateStep", "that refers to a task", 5, create)
        .await;
    let update = async || {
        let update = task_of(&other.guid).named(unknown_guid());
        client.update_task(update, &["name"]).await
    };
    // The entries of the steps that follow take one more.
    counts.count("UpdateTask", "of a name", 8, update).await;
    let create = async || {
        let task = client.given_task(sample::task("Gone")).await;
        client.given_step(information_step(&task, "Step")).await;
        task.guid
    };
    let delete = async |guid: String| client.force_delete_task(&guid).await;
    // Its guide is read, and kept in a revision.
    counts
        .count_prepared("DeleteTask", "with its steps", 15, create, delete)
        .await;
    let step = document_step(StepType::Information, "Step").with_body("text");
    let import = async || {
        client
            .import(document("Imported", vec![step.clone(); 3]))
            .await
    };
    counts.count("ImportTask", "new", 4, import).await;
    // It reads one state with several statements.
    let export = async || client.export(&task.guid).await;
    counts.count("ExportTask", "a task", 5, export).await;
}

/// The history of a task: what changes it locks the guide first.
async fn history(client: &Client, counts: &mut Counts) {
    let task = &client.given_task(task("History")).await;
    client.given_step(information_step(task, "Step")).await;
    client.kept_revision(&task.guid).await;
    let guid = task.guid.as_str();
    // The aliases, the revision and, when there is memory for it, the document.
    let get = async || client.get_revision(guid, 1).await;
    counts
        .count("GetRevision", "with its document", 3, get)
        .await;
    let list = async || {
        let request = ListRevisionsRequest {
            task: guid.to_owned(),
            ..ListRevisionsRequest::default()
        };
        client.revisions().list_revisions(request).await
    };
    counts.count("ListRevisions", "a page", 2, list).await;
    // The revision as above, and the guide as ExportTask reads it.
    let compare = async || client.compare_revisions(guid, 1, "").await;
    counts
        .count("CompareRevisions", "with now", 8, compare)
        .await;
    let list = async || {
        let request = ListDeletedTasksRequest::default();
        client.revisions().list_deleted_tasks(request).await
    };
    counts.count("ListDeletedTasks", "a page", 2, list).await;
    let rename = async || {
        let update = task_of(guid).named(unknown_guid());
        client.updated_task(update, &["name"]).await;
    };
    let request = CreateRevisionRequest {
        task: guid.to_owned(),
        ..CreateRevisionRequest::default()
    };
    let create = async |()| client.create_revision(request.clone()).await;
    counts
        .count_prepared("CreateRevision", "of a change", 13, rename, create)
        .await;
    let restore = async |()| client.restore_revision(guid, 1).await;
    counts
        .count_prepared("RestoreRevision", "of a name", 16, rename, restore)
        .await;
    let alias = async || client.set_revision_alias(guid, "live", 1).await;
    counts.count("SetRevisionAlias", "as it is", 6, alias).await;
    let keep = async || {
        rename().await;
        client.kept_revision(guid).await.revision.to_string()
    };
    let delete = async |revision: String| {
        let request = DeleteRevisionRequest {
            task: guid.to_owned(),
            revision,
        };
        client.revisions().delete_revision(request).await
    };
    counts
        .count_prepared("DeleteRevision", "that is there", 7, keep, delete)
        .await;
}

/// A new request id, or none.
fn request_id(wanted: bool) -> String {
    if wanted {
        unknown_guid()
    } else {
        String::new()
    }
}

async fn followers(client: &Client, counts: &mut Counts) {
    let guide = client.given_task(task("Followed")).await;
    let cursor = client.cursor_now().await;
    let behind = || ListChangesRequest {
        cursor: cursor.clone(),
        ..ListChangesRequest::default()
    };
    let list = async || client.list_changes(behind()).await;
    counts
        .count("ListChanges", "with nothing new", 1, list)
        .await;
    let change = async || {
        client.given_step(information_step(&guide, "Step")).await;
    };
    let list = async |()| client.list_changes(behind()).await;
    // What is new is put in order in a transaction, and read.
    counts
        .count_prepared("ListChanges", "with something new", 7, change, list)
        .await;
    let list = async || {
        let request = ListIndexWorkRequest::default();
        client.index().list_index_work(request).await
    };
    counts.count("ListIndexWork", "a page", 2, list).await;
    let work = async || {
        change().await;
        let items = client.index_work().await.into_iter().take(500);
        let items = items.map(|work| IndexedItem {
            guid: work.guid,
            etag: work.etag,
            ..IndexedItem::default()
        });
        AcknowledgeIndexedRequest {
            items: items.collect(),
        }
    };
    let acknowledge = async |request| client.index().acknowledge_indexed(request).await;
    counts
        .count_prepared(
            "AcknowledgeIndexed",
            "of tasks and steps",
            9,
            work,
            acknowledge,
        )
        .await;
}
