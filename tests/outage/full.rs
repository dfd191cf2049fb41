//! No room for what SQLite has to write.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tonic_health::pb::health_check_response::ServingStatus;

use crate::harness::{
    absent::report_missing, prelude::*, process::ServerProcess, rounds, scratch::Scratch,
};

/// The room in the beginning, less than SQLite's log takes before it is folded in.
const ROOM: u64 = 2 * 1024 * 1024;
/// What each round adds.
const MORE: u64 = 8 * 1024 * 1024;
/// Bytes of a body: a few of them fill the room.
const BODY: usize = 64 * 1024;
const CALLERS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_and_loses_none() {
    // As root, and as another user where the system lets everybody be root of a
    // name space of their own.
    let name_spaces = [
        (["unshare", "-m"], &["-m"][..]),
        (["unshare", "-rm"], &["-m", "-U", "--preserve-credentials"]),
    ];
    let mut name_spaces = name_spaces.into_iter();
    let Some((unshare, enter)) = name_spaces.find(|(unshare, _)| mounts(unshare)) else {
        report_missing("right to mount", "EXPERTISE_REQUIRE_MOUNT");
        return;
    };
    let path = directory("full").display().to_string();
    // Mounted where nobody else sees it, it goes when the server does.
    let mount = format!("mount -t tmpfs -o size={ROOM} tmpfs \"$0\" && exec \"$1\"");
    let mut command = unshare.to_vec();
    command.extend(["sh", "-c", &mount, &path]);
    let server = serve(&command, "full", &path);
    // A link that SQLite would follow to what is here.
    let seen_from_here = PathBuf::from(format!("/proc/{}/root{path}", server.id()));
    fills_up("full", &server, &seen_from_here, |size| {
        let mut command = Command::new("nsenter");
        command.args(enter).args(["-t", &server.id().to_string()]);
        command.args(["mount", "-o", &format!("remount,size={size}"), &path]);
        assert!(succeeds(&mut command));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_on_the_size_of_files_refuses_writes_and_loses_none() {
    if !succeeds(Command::new("prlimit").arg("--fsize")) {
        report_missing("prlimit", "EXPERTISE_REQUIRE_MOUNT");
        return;
    }
    let directory = directory("limited");
    let server = serve(&[], "limited", &directory.display().to_string());
    let limit = |size: u64| {
        let mut command = Command::new("prlimit");
        command.args(["--pid", &server.id().to_string()]);
        assert!(succeeds(command.arg(format!("--fsize={size}:"))));
    };
    limit(ROOM);
    fills_up("limited", &server, &directory, limit).await;
}

fn directory(name: &str) -> PathBuf {
    let directory = Scratch::of_this_run().path(name);
    fs::create_dir(&directory).expect("a directory of its own");
    directory
}

/// Whether this command runs another where it can mount.
fn mounts(command: &[&str]) -> bool {
    let mut words = command.iter();
    let mut command = Command::new(words.next().expect("a program"));
    let mount = ["mount", "-t", "tmpfs", "tmpfs", "/mnt"];
    succeeds(command.args(words).args(mount))
}

fn succeeds(command: &mut Command) -> bool {
    let (out, err) = (Stdio::null(), Stdio::null());
    let status = command.stdout(out).stderr(err).status();
    status.is_ok_and(|status| status.success())
}

fn serve(command: &[&str], name: &str, directory: &str) -> ServerProcess {
    let url = format!("sqlite:{directory}/expertise.db");
    let settings = [
        ("EXPERTISE_DATABASE_URL", url.as_str()),
        ("EXPERTISE_LOG", "warn"),
    ];
    let server = ServerProcess::start_by(command, name, &settings);
    server.unwrap_or_else(|log| panic!("{name} did not start: {log}"))
}

/// Writes until there is no room, and again when there is.
async fn fills_up(name: &str, server: &ServerProcess, directory: &Path, grow: impl Fn(u64)) {
    let health = Health::of(server.address());
    let world = World::at(server.address());
    let shelf = world.given_task(task("Shelf")).await;
    let mut kept: Vec<(String, String)> = Vec::new();
    let mut load = Load::on(server.address(), CALLERS);
    for round in 1..=rounds() as u64 {
        load.is_served(20).await;
        let refused = fill(&world, &shelf, &mut kept).await;
        refused.is(Code::Unavailable, "STORE_UNAVAILABLE");
        assert!(refused.message.contains("no room"), "{refused:?}");
        assert!(refused.details.retry_info().is_some(), "{refused:?}");
        load.reads_are_served(20).await;
        assert_eq!(health.now("").await, ServingStatus::Serving);
        holds(&world, &shelf, &kept).await;
        is_sound(server, directory).await;
        grow(ROOM + round * MORE);
        load.is_well().await;
        add(&world, &shelf, &mut kept).await.accepted();
    }
    let history = load.end().await;
    holds(&world, &shelf, &kept).await;
    is_sound(server, directory).await;
    history.tells(name, &[Code::Unavailable, Code::Aborted]);
}

/// Adds steps until one is refused.
async fn fill(world: &World, shelf: &Task, kept: &mut Vec<(String, String)>) -> Failure {
    loop {
        if let Err(status) = add(world, shelf, kept).await {
            return Failure::from(status);
        }
    }
}

/// Adds a step with a body that says which it is.
async fn add(
    world: &World,
    shelf: &Task,
    kept: &mut Vec<(String, String)>,
) -> Result<(), tonic::Status> {
    let title = kept.len().to_string();
    let body = format!("{title} ").repeat(BODY / (title.len() + 1));
    let step = Step {
        body: Some(body.clone()),
        ..note(shelf, &title)
    };
    world.create_step(step).await?;
    kept.push((title, body));
    Ok(())
}

/// Asserts that every step that was acknowledged is there, and no other.
async fn holds(world: &World, shelf: &Task, kept: &[(String, String)]) {
    let steps = world.full_steps_of(&shelf.guid).await;
    let found = steps.into_iter().map(|step| (step.title, step.body));
    let kept = kept.iter().cloned();
    assert!(found.eq(kept.map(|(title, body)| (title, Some(body)))));
}

/// Asserts that the database is whole, were the server to crash now.
async fn is_sound(server: &ServerProcess, directory: &Path) {
    let copy = Scratch::of_this_run().path(&format!("{}.copy", server.id()));
    fs::create_dir_all(&copy).expect("a directory for the copy");
    server.signal(rustix::process::Signal::STOP);
    until("it stands still", async || {
        stands_still(server).then_some(())
    })
    .await;
    for file in ["expertise.db", "expertise.db-wal"] {
        fs::copy(directory.join(file), copy.join(file)).expect("a copy");
    }
    server.signal(rustix::process::Signal::CONT);
    let options = SqliteConnectOptions::new().filename(copy.join("expertise.db"));
    let connection = SqliteConnection::connect_with(&options).await;
    let mut connection = connection.expect("the file");
    let found: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut connection)
        .await
        .expect("a finding");
    assert_eq!(found, "ok");
    connection.close().await.expect("it is closed");
}

/// Whether every thread of the process is stopped.
fn stands_still(server: &ServerProcess) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", server.id())).expect("its threads");
    threads.flatten().all(|thread| {
        let state = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        state.contains(") T ")
    })
}
