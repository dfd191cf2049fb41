//! Servers that are told to end.

use std::time::{Duration, Instant};

use tonic_health::pb::health_check_response::ServingStatus;

use crate::harness::{
    agree::Fate,
    dice::Dice,
    load::load,
    patience::patiently,
    peers::{Peers, follow_health},
    seen::Seen,
    service::{Service, number},
    writer::{Writer, audit},
};

const WRITERS: usize = 16;
/// The latest moment of the end after the load began, in microseconds.
const LATEST: u64 = 500_000;

/// Far more than what is at hand takes: peers that say nothing are not waited for.
const LONG: Grace = Grace {
    setting: "60s",
    suffices: true,
    limit: Duration::from_secs(30),
};
/// Less than the call takes that never ends.
const SHORT: Grace = Grace {
    setting: "1s",
    suffices: false,
    limit: Duration::from_secs(10),
};

#[derive(Clone, Copy)]
struct Grace {
    setting: &'static str,
    /// Whether every call at hand ends before it is over.
    suffices: bool,
    /// What an end takes at most, on however busy a machine.
    limit: Duration,
}

#[test]
fn a_server_that_ends_answers_what_is_at_hand_on_sqlite() {
    let service = Service::on_sqlite("end-sqlite", &LONG.settings());
    end("end-sqlite", service, LONG);
}

#[test]
fn a_server_that_ends_answers_what_is_at_hand_on_postgres() {
    if let Some(service) = Service::on_postgres("end-postgres", &LONG.settings()) {
        end("end-postgres", service, LONG);
    }
}

#[test]
fn a_server_whose_grace_is_over_keeps_what_it_acknowledged_on_sqlite() {
    let service = Service::on_sqlite("cut-sqlite", &SHORT.settings());
    end("cut-sqlite", service, SHORT);
}

#[test]
fn a_server_whose_grace_is_over_keeps_what_it_acknowledged_on_postgres() {
    if let Some(service) = Service::on_postgres("cut-postgres", &SHORT.settings()) {
        end("cut-postgres", service, SHORT);
    }
}

impl Grace {
    fn settings(self) -> [(&'static str, &'static str); 2] {
        [
            ("EXPERTISE_SHUTDOWN_GRACE", self.setting),
            ("EXPERTISE_LOG", "warn"),
        ]
    }
}

/// What happened in a run.
#[derive(Debug, Default)]
struct Account {
    ends: u64,
    longest: Duration,
    acknowledged: u64,
    /// Not answered, and found done or not.
    done: u64,
    not_done: u64,
    repeated: u64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn end(name: &str, mut service: Service, grace: Grace) {
    let mut dice = Dice::of_this_run(name);
    let shared = service.shared_task().await;
    let writers = 0..WRITERS;
    let mut writers: Vec<Writer> = writers
        .map(|writer| Writer::new(writer, 1, &shared, dice.hand_on()))
        .collect();
    let mut account = Account::default();
    for _ in 0..number("EXPERTISE_SHUTDOWN_CYCLES", 4) {
        let server = service.process().address();
        let health = follow_health(server).await;
        let peers = match grace.suffices {
            true => Peers::silent(server).await,
            false => Peers::trickling(server).await,
        };
        let moment = Duration::from_micros(dice.below(LATEST));
        let (written, took) = load(&mut service, writers, moment, terminate).await;
        writers = written;
        drop(peers);
        assert!(took < grace.limit, "it took {took:?}");
        let health = health.await.expect("it was followed");
        assert_eq!(health, ServingStatus::NotServing);
        account.ends += 1;
        account.longest = account.longest.max(took);

        service.start();
        let caller = service.caller();
        let seen = patiently!(Seen::read(&caller).await);
        let decided = audit(writers.iter_mut(), &shared, &seen);
        for (writer, decided) in writers.iter_mut().zip(decided) {
            for decided in &decided {
                match decided.fate {
                    Fate::Done(_) => account.done += 1,
                    Fate::NotDone => account.not_done += 1,
                }
            }
            account.repeated += writer.repeat(&caller, decided).await;
        }
    }
    account.acknowledged = writers.iter().map(|writer| writer.acknowledged).sum();
    println!("{name}: {account:?}");
    if grace.suffices {
        assert_eq!(account.done, 0, "what was done was not answered");
    }
}

/// Has the server end, and says how long that took.
fn terminate(service: &mut Service) -> Duration {
    let begun = Instant::now();
    let status = service.terminate();
    assert!(status.success(), "{status}");
    begun.elapsed()
}
