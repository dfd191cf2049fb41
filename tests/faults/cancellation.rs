//! Callers that go away.

use std::time::{Duration, Instant};

use expertise::proto::v1::Task;
use tokio::task::JoinSet;

use crate::harness::{
    agree::Fate,
    bystander,
    dice::Dice,
    leaver::Leaver,
    seen::Seen,
    service::{Service, number},
    writer::{Verdict, Writer, audit, verdict},
};

const LEAVERS: usize = 8;
/// Shelves of each beside the shared one: a call that was left takes one out
/// until it is known what became of it.
const SHELVES: usize = 4;
/// Calls of each between two looks at what is there.
const CALLS: u64 = 12;
/// Calls of each when nobody goes away any more.
const LAST_CALLS: u64 = 4;
/// What is under way longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(20);
const SETTINGS: [(&str, &str); 2] = [
    ("EXPERTISE_DATABASE_MAX_CONNECTIONS", "8"),
    ("EXPERTISE_LOG", "warn"),
];

#[test]
fn callers_that_go_away_leave_all_or_nothing_on_sqlite() {
    let service = Service::on_sqlite("cancel-sqlite", &SETTINGS);
    survive("cancel-sqlite", service);
}

#[test]
fn callers_that_go_away_leave_all_or_nothing_on_postgres() {
    if let Some(service) = Service::on_slow_postgres("cancel-postgres", &SETTINGS) {
        survive("cancel-postgres", service);
    }
}

/// What happened in a run.
#[derive(Debug, Default)]
struct Account {
    left: u64,
    /// Left, and found done or not.
    done: u64,
    not_done: u64,
    acknowledged: u64,
    refused: u64,
    repeated: u64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn survive(name: &str, mut service: Service) {
    let begun = Instant::now();
    let mut dice = Dice::of_this_run(name);
    let shared = service.shared_task().await;
    let server = service.process().address();
    let mut leavers: Vec<Leaver> = (0..LEAVERS)
        .map(|number| Writer::new(number, SHELVES, &shared, dice.hand_on()))
        .map(|writer| Leaver::new(writer, server))
        .collect();
    let mut account = Account::default();
    while account.left < number("EXPERTISE_CANCELLED_CALLS", 600) {
        leavers = at_once(leavers, |leaver| leaver.go(CALLS)).await;
        look_after(&service, &shared, &mut leavers, &mut account).await;
        account.left = leavers.iter().map(|leaver| leaver.left).sum();
    }
    // Now nobody goes away, and then the server does: what it acknowledged was
    // not in a transaction that somebody had left open.
    let caller = service.caller();
    leavers = at_once(leavers, |leaver| leaver.stay(caller.clone(), LAST_CALLS)).await;
    look_after(&service, &shared, &mut leavers, &mut account).await;
    service.kill();
    service.start();
    look_after(&service, &shared, &mut leavers, &mut account).await;
    for leaver in &leavers {
        account.acknowledged += leaver.writer.acknowledged;
        account.refused += leaver.refused;
    }
    println!("{name}: {account:?} in {:?}", begun.elapsed());
    assert!(account.done > 0 && account.not_done > 0, "{account:?}");
}

async fn at_once<F: Future<Output = Leaver> + Send + 'static>(
    leavers: Vec<Leaver>,
    action: impl Fn(Leaver) -> F,
) -> Vec<Leaver> {
    let acting: JoinSet<Leaver> = leavers.into_iter().map(action).collect();
    acting.join_all().await
}

/// Asserts that what is left is right, and repeats some of the calls.
async fn look_after(
    service: &Service,
    shared: &Task,
    leavers: &mut [Leaver],
    account: &mut Account,
) {
    let seen = once_quiet(service).await;
    // Somebody else sees what the server shows.
    let there = bystander::tasks(service.database()).await;
    assert_eq!(there, seen.holdings.len(), "tasks in the database");
    let writers = leavers.iter_mut().map(|leaver| &mut leaver.writer);
    let decided = audit(writers, shared, &seen);
    let caller = service.caller();
    for (leaver, decided) in leavers.iter_mut().zip(decided) {
        for decided in &decided {
            match decided.fate {
                Fate::Done(_) => account.done += 1,
                Fate::NotDone => account.not_done += 1,
            }
        }
        account.repeated += leaver.writer.repeat(&caller, decided).await;
    }
}

/// What is there when nothing is under way any more. Reads use each connection
/// of the server, but none of them ends a transaction.
async fn once_quiet(service: &Service) -> Seen {
    let caller = service.caller();
    let patience = Instant::now() + PATIENCE;
    let mut before = None;
    loop {
        let held = bystander::held(service.database()).await;
        let seen = match Seen::read(&caller).await {
            Ok(seen) => Some(seen),
            // It was deleted while it was read.
            Err(status) if verdict(&status) == Verdict::Missing => None,
            Err(status) => panic!("it serves on: {status:?}"),
        };
        if let Some(seen) = seen.as_ref().filter(|_| held.is_empty() && seen == before) {
            return seen.clone();
        }
        assert!(Instant::now() < patience, "the server still holds {held:?}");
        before = seen;
    }
}
