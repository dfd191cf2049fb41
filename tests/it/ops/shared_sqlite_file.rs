//! Several processes on one SQLite file.

use std::fs::File;

use bytes::Bytes;
use prost::Message;
use rustix::{
    fs::{FlockOperation, fcntl_lock},
    process::Signal,
};
use tokio::task::JoinSet;

use crate::{command::command, prelude::*};

const WRITES: usize = 48;

#[tokio::test]
async fn two_servers_on_one_file_lose_no_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite:{}/e.db", directory.path().display());
    let start = || {
        let server = command(&["--listen=127.0.0.1:0"]);
        server.env("EXPERTISE_DATABASE_URL", &url).start()
    };
    let servers = [start(), start()];
    let first = Client::at(servers[0].address());
    let second = Client::at(servers[1].address()).with_account(first.account());
    let created = first.given_task(task("Shared")).await;
    let mut writes = JoinSet::new();
    for number in 0..WRITES {
        let client = [&first, &second][number % 2].clone();
        let step = information_step(&created, "Appended");
        writes.spawn(async move { client.create_step(step).await.accepted() });
    }
    assert_eq!(writes.join_all().await.len(), WRITES);
    let stored = first.get_task(&created.guid).await.accepted();
    assert_eq!(stored, second.get_task(&created.guid).await.accepted());
    assert_eq!(stored.steps.len(), WRITES);
    let guid = created.guid.clone();
    let export: Bytes = ExportTaskRequest { guid }.encode_to_vec().into();
    let [one, other] =
        [&first, &second].map(|client| client.send_bytes("TaskService/ExportTask", export.clone()));
    assert_eq!(one.await.expect("bytes"), other.await.expect("bytes"));
    // What the one has written, the other compares with.
    let outdated = task_of(&created.guid)
        .with_etag(created.etag.clone())
        .named("Renamed");
    let failure = second.update_task(outdated, &["name"]).await.refused();
    failure.is(Code::Aborted, "ETAG_MISMATCH");
}

/// Only a lock tells other processes that a server uses the file. Without it, `sqlite3` deletes the
/// write-ahead log when it exits, and with it later writes of the server. A process loses its lock
/// when it closes any descriptor of the file.
#[test]
fn a_server_keeps_the_file_locked_that_it_has_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("e.db");
    let url = format!("sqlite:{}", path.display());
    let start = || {
        let server = command(&["--listen=127.0.0.1:0"]);
        server.env("EXPERTISE_DATABASE_URL", &url).start()
    };
    let creator = start();
    creator.address();
    creator.signal(Signal::TERM);
    creator.end().succeeded();
    let server = start();
    server.address();
    let file = File::options().read(true).write(true).open(&path);
    let file = file.expect("the file");
    let locked = || fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive);
    locked().expect_err("the server has no lock");
    let url = ["accounts", "--database-url", &url];
    command(&url).run().succeeded();
    locked().expect_err("the server has lost its lock");
    server.kill();
    locked().expect("nobody has a lock");
}
