//! No room on the disk of SQLite.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tonic_health::pb::health_check_response::ServingStatus;

use rustix::process::Signal;

use super::{prelude::*, rounds};
use crate::{
    kit::{
        child::cannot_run_without,
        scratch::Scratch,
        server::{Settings, TestServer},
    },
    service::{LOG_WARNINGS, assert_sqlite_integrity},
};

/// The room at first: less than SQLite's log takes before its first checkpoint.
const ROOM: u64 = 3 * 1024 * 1024;
/// The room that each round adds.
const MORE_ROOM: u64 = 8 * 1024 * 1024;
/// The room in which nothing is refused.
const ROOM_OF_ALL: u64 = 1024 * 1024 * 1024;
/// The bytes of a body: some dozens of bodies fill the room.
const BODY: usize = 64 * 1024;
const CLIENTS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_mount, ignore = "no right to mount here")]
async fn a_full_disk_refuses_writes_and_loses_none() {
    let _machine = machine::shared();
    // As root, or as another user where the system lets users make name spaces.
    let name_spaces = [
        (["unshare", "-m"], &["-m"][..]),
        (["unshare", "-rm"], &["-m", "-U", "--preserve-credentials"]),
    ];
    let mut name_spaces = name_spaces.into_iter();
    let Some((unshare, enter)) = name_spaces.find(|(unshare, _)| mounts(unshare)) else {
        cannot_run_without("right to mount");
    };
    let path = directory("full").display().to_string();
    // In the name space of the server, the mount ends with it.
    let mount = format!("mount -t tmpfs -o size={ROOM} tmpfs \"$0\" && exec \"$1\"");
    let mut command = unshare.to_vec();
    command.extend(["sh", "-c", &mount, &path]);
    let server = serve(&command, &path);
    // The path from outside the name space.
    let outside_path = PathBuf::from(format!("/proc/{}/root{path}", server.id()));
    refuses_writes_while_full("full", &server, &outside_path, |size| {
        let mut command = Command::new("nsenter");
        command.args(enter).args(["-t", &server.id().to_string()]);
        command.args(["mount", "-o", &format!("remount,size={size}"), &path]);
        assert!(succeeds(&mut command));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_prlimit, ignore = "no prlimit here")]
async fn a_limit_on_the_size_of_files_refuses_writes_and_loses_none() {
    let _machine = machine::shared();
    if !succeeds(Command::new("prlimit").arg("--fsize")) {
        cannot_run_without("prlimit");
    }
    let directory = directory("limited");
    let server = serve(&[], &directory.display().to_string());
    let limit = |size: u64| {
        let mut command = Command::new("prlimit");
        command.args(["--pid", &server.id().to_string()]);
        assert!(succeeds(command.arg(format!("--fsize={size}:"))));
    };
    limit(ROOM);
    refuses_writes_while_full("limited", &server, &directory, limit).await;
}

fn directory(name: &str) -> PathBuf {
    let directory = Scratch::of_this_run().path(name);
    fs::create_dir(&directory).expect("a directory of its own");
    directory
}

/// Whether this command runs others with the right to mount.
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

fn serve(command: &[&str], directory: &str) -> TestServer {
    let url = format!("sqlite:{directory}/expertise.db");
    let settings = Settings::new(&url).set_all(&[LOG_WARNINGS]);
    let server = TestServer::start_by(command, &settings);
    server.unwrap_or_else(|log| panic!("the server does not start: {log}"))
}

/// Writes until there is no room, and again when there is.
async fn refuses_writes_while_full(
    name: &str,
    server: &TestServer,
    directory: &Path,
    grow: impl Fn(u64),
) {
    let health = Health::of(server.address());
    let client = Client::at(server.address());
    let task = client.given_task(task("Full")).await;
    let mut added: Vec<(String, String)> = Vec::new();
    let mut load = Writers::start(name, server.address(), CLIENTS).await;
    for round in 1..=rounds() as u64 {
        load.wait_until_served(5).await;
        let now = ListChangesRequest::default().with(|it| it.set_start(ChangeStart::Now));
        let now = client.call(now).await.accepted().next_cursor;
        let refused = fill(&client, &task, &mut added).await;
        refused.is(Code::Unavailable, "STORE_UNAVAILABLE");
        assert!(refused.message.contains("no space"), "{refused:?}");
        assert!(refused.details.retry_info().is_some(), "{refused:?}");
        load.wait_until_reads_are_served(20).await;
        let changes = ListChangesRequest::default().with(|it| it.cursor = now);
        client.call(changes).await.accepted();
        assert_eq!(health.status().await, ServingStatus::Serving);
        added_steps_are_there(&client, &task, &added).await;
        would_survive_a_crash(server, directory).await;
        grow(ROOM + round * MORE_ROOM);
        load.wait_until_served_without_errors().await;
        add(&client, &task, &mut added).await.accepted();
    }
    // What the clients wrote is compared with the same writes in other accounts, which take room.
    grow(ROOM_OF_ALL);
    let history = load.end().await;
    added_steps_are_there(&client, &task, &added).await;
    would_survive_a_crash(server, directory).await;
    history.has_no_errors_but(name, &[Code::Unavailable, Code::Aborted]);
}

/// Adds steps until one is refused.
async fn fill(client: &Client, task: &Task, added: &mut Vec<(String, String)>) -> Failure {
    loop {
        if let Err(status) = add(client, task, added).await {
            return Failure::from(status);
        }
    }
}

/// Adds a step with a body of its own.
async fn add(
    client: &Client,
    task: &Task,
    added: &mut Vec<(String, String)>,
) -> Result<(), tonic::Status> {
    let title = added.len().to_string();
    let body = format!("{title} ").repeat(BODY / (title.len() + 1));
    let step = information_step(task, &title).with_body(body.clone());
    client.create_step(step).await?;
    added.push((title, body));
    Ok(())
}

/// Asserts that every step that was acknowledged is there, and no other.
async fn added_steps_are_there(client: &Client, task: &Task, added: &[(String, String)]) {
    let steps = client.steps_with_bodies(&task.guid).await;
    let found = steps.into_iter().map(|step| (step.title, step.body));
    let added = added.iter().cloned();
    assert!(found.eq(added.map(|(title, body)| (title, Some(body)))));
}

/// Asserts that the database would not be corrupt if the server crashed now.
async fn would_survive_a_crash(server: &TestServer, directory: &Path) {
    let copy = Scratch::of_this_run().path(&format!("{}.copy", server.id()));
    fs::create_dir_all(&copy).expect("a directory for the copy");
    server.signal(Signal::STOP);
    until("the server is stopped", async || {
        is_stopped(server).then_some(())
    })
    .await;
    for file in ["expertise.db", "expertise.db-wal"] {
        fs::copy(directory.join(file), copy.join(file)).expect("a copy");
    }
    server.signal(Signal::CONT);
    assert_sqlite_integrity(&copy.join("expertise.db")).await;
}

/// Whether every thread of the process is stopped.
fn is_stopped(server: &TestServer) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", server.id())).expect("its threads");
    threads.flatten().all(|thread| {
        let state = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        state.contains(") T ")
    })
}
