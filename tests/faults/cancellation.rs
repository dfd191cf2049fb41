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
        leavers = look_after(&service, &shared, leavers, &mut account).await;
        account.left = leavers.iter().map(|leaver| leaver.left).sum();
    }
    // Now nobody goes away, and then the server does: what it acknowledged was
    // not in a transaction that somebody had left open.
    let caller = service.caller();
    leavers = at_once(leavers, |leaver| leaver.stay(caller.clone(), LAST_CALLS)).await;
    leavers = look_after(&service, &shared, leavers, &mut account).await;
    service.kill();
    service.start();
    leavers = look_after(&service, &shared, leavers, &mut account).await;
    for leaver in &leavers {
        account.acknowledged += leaver.writer.acknowledged;
        account.refused += leaver.refused;
        account.repeated += leaver.repeated;
    }
    println!("{name}: {account:?} in {:?}", begun.elapsed());
    assert!(account.done > 0 && account.not_done > 0, "{account:?}");
}

async fn at_once<T, F: Future<Output = Leaver> + Send + 'static>(
    who: impl IntoIterator<Item = T>,
    action: impl FnMut(T) -> F,
) -> Vec<Leaver> {
    let acting: JoinSet<Leaver> = who.into_iter().map(action).collect();
    acting.join_all().await
}

/// Asserts that what is left is right, and repeats some of the calls.
async fn look_after(
    service: &Service,
    shared: &Task,
    mut leavers: Vec<Leaver>,
    account: &mut Account,
) -> Vec<Leaver> {
    let seen = once_quiet(service).await;
    // Somebody else sees what the server shows.
    let there = bystander::tasks(service.database()).await;
    assert_eq!(there, seen.holdings.len(), "tasks in the database");
    let writers = leavers.iter_mut().map(|leaver| &mut leaver.writer);
    let decided = audit(writers, shared, &seen);
    let fates = decided.iter().flatten().map(|decided| &decided.fate);
    let done = fates.clone().filter(|fate| **fate != Fate::NotDone).count() as u64;
    account.done += done;
    account.not_done += fates.count() as u64 - done;
    let caller = service.caller();
    at_once(leavers.into_iter().zip(decided), |(leaver, decided)| {
        leaver.repeat(caller.clone(), decided)
    })
    .await
}

/// What is there when nothing is under way any more. To read it uses each
/// connection of the server, but ends no transaction.
async fn once_quiet(service: &Service) -> Seen {
    let (caller, database) = (service.caller(), service.database());
    let patience = Instant::now() + PATIENCE;
    loop {
        let before = bystander::summary(database).await;
        let seen = match Seen::read(&caller).await.map_err(|status| verdict(&status)) {
            Ok(seen) => Some(seen),
            // It was deleted while it was read, or every connection was taken.
            Err(Verdict::Missing | Verdict::Unknown) => None,
            Err(other) => panic!("{other:?}: it is read"),
        };
        let held = bystander::held(database).await;
        let still = before == bystander::summary(database).await;
        if let Some(seen) = seen.filter(|_| still && held.is_empty()) {
            return seen;
        }
        assert!(Instant::now() < patience, "the server still holds: {held}");
    }
}
