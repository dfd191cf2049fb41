//! Servers and databases that crash.

use std::time::Duration;

use expertise::proto::v1::Task;
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::harness::{
    agree::Fate,
    dice::Dice,
    load::load,
    patience::patiently,
    seen::Seen,
    service::{Service, number},
    writer::{Writer, audit},
};

const WRITERS: usize = 16;
/// The latest moment of a crash after the load began, in microseconds.
const LATEST: u64 = 300_000;
const QUIET: [(&str, &str); 1] = [("EXPERTISE_LOG", "warn")];

/// What crashes.
#[derive(Clone, Copy)]
enum Crash {
    Server,
    Database,
}

#[test]
fn a_killed_server_on_sqlite_leaves_what_it_acknowledged() {
    let service = Service::on_sqlite("crash-sqlite", &QUIET);
    survive("crash-sqlite", service, Crash::Server);
}

#[test]
fn a_killed_server_on_postgres_leaves_what_it_acknowledged() {
    if let Some(service) = Service::on_postgres("crash-postgres", &QUIET) {
        survive("crash-postgres", service, Crash::Server);
    }
}

#[test]
fn a_crashed_postgres_leaves_what_was_acknowledged() {
    if let Some(service) = Service::on_postgres("crash-cluster", &QUIET) {
        survive("crash-cluster", service, Crash::Database);
    }
}

/// What happened in a run.
#[derive(Debug, Default)]
struct Account {
    crashes: u64,
    /// In microseconds after the load began.
    earliest: u64,
    latest: u64,
    acknowledged: u64,
    /// Not answered, and found done or not.
    done: u64,
    not_done: u64,
    repeated: u64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn survive(name: &str, mut service: Service, crash: Crash) {
    let mut dice = Dice::of_this_run(name);
    let shared = service.shared_task().await;
    let writers = 0..WRITERS;
    let mut writers: Vec<Writer> = writers
        .map(|writer| Writer::new(writer, 1, &shared, dice.hand_on()))
        .collect();
    let mut account = Account {
        earliest: LATEST,
        ..Account::default()
    };
    for _ in 0..number("EXPERTISE_CRASH_CYCLES", 25) {
        let moment = dice.below(LATEST);
        account.earliest = account.earliest.min(moment);
        account.latest = account.latest.max(moment);
        let moment = Duration::from_micros(moment);
        let crashed = |service: &mut Service| break_down(service, crash);
        (writers, ()) = load(&mut service, writers, moment, crashed).await;
        if dice.once_in(5) {
            // Once more while the first is being mended.
            break_down(&mut service, crash);
            account.crashes += 1;
        }
        account.crashes += 1;
        look_after(&service, &shared, &mut writers, &mut account).await;
    }
    let seen = patiently!(Seen::read(&service.caller()).await);
    audit(&mut writers, &shared, &seen);
    account.acknowledged = writers.iter().map(|writer| writer.acknowledged).sum();
    println!(
        "{name}: {account:?}, {} tasks at the end",
        seen.holdings.len()
    );
    assert!(account.acknowledged > account.crashes, "nothing was tried");
}

fn break_down(service: &mut Service, crash: Crash) {
    match crash {
        Crash::Server => {
            service.kill();
            service.start();
        }
        Crash::Database => service.crash_database(),
    }
}

/// Asserts that what is left is right, and repeats some of what was under way.
async fn look_after(
    service: &Service,
    shared: &Task,
    writers: &mut [Writer],
    account: &mut Account,
) {
    is_sound(service.database()).await;
    let caller = service.caller();
    let seen = patiently!(Seen::read(&caller).await);
    let decided = audit(writers.iter_mut(), shared, &seen);
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

/// Asserts that a SQLite file is whole.
async fn is_sound(database: &str) {
    let Some(path) = database.strip_prefix("sqlite:") else {
        return;
    };
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let connection = SqliteConnection::connect_with(&options).await;
    let mut connection = connection.expect("the file");
    let found: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut connection)
        .await
        .expect("a finding");
    assert_eq!(found, "ok");
    let broken = sqlx::query("PRAGMA foreign_key_check")
        .fetch_all(&mut connection)
        .await
        .expect("findings");
    assert!(broken.is_empty(), "{} references are broken", broken.len());
    connection.close().await.expect("it is closed");
}
