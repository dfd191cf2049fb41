//! Backups as docs/operations.md describes them: taken during writes, restored, and
//! read by calls.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{sync::watch, task::JoinHandle};

use crate::{
    kit::{
        postgres::{Cluster, execute},
        scratch::Scratch,
        server::{TestServer, with_metrics},
    },
    prelude::*,
};

const WRITERS: usize = 4;
/// How many tasks are acknowledged before the backup, and how many after it.
const WRITES: usize = 40;

/// Concurrent writers that create tasks with a step each, and their acknowledged tasks.
struct Writers {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<Vec<Task>>>,
    count: watch::Receiver<usize>,
    writing: Vec<JoinHandle<()>>,
}

impl Writers {
    fn of(server: &TestServer) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let acknowledged = Arc::<Mutex<Vec<Task>>>::default();
        let (counted, count) = watch::channel(0);
        let counted = Arc::new(counted);
        let writing = (0..WRITERS).map(|writer| {
            let (client, stop) = (server.client(), Arc::clone(&stop));
            let (acknowledged, counted) = (Arc::clone(&acknowledged), Arc::clone(&counted));
            tokio::spawn(async move {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let name = format!("{writer}-{number}");
                    let task = client.given_task(task(&name)).await;
                    client.given_step(information_step(&task, &name)).await;
                    acknowledged.lock().expect("the list").push(task);
                    counted.send_modify(|count| *count += 1);
                }
            })
        });
        let writing = writing.collect();
        Self {
            stop,
            acknowledged,
            count,
            writing,
        }
    }

    /// Waits for so many more tasks. Returns all that are acknowledged.
    async fn wait_for(&mut self, more: usize) -> Vec<Task> {
        let wanted = *self.count.borrow() + more;
        let reached = self.count.wait_for(|count| *count >= wanted).await;
        drop(reached.expect("writers"));
        self.acknowledged.lock().expect("the list").clone()
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for writer in self.writing {
            writer.await.expect("no panic");
        }
    }
}

async fn assert_all_there(client: &Client, acknowledged: &[Task]) {
    assert!(acknowledged.len() >= WRITES);
    for task in acknowledged {
        let found = client.get_task(&task.guid).await;
        let found = found.unwrap_or_else(|status| panic!("{}: {status:?}", task.name));
        assert_eq!(found.name, task.name);
        assert_eq!(found.steps.len(), 1);
    }
    // The database takes writes too.
    let task = client.given_task(task("restored")).await;
    client.given_step(information_step(&task, "first")).await;
}

#[tokio::test]
async fn sqlite_is_backed_up_under_writes_and_restored() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let server = TestServer::start(with_metrics(&format!("sqlite:{}", path("e.db")))).await;
    let mut writers = Writers::of(&server);
    let acknowledged = writers.wait_for(WRITES).await;
    let backup = format!("VACUUM INTO '{}'", path("backup.db"));
    execute(&format!("sqlite:{}", path("e.db")), &backup);
    writers.wait_for(WRITES).await;
    writers.stop().await;
    server.shut_down().await;

    let restored = TestServer::start(with_metrics(&format!("sqlite:{}", path("backup.db")))).await;
    assert_all_there(&restored.client(), &acknowledged).await;
    restored.shut_down().await;
}

#[tokio::test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn postgres_is_backed_up_under_writes_and_restored() {
    let cluster = Cluster::start("backups.cluster", &["fsync=off"]);
    let url = cluster.make_database("guides");
    let server = TestServer::start(with_metrics(&url)).await;
    let mut writers = Writers::of(&server);
    let acknowledged = writers.wait_for(WRITES).await;
    let dump = Scratch::of_this_run().path("guides.dump");
    let mut pg_dump = cluster.command("pg_dump");
    pg_dump.args(["--format=custom", &url]);
    pg_dump.stdout(File::create(&dump).expect("a file"));
    run(pg_dump).await;
    writers.wait_for(WRITES).await;
    writers.stop().await;
    server.shut_down().await;

    // The createdb of docs/operations.md makes a database in UTF-8, even when the default of
    // the cluster is another encoding.
    for sql in [
        "ALTER DATABASE template1 IS_TEMPLATE false",
        "DROP DATABASE template1",
        "CREATE DATABASE template1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
    ] {
        execute(&cluster.url(), sql);
    }
    let mut createdb = cluster.command("createdb");
    let arguments = arguments_of_createdb().into_iter().map(|argument| {
        let argument = argument.replace("postgres://ADMIN@HOST/postgres", &cluster.url());
        argument.replace("USER", "postgres")
    });
    createdb.args(arguments);
    run(createdb).await;
    let restored = cluster.url_of("restored");
    let mut pg_restore = cluster.command("pg_restore");
    pg_restore.args(["--exit-on-error", "--single-transaction", "--no-owner"]);
    pg_restore.arg(format!("--dbname={restored}"));
    pg_restore.stdin(File::open(&dump).expect("the dump"));
    run(pg_restore).await;
    // The backup holds the schema, so there is nothing to migrate.
    let settings = with_metrics(&restored).set("EXPERTISE_MIGRATE", "false");
    let restored = TestServer::start(settings).await;
    assert_all_there(&restored.client(), &acknowledged).await;
    restored.shut_down().await;
}

/// The arguments that docs/operations.md gives to `createdb`.
fn arguments_of_createdb() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md");
    let page = fs::read_to_string(path).expect("the page");
    let mut lines = page.lines();
    let line = lines.find_map(|line| line.strip_prefix("createdb "));
    let words = line.expect("the command").split_whitespace();
    words.map(str::to_owned).collect()
}

async fn run(mut command: Command) {
    command.stderr(Stdio::piped());
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.expect("no panic").expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}
