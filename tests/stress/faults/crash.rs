//! Servers and databases that crash.

use std::{path::Path, time::Duration};

use super::CLIENTS;
use crate::{
    machine,
    service::{LOG_WARNINGS, Service, assert_sqlite_integrity},
    variables::number_from_env,
    writers::Writers,
};

/// The most milliseconds from some acknowledged writes to a crash.
const MAX_CRASH_DELAY: usize = 300;

/// Makes a server or a database crash, and starts it again.
type Crash = fn(&mut Service);

const SERVER: Crash = |service| {
    service.kill();
    service.restart();
};
const DATABASE: Crash = Service::crash_database;

#[test]
fn a_killed_server_on_sqlite_keeps_acknowledged_writes() {
    let _machine = machine::shared();
    let service = Service::on_sqlite("crash-sqlite", &[LOG_WARNINGS]);
    acknowledged_writes_survive("crash-sqlite", service, SERVER);
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_killed_server_on_postgres_keeps_acknowledged_writes() {
    let _machine = machine::shared();
    let service = Service::on_own_postgres("crash-postgres", &[LOG_WARNINGS]);
    acknowledged_writes_survive("crash-postgres", service, SERVER);
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_crashed_postgres_keeps_acknowledged_writes() {
    let _machine = machine::shared();
    let service = Service::on_own_postgres("crash-cluster", &[LOG_WARNINGS]);
    acknowledged_writes_survive("crash-cluster", service, DATABASE);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive(name: &str, mut service: Service, crash: Crash) {
    let mut writers = Writers::start(name, service.address(), CLIENTS).await;
    for _ in 0..number_from_env("EXPERTISE_TEST_CRASH_CYCLES").unwrap_or(10) {
        writers.wait_until_served(CLIENTS).await;
        let delay = writers.rng.below(MAX_CRASH_DELAY) as u64;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        tokio::task::block_in_place(|| crash(&mut service));
        if writers.rng.one_in(5) {
            // The second crash is in the recovery from the first.
            tokio::task::block_in_place(|| crash(&mut service));
        }
        if let Some(file) = service.database().strip_prefix("sqlite:") {
            assert_sqlite_integrity(Path::new(file)).await;
        }
    }
    writers.end().await.print(name);
}
