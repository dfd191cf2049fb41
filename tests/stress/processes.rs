//! No process outlives its test, however the test ends.

use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::Command,
    thread,
};

use crate::{
    kit::{
        child::{EndSignal, SupervisedChild},
        command::command,
        deadline::{WAIT_TIMEOUT, poll_for},
        pgbouncer::PgBouncer,
        postgres::Cluster,
        scratch::Scratch,
        server_process::ServerProcess,
    },
    machine,
};

/// Names the file for process ids. Only a run that has this variable executes
/// [`starts_processes_when_it_is_told_to`].
const PIDS_FILE: &str = "TEST_PIDS_FILE";
const ON_MEMORY: [(&str, &str); 1] = [("EXPERTISE_DATABASE_URL", "sqlite::memory:")];

fn is_running(pid: &str) -> bool {
    // A zombie has ended.
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[test]
fn a_server_ends_when_its_test_panics() {
    let _machine = machine::shared();
    let server = ServerProcess::start("panicking", &ON_MEMORY);
    let pid = server.id().to_string();
    assert!(is_running(&pid));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _server = server;
        panic!("as a test would");
    }));
    assert!(panicked.is_err());
    assert!(!is_running(&pid));
}

#[test]
#[cfg_attr(no_pgbouncer, ignore = "no PgBouncer here")]
fn all_processes_end_when_a_run_is_killed_that_ignores_sigquit() {
    let _machine = machine::shared();
    let file = Scratch::of_this_run().path("pids");
    // A shell has the commands that it starts in the background ignore these signals.
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' INT QUIT; exec \"$0\" \"$@\""])
        .arg(env::current_exe().expect("this binary"))
        .args(["--exact", "processes::starts_processes_when_it_is_told_to"])
        .env(PIDS_FILE, &file);
    let run = SupervisedChild::spawn(&mut command, EndSignal::Kill);
    let pids = poll_for(WAIT_TIMEOUT, || fs::read_to_string(&file).ok());
    let pids = pids.expect("the processes start");
    let pids: Vec<&str> = pids.split_whitespace().collect();
    assert!(
        !pids.is_empty() && pids.iter().all(|pid| is_running(pid)),
        "{pids:?}"
    );
    drop(run);
    let ended = poll_for(WAIT_TIMEOUT, || {
        (!pids.iter().any(|pid| is_running(pid))).then_some(())
    });
    assert!(ended.is_some(), "they run on: {pids:?}");
}

/// The run that the test above kills.
#[test]
fn starts_processes_when_it_is_told_to() {
    let Some(file) = env::var_os(PIDS_FILE) else {
        return;
    };
    let server = ServerProcess::start("killed", &ON_MEMORY);
    let mut pids = server.id().to_string();
    let serving = command(&["serve", "--database-url", "sqlite::memory:"]).start();
    pids += &format!(" {}", serving.id());
    let cluster = Cluster::start("killed.cluster", &["fsync=off"]);
    let postmaster = fs::read_to_string(cluster.data().join("postmaster.pid"));
    let postmaster = postmaster.expect("the file of the server's process id");
    pids += &format!(" {}", postmaster.lines().next().expect("a process id"));
    let pgbouncer = PgBouncer::start(&cluster.url(), "");
    pids += &format!(" {}", pgbouncer.id());
    let file = Path::new(&file);
    let next = file.with_extension("next");
    fs::write(&next, pids).expect("a file");
    fs::rename(&next, file).expect("a file");
    thread::sleep(WAIT_TIMEOUT);
}
