//! Writes that lock the same tasks and steps wait for each other, and never in a circle.

use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;

use crate::{
    kit::{
        deadline::until,
        postgres::shared_cluster,
        prelude::*,
        server::{Settings, TestServer},
    },
    machine,
};

/// Rounds of each writer.
const ROUNDS: usize = 40;
const LANGUAGES: [&str; 2] = ["de", "fr"];
const CONNECTIONS: u32 = 12;

const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND pid <> pg_backend_pid()";
const DEADLOCKS: &str = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn translations_renames_and_updates_of_one_guide_never_deadlock() {
    let _machine = machine::shared();
    let cluster = shared_cluster();
    let url = cluster.make_database("deadlocks");
    let settings = Settings::new(&url).set("EXPERTISE_DATABASE_MAX_CONNECTIONS", CONNECTIONS);
    let server = TestServer::start(settings).await;
    let guide = Guide::create(server.client()).await;
    let mut writers = JoinSet::new();
    for number in 0..4 {
        writers.spawn(guide.clone().translate(number));
        writers.spawn(guide.clone().update(number));
    }
    writers.spawn(guide.clone().rename());
    writers.join_all().await;

    // Its connections report their statistics when they end.
    server.shut_down().await;
    let mut watcher = PgConnection::connect(&url).await.expect("PostgreSQL");
    until("all other connections have ended", async || {
        let others = sqlx::query_scalar::<_, i64>(OTHERS);
        let others = others.fetch_one(&mut watcher).await.expect("a count");
        (others == 0).then_some(())
    })
    .await;
    let deadlocks: i64 = sqlx::query_scalar(DEADLOCKS)
        .fetch_one(&mut watcher)
        .await
        .expect("a count");
    assert_eq!(deadlocks, 0);
}

/// A guide whose subtask steps refer to tasks that are renamed.
#[derive(Clone)]
struct Guide {
    client: Client,
    task: String,
    parts: Vec<String>,
    steps: Vec<String>,
}

impl Guide {
    async fn create(client: Client) -> Self {
        let guide = client.given_task(task("Guide")).await;
        let mut parts = Vec::new();
        let mut steps = Vec::new();
        for name in ["Pump", "Valve"] {
            let part = client.given_task(task(name)).await;
            for _ in 0..3 {
                let step = client.given_step(subtask(&guide, &part)).await;
                steps.push(step.guid);
            }
            let step = client.given_step(information_step(&guide, name)).await;
            steps.push(step.guid);
            parts.push(part.guid);
        }
        Self {
            client,
            task: guide.guid,
            parts,
            steps,
        }
    }

    /// Writes each step in both languages in one call, with new texts. If no work is listed, writes
    /// the work of the previous round again.
    async fn translate(self, number: usize) {
        let mut work = Vec::new();
        for round in 0..ROUNDS {
            let request = translation_work_request(&LANGUAGES).of_task(&self.task);
            let found = self.client.list(request).await;
            if !found.is_empty() {
                work = found;
            }
            let text = format!("{number}.{round}");
            let items: Vec<_> = work.iter().map(|item| automatic(item, &text)).collect();
            if !items.is_empty() {
                self.client.write_translations(items).await.accepted();
            }
        }
    }

    /// Reads the steps between two renames, because a translation is written only while its
    /// source has not changed.
    async fn rename(self) {
        for round in 0..ROUNDS {
            let part = &self.parts[round % self.parts.len()];
            self.client.rename(part, format!("Part {round}")).await;
            for step in &self.steps {
                self.client.get_step(step).await.accepted();
            }
        }
    }

    async fn update(self, number: usize) {
        for round in 0..ROUNDS {
            let step = &self.steps[(number + round) % self.steps.len()];
            let update = step_of(step).with_body(format!("{number}.{round}"));
            self.client.updated_step(update, &["body"]).await;
        }
    }
}
