//! Which cores the server, its database and the load run on.

use std::{
    fs,
    process::{Command, Stdio, id},
    thread::available_parallelism,
};

/// Starts a server that has all cores but the last, where PostgreSQL and the load run. A
/// database and callers are on other machines: where they share a server's cores, it
/// serves the fewer the more it is asked, whatever it does. Without two cores and
/// `taskset` they share all.
pub fn parted<T>(start: impl FnOnce() -> T) -> (T, Option<Parted>) {
    let parted = available_parallelism()
        .ok()
        .and_then(|cores| cores.get().checked_sub(1))
        .filter(|last| *last > 0)
        .map(|last| Parted { last });
    let Some(parted) = parted else {
        return (start(), None);
    };
    let last = parted.last.to_string();
    // What PostgreSQL starts for the server goes where PostgreSQL is.
    let mut apart = started().into_iter().all(|process| pin(process, &last));
    // A server has as many threads as cores when it starts.
    apart &= pin(id(), &format!("0-{}", parted.last - 1));
    let server = start();
    apart &= pin(id(), &last);
    (server, apart.then_some(parted))
}

/// Until it is dropped, not everything runs on every core.
#[derive(Debug)]
pub struct Parted {
    last: usize,
}

impl Drop for Parted {
    fn drop(&mut self) {
        let all = format!("0-{}", self.last);
        for process in started().into_iter().chain([id()]) {
            pin(process, &all);
        }
    }
}

/// Moves all threads of a process.
fn pin(process: u32, cores: &str) -> bool {
    let pinned = Command::new("taskset")
        .args(["-a", "-p", "-c", cores, &process.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // One that has ended meanwhile is nowhere.
    let gone = || !fs::exists(format!("/proc/{process}")).unwrap_or(true);
    pinned.is_ok_and(|status| status.success()) || gone()
}

/// The processes below this one.
fn started() -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The name in parentheses may hold anything; behind it, the state and the parent.
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (process, parent)));
    }
    let mut found = vec![id()];
    let mut next = 0;
    while let Some(&process) = found.get(next) {
        let children = parents.iter().filter(|(_, parent)| *parent == process);
        found.extend(children.map(|(child, _)| *child));
        next += 1;
    }
    found.split_off(1)
}
