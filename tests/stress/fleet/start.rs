//! Servers that start at the same moment on an empty database.

use std::{collections::BTreeSet, sync::Barrier, thread};

use sqlx::{Connection, Row};

use super::prelude::*;
use crate::{
    kit::{postgres::shared_cluster, scratch::Scratch},
    machine,
    service::Service,
};

const SERVERS: usize = 8;

/// Starts them concurrently, and returns them when all of them serve.
fn start_at_once(name: &str, url: &str) -> Vec<Service> {
    let barrier = Barrier::new(SERVERS);
    thread::scope(|scope| {
        let starting: Vec<_> = (0..SERVERS)
            .map(|n| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    Service::start(&format!("{name}-{n}"), url, &[])
                })
            })
            .collect();
        let started = starting.into_iter().map(|server| server.join());
        started.map(|server| server.expect("a server")).collect()
    })
}

/// Asserts that a task that each of them makes is read by all.
async fn all_of_them_serve(servers: &[Service]) {
    let account = unknown_guid();
    let clients: Vec<Client> = servers
        .iter()
        .map(|server| server.client().with_account(&account))
        .collect();
    let mut made = BTreeSet::new();
    for client in &clients {
        made.insert(client.given_task(task("Made")).await.guid);
    }
    assert_eq!(made.len(), SERVERS);
    for client in &clients {
        let found = client.all_tasks().await.into_iter().map(|task| task.guid);
        assert_eq!(found.collect::<BTreeSet<String>>(), made);
    }
}

/// The migrations that ran, each as often as it ran.
const MIGRATIONS: &str = "SELECT version FROM seaql_migrations";

fn each_ran_once(versions: Vec<String>) {
    let distinct: BTreeSet<&String> = versions.iter().collect();
    assert!(!versions.is_empty(), "nothing was migrated");
    assert_eq!(distinct.len(), versions.len(), "{versions:?}");
}

async fn postgres_was_migrated_once(url: &str) {
    let mut connection = sqlx::PgConnection::connect(url).await.expect("it serves");
    let rows = sqlx::raw_sql(MIGRATIONS).fetch_all(&mut connection).await;
    let rows = rows.expect("the migrations");
    each_ran_once(rows.iter().map(|row| row.get(0)).collect());
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn eight_servers_on_an_empty_postgres_migrate_it_once() {
    let _machine = machine::shared();
    let cluster = shared_cluster();
    for attempt in 0..3 {
        let name = format!("eight{attempt}");
        let url = cluster.make_database(&name);
        let servers = start_at_once(&name, &url);
        machine::runtime().block_on(async {
            all_of_them_serve(&servers).await;
            postgres_was_migrated_once(&url).await;
        });
    }
}

#[test]
fn eight_servers_on_an_empty_sqlite_file_migrate_it_once() {
    let _machine = machine::shared();
    for attempt in 0..3 {
        let name = format!("eight-sqlite{attempt}");
        let url = Scratch::of_this_run().sqlite_url(&name);
        let servers = start_at_once(&name, &url);
        machine::runtime().block_on(async {
            all_of_them_serve(&servers).await;
            let connection = sqlx::SqliteConnection::connect(&url).await;
            let mut connection = connection.expect("the file");
            let rows = sqlx::raw_sql(MIGRATIONS).fetch_all(&mut connection).await;
            let rows = rows.expect("the migrations");
            each_ran_once(rows.iter().map(|row| row.get(0)).collect());
        });
    }
}
