//! Servers that start at the same moment on an empty database.

use std::{collections::BTreeSet, sync::Barrier, thread};

use sqlx::{Connection, Row};

use crate::harness::{
    database, prelude::*, process::ServerProcess, runtime, scratch::Scratch, through_pgbouncer,
};

const SERVERS: usize = 8;

/// Starts them at once and returns them when all of them serve.
fn start_at_once(name: &str, url: &str) -> Vec<ServerProcess> {
    let barrier = Barrier::new(SERVERS);
    thread::scope(|scope| {
        let starting: Vec<_> = (0..SERVERS)
            .map(|n| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    let name = format!("{name}-{n}");
                    ServerProcess::start(&name, &[("EXPERTISE_DATABASE_URL", url)])
                })
            })
            .collect();
        let started = starting.into_iter().map(|server| server.join());
        started.map(|server| server.expect("a server")).collect()
    })
}

/// A task that each of them makes is read by all.
async fn all_of_them_serve(servers: &[ServerProcess]) {
    let first = World::at(servers[0].address());
    let worlds: Vec<World> = servers
        .iter()
        .map(|server| World::at(server.address()).calling_as(first.account()))
        .collect();
    let mut made = BTreeSet::new();
    for world in &worlds {
        made.insert(world.given_task(task("Made")).await.guid);
    }
    assert_eq!(made.len(), SERVERS);
    for world in &worlds {
        let found = world.all_tasks().await.into_iter().map(|task| task.guid);
        assert_eq!(found.collect::<BTreeSet<String>>(), made);
    }
}

/// The migrations that were done, each as often as it was.
const DONE: &str = "SELECT version FROM seaql_migrations";

fn each_is_there_once(versions: Vec<String>) {
    let distinct: BTreeSet<&String> = versions.iter().collect();
    assert!(!versions.is_empty(), "nothing was migrated");
    assert_eq!(distinct.len(), versions.len(), "{versions:?}");
}

async fn postgres_was_migrated_once(url: &str) {
    let mut connection = sqlx::PgConnection::connect(url).await.expect("it serves");
    let rows = sqlx::raw_sql(DONE).fetch_all(&mut connection).await;
    let rows = rows.expect("the migrations");
    each_is_there_once(rows.iter().map(|row| row.get(0)).collect());
}

#[test]
fn eight_servers_on_an_empty_postgres_migrate_it_once() {
    for attempt in 0..3 {
        let name = format!("eight{attempt}");
        let Some(url) = database(&name) else { return };
        let servers = start_at_once(&name, &url);
        runtime().block_on(async {
            all_of_them_serve(&servers).await;
            postgres_was_migrated_once(&url).await;
        });
    }
}

#[test]
fn eight_servers_behind_pgbouncer_migrate_an_empty_postgres_once() {
    let Some(url) = database("eight_pooled") else {
        return;
    };
    let Some(pooled) = through_pgbouncer(&url) else {
        return;
    };
    let servers = start_at_once("eight-pooled", &pooled);
    runtime().block_on(async {
        all_of_them_serve(&servers).await;
        postgres_was_migrated_once(&url).await;
    });
}

#[test]
fn eight_servers_on_an_empty_sqlite_file_migrate_it_once() {
    for attempt in 0..3 {
        let name = format!("eight-sqlite{attempt}");
        let file = Scratch::of_this_run().path(&format!("{name}.db"));
        let url = format!("sqlite:{}", file.display());
        let servers = start_at_once(&name, &url);
        runtime().block_on(async {
            all_of_them_serve(&servers).await;
            let connection = sqlx::SqliteConnection::connect(&url).await;
            let mut connection = connection.expect("the file");
            let rows = sqlx::raw_sql(DONE).fetch_all(&mut connection).await;
            let rows = rows.expect("the migrations");
            each_is_there_once(rows.iter().map(|row| row.get(0)).collect());
        });
    }
}
