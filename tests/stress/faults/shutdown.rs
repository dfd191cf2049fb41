//! Servers that are told to end.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tonic_health::pb::health_check_response::ServingStatus;

use super::CLIENTS;
use crate::{
    frame_peer::{self, FramePeer},
    health::Health,
    kit::{deadline::until_true, server::Setting},
    machine,
    service::{LOG_WARNINGS, Service},
    variables::number_from_env,
    writers::Writers,
};

/// The most milliseconds from a served call to SIGTERM.
const MAX_TERMINATION_DELAY: usize = 500;

/// Far more than the calls under way take: idle peers are not waited for.
const LONG_GRACE: Grace = Grace {
    setting: "60s",
    suffices: true,
    time_max: Duration::from_secs(30),
};
/// Ends before all calls do: one of them never ends.
const SHORT_GRACE: Grace = Grace {
    setting: "1s",
    suffices: false,
    time_max: Duration::from_secs(10),
};

/// How long a server may go on with the calls under way.
#[derive(Clone, Copy)]
struct Grace {
    setting: &'static str,
    /// Whether all calls under way end before it is over.
    suffices: bool,
    /// The most that a shutdown takes, also on a busy machine.
    time_max: Duration,
}

#[test]
fn a_server_that_ends_answers_the_calls_under_way_on_sqlite() {
    let _machine = machine::shared();
    let service = Service::on_sqlite("end-sqlite", &LONG_GRACE.settings());
    no_acknowledged_write_is_lost("end-sqlite", service, LONG_GRACE);
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_server_that_ends_answers_the_calls_under_way_on_postgres() {
    let _machine = machine::shared();
    let service = Service::on_own_postgres("end-postgres", &LONG_GRACE.settings());
    no_acknowledged_write_is_lost("end-postgres", service, LONG_GRACE);
}

#[test]
fn a_server_whose_grace_is_over_keeps_what_it_acknowledged_on_sqlite() {
    let _machine = machine::shared();
    let service = Service::on_sqlite("cut-sqlite", &SHORT_GRACE.settings());
    no_acknowledged_write_is_lost("cut-sqlite", service, SHORT_GRACE);
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_server_whose_grace_is_over_keeps_what_it_acknowledged_on_postgres() {
    let _machine = machine::shared();
    let service = Service::on_own_postgres("cut-postgres", &SHORT_GRACE.settings());
    no_acknowledged_write_is_lost("cut-postgres", service, SHORT_GRACE);
}

impl Grace {
    fn settings(self) -> [Setting<'static>; 2] {
        [("EXPERTISE_SHUTDOWN_GRACE", self.setting), LOG_WARNINGS]
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_write_is_lost(name: &str, mut service: Service, grace: Grace) {
    let mut writers = Writers::start(name, service.address(), CLIENTS).await;
    for _ in 0..number_from_env("EXPERTISE_TEST_SHUTDOWN_CYCLES").unwrap_or(4) {
        writers.wait_until_served(1).await;
        let server = service.address();
        let health = Health::of(server).watch_to_the_end().await;
        let peers = stalled_peers(server, grace).await;
        let delay = writers.rng.below(MAX_TERMINATION_DELAY) as u64;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        let took = tokio::task::block_in_place(|| terminate(&mut service));
        drop(peers);
        service.print(&format!("a shutdown took {took:?}"));
        assert!(took < grace.time_max, "it took {took:?}");
        let health = health.await.expect("the watch ends");
        assert_eq!(health, ServingStatus::NotServing);
        tokio::task::block_in_place(|| service.restart());
    }
    let history = writers.end().await;
    history.print(name);
    if grace.suffices {
        assert_eq!(history.done, 0, "a write was done and not answered");
    }
}

/// Shuts the server down. How long that took.
fn terminate(service: &mut Service) -> Duration {
    let started = Instant::now();
    let status = service.terminate();
    assert!(status.success(), "{status}");
    started.elapsed()
}

/// Connections that would hold up a server that waits for them: one that sends nothing, one that
/// answers nothing after the preface of HTTP/2, no PING either, and with a short grace one whose
/// call never ends.
async fn stalled_peers(server: SocketAddr, grace: Grace) -> [FramePeer; 2] {
    let silent = FramePeer::connect(server).await;
    let mut peer = FramePeer::with_preface(server).await;
    until_true("settings", || !peer.received().settings.is_empty()).await;
    if !grace.suffices {
        let call = frame_peer::call(1, "/expertise.v1.StepService/CreateStep", &[]);
        peer.send(&call).await.expect("the server reads");
    }
    [silent, peer]
}
