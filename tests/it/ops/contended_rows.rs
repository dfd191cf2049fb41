//! Writes that wait for a row while what they have read of it changes. On PostgreSQL: the
//! one writer of SQLite never waits between its reads and its write.

use std::iter;

use sqlx::{Connection, Executor, PgConnection};
use tokio::task::JoinHandle;

use crate::{
    databases::postgres,
    kit::{
        client,
        deadline::until,
        links::links_are_consistent,
        server::{CHANGES_RETENTION, Settings, TestServer, with_metrics},
        sql::SqlConnection,
    },
    prelude::*,
};

/// A server on a database of its own.
struct Contended {
    url: String,
    client: Client,
    _server: TestServer,
}

impl Contended {
    async fn start(name: &str) -> Self {
        let url = postgres(name);
        let settings = Settings::new(&url).set("EXPERTISE_DATABASE_MAX_CONNECTIONS", 8);
        let server = TestServer::start(settings).await;
        Self {
            url,
            client: server.client(),
            _server: server,
        }
    }

    /// Locks a task, as a slow write does.
    async fn hold(&self, task: &str) -> HeldRow {
        self.hold_row("SELECT 1 FROM tasks WHERE guid = $1 FOR UPDATE", task)
            .await
    }

    /// Locks a step, as a slow write does.
    async fn hold_step(&self, step: &str) -> HeldRow {
        self.hold_row("SELECT 1 FROM steps WHERE guid = $1 FOR UPDATE", step)
            .await
    }

    /// Locks the history of a task, as a slow write does.
    async fn hold_history(&self, task: &str) -> HeldRow {
        let lock = "SELECT 1 FROM task_histories WHERE task = $1 FOR UPDATE";
        self.hold_row(lock, task).await
    }

    /// Locks the feed of the account that has a task, as one that puts changes in order does.
    async fn hold_feed_of(&self, task: &str) -> HeldRow {
        let lock = "SELECT 1 FROM change_feeds WHERE account_id = \
             (SELECT account_id FROM tasks WHERE guid = $1) FOR UPDATE";
        self.hold_row(lock, task).await
    }

    async fn hold_row(&self, lock: &'static str, guid: &str) -> HeldRow {
        let mut holder = PgConnection::connect(&self.url).await.expect("PostgreSQL");
        holder.execute("BEGIN").await.expect("a transaction");
        let guid = uuid::Uuid::parse_str(guid).expect("an id");
        sqlx::query(lock)
            .bind(guid)
            .execute(&mut holder)
            .await
            .expect("the lock");
        HeldRow(holder)
    }

    /// Starts a call and waits until it is one of so many that wait for a lock.
    async fn start_waiting<R: RpcRequest>(
        &self,
        waiting: i64,
        request: R,
    ) -> JoinHandle<client::Answer<R>> {
        let client = self.client.clone();
        let call = tokio::spawn(async move { client.call(request).await });
        self.wait_until_wait(waiting).await;
        call
    }

    /// Waits until so many statements wait for a lock.
    async fn wait_until_wait(&self, waiting: i64) {
        let mut watcher = PgConnection::connect(&self.url).await.expect("PostgreSQL");
        let blocked = "SELECT count(*) FROM pg_stat_activity \
             WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0";
        until("statements wait for a lock", async || {
            let found = sqlx::query_scalar::<_, i64>(blocked);
            let found = found.fetch_one(&mut watcher).await.expect("a count");
            (found == waiting).then_some(())
        })
        .await;
    }

    /// A guide with a linked observation of one value: the guide, and its document.
    async fn linked_guide(&self) -> (Task, TaskDocument) {
        let steps = vec![linked_observation(&[("on", "On")])];
        let guide = self.client.given_guide(steps).await;
        let document = self.client.exported(&guide.guid).await;
        (guide, document)
    }

    /// The tasks that observations manage.
    async fn managed(&self) -> Vec<Task> {
        let mut tasks = self.client.all_tasks().await;
        tasks.retain(|task| task.r#type() == TaskType::Linked);
        tasks
    }
}

/// A task or step that is locked until this is released.
struct HeldRow(PgConnection);

impl HeldRow {
    async fn release(mut self) {
        self.0.execute("COMMIT").await.expect("the end of the lock");
    }
}

/// A document with one more value of its linked observation.
fn with_value(mut document: TaskDocument, key: &str, value: &str) -> TaskDocument {
    let values = &mut document.steps[0].feedback_config[0].values;
    values.push(answer(key, value));
    document
}

/// Both have read the same neighbours, between which the first one is put.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn two_inserts_that_waited_at_one_place_get_places_of_their_own() {
    let contended = Contended::start("contended_inserts").await;
    let client = &contended.client;
    let task = client.given_task(task("Contended")).await;
    let steps = client.given_steps(&task, &["a", "b"]).await;
    let held = contended.hold(&task.guid).await;
    let insert = create_step_request(information_step(&task, "inserted"))
        .with(|it| it.prevstep.clone_from(&steps[0]));
    let first = contended.start_waiting(1, insert.clone()).await;
    let second = contended.start_waiting(2, insert).await;
    held.release().await;
    let first = first.await.expect("an answer").accepted().step;
    let second = second.await.expect("an answer").accepted().step;
    let inserted = [first, second].map(|step| step.expect("a step").guid);
    let order = client.step_order(&task.guid).await;
    assert_eq!((&order[0], &order[3]), (&steps[0], &steps[1]));
    assert!(inserted.iter().all(|step| order[1..3].contains(step)));
    // Two steps at one place would be one on pages.
    let paged = client.steps_of(&task.guid, 1).await;
    let paged: Vec<String> = paged.into_iter().map(|step| step.guid).collect();
    assert_eq!(paged, order);
}

/// The external id moves to another task after it was looked up and before the task is locked.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_step_that_waited_for_its_subtask_refers_to_the_task_that_has_the_external_id_now() {
    let contended = Contended::start("contended_external_id").await;
    let client = &contended.client;
    let guide = client.given_task(task("Guide")).await;
    let former = client.given_task(task("A").with_external_id("id")).await;
    let other = client.given_task(task("B")).await;
    let take = "UPDATE tasks SET external_id = NULL WHERE guid = $1";
    let mut held = contended.hold_row(take, &former.guid).await;
    let step = document_step(StepType::Subtask, "")
        .with(|it| it.subtask_external_id = Some("id".to_owned()));
    let create = create_step_request(step.in_task(&guide.guid));
    let create = contended.start_waiting(1, create).await;
    let give = "UPDATE tasks SET external_id = 'id' WHERE guid = $1";
    let guid = uuid::Uuid::parse_str(&other.guid).expect("an id");
    let given = sqlx::query(give).bind(guid).execute(&mut held.0).await;
    given.expect("the external id");
    held.release().await;
    let created = create.await.expect("an answer").accepted().step;
    assert_eq!(created.expect("a step").subtask_id, other.guid);
}

/// The import has looked up what it is about to change, and waits. A managed task that is
/// added meanwhile is locked too, so that no update of it is lost.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn an_import_that_waited_locks_tasks_that_were_added_meanwhile() {
    let contended = Contended::start("contended_import").await;
    let client = &contended.client;
    // It is older than the guide, so it is locked first.
    let other = client.given_task(task("Other")).await;
    let (guide, document) = contended.linked_guide().await;
    let mut renaming = with_value(document.clone(), "off", "Renamed");
    renaming.steps.push(subtask(&guide, &other));
    let held = contended.hold(&other.guid).await;
    let import = contended.start_waiting(1, import_of(renaming)).await;
    client.imported(with_value(document, "off", "Off")).await;
    let added = contended.managed().await;
    let added = added.into_iter().find(|task| task.name == "Off");
    let added = added.expect("the added task").guid;

    let held_added = contended.hold(&added).await;
    let update = UpdateTaskRequest::default()
        .with(|it| it.task = Some(task_of(&added).with_published(0)))
        .with(|it| it.update_mask = field_mask(&["published"]));
    let update = contended.start_waiting(2, update).await;
    held.release().await;
    contended.wait_until_wait(2).await;
    held_added.release().await;
    update.await.expect("an answer").accepted();
    import.await.expect("an answer").accepted();
    let added = client.get_task(&added).await.accepted();
    assert_eq!((added.name.as_str(), added.published), ("Renamed", Some(0)));
    links_are_consistent(&client.tasks_with_steps().await);
}

/// The import has decided on what it has read, and waits for the first step that changes.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn an_import_that_waited_for_a_step_keeps_an_update_of_another() {
    let contended = Contended::start("contended_steps").await;
    let client = &contended.client;
    let task = client.given_task(task("Guide")).await;
    let steps = client.given_steps(&task, &["a", "b"]).await;
    let mut document = client.exported(&task.guid).await;
    for step in &mut document.steps {
        step.title.push('2');
        step.published = None;
    }
    let held = contended.hold_step(&steps[0]).await;
    let import = contended.start_waiting(1, import_of(document)).await;
    let update = step_of(&steps[1]).with_published(0);
    client.updated_step(update, &["published"]).await;
    held.release().await;
    import.await.expect("an answer").accepted();
    let after = client.get_step(&steps[1]).await.accepted();
    assert_eq!((after.title.as_str(), after.published), ("b2", Some(0)));
}

/// The deletion has looked up which tasks the guide manages, and waits for it.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_deletion_that_waited_unlinks_tasks_that_were_added_meanwhile() {
    let contended = Contended::start("contended_deletion").await;
    let client = &contended.client;
    let (guide, document) = contended.linked_guide().await;
    let held = contended.hold(&guide.guid).await;
    let import = import_of(with_value(document, "off", "Off"));
    let import = contended.start_waiting(1, import).await;
    let deletion = deletion_of(&guide.guid).with(|it| it.force = true);
    let deletion = contended.start_waiting(2, deletion).await;
    held.release().await;
    import.await.expect("an answer").accepted();
    deletion.await.expect("an answer").accepted();
    let left = client.all_tasks().await;
    let left: Vec<_> = left
        .iter()
        .map(|task| (task.name.as_str(), task.r#type()))
        .collect();
    let standard = TaskType::Standard;
    assert_eq!(left, [("On", standard), ("Off", standard)]);
}

/// The update has looked up which tasks the step manages, and waits for them.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn an_update_that_waited_unlinks_tasks_that_were_added_meanwhile() {
    let contended = Contended::start("contended_update").await;
    let client = &contended.client;
    let (guide, document) = contended.linked_guide().await;
    let managed = contended.managed().await;
    let held = contended.hold(&managed[0].guid).await;
    let import = import_of(with_value(document, "off", "Off"));
    let import = contended.start_waiting(1, import).await;
    let question = question("light", &["On"]).with(|it| it.linked = Some(false));
    let unlink = UpdateStepRequest::default()
        .with(|it| it.step = Some(step_of(&guide.steps[0]).with_question(question)))
        .with(|it| it.update_mask = field_mask(&["feedback_config"]));
    let unlink = contended.start_waiting(2, unlink).await;
    held.release().await;
    import.await.expect("an answer").accepted();
    unlink.await.expect("an answer").accepted();
    assert_eq!(contended.managed().await, []);
    links_are_consistent(&client.tasks_with_steps().await);
}

/// What the deletion relies on changes while it waits.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_step_that_changed_while_its_deletion_waited_is_not_deleted() {
    let contended = Contended::start("contended_step").await;
    let client = &contended.client;
    let task = client.given_task(task("Contended")).await;
    let step = client.given_step(information_step(&task, "Step")).await;
    let held = contended.hold(&task.guid).await;
    let deletion = DeleteStepRequest {
        guid: step.guid.clone(),
        etag: step.etag.clone(),
    };
    let deletion = contended.start_waiting(1, deletion).await;
    // An update of a step needs no lock of its task.
    client.retitle(&step.guid, "Changed").await;
    held.release().await;
    let refused = deletion.await.expect("an answer").refused();
    assert_eq!(refused.code, Code::Aborted, "{refused:?}");
    assert_eq!(client.step_order(&task.guid).await, [step.guid]);
}

/// Every attempt conflicts, as a trigger decides here.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn an_update_that_conflicts_more_than_ten_times_is_given_up() {
    let always_fails = |code: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             RAISE EXCEPTION USING ERRCODE = '{code}'; END $$; \
             CREATE OR REPLACE TRIGGER refuse BEFORE UPDATE ON tasks \
             FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    };
    let url = postgres("conflicts");
    let server = TestServer::start(with_metrics(&url)).await;
    let client = server.client();
    let task = client.given_task(task("Contended")).await;
    let mut database = SqlConnection::open(&url).await;
    database
        .execute(&always_fails("serialization_failure"))
        .await;
    let update = || client.update_task(task_of(&task.guid).with_published(0), &["published"]);
    let failure = update().await.refused();
    failure.is(Code::Aborted, "WRITE_CONFLICT");
    let metrics = server.metrics().await;
    assert!(metrics.sum("expertise_write_conflicts_total", &[]) >= 1.0);
    assert_eq!(client.get_task(&task.guid).await.accepted(), task);

    database.execute(&always_fails("lock_not_available")).await;
    let failure = update().await.refused();
    failure.is(Code::Aborted, "WRITE_CONFLICT");
    let message = &failure.message;
    assert!(message.contains("held a lock for too long"), "{message}");
    database.execute("DROP TRIGGER refuse ON tasks").await;
    update().await.accepted();
}

/// Otherwise the alias would name a revision that is gone.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn an_alias_and_the_deletion_of_its_revision_take_turns() {
    let contended = Contended::start("contended_alias").await;
    let client = &contended.client;
    let guide = client.given_task(task("Guide")).await.guid;
    client.kept_revision(&guide).await;
    let held = contended.hold_history(&guide).await;
    let (task, revision) = (guide, "1".to_owned());
    let alias = SetRevisionAliasRequest {
        task: task.clone(),
        alias: "live".to_owned(),
        revision: revision.clone(),
    };
    let alias = contended.start_waiting(1, alias).await;
    let deletion = DeleteRevisionRequest { task, revision };
    let deletion = contended.start_waiting(2, deletion).await;
    held.release().await;
    alias.await.expect("an answer").accepted();
    let failure = deletion.await.expect("an answer").refused();
    failure.is(Code::FailedPrecondition, "REVISION_IN_USE");
}

/// The retention has found a deleted task, and waits for its history.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_retention_that_waited_keeps_the_history_of_a_task_that_came_back() {
    let contended = Contended::start("contended_retention").await;
    let client = &contended.client;
    let [guide, gone] = ["Guide", "Gone"].map(|name| client.given_task(task(name)));
    let (guide, gone) = (guide.await.guid, gone.await.guid);
    client.kept_revision(&gone).await;
    client.force_delete_task(&guide).await.accepted();
    let held = contended.hold_history(&guide).await;
    let restore = contended.start_waiting(1, restore_of(&guide, 1)).await;
    let settings = Settings::new(&contended.url).set("EXPERTISE_DELETED_TASK_RETENTION", "1ms");
    let server = TestServer::start(settings).await;
    contended.wait_until_wait(2).await;
    held.release().await;
    restore.await.expect("an answer").accepted();
    // The retention goes on to the next one.
    client.force_delete_task(&gone).await.accepted();
    until("the history is deleted", async || {
        client.get_revision(&gone, 1).await.err()
    })
    .await;
    client.get_revision(&guide, 1).await.accepted();
    server.shut_down().await;
}

/// One of the eight connections is kept free of writes, whichever accounts make them.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn reads_go_on_while_writes_of_several_accounts_wait() {
    let contended = Contended::start("contended_reads").await;
    let other = contended.client.with_account("another");
    reads_go_on_beside_writes(&contended, &[other], 4, 7).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn reads_of_an_account_go_on_while_its_own_writes_wait() {
    let contended = Contended::start("contended_own_reads").await;
    reads_go_on_beside_writes(&contended, &[], 8, 7).await;
}

/// Writes of `contended` and of other accounts, so many each, wait for a row; `waiting` of them have
/// a connection. Reads of `contended` are answered meanwhile.
async fn reads_go_on_beside_writes(
    contended: &Contended,
    others: &[Client],
    writes_each: usize,
    waiting: i64,
) {
    let (mut held, mut writes) = (Vec::new(), Vec::new());
    for client in iter::once(&contended.client).chain(others) {
        let task = client.given_task(task("Contended")).await;
        held.push(contended.hold(&task.guid).await);
        for _ in 0..writes_each {
            let (client, update) = (client.clone(), task_of(&task.guid).with_published(0));
            writes.push(tokio::spawn(async move {
                client.update_task(update, &["published"]).await
            }));
        }
    }
    contended.wait_until_wait(waiting).await;
    // If a write waited for a connection, it would take that of one of these reads.
    for _ in 0..20 {
        assert_eq!(contended.client.all_tasks().await.len(), 1);
    }
    contended.wait_until_wait(waiting).await;
    assert!(writes.iter().any(|write| !write.is_finished()));
    for held in held {
        held.release().await;
    }
    let mut accepted = 0;
    for write in writes {
        match write.await.expect("an answer") {
            Ok(_) => accepted += 1,
            // One that waits for its turn may have waited too long.
            Err(status) => {
                Failure::from(status).is(Code::ResourceExhausted, "OVERLOADED");
            }
        }
    }
    assert!(
        accepted >= waiting,
        "{accepted} of {waiting} writes with a connection"
    );
}

/// A reader that puts changes in order has locked the feed when it is tried the first time.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn old_changes_are_deleted_once_no_reader_has_locked_the_feed() {
    let contended = Contended::start("contended_feed").await;
    let server = TestServer::start(with_metrics(&contended.url)).await;
    let client = server.client();
    let start = client.cursor_now().await;
    // Every 256th write of a server has old changes deleted.
    let guide = client.given_task(task("Guide")).await;
    let rename = async |name: String| {
        client.rename(&guide.guid, &name).await;
    };
    for number in 2..256 {
        rename(format!("Guide {number}")).await;
    }
    client.cursor_now().await;
    let mut database = SqlConnection::open(&contended.url).await;
    database.age_changes(CHANGES_RETENTION).await;
    let writes = async || {
        let metrics = server.metrics().await;
        metrics.sum("expertise_database_write_seconds_count", &[])
    };
    let before = writes().await;
    let held = contended.hold_feed_of(&guide.guid).await;
    rename("Guide".to_owned()).await;
    // The rename, and an attempt to delete.
    until("it is tried", async || {
        (writes().await >= before + 2.0).then_some(())
    })
    .await;
    held.release().await;
    let expired = async || {
        let request = changes_behind(&start);
        client.call(request).await.err()
    };
    let failure = Failure::from(until("the oldest changes are deleted", expired).await);
    failure.is(Code::FailedPrecondition, "CURSOR_EXPIRED");
    server.shut_down().await;
}
