//! Servers and databases that crash.

use std::{path::Path, time::Duration};

use super::Scenario;
use crate::{
    kit::rng::number_from_env,
    machine,
    service::{LOG_WARNINGS, Service, assert_sqlite_integrity},
};

/// The longest time from the start of the load to a crash.
const MAX_CRASH_DELAY: Duration = Duration::from_millis(300);

/// What crashes.
#[derive(Clone, Copy)]
enum Crash {
    Server,
    Database,
}

#[test]
fn a_killed_server_on_sqlite_keeps_acknowledged_writes() {
    let _machine = machine::shared();
    let service = Service::on_sqlite("crash-sqlite", &[LOG_WARNINGS]);
    acknowledged_writes_survive("crash-sqlite", service, Crash::Server);
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_killed_server_on_postgres_keeps_acknowledged_writes() {
    let _machine = machine::shared();
    let service = Service::on_own_postgres("crash-postgres", &[LOG_WARNINGS]);
    acknowledged_writes_survive("crash-postgres", service, Crash::Server);
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_crashed_postgres_keeps_acknowledged_writes() {
    let _machine = machine::shared();
    let service = Service::on_own_postgres("crash-cluster", &[LOG_WARNINGS]);
    acknowledged_writes_survive("crash-cluster", service, Crash::Database);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive(name: &str, mut service: Service, crash: Crash) {
    let mut scenario = Scenario::new(name, &service).await;
    let (mut earliest, mut latest) = (MAX_CRASH_DELAY, Duration::ZERO);
    let mut crashes = 0;
    let cycles = number_from_env("EXPERTISE_TEST_CRASH_CYCLES").unwrap_or(10);
    for cycle in 1.. {
        let fault = |service: &mut Service| crash_and_restart(service, crash);
        let (moment, ()) = scenario
            .write_during(&mut service, MAX_CRASH_DELAY, fault)
            .await;
        (earliest, latest) = (earliest.min(moment), latest.max(moment));
        crashes += 1;
        if scenario.rng.one_in(5) {
            // The second crash is in the recovery from the first.
            crash_and_restart(&mut service, crash);
            crashes += 1;
        }
        if let Some(file) = service.database().strip_prefix("sqlite:") {
            assert_sqlite_integrity(Path::new(file)).await;
        }
        scenario.verify(&service).await;
        // On a busy machine most crashes may come before a write is acknowledged.
        let enough = scenario.counts.acknowledged > crashes;
        if cycle >= cycles && enough {
            break;
        }
        assert!(
            cycle < 10 * cycles,
            "fewer acknowledged writes than crashes: {:?}",
            scenario.counts
        );
    }
    scenario.verify(&service).await;
    let counts = &scenario.counts;
    println!("{name}: {crashes} crashes after {earliest:?} to {latest:?}, {counts:?}");
}

fn crash_and_restart(service: &mut Service, crash: Crash) {
    match crash {
        Crash::Server => {
            service.kill();
            service.restart();
        }
        Crash::Database => service.crash_database(),
    }
}
