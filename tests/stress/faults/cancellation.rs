//! Clients that cancel their calls.

use std::time::Duration;

use super::CLIENTS;
use crate::{
    kit::server::Setting,
    machine,
    service::{LOG_WARNINGS, Service, no_transaction_is_left_open},
    variables::number_from_env,
    writers::Writers,
};

/// Writes to cancel, unless `EXPERTISE_TEST_CANCELLED_CALLS` says otherwise.
const CANCELLED_CALLS: u64 = 300;
/// The delay between server and PostgreSQL.
const DATABASE_DELAY: Duration = Duration::from_millis(1);
const SETTINGS: [Setting; 2] = [("EXPERTISE_DATABASE_MAX_CONNECTIONS", "8"), LOG_WARNINGS];

#[test]
fn cancelled_calls_leave_all_or_nothing_on_sqlite() {
    let _machine = machine::shared();
    let service = Service::on_sqlite("cancel-sqlite", &SETTINGS);
    cancelled_calls_leave_all_or_nothing("cancel-sqlite", service);
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn cancelled_calls_leave_all_or_nothing_on_postgres() {
    let _machine = machine::shared();
    let service = Service::on_slow_postgres("cancel-postgres", DATABASE_DELAY, &SETTINGS);
    cancelled_calls_leave_all_or_nothing("cancel-postgres", service);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_leave_all_or_nothing(name: &str, mut service: Service) {
    let cancelled = number_from_env("EXPERTISE_TEST_CANCELLED_CALLS").unwrap_or(CANCELLED_CALLS);
    let mut writers = Writers::start_cancelling(name, service.address(), CLIENTS).await;
    writers.wait_until_cancelled(cancelled as usize).await;
    // These calls are acknowledged before the server is killed. They survive unless they ran in a
    // transaction that a cancelled call had left open.
    writers.wait_until_served(CLIENTS).await;
    let history = writers.end_after(async || {
        // A restart would end every transaction.
        no_transaction_is_left_open(service.database()).await;
        service.kill();
        service.restart();
        service.delay_database(Duration::ZERO);
    });
    let history = history.await;
    history.print(name);
    assert!(history.done > 0 && history.not_done > 0);
}
