//! Which reads may go to a replica, and which never do. The replica of these tests is a copy of
//! the primary that stays as it was, so that a read shows where it went.

use std::fmt::Debug;

use expertise::config::{Config, PostgresUrl};
use tonic::Status;

use crate::kit::{
    contract,
    databases::postgres,
    postgres::copy_database,
    prelude::*,
    server::{TestServer, with_metrics},
    sql::SqlConnection,
};

const REPLICA: &str = "expertise_database_replica_in_use";
/// What is written after the copy was made.
const NEW: &str = "written after the copy";

/// A server with a replica that has the state from before the last writes.
struct Stale {
    server: TestServer,
    client: Client,
    /// Has the same name and steps in both; in the primary they were changed.
    task: Task,
    step: String,
    /// In the primary alone.
    later: Task,
}

impl Stale {
    /// `change` is made to the copy before the server sees it.
    async fn start(name: &str, change: Option<&'static str>) -> Self {
        let url = postgres(name);
        let before = TestServer::start(Config::for_tests(&url)).await;
        let client = before.client();
        let task = client.given_task(task("Guide")).await;
        let step = client.given_step(information_step(&task, "Step")).await;
        before.shut_down().await;
        let replica = copy_database(&url, &format!("{name}_copy"));
        if let Some(sql) = change {
            SqlConnection::open(&replica).await.execute(sql).await;
        }
        let config = Config {
            database_read: Some(PostgresUrl::parse(&replica).expect("a URL")),
            ..with_metrics(&url)
        };
        let server = TestServer::start(config).await;
        let client = server.client();
        client
            .updated_task(task_of(&task.guid).named(NEW), &["name"])
            .await;
        client
            .updated_step(step_of(&step.guid).titled(NEW), &["title"])
            .await;
        let reading = all_of(vec![when(NEW, "=", "on")]);
        client
            .given_step(information_step(&task, NEW).depending_on(reading))
            .await;
        client.given_role(NEW).await;
        let later = client.given_task(crate::kit::sample::task(NEW)).await;
        client.kept_revision(&task.guid).await;
        client.given_step(information_step(&task, NEW)).await;
        let deleted = client.given_task(crate::kit::sample::task(NEW)).await;
        client.delete_task(&deleted.guid).await.accepted();
        Self {
            server,
            client,
            task,
            step: step.guid,
            later,
        }
    }

    /// The reads that do not show what was written last.
    async fn stale_reads(&self, client: &Client) -> Vec<&'static str> {
        let guid = || self.task.guid.clone();
        let list_steps = ListStepsRequest {
            task: guid(),
            ..ListStepsRequest::default()
        };
        let references = ListReferencesRequest {
            variable: NEW.to_owned(),
            task: guid(),
            ..ListReferencesRequest::default()
        };
        let findings = client
            .findings(ListFindingsRequest::default())
            .await
            .accepted();
        let list_revisions = ListRevisionsRequest {
            task: guid(),
            ..ListRevisionsRequest::default()
        };
        let list_deleted = ListDeletedTasksRequest::default();
        let mut revisions = client.revisions();
        let lists_later = findings
            .findings
            .iter()
            .any(|found| found.task == self.later.guid);
        let of_guide = findings
            .findings
            .iter()
            .filter(|found| found.task == self.task.guid);
        let of_guide: Vec<_> = of_guide.collect();
        let reads = [
            ("GetTask", shows_new(client.get_task(&self.task.guid).await)),
            (
                "ListTasks",
                shows_new(client.list_tasks(ListTasksRequest::default()).await),
            ),
            (
                "ExportTask",
                shows_new(client.export(&self.task.guid).await),
            ),
            ("GetStep", shows_new(client.get_step(&self.step).await)),
            ("ListSteps", shows_new(client.list_steps(list_steps).await)),
            ("ListRoles", shows_new(client.list_roles(0, "").await)),
            (
                "ListTranslationWork",
                shows_new(
                    client
                        .list_translation_work(translation_work_request(&["de"]))
                        .await,
                ),
            ),
            (
                "PreviewTask",
                shows_new(client.preview(preview_of(&self.task.guid)).await),
            ),
            (
                "ValidateTask",
                shows_new(client.validate(validation_of(&self.task.guid)).await),
            ),
            ("ListFindings", lists_later),
            (
                "ListFindings, of a guide",
                shows_new(Ok::<_, Status>(of_guide)),
            ),
            (
                "GetRevision",
                shows_new(client.get_revision(&self.task.guid, 1).await),
            ),
            (
                "ListRevisions",
                shows_new(revisions.list_revisions(list_revisions).await),
            ),
            (
                "CompareRevisions",
                shows_new(client.compare_revisions(&self.task.guid, 1, "").await),
            ),
            (
                "ListDeletedTasks",
                shows_new(revisions.list_deleted_tasks(list_deleted).await),
            ),
            ("ListReferences", {
                let listed = client.list_references(references).await;
                !listed.accepted().references.is_empty()
            }),
        ];
        for method in contract::methods() {
            let (_, rpc) = method.split_once('/').expect("a service");
            let writes = [
                "Create", "Update", "Delete", "Import", "Write", "Restore", "Set",
            ];
            // The feed and the work of an index say what was written before the call.
            let elsewhere = [
                "ListRules",
                "ListChanges",
                "ListIndexWork",
                "AcknowledgeIndexed",
            ];
            let writes = writes.iter().any(|word| rpc.starts_with(word));
            let reads_rows = !writes && !elsewhere.contains(&rpc);
            let is_listed = reads.iter().any(|(read, _)| *read == rpc);
            assert_eq!(is_listed, reads_rows, "{rpc}");
        }
        let stale = reads.into_iter().filter(|(_, is_new)| !is_new);
        stale.map(|(read, _)| read).collect()
    }
}

fn shows_new(read: Result<impl Debug, Status>) -> bool {
    format!("{:?}", read.accepted()).contains(NEW)
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn lists_exports_and_work_come_from_the_replica_and_all_else_does_not() {
    let stale = Stale::start("stale_replica", None).await;
    let in_use = stale.server.metrics().await.sum(REPLICA, &[]);
    assert_eq!(in_use, 1.0);
    let may_lag = [
        "ListTasks",
        "ExportTask",
        "ListSteps",
        "ListRoles",
        "ListTranslationWork",
        "ListFindings",
    ];
    assert_eq!(stale.stale_reads(&stale.client).await, may_lag);
    let fresh = stale.client.with_metadata("x-read-from", "primary");
    assert_eq!(stale.stale_reads(&fresh).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_replica_with_another_schema_or_key_is_not_used() {
    for (name, change) in [
        ("older_replica", "DELETE FROM seaql_migrations"),
        (
            "newer_replica",
            "INSERT INTO seaql_migrations VALUES ('m9999', 1)",
        ),
        (
            "replica_of_another_database",
            "UPDATE server_keys SET value = sha256(value)",
        ),
    ] {
        let stale = Stale::start(name, Some(change)).await;
        assert_eq!(stale.stale_reads(&stale.client).await, [""; 0], "{name}");
        let in_use = stale.server.metrics().await.sum(REPLICA, &[]);
        assert_eq!(in_use, 0.0, "{name}");
    }
}
