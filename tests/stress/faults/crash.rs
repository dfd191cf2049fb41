//! Servers and databases that crash.

use std::{path::Path, time::Duration};

use super::Scenario;
use crate::{
    kit::rng::number_from_env,
    machine,
    service::{LOG_WARNINGS, Service, sqlite_is_sound},
};

/// The latest moment of a crash after the load began.
const LATEST: Duration = Duration::from_millis(300);

/// What crashes.
#[derive(Clone, Copy)]
enum Crash {
    Server,
    Database,
}

#[test]
fn a_killed_server_on_sqlite_leaves_what_it_acknowledged() {
    let _machine = machine::shared();
    let service = Service::on_sqlite("crash-sqlite", &[LOG_WARNINGS]);
    acknowledged_writes_survive("crash-sqlite", service, Crash::Server);
}

#[test]
fn a_killed_server_on_postgres_leaves_what_it_acknowledged() {
    let _machine = machine::shared();
    if let Some(service) = Service::on_own_postgres("crash-postgres", &[LOG_WARNINGS]) {
        acknowledged_writes_survive("crash-postgres", service, Crash::Server);
    }
}

#[test]
fn a_crashed_postgres_leaves_what_was_acknowledged() {
    let _machine = machine::shared();
    if let Some(service) = Service::on_own_postgres("crash-cluster", &[LOG_WARNINGS]) {
        acknowledged_writes_survive("crash-cluster", service, Crash::Database);
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive(name: &str, mut service: Service, crash: Crash) {
    let mut scenario = Scenario::new(name, &service).await;
    let (mut earliest, mut latest) = (LATEST, Duration::ZERO);
    let mut crashes = 0;
    for _ in 0..number_from_env("EXPERTISE_CRASH_CYCLES").unwrap_or(25) {
        let fault = |service: &mut Service| break_down(service, crash);
        let (moment, ()) = scenario.write_during(&mut service, LATEST, fault).await;
        (earliest, latest) = (earliest.min(moment), latest.max(moment));
        crashes += 1;
        if scenario.rng.one_in(5) {
            // The second crash is in the recovery from the first.
            break_down(&mut service, crash);
            crashes += 1;
        }
        if let Some(file) = service.database().strip_prefix("sqlite:") {
            sqlite_is_sound(Path::new(file)).await;
        }
        scenario.verify(&service).await;
    }
    scenario.verify(&service).await;
    let counts = &scenario.counts;
    println!("{name}: {crashes} crashes after {earliest:?} to {latest:?}, {counts:?}");
    assert!(counts.acknowledged > crashes, "nothing was written");
}

fn break_down(service: &mut Service, crash: Crash) {
    match crash {
        Crash::Server => {
            service.kill();
            service.restart();
        }
        Crash::Database => service.crash_database(),
    }
}
